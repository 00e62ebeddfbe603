//! What a client and an operator may rely on.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::http::{Answer, Service};
use crate::postgres::Postgres;

const DRAFT: &str = r#"{"customer": 7, "lines": [{"description": "hours", "quantity": 2, "unit_cents": 1250},
                                                 {"description": "travel", "quantity": 1, "unit_cents": 900}]}"#;

/// Asks again until the answer is as wanted.
async fn eventually(
    what: &str,
    mut ask: impl FnMut() -> Answer,
    wanted: impl Fn(&Answer) -> bool,
) -> Answer {
    let start = Instant::now();
    loop {
        let answer = ask();
        if wanted(&answer) {
            return answer;
        }
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{what}: {answer:?}"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invoices_are_listed_read_and_issued() {
    let postgres = Postgres::start().await;
    let service = Service::start(&postgres.url("invoicing"), &["--workers", "4"]);

    let health = service.get("/healthz");
    assert_eq!(
        (health.status, &health.body["token"]),
        (200, &Value::from("a word"))
    );

    let page = service.get("/invoices?limit=3");
    let ids: Vec<_> = page.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["id"].clone())
        .collect();
    assert_eq!(
        (page.status, ids),
        (200, vec![20_000.into(), 19_996.into(), 19_992.into()])
    );

    let invoice = service.get("/invoices/20000");
    assert_eq!(invoice.status, 200);
    assert_eq!(invoice.body["customer"]["name"], "Customer 1");
    assert_eq!(invoice.body["lines"].as_array().unwrap().len(), 2);
    assert_eq!(service.get("/invoices/20001").status, 404);

    let issued = service.post("/invoices", DRAFT);
    assert_eq!(issued.status, 201);
    assert_eq!(issued.body["number"], 20_001);
    assert_eq!(issued.body["total_cents"], 3_400);
    assert_eq!(
        service
            .get(&format!("/invoices/{}", issued.body["id"]))
            .body,
        issued.body
    );
    assert_eq!(
        service.get("/invoices?limit=1").body["items"][0]["id"],
        issued.body["id"]
    );

    for (body, part) in [
        ("", "not an invoice"),
        (r#"{"customer": 7, "lines": []}"#, "`lines`"),
        (&DRAFT.replace("7,", "201,"), "`customer` 201 is unknown"),
    ] {
        let refused = service.post("/invoices", body);
        assert_eq!(refused.status, 400, "{body}");
        assert!(
            refused.body["error"].as_str().unwrap().contains(part),
            "{refused:?}"
        );
    }
    assert_eq!(service.post("/invoices", &"x".repeat(70_000)).status, 413);
    assert_eq!(service.get("/admin/reload").status, 405);

    // What was refused has cost no number.
    assert_eq!(service.post("/invoices", DRAFT).body["number"], 20_002);

    let status = eventually(
        "ten jobs done",
        || service.get("/status"),
        |status| status.body["jobs"]["done"] == 10,
    )
    .await;
    assert_eq!(status.body["jobs"]["unfinished"], 0);
    assert_eq!(status.body["requests"]["by_route"]["create"], 6);
    assert_eq!(status.body["requests"]["by_route"]["other"], 1);

    let client = postgres.connect("invoicing").await.unwrap();
    let mails: Vec<bool> = client
        .query(
            "SELECT (payload->>'collect')::boolean FROM jobs WHERE kind = 'mail' ORDER BY id",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(
        mails,
        [false, true],
        "the second mail of a day is collected"
    );

    client
        .execute("DELETE FROM invoices WHERE number = 20001", &[])
        .await
        .unwrap();
    let left: i64 = client
        .query_one(
            "SELECT count(*) FROM invoice_lines WHERE invoice_id = 20001",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(left, 0, "lines go with their invoice");
    assert_eq!(service.log(), "", "nothing to complain about");
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_have_no_gap_however_many_ask_at_once() {
    let postgres = Postgres::start().await;
    // Fewer connections than clients, and both faults on: answers are late, never wrong.
    let arguments = [
        "--workers",
        "8",
        "--connections",
        "3",
        "--leak",
        "walk",
        "--slower",
        "50%",
    ];
    let service = Service::start(&postgres.url("invoicing"), &arguments);
    let numbers: BTreeSet<i64> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    (0..10)
                        .map(|round| {
                            if round == 5 {
                                assert_eq!(service.post("/admin/reload", "").status, 200);
                            }
                            let answer = service.post("/invoices", DRAFT);
                            assert_eq!(answer.status, 201, "{answer:?}");
                            answer.body["number"].as_i64().unwrap()
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        clients
            .into_iter()
            .flat_map(|client| client.join().unwrap())
            .collect()
    });
    assert!(numbers.iter().copied().eq(20_001..=20_080), "{numbers:?}");
    let status = eventually(
        "all jobs done",
        || service.get("/status"),
        |status| status.body["jobs"]["done"] == 400,
    )
    .await;
    assert_eq!(status.body["reloads"], 8);
    // Reloads at the same moment build the same release.
    assert!((2..=9).contains(&status.body["image"]["release"].as_u64().unwrap()));
    assert!(status.body["image"]["pieces"].as_u64() > Some(100));
    let heap = service.get("/heap");
    if cfg!(target_env = "gnu") {
        assert!(heap.body["arenas"].as_u64() >= Some(1), "{heap:?}");
        assert!(
            heap.body["held_mib"].as_f64() >= heap.body["free_mib"].as_f64(),
            "{heap:?}"
        );
    } else {
        assert_eq!(heap.status, 500);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_outlives_the_database_and_stops_when_told() {
    let mut postgres = Postgres::start().await;
    let mut service = Service::start(&postgres.url("invoicing"), &[]);
    assert_eq!(service.post("/invoices", DRAFT).status, 201);

    for _ in 0..2 {
        postgres.kill();
        for _ in 0..20 {
            let answer = service.post("/invoices", DRAFT);
            assert_eq!(answer.status, 503, "{answer:?}");
            assert!(answer.head.contains("retry-after: 1"), "{answer:?}");
            assert_eq!(service.get("/invoices").status, 503);
        }
        assert_eq!(service.get("/healthz").status, 200);
        assert_eq!(
            service.get("/status").body["jobs"]["unfinished"],
            Value::Null
        );
        postgres.run().await;
        eventually(
            "served again",
            || service.post("/invoices", DRAFT),
            |answer| answer.status == 201,
        )
        .await;
        assert_eq!(service.get("/invoices/1").status, 200);
    }
    eventually(
        "the worker works again",
        || service.get("/status"),
        |status| {
            status.body["jobs"]["unfinished"] == 0
                && status.body["jobs"]["done"].as_u64() >= Some(10)
        },
    )
    .await;
    assert!(service.log().contains("WARN"), "{}", service.log());
    assert!(!service.log().contains("ERROR"), "{}", service.log());

    assert!(service.terminate().success());
}

#[test]
fn a_taken_address_and_a_missing_database_are_said_plainly() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let run = |database: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_invoicing"));
        command
            .args(["--listen", &address])
            .env_remove("DATABASE_URL");
        if let Some(database) = database {
            command.env("DATABASE_URL", database);
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(run(None).contains("DATABASE_URL is not set"));
    let error = run(Some("postgres://u:hidden@127.0.0.1/x"));
    assert!(
        error.contains(&address) && !error.contains("hidden"),
        "{error}"
    );
}

#[test]
fn counted_calls_are_printed_as_json() {
    for arguments in [&["--calls", "1000"][..], &["--calls", "1000", "--empty"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_opbench"))
            .args(arguments)
            .output()
            .unwrap();
        let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(printed["calls"], 1000);
        assert!(printed["seconds"].as_f64().unwrap() > 0.0);
    }
}
