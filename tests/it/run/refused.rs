//! Runs that support nothing, and experiments that can't be run: what is said, and with which exit code.

use std::net::TcpListener;

use super::site::{Site, plain, pruned, ran, turn, with};

/// The database without what needs the caller's environment.
fn database() -> String {
    with(
        &pruned(),
        "APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\", ",
        "",
    )
}

fn supports_nothing(site: &Site) {
    let report = site.report();
    assert!(report.to_lowercase().contains("not valid"), "{report}");
    let summary = site.summary();
    assert_eq!(summary["exit_code"], 3);
    assert_eq!(summary["validity"]["valid"], false);
    for claim in summary["claims"].as_array().unwrap() {
        assert_ne!(claim["verdict"]["word"], "supported", "{claim}");
    }
    site.nothing_is_left();
}

#[test]
fn refusals_are_no_evidence_though_the_criterion_is_green() {
    let _turn = turn();
    let site = Site::new();
    // The steps before load are answered, then nothing else.
    let text = with(&plain(), "FAULT = \"none\"", "FAULT = \"unavailable:3\"");
    let ran = site.run(&text).ends(3);
    assert!(ran.out.contains("Nothing"), "{}", ran.out);
    let summary = site.summary();
    let figures = &summary["figures"];
    assert_eq!(figures["treatment.failures.status_4xx"], 0.0);
    assert_eq!(figures["treatment.requests.ok"], 0.0);
    assert_eq!(
        figures["treatment.failures.status_503"],
        figures["treatment.requests.failed"]
    );
    supports_nothing(&site);
}

#[test]
fn a_step_that_answers_otherwise_stops_the_run_before_load() {
    let _turn = turn();
    let site = Site::new();
    let text = with(&plain(), "FAULT = \"none\"", "FAULT = \"deny\"");
    site.run(&text)
        .ends(3)
        .names(&["step create", "401", "before load"]);
    assert!(site.report().contains("401"));
    supports_nothing(&site);
}

#[test]
fn a_failing_build_is_told_with_its_log() {
    let _turn = turn();
    let site = Site::new();
    let text = with(
        &plain(),
        "command = ",
        "build = [\"sh\", \"-c\", \"echo error: no such crate; exit 101\"]\ncommand = ",
    );
    site.run(&text)
        .ends(3)
        .names(&["app", "101", "no such crate", ".build.log"]);
    let log = site.folder().join("logs/app.build.log");
    assert!(log.is_file(), "{}", log.display());
    supports_nothing(&site);
}

#[test]
fn a_missing_program_is_told_before_anything_is_made() {
    let site = Site::new();
    let text = with(&plain(), "./application", "no-such-program");
    site.run(&text).ends(2).names(&["app", "no-such-program"]);
    assert_eq!(site.at("results").read_dir().unwrap().count(), 0);
    let text = with(&plain(), "closed  = 4", "closed  = \"four\"");
    site.run(&text)
        .ends(2)
        .names(&["experiment.toml:", "closed"]);
    assert_eq!(site.at("results").read_dir().unwrap().count(), 0);
}

#[test]
fn a_fault_in_the_schema_is_told_with_file_and_line() {
    let _turn = turn();
    let site = Site::new();
    site.write(
        "schema.sql",
        "CREATE TABLE jobs (id bigint);\n\nCREATE TABEL items (id bigint);\n",
    );
    site.run(&database())
        .ends(3)
        .names(&["db", "schema.sql:3", "TABEL"]);
    supports_nothing(&site);
}

#[test]
fn a_taken_port_is_told_with_the_last_words_of_who_wanted_it() {
    let _turn = turn();
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let text = with(&plain(), "{{ app.address }}", &address);
    site.run(&text)
        .ends(3)
        .names(&["app", &format!("can't listen on {address}")]);
    supports_nothing(&site);
}

/// The application beside a service that fills a table with another number of rows each time.
fn another_start_each_time(control: &str) -> String {
    let filler = r#"
[deployment.filler.process]
command = ["sh", "-c", "psql -q -c 'insert into jobs select 20000 + generate_series(1, (1 + 5000 * random())::int)' $DATABASE_URL && echo filled && exec sleep 600"]
env     = { DATABASE_URL = "{{ db.url }}/shop" }
ready   = { log = "^filled$", within = "60s" }

[clients]"#;
    let text = with(&database(), "[clients]", filler);
    with(&text, "[control]", &format!("[control]\n{control}"))
}

