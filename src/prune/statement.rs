//! A table's policy as SQL.

use anyhow::ensure;

use crate::experiment::{PruneRule, PruneTable};
use crate::sql::quote_identifier;

/// What is run over one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statements {
    /// The table's name, for messages and events.
    pub(super) name: String,
    /// Deletes one batch.
    pub(super) delete: String,
    /// Rows in a whole batch: fewer mean that nothing is left to delete.
    pub(super) batch: u64,
    /// Vacuums the table, when that is wanted.
    pub(super) vacuum: Option<String>,
}

impl Statements {
    /// Writes the policy of a table. Fails on names that are no identifiers and on numbers beyond PostgreSQL's range.
    pub(super) fn of(table: &PruneTable, vacuum: bool) -> anyhow::Result<Self> {
        let target = format!(
            "{}.{}",
            quote_identifier(&table.schema)?,
            quote_identifier(&table.table)?
        );
        let batch = table.batch.max(1);
        ensure!(
            i64::try_from(batch).is_ok(),
            "a batch of {batch} rows is beyond PostgreSQL's range"
        );
        // Rows are named by their place: a row that someone changed meanwhile has another one, and waits for the next pass.
        let doomed = match &table.rule {
            PruneRule::KeepNewest { rows, by } => {
                ensure!(
                    i64::try_from(*rows).is_ok(),
                    "keep_newest = {rows} is beyond PostgreSQL's range"
                );
                let by = quote_identifier(by)?;
                let condition = match rows {
                    0 => format!("{by} IS NOT NULL"),
                    _ => format!(
                        "{by} < (SELECT {by} FROM {target} WHERE {by} IS NOT NULL ORDER BY {by} DESC OFFSET {} LIMIT 1)",
                        rows - 1
                    ),
                };
                format!(
                    "SELECT tableoid AS part, ctid AS place FROM {target} WHERE {condition} ORDER BY {by} LIMIT {batch}"
                )
            }
            // On lines of its own, so that a comment at its end can't take the rest with it.
            PruneRule::DeleteWhere(condition) => {
                format!(
                    "SELECT tableoid AS part, ctid AS place FROM {target} WHERE (\n{condition}\n) LIMIT {batch}"
                )
            }
        };
        Ok(Self {
            name: table.table.clone(),
            // A place is one within its partition only; the array is what lets PostgreSQL go to the places at once.
            delete: format!(
                "WITH doomed AS MATERIALIZED ({doomed}) DELETE FROM {target} \
                 WHERE ctid = ANY (ARRAY(SELECT place FROM doomed)) \
                 AND (tableoid, ctid) IN (SELECT part, place FROM doomed)"
            ),
            batch,
            vacuum: vacuum.then(|| format!("VACUUM {target}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rule: PruneRule) -> PruneTable {
        PruneTable {
            table: "jo\"bs".into(),
            schema: "public".into(),
            batch: 100,
            rule,
        }
    }

    #[test]
    fn names_are_quoted_and_conditions_fenced() {
        let rule = PruneRule::DeleteWhere("done -- all of them".into());
        let statements = Statements::of(&table(rule), true).unwrap();
        assert_eq!(
            statements.delete,
            "WITH doomed AS MATERIALIZED (SELECT tableoid AS part, ctid AS place FROM \"public\".\"jo\"\"bs\" WHERE (\n\
             done -- all of them\n) LIMIT 100) DELETE FROM \"public\".\"jo\"\"bs\" \
             WHERE ctid = ANY (ARRAY(SELECT place FROM doomed)) \
             AND (tableoid, ctid) IN (SELECT part, place FROM doomed)"
        );
        assert_eq!(
            statements.vacuum.as_deref(),
            Some("VACUUM \"public\".\"jo\"\"bs\"")
        );
    }

    #[test]
    fn keeping_none_deletes_all_and_keeping_n_looks_at_the_nth() {
        let keep = |rows| {
            let rule = PruneRule::KeepNewest {
                rows,
                by: "id".into(),
            };
            Statements::of(&table(rule), false)
        };
        assert!(keep(0).unwrap().delete.contains("\"id\" IS NOT NULL ORDER"));
        assert!(keep(20).unwrap().delete.contains("OFFSET 19 LIMIT 1"));
        assert!(keep(u64::MAX).is_err());
        assert_eq!(keep(1).unwrap().vacuum, None);
    }
}
