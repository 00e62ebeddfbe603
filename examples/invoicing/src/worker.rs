//! The worker: takes waiting jobs, does them, marks them done. Several processes may work on one queue.
//!
//! A batch is one transaction: if the process or the database dies, its jobs are waiting again.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::answer::Problem;
use crate::counters::Counters;
use crate::database::{Database, problem};
use crate::image::{Image, Shelf};

/// Jobs claimed at once.
const BATCH: i64 = 50;
/// The pause when fewer were waiting: claims follow the jobs, not the requests.
const PAUSE: Duration = Duration::from_millis(100);

const CLAIM: &str = "SELECT id, kind, payload FROM jobs WHERE status = 'waiting' AND run_at <= now() \
     ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED";

const DONE: &str = "UPDATE jobs SET status = 'done', attempts = attempts + 1, finished_at = clock_timestamp() \
     WHERE id = ANY($1)";

/// Works until `stop` becomes true.
pub async fn work(
    database: Arc<Database>,
    images: Arc<Shelf>,
    counters: Arc<Counters>,
    mut stop: watch::Receiver<bool>,
) {
    while !*stop.borrow() {
        let full = match batch(&database, &images.current()).await {
            Ok(done) => {
                counters.jobs_done(done);
                done == BATCH.unsigned_abs()
            }
            Err(Problem::Fault(text)) => {
                tracing::error!("jobs cannot be done: {text}");
                false
            }
            // The pool has said so in the log, and paces the attempts.
            Err(_) => false,
        };
        if !full {
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = stop.changed() => {}
            }
        }
    }
}

/// Does one batch; gives back how many jobs were in it.
async fn batch(database: &Database, image: &Image) -> Result<u64, Problem> {
    let mut connection = database.connection().await?;
    let work = async {
        let transaction = connection.transaction().await?;
        let statement = transaction.prepare_cached(CLAIM).await?;
        let rows = transaction.query(&statement, &[&BATCH]).await?;
        let mut ids: Vec<i64> = Vec::with_capacity(rows.len());
        for row in &rows {
            let (id, kind, payload): (i64, &str, Value) =
                (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let text = render(image, kind, &payload);
            // An example sends nothing to anyone: the outbox is the log.
            tracing::debug!(job = id, kind, text, "delivered");
            ids.push(id);
        }
        let mut done = 0;
        if !ids.is_empty() {
            let statement = transaction.prepare_cached(DONE).await?;
            done = transaction.execute(&statement, &[&ids]).await?;
        }
        transaction.commit().await?;
        Ok(done)
    };
    work.await.map_err(|error| problem(&error))
}

/// The text of a job: a phrase of the image, and what the payload says.
fn render(image: &Image, kind: &str, payload: &Value) -> String {
    let number = payload["number"].as_u64().unwrap_or_default();
    let phrase = image.phrase(number);
    format!("{kind} for invoice {number}: {phrase}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_kind_and_number_whatever_the_payload() {
        let image = Image::build(1, 1000);
        let text = render(&image, "mail", &serde_json::json!({ "number": 12 }));
        assert!(text.starts_with("mail for invoice 12: "), "{text}");
        assert!(render(&image, "mail", &Value::Null).starts_with("mail for invoice 0: "));
        assert!(render(&Image::build(1, 0), "mail", &Value::Null).ends_with(": "));
    }
}
