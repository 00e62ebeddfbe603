//! What the whole server counts: WAL, checkpoints, blocks, deadlocks, the oldest snapshot.

use super::session::{Asker, Trouble};

/// Up to PostgreSQL 16 checkpoints are counted with the background writer.
const CHECKPOINTS_TO_16: &str = "SELECT checkpoints_timed::float8, checkpoints_req::float8, \
     checkpoint_write_time::float8, checkpoint_sync_time::float8, buffers_checkpoint::float8 FROM pg_stat_bgwriter";
/// From 17 on they have a view of their own.
const CHECKPOINTS_FROM_17: &str = "SELECT num_timed::float8, num_requested::float8, write_time::float8, \
     sync_time::float8, buffers_written::float8 FROM pg_stat_checkpointer";
/// The columns that all versions from 15 to 18 have.
const WAL: &str = "SELECT wal_bytes::float8, wal_fpi::float8, wal_records::float8, wal_buffers_full::float8 FROM pg_stat_wal";
const DATABASES: &str = "SELECT coalesce(sum(blks_hit), 0)::float8, coalesce(sum(blks_read), 0)::float8, \
     coalesce(sum(temp_bytes), 0)::float8, coalesce(sum(temp_files), 0)::float8, coalesce(sum(deadlocks), 0)::float8, \
     coalesce(sum(xact_commit), 0)::float8, coalesce(sum(xact_rollback), 0)::float8 \
     FROM pg_stat_database WHERE datname = ANY($1)";
/// Whatever holds back vacuum: sessions, prepared transactions, replication slots.
const OLDEST_XMIN: &str = "SELECT coalesce(max(age), 0)::float8 FROM ( \
     SELECT age(backend_xmin) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() \
     UNION ALL SELECT age(transaction) FROM pg_prepared_xacts \
     UNION ALL SELECT age(xmin) FROM pg_replication_slots WHERE xmin IS NOT NULL) AS held(age)";

/// The instrument for what a whole server counts.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    /// Timed and requested checkpoints at the last look.
    checkpoints: Option<(f64, f64)>,
    /// Blocks hit and read at the last round.
    blocks: Option<(f64, f64)>,
}

impl Cluster {
    /// Forgets what was read before.
    pub(super) fn begin_anew(&mut self) {
        *self = Self::default();
    }

    /// Looks for checkpoints that began since the last look.
    pub(super) async fn checkpoints(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        let Some(now) = self.read_checkpoints(asker).await? else {
            return Ok(());
        };
        if let Some((timed, requested)) = self.checkpoints {
            for (kind, begun) in [("timed", now[0] - timed), ("requested", now[1] - requested)] {
                if begun > 0.0 {
                    let detail = format!("{begun} {kind}");
                    asker
                        .out
                        .server(asker.out.clock.now(), "checkpoint", detail);
                }
            }
        }
        self.checkpoints = Some((now[0], now[1]));
        Ok(())
    }

    async fn read_checkpoints(&self, asker: &mut Asker) -> Result<Option<[f64; 5]>, Trouble> {
        let query = if asker.version().await? >= 170_000 {
            CHECKPOINTS_FROM_17
        } else {
            CHECKPOINTS_TO_16
        };
        numbers(asker, query, &[], &["checkpoints"]).await
    }

    /// Emits what a round reads.
    pub(super) async fn round(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        if let Some([timed, requested, write_ms, sync_ms, buffers]) =
            self.read_checkpoints(asker).await?
        {
            count(asker, "checkpoints", "count_total", timed + requested);
            count(asker, "checkpoints_timed", "count_total", timed);
            count(asker, "checkpoints_requested", "count_total", requested);
            count(asker, "checkpoint_write_ms", "ms_total", write_ms);
            count(asker, "checkpoint_sync_ms", "ms_total", sync_ms);
            count(asker, "checkpoint_buffers", "count_total", buffers);
        }
        if let Some([bytes, fpi, records, full]) =
            numbers(asker, WAL, &[], &["wal_bytes", "wal_fpi"]).await?
        {
            count(asker, "wal_bytes", "bytes_total", bytes);
            count(asker, "wal_fpi", "count_total", fpi);
            count(asker, "wal_records", "count_total", records);
            count(asker, "wal_buffers_full", "count_total", full);
        }
        self.databases(asker).await?;
        if let Some([age]) = numbers(asker, OLDEST_XMIN, &[], &["oldest_xmin_age"]).await? {
            let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
            asker
                .out
                .reading(at_s, "oldest_xmin_age", "transactions", age, epoch);
        }
        Ok(())
    }

    async fn databases(&mut self, asker: &mut Asker) -> Result<(), Trouble> {
        let names = asker.sql.databases.clone();
        let Some([hit, read, temp, files, deadlocks, commits, rollbacks]) = numbers(
            asker,
            DATABASES,
            &[&names],
            &["cache_hit", "temp_bytes", "deadlocks"],
        )
        .await?
        else {
            return Ok(());
        };
        count(asker, "blocks_hit", "count_total", hit);
        count(asker, "blocks_read", "count_total", read);
        count(asker, "temp_bytes", "bytes_total", temp);
        count(asker, "temp_files", "count_total", files);
        count(asker, "deadlocks", "count_total", deadlocks);
        count(asker, "commits", "count_total", commits);
        count(asker, "rollbacks", "count_total", rollbacks);
        if let Some(share) = self.hit_share(hit, read) {
            let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
            asker.out.reading(at_s, "cache_hit", "share", share, epoch);
        }
        Ok(())
    }

    /// Share of the blocks asked for since the last round that were in the buffers; `None` when none was asked for, or when
    /// the counts began anew.
    fn hit_share(&mut self, hit: f64, read: f64) -> Option<f64> {
        let (hits, reads) = match self.blocks.replace((hit, read)) {
            Some((old_hit, old_read)) if hit >= old_hit && read >= old_read => {
                (hit - old_hit, read - old_read)
            }
            _ => return None,
        };
        (hits + reads > 0.0).then(|| hits / (hits + reads))
    }
}

/// The numbers of the one row of a query over what the whole server counts.
async fn numbers<const N: usize>(
    asker: &mut Asker,
    query: &str,
    parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    metrics: &[&str],
) -> Result<Option<[f64; N]>, Trouble> {
    let database = asker.main_database();
    let Some(rows) = asker.ask(&database, query, parameters, metrics).await? else {
        return Ok(None);
    };
    Ok(rows.first().map(|row| std::array::from_fn(|i| row.get(i))))
}

/// Emits a counter of the server.
fn count(asker: &mut Asker, metric: &str, unit: &str, value: f64) {
    let (at_s, epoch) = (asker.out.clock.now(), asker.epoch());
    asker.out.counter(at_s, metric, unit, value, epoch);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_hits_is_of_the_blocks_in_between() {
        let mut cluster = Cluster::default();
        assert_eq!(cluster.hit_share(1000.0, 10.0), None);
        assert_eq!(cluster.hit_share(1090.0, 20.0), Some(0.9));
        assert_eq!(cluster.hit_share(1090.0, 20.0), None);
        assert_eq!(cluster.hit_share(5.0, 1.0), None, "counts began anew");
    }
}