#[test]
fn an_undeclared_difference_stops_the_run() {
    let _turn = turn();
    let site = Site::new();
    site.run(&another_start_each_time(""))
        .ends(3)
        .names(&["db.rows.shop", "jobs", "also_differs"]);
    assert!(site.report().contains("db.rows.shop"), "{}", site.report());
    supports_nothing(&site);
}

#[test]
fn a_setting_of_the_second_arm_alone_stops_the_run() {
    let _turn = turn();
    let site = Site::new();
    // A service that turns a knob of the database after that was ready, another way each time.
    let knob = r#"
[deployment.knob.process]
command = ["sh", "-c", "test -e turned && psql -q -c \"alter system set work_mem = '7MB'\" -c 'select pg_reload_conf()' $DATABASE_URL; sleep 1; touch turned; echo set && exec sleep 600"]
env     = { DATABASE_URL = "{{ db.url }}/shop" }
ready   = { log = "^set$", within = "60s" }

[clients]"#;
    let text = with(&database(), "[clients]", knob);
    site.run(&text).ends(3).names(&[
        "db.settings.work_mem",
        "treatment '7168 kB'",
        "control '4096 kB'",
        "also_differs",
    ]);
    assert!(site.report().contains("db.settings.work_mem"));
    supports_nothing(&site);
}

#[test]
fn a_program_that_was_rebuilt_between_the_arms_stops_the_run() {
    let _turn = turn();
    let site = Site::new();
    // The same program as another flag would have built it: only its bytes differ.
    let mut other = std::fs::read(site.at("application")).unwrap();
    other.extend(b"another flag");
    std::fs::write(site.at("other"), other).unwrap();
    std::fs::set_permissions(
        site.at("other"),
        std::fs::metadata(site.at("application"))
            .unwrap()
            .permissions(),
    )
    .unwrap();
    let rebuild = "[[action]]\nname = \"rebuild\"\nat = \"1s\"\ncommand = [\"mv\", \"other\", \"application\"]\n\n[control]";
    site.run(&with(&plain(), "[control]", rebuild))
        .ends(3)
        .names(&[
            "treatment of pair 1",
            "application",
            "was changed",
            "SHA-256",
        ]);
    supports_nothing(&site);
}

#[test]
fn a_permitted_difference_is_told_as_a_limit() {
    let _turn = turn();
    let site = Site::new();
    let text = another_start_each_time("also_differs = [\"db.rows\"]");
    let ran = site.run(&text);
    assert!(!ran.err.contains("was not declared"), "{}", ran.err);
    let report = site.report();
    let at = report.find("Does not support").unwrap();
    assert!(report[at..].contains("db.rows"), "{report}");
    site.nothing_is_left();
}

#[test]
fn a_program_that_only_one_arm_finds_is_told_before_anything_is_made() {
    let site = Site::new();
    let installed = |version: u32| {
        std::path::Path::new(&format!("/usr/lib/postgresql/{version}/bin/postgres")).exists()
    };
    let there = (15..=18).find(|version| installed(*version));
    let (Some(there), Some(absent)) = (there, (15..=18).rfind(|v| !installed(*v))) else {
        return;
    };
    let control = format!(
        "[control]\nvariable = \"deployment.db.postgres.version\"\ntreatment = {there}\ncontrol = {absent}\n"
    );
    let text = database();
    let from = text.find("[control]").unwrap();
    let to = from + 1 + text[from + 1..].find("\n[").unwrap();
    let text = format!("{}{control}{}", &text[..from], &text[to..]);
    site.write("experiment.toml", &text);
    // What was fetched may be the other version.
    let mut command = site.command(&["run", "experiment.toml"]);
    ran(command.env("CETERIS_CACHE", site.at("no-cache")))
        .ends(2)
        .names(&["db", &absent.to_string()]);
    assert_eq!(site.at("results").read_dir().unwrap().count(), 0);
}

#[test]
fn a_smoke_run_of_no_time_is_refused() {
    let site = Site::new();
    site.write("experiment.toml", &plain());
    site.ceteris(&["run", "experiment.toml", "--smoke", "0s"])
        .ends(2)
        .names(&["--smoke", "no time"]);
    assert_eq!(site.at("results").read_dir().unwrap().count(), 0);
}
