//! A real PostgreSQL: made once, copied, reached under its roles, killed and back.

use ceteris::sql::{self, Role};

use super::*;

const SCHEMA: &str = "CREATE TABLE items (id bigint PRIMARY KEY, name text);\nINSERT INTO items SELECT g, 'x' FROM generate_series(1, 500) g;\n";

#[test]
fn both_arms_start_from_the_same_rows_and_roles_work() {
    runtime().block_on(async {
        let site = Site::new("pg");
        site.write("schema.sql", SCHEMA);
        let mut db = postgres("db", &["schema.sql"]);
        if let ServiceKind::Postgres(declared) = &mut db.kind {
            declared
                .settings
                .insert("work_mem".to_owned(), "5MB".to_owned());
            declared.cold = true;
        }
        let mut app = script(
            "app",
            "echo \"$DATABASE_URL\" > url; echo ready; exec sleep 600",
        );
        app.env
            .insert("DATABASE_URL".to_owned(), "{{ db.url }}/shop".to_owned());
        app.needs = vec![name("db")];
        let services = [db, app];
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
            let rows = deployment.row_counts().await.unwrap();
            assert_eq!((rows[0].table.as_str(), rows[0].rows), ("items", 500));
            let server = deployment.sql(&name("db")).unwrap();
            // What this arm deletes must not be missing in the other.
            let prune = sql::connect(&server, Role::Prune, "shop", "test")
                .await
                .unwrap();
            assert_eq!(prune.execute("DELETE FROM items", &[]).await.unwrap(), 500);
            prune.batch_execute("VACUUM items").await.unwrap();
            let sample = sql::connect(&server, Role::Sample, "shop", "test")
                .await
                .unwrap();
            sample
                .query("SELECT calls FROM pg_stat_statements", &[])
                .await
                .unwrap();
            deployment.settle().await.unwrap();
            let facts = deployment.facts();
            assert_eq!(facts[0].settings["work_mem"], "5120 kB");
            assert_eq!(facts[0].settings["port"], "<db.port>");
            let text = serde_json::to_string(&facts).unwrap();
            let password = server.owner.password.reveal();
            assert!(!text.contains(password));
            // The application has it, in its environment alone.
            let url = std::fs::read_to_string(site.base.join("url")).unwrap();
            assert!(url.contains(password), "{url}");
            assert!(deployment.stop().await.unwrap().killed.is_empty());
        }
        let root = site.scratch.path().to_owned();
        prepared.finish().await.unwrap();
        assert_eq!(marked(&root), Vec::<String>::new());
        assert!(!root.exists());
    });
}

#[test]
fn a_killed_server_is_reported_and_comes_back() {
    runtime().block_on(async {
        let site = Site::new("pgkill");
        site.write("schema.sql", SCHEMA);
        let services = [postgres("db", &["schema.sql"])];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        deployment.signal(&name("db"), "KILL").await.unwrap();
        let mut life = deployment.watched()[0].life.clone();
        life.wait_for(|life| life.pid.is_none()).await.unwrap();
        let exit = deployment.next_exit().await;
        assert!(exit.expected && exit.status.contains("KILL"), "{exit:?}");
        let started = deployment.start_service(&name("db")).await.unwrap();
        assert_eq!(started.epoch, 1);
        assert_eq!(deployment.row_counts().await.unwrap()[0].rows, 500);
        // An end that no action asked for.
        let killed = deployment.watched()[0].life.borrow().pid.unwrap();
        let pid = i32::try_from(killed)
            .ok()
            .and_then(rustix::process::Pid::from_raw)
            .unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::QUIT).unwrap();
        let exit = deployment.next_exit().await;
        assert_eq!(exit.service, name("db"));
        assert!(!exit.expected && !exit.log_tail.is_empty(), "{exit:?}");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_schema_error_names_file_line_and_reason() {
    runtime().block_on(async {
        let site = Site::new("pgschema");
        site.write("bad.sql", "CREATE TABLE a (id int);\nCREATE TABEL b ();\n");
        let error = site
            .prepare(&[postgres("db", &["bad.sql"])])
            .await
            .unwrap_err();
        let text = format!("{error:#}");
        assert!(
            text.contains("bad.sql:2:8") && text.contains("syntax error"),
            "{text}"
        );
    });
}
