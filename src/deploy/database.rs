//! What is done with the databases of an arm between its phases: settling and counting.

use anyhow::{Context, Result};

use super::deployment::Deployment;
use crate::experiment::ServiceKind;
use crate::name::ServiceName;
use crate::sql::{self, Role, quote_identifier};

/// Rows of one table, counted exactly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCount {
    /// The service.
    pub service: ServiceName,
    /// The database.
    pub database: String,
    /// The table, with its schema when that is not `public`.
    pub table: String,
    /// Its rows.
    pub rows: u64,
}

impl Deployment {
    /// VACUUM (ANALYZE) and CHECKPOINT in every PostgreSQL that does not decline it, so that warm-up's debts are not paid in
    /// the measured time.
    ///
    /// # Errors
    /// When a server can't be reached or refuses.
    pub async fn settle(&self) -> Result<()> {
        for live in self.in_order() {
            let (ServiceKind::Postgres(declared), Some(server)) = (&live.service.kind, live.sql())
            else {
                continue;
            };
            if !declared.settle {
                continue;
            }
            let name = &live.service.name;
            for database in &declared.databases {
                let session = sql::connect(&server, Role::Owner, database, "ceteris").await?;
                session
                    .batch_execute("VACUUM (ANALYZE)")
                    .await
                    .with_context(|| format!("{name}: VACUUM (ANALYZE) in {database}"))?;
            }
            if declared.url.is_some() {
                // A checkpoint is the whole server's, and that serves others too.
                continue;
            }
            let session = sql::connect(&server, Role::Owner, "postgres", "ceteris").await?;
            session
                .batch_execute("CHECKPOINT")
                .await
                .with_context(|| format!("{name}: CHECKPOINT"))?;
        }
        Ok(())
    }

    /// Rows of every table of every declared database. Exact, so only for times without load.
    ///
    /// # Errors
    /// When a server can't be reached.
    pub async fn row_counts(&self) -> Result<Vec<RowCount>> {
        let mut counts = Vec::new();
        for live in self.in_order() {
            let (ServiceKind::Postgres(declared), Some(server)) = (&live.service.kind, live.sql())
            else {
                continue;
            };
            for database in &declared.databases {
                let session = sql::connect(&server, Role::Owner, database, "ceteris").await?;
                let tables = session
                    .query(
                        "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                         WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname <> 'information_schema' \
                         AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2",
                        &[],
                    )
                    .await
                    .with_context(|| format!("listing the tables of {database}"))?;
                for table in tables {
                    let (schema, name): (String, String) = (table.get(0), table.get(1));
                    let row = session
                        .query_one(
                            &format!(
                                "SELECT count(*) FROM {}.{}",
                                quote_identifier(&schema)?,
                                quote_identifier(&name)?
                            ),
                            &[],
                        )
                        .await
                        .with_context(|| format!("counting {schema}.{name} in {database}"))?;
                    counts.push(RowCount {
                        service: live.service.name.clone(),
                        database: database.clone(),
                        table: if schema == "public" {
                            name
                        } else {
                            format!("{schema}.{name}")
                        },
                        rows: u64::try_from(row.get::<_, i64>(0)).unwrap_or(0),
                    });
                }
            }
        }
        Ok(counts)
    }
}
