//! The pruning policy on a real server.

use std::time::Duration;

use ceteris::experiment::{PruneRule, PruneTable, Pruning};
use ceteris::measure::EventKind;
use ceteris::name::ServiceName;
use ceteris::prune::{self, Pass};
use tokio::sync::mpsc;

use super::postgres::Postgres;

fn table(name: &str, rule: PruneRule) -> PruneTable {
    PruneTable {
        table: name.into(),
        schema: "public".into(),
        batch: 300,
        rule,
    }
}

/// The next pass over a table that satisfies a condition.
async fn pass(
    passes: &mut mpsc::UnboundedReceiver<Pass>,
    wanted: impl Fn(&str, u64, Option<&str>) -> bool,
) -> Pass {
    let found = async {
        loop {
            let pass = passes.recv().await.expect("the pruner ended");
            let EventKind::Prune {
                table, rows, error, ..
            } = &pass.kind
            else {
                panic!("{pass:?}");
            };
            if wanted(table, *rows, error.as_deref()) {
                return pass;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found)
        .await
        .expect("no such pass")
}

#[tokio::test]
async fn policies_delete_what_they_say_and_survive_a_restart() {
    let mut postgres = Postgres::start().await;
    let session = postgres.session("app").await;
    session
        .batch_execute(
            "CREATE TABLE \"in\"\"voices\" (id bigint PRIMARY KEY); \
             INSERT INTO \"in\"\"voices\" SELECT generate_series(1, 1000); \
             CREATE TABLE jobs (id bigint PRIMARY KEY, status text); \
             INSERT INTO jobs SELECT i, CASE WHEN i % 2 = 0 THEN 'done' ELSE 'open' END FROM generate_series(1, 10) i; \
             CREATE TABLE parts (id bigint, status text) PARTITION BY HASH (id); \
             CREATE TABLE parts_0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0); \
             CREATE TABLE parts_1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1); \
             INSERT INTO parts SELECT i, CASE WHEN i % 5 = 0 THEN 'done' ELSE 'open' END FROM generate_series(1, 1000) i",
        )
        .await
        .unwrap();
    let keep = PruneRule::KeepNewest {
        rows: 100,
        by: "id".into(),
    };
    let pruning = Pruning {
        enabled: true,
        service: ServiceName::new("db").unwrap(),
        database: "app".into(),
        every: Duration::from_millis(100),
        vacuum: true,
        tables: vec![
            table("in\"voices", keep),
            table(
                "jobs",
                PruneRule::DeleteWhere("status = 'done' -- old".into()),
            ),
            table("parts", PruneRule::DeleteWhere("status = 'done'".into())),
            table("missing", PruneRule::DeleteWhere("true".into())),
        ],
    };
    let (sink, mut passes) = mpsc::unbounded_channel();
    let pruner = prune::start(&pruning, postgres.server.clone(), sink).unwrap();

    pass(&mut passes, |t, rows, e| {
        t == "in\"voices" && rows == 900 && e.is_none()
    })
    .await;
    pass(&mut passes, |t, rows, e| {
        t == "jobs" && rows == 5 && e.is_none()
    })
    .await;
    let left = |row: tokio_postgres::Row| (row.get::<_, i64>(0), row.get::<_, Option<i64>>(1));
    // Rows of different partitions may lie at the same place: only those that match go.
    pass(&mut passes, |t, rows, e| {
        t == "parts" && rows == 200 && e.is_none()
    })
    .await;
    let row = session
        .query_one(
            "SELECT count(*), count(*) FILTER (WHERE status = 'done') FROM parts",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(left(row), (800, Some(0)));
    pass(&mut passes, |t, _, e| {
        t == "missing" && e.is_some_and(|e| e.contains("does not exist"))
    })
    .await;
    let query = "SELECT count(*), min(id) FROM \"in\"\"voices\"";
    let row = session.query_one(query, &[]).await.unwrap();
    assert_eq!(left(row), (100, Some(901)));
    let row = session
        .query_one("SELECT count(*), min(id) FROM jobs", &[])
        .await
        .unwrap();
    assert_eq!(left(row), (5, Some(1)));
    let vacuumed: i64 = session
        .query_one(
            "SELECT vacuum_count FROM pg_stat_user_tables WHERE relname = 'jobs'",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert!(vacuumed > 0);

    postgres.down();
    pass(&mut passes, |t, _, e| t == "jobs" && e.is_some()).await;
    postgres.up().await;
    let session = postgres.session("app").await;
    session
        .batch_execute("UPDATE jobs SET status = 'done' WHERE id = 1")
        .await
        .unwrap();
    pass(&mut passes, |t, rows, e| {
        t == "jobs" && rows == 1 && e.is_none()
    })
    .await;
    pruner.stop().await;
    session
        .batch_execute("UPDATE jobs SET status = 'done' WHERE id = 3")
        .await
        .unwrap();
    while let Some(pass) = passes.recv().await {
        assert!(
            !matches!(&pass.kind, EventKind::Prune { table, rows: 1.., .. } if table == "in\"voices")
        );
    }
    let row = session
        .query_one("SELECT count(*), min(id) FROM jobs", &[])
        .await
        .unwrap();
    assert_eq!(left(row), (4, Some(3)), "nothing is deleted after the stop");
}
