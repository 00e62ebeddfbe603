//! A PostgreSQL that runs already: databases of our own naming come and go, and nothing else of it is touched.

use ceteris::sql::{self, Role, Server, Session};

use super::*;
use crate::sample::postgres::Postgres as RunningServer;

const SCHEMA: &str = "CREATE TABLE items (id bigint PRIMARY KEY);\nINSERT INTO items SELECT generate_series(1, 500);\n";

/// A URL of a server that listens on a socket only.
pub fn url(server: &Server) -> String {
    let sql::Reach::Socket(folder) = &server.reach else {
        panic!("{server}")
    };
    format!(
        "postgres://{}:{}@{}:{}",
        server.owner.user,
        server.owner.password.reveal(),
        folder.display().to_string().replace('/', "%2F"),
        server.port
    )
}

fn running(url: String, schema: &[&str]) -> Service {
    let mut db = postgres("db", schema);
    if let ServiceKind::Postgres(declared) = &mut db.kind {
        declared.url = Some(url);
    }
    db
}

async fn owner(server: &Server) -> Session {
    sql::connect(server, Role::Owner, "postgres", "test")
        .await
        .unwrap()
}

/// Names of the databases of a server.
pub async fn databases(server: &Server) -> Vec<String> {
    let rows = owner(server)
        .await
        .query("SELECT datname FROM pg_database ORDER BY 1", &[])
        .await
        .unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn each_arm_gets_a_copy_of_its_own_and_nothing_is_left() {
    runtime().block_on(async {
        let host = RunningServer::start().await;
        let before = databases(&host.server).await;
        let site = Site::new("running");
        site.write("schema.sql", SCHEMA);
        let mut app = script(
            "app",
            "echo \"$DATABASE_URL\" > url; echo ready; exec sleep 600",
        );
        app.env.insert(
            "DATABASE_URL".to_owned(),
            "{{ db.databases.shop }}".to_owned(),
        );
        app.needs = vec![name("db")];
        let services = [running(url(&host.server), &["schema.sql"]), app];
        let prepared = site.prepare(&services).await.unwrap();
        for arm in Arm::BOTH {
            let deployment = Deployment::start(
                &prepared,
                &setup(&services),
                arm,
                &site.logs.join(arm.as_str()),
            )
            .await
            .unwrap();
            let own = format!("ceteris_token_of_this_run_{arm}_shop");
            assert!(databases(&host.server).await.contains(&own));
            assert_eq!(deployment.row_counts().await.unwrap()[0].rows, 500);
            // By the declared name everyone comes to the arm's own database.
            let server = deployment.sql(&name("db")).unwrap();
            let prune = sql::connect(&server, Role::Prune, "shop", "test")
                .await
                .unwrap();
            assert_eq!(prune.execute("DELETE FROM items", &[]).await.unwrap(), 500);
            deployment.settle().await.unwrap();
            let facts = deployment.facts();
            assert!(facts[0].settings.len() > 200 && facts[0].program.is_none());
            assert!(
                facts[0]
                    .version
                    .as_ref()
                    .is_some_and(|version| version.contains('.'))
            );
            let text = serde_json::to_string(&facts).unwrap();
            assert!(!text.contains(server.owner.password.reveal()));
            assert!(text.contains("<db.databases.shop>"), "{text}");
            let told = std::fs::read_to_string(site.base.join("url")).unwrap();
            assert!(told.trim().ends_with(&format!("/{own}")), "{told}");
            // It was not started here, so it is never stopped, and has no process to follow.
            assert!(deployment.stop_service(&name("db")).await.is_err());
            assert_eq!(deployment.watched().len(), 1);
            deployment.stop().await.unwrap();
            assert!(!databases(&host.server).await.contains(&own));
        }
        prepared.finish().await.unwrap();
        assert_eq!(databases(&host.server).await, before);
        let roles = owner(&host.server)
            .await
            .query("SELECT 1 FROM pg_roles WHERE rolname LIKE 'ceteris%'", &[])
            .await
            .unwrap();
        // Those two were there before.
        assert_eq!(roles.len(), 2);
    });
}

#[test]
fn what_a_killed_run_left_is_dropped_and_what_runs_or_is_anothers_is_not() {
    runtime().block_on(async {
        let host = RunningServer::start().await;
        let session = owner(&host.server).await;
        for make in [
            "CREATE DATABASE ceteris_20260101t000000z_dead_control_shop",
            "CREATE DATABASE ceteris_20260101t000000z_live_seed_shop",
            "CREATE DATABASE ceteris_notes",
            "CREATE ROLE other",
            "CREATE DATABASE ceteris_20260101t000000z_dead_seed_shop OWNER other",
        ] {
            session.batch_execute(make).await.unwrap();
        }
        let before = databases(&host.server).await;
        let alive = sql::connect(
            &host.server,
            Role::Owner,
            "postgres",
            "ceteris_20260101t000000z_live",
        )
        .await
        .unwrap();
        let site = Site::new("sweep");
        let services = [running(url(&host.server), &[])];
        let prepared = site.prepare(&services).await.unwrap();
        prepared.finish().await.unwrap();
        let expected: Vec<String> = before
            .into_iter()
            .filter(|name| name != "ceteris_20260101t000000z_dead_control_shop")
            .collect();
        assert_eq!(databases(&host.server).await, expected);
        drop(alive);
    });
}

#[test]
fn what_a_running_server_refuses_is_said_without_its_password() {
    runtime().block_on(async {
        let host = RunningServer::start().await;
        let before = databases(&host.server).await;
        owner(&host.server)
            .await
            .batch_execute("CREATE ROLE guest LOGIN PASSWORD 'hidden'")
            .await
            .unwrap();
        let own = url(&host.server);
        let (_, place) = own.split_once('@').unwrap();
        let cases = [
            (
                format!("postgres://guest:hidden@{place}"),
                "bad.sql",
                "CREATEDB",
            ),
            (own.clone(), "bad.sql", "bad.sql:2:8"),
            (
                format!("postgres://guest:wrong-hidden@{place}"),
                "bad.sql",
                "guest",
            ),
        ];
        for (url, schema, part) in cases {
            // What was refused has ended its supervisor, which has removed the folder.
            let site = Site::new("refused");
            site.write("bad.sql", "CREATE TABLE a (id int);\nCREATE TABEL b ();\n");
            let error = site.prepare(&[running(url, &[schema])]).await.unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains(part) && !text.contains("hidden"), "{text}");
        }
        assert_eq!(databases(&host.server).await, before);
    });
}

#[test]
fn a_start_that_fails_while_databases_are_copied_leaves_none() {
    runtime().block_on(async {
        let host = RunningServer::start().await;
        let before = databases(&host.server).await;
        let site = Site::new("halfway");
        let mut db = running(url(&host.server), &[]);
        if let ServiceKind::Postgres(declared) = &mut db.kind {
            declared.databases.push("second".to_owned());
        }
        let services = [db];
        let prepared = site.prepare(&services).await.unwrap();
        // The second copy fails: its template is gone.
        owner(&host.server)
            .await
            .batch_execute("DROP DATABASE ceteris_token_of_this_run_seed_second")
            .await
            .unwrap();
        let error = site.start(&prepared, &services).await.unwrap_err();
        assert!(error.to_string().contains("second"), "{error}");
        prepared.finish().await.unwrap();
        assert_eq!(databases(&host.server).await, before);
    });
}
