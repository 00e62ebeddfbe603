//! Rows, dead rows and bytes of tables, and autovacuum's runs over them.

use std::collections::{BTreeMap, HashMap};

use super::rows::{Rows, Statistics};
use super::session::{Asker, Trouble};
use crate::name::is_name;

const STATISTICS: &str = "SELECT schemaname::text, relname::text, relid::oid, n_live_tup::float8, n_dead_tup::float8, \
     seq_scan::float8, autovacuum_count::float8, autoanalyze_count::float8, \
     extract(epoch FROM clock_timestamp() - last_autovacuum)::float8, n_tup_ins::float8, n_tup_del::float8, \
     coalesce((SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()), 0)::float8 \
     FROM pg_stat_user_tables ORDER BY schemaname, relname LIMIT 1000";
/// Apart from the statistics: reading a size takes a lock on the table, and may have to wait for one.
const SIZES: &str = "SELECT t.oid, pg_table_size(t.oid)::float8, pg_indexes_size(t.oid)::float8 \
     FROM unnest($1::oid[]) AS t(oid)";

/// The instrument for tables.
#[derive(Debug)]
pub(super) struct Tables {
    /// Schema and name of those of interest; empty: all.
    wanted: Vec<(String, String)>,
    /// Autovacuum runs at the last round, by database, schema and table.
    autovacuums: HashMap<(String, String, String), f64>,
    rows: Rows,
}

/// One table's statistics.
struct TableRow {
    schema: String,
    name: String,
    oid: u32,
    counted: Statistics,
    dead: f64,
    seq_scans: f64,
    autovacuums: f64,
    autoanalyzes: f64,
    vacuumed_s_ago: Option<f64>,
}

impl Tables {
    pub(super) fn new(wanted: Vec<(String, String)>) -> Self {
        Self {
            wanted,
            autovacuums: HashMap::new(),
            rows: Rows::default(),
        }
    }

    /// Emits what a round reads of every table of every database.
    pub(super) async fn round(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        let mut names = Names::default();
        let (mut autovacuums, mut autoanalyzes, mut whole) = (0.0, 0.0, true);
        for database in asker.sql.databases.clone() {
            let metrics = ["table", "autovacuums"];
            let Some(rows) = asker.ask(&database, STATISTICS, &[], &metrics).await? else {
                whole = false;
                continue;
            };
            let at_s = asker.out.clock.now();
            let rows: Vec<TableRow> = rows
                .iter()
                .map(|row| TableRow {
                    schema: row.get(0),
                    name: row.get(1),
                    oid: row.get(2),
                    counted: Statistics {
                        live: row.get(3),
                        inserted: row.get(9),
                        deleted: row.get(10),
                        rollbacks: row.get(11),
                    },
                    dead: row.get(4),
                    seq_scans: row.get(5),
                    autovacuums: row.get(6),
                    autoanalyzes: row.get(7),
                    vacuumed_s_ago: row.get(8),
                })
                .collect();
            let mut sized = BTreeMap::new();
            for row in &rows {
                autovacuums += row.autovacuums;
                autoanalyzes += row.autoanalyzes;
                self.tell_autovacuum(asker, &database, row, at_s);
                if self.is_wanted(row) && names.take(asker, &database, row) {
                    let place = (database.as_str(), row.schema.as_str(), row.name.as_str());
                    let counted = self.rows.of(asker, place, row.counted).await?;
                    emit_statistics(asker, row, counted, at_s);
                    sized.insert(row.oid, row.name.clone());
                }
            }
            emit_sizes(asker, &database, &sized).await?;
        }
        if whole {
            let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
            for (metric, value) in [("autovacuums", autovacuums), ("autoanalyzes", autoanalyzes)] {
                asker.out.counter(at_s, metric, "count_total", value, epoch);
            }
        }
        Ok(())
    }

    fn is_wanted(&self, row: &TableRow) -> bool {
        self.wanted.is_empty()
            || self
                .wanted
                .iter()
                .any(|(schema, name)| *schema == row.schema && *name == row.name)
    }

    /// Tells when autovacuum went over a table since the last round.
    fn tell_autovacuum(&mut self, asker: &Asker, database: &str, row: &TableRow, at_s: f64) {
        let key = (database.to_string(), row.schema.clone(), row.name.clone());
        let before = self.autovacuums.insert(key, row.autovacuums);
        let Some(runs) = before.map(|before| row.autovacuums - before) else {
            return;
        };
        if runs > 0.0 {
            let ended_s = at_s - row.vacuumed_s_ago.unwrap_or(0.0);
            let detail = format!("{runs} over {}, the last ended at {ended_s:.1} s", row.name);
            asker.out.server(ended_s, "autovacuum", detail);
        }
    }
}

/// Which table's readings stand under a name in figures.
#[derive(Default)]
struct Names {
    taken: BTreeMap<String, (String, String)>,
}

impl Names {
    /// Whether this table's readings may stand under its name. A name that no figure can bear, and a second table of the
    /// same name, are not observed.
    fn take(&mut self, asker: &mut Asker, database: &str, row: &TableRow) -> bool {
        if !is_name(&row.name) {
            let shown: String = row.name.chars().take(60).collect();
            asker.out.not_observed(
                "table",
                format!(
                    "a figure can't bear the name of the table \"{}\": only lower-case letters, digits and _ make a name",
                    shown.escape_debug()
                ),
            );
            return false;
        }
        let place = (database.to_string(), row.schema.clone());
        match self.taken.get(&row.name) {
            None => {
                self.taken.insert(row.name.clone(), place);
                true
            }
            Some((database, schema)) => {
                asker.out.not_observed(
                    &format!("table.{}.of_another_schema", row.name),
                    format!(
                        "several tables have this name; the one in schema \"{}\" of database \"{}\" is observed",
                        schema.escape_debug(),
                        database.escape_debug()
                    ),
                );
                false
            }
        }
    }
}

fn emit_statistics(asker: &mut Asker, row: &TableRow, counted: Option<f64>, at_s: f64) {
    let epoch = asker.epoch();
    let metric = |what: &str| format!("table.{}.{what}", row.name);
    let out = &mut asker.out;
    match counted {
        Some(rows) => out.reading(at_s, &metric("rows"), "rows", rows, epoch),
        None => out.reading(
            at_s,
            &metric("rows_estimate"),
            "rows",
            row.counted.live,
            epoch,
        ),
    }
    out.reading(at_s, &metric("dead"), "rows", row.dead, epoch);
    out.counter(
        at_s,
        &metric("seq_scans"),
        "count_total",
        row.seq_scans,
        epoch,
    );
}

async fn emit_sizes(
    asker: &mut Asker,
    database: &str,
    tables: &BTreeMap<u32, String>,
) -> Result<(), Trouble> {
    if tables.is_empty() {
        return Ok(());
    }
    let oids: Vec<u32> = tables.keys().copied().collect();
    let Some(rows) = asker.ask(database, SIZES, &[&oids], &["table"]).await? else {
        return Ok(());
    };
    let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
    for row in rows {
        let Some(name) = tables.get(&row.get::<_, u32>(0)) else {
            continue;
        };
        // A table dropped in between has no size.
        let (Some(own), Some(indexes)) =
            (row.get::<_, Option<f64>>(1), row.get::<_, Option<f64>>(2))
        else {
            continue;
        };
        for (what, bytes) in [("bytes", own + indexes), ("index_bytes", indexes)] {
            let metric = format!("table.{name}.{what}");
            asker.out.reading(at_s, &metric, "bytes", bytes, epoch);
        }
    }
    Ok(())
}
