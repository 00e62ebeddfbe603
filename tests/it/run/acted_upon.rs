//! Runs whose deployment is acted upon, or was there before.

use super::site::{Site, plain, pruned, ran, turn, with};
use crate::deploy::running::{databases, url};
use crate::deploy::runtime;
use crate::sample::postgres::Postgres;

/// The plain run with actions of both kinds of service life, and a burst.
fn with_actions(actions: &str) -> String {
    let text = with(&plain(), "duration = \"3s\"", "duration = \"6s\"");
    let text = with(&text, "window   = \"1s\"", "window   = \"2s\"");
    with(&text, "[control]", &format!("{actions}\n[control]"))
}

#[test]
fn restarts_are_recovered_from_and_their_times_are_a_distribution() {
    let _turn = turn();
    let site = Site::new();
    let text = with_actions(
        r#"
[[action]]
name    = "start again"
at      = "1200ms"
every   = "2s"
times   = 2
restart = { service = "app", signal = "KILL" }

[[action]]
name    = "more of them"
at      = "2s"
clients = { closed = 4, for = "1s" }

[[action]]
name  = "ask for nothing"
at    = "5s"
http  = { service = "app", get = "/nothing", expect = { status = 200 } }
"#,
    );
    // Readings far apart, so that a busy machine misses none.
    let text = with(&text, "sample   = \"1s\"", "sample   = \"3s\"");
    site.run(&text).ends(0);
    site.nothing_is_left();
    let summary = site.summary();
    let figures = &summary["figures"];
    let number = |name: &str| {
        figures[name]
            .as_f64()
            .unwrap_or_else(|| panic!("no {name} in {figures}"))
    };
    for arm in ["treatment", "control"] {
        let of = |rest: &str| number(&format!("{arm}.{rest}"));
        assert_eq!(of("actions.start_again.done"), 2.0);
        assert_eq!(of("services.app.restarts"), 2.0);
        assert!(of("services.app.ready_ms.min") <= of("services.app.ready_ms.max"));
        assert!(figures[format!("{arm}.services.app.ready_ms.p50")].is_null());
        let (least, most) = (
            of("actions.start_again.recovery_ms.min"),
            of("actions.start_again.recovery_ms.max"),
        );
        assert!(0.0 < least && least <= most, "{least} {most}");
        assert!(of("actions.more_of_them.throughput") > 0.0);
        // What fails is a finding: the run goes on.
        assert_eq!(of("actions.ask_for_nothing.failed"), 1.0);
    }
    assert_eq!(summary["validity"]["valid"], true);
    let report = site.report();
    for part in [
        "| restarts | least ms |",
        "status 404",
        "actions ended one 2 times",
    ] {
        assert!(report.contains(part), "no '{part}' in:\n{report}");
    }
}

#[test]
fn memory_that_each_request_of_an_action_leaves_is_told_by_execution() {
    let _turn = turn();
    let site = Site::new();
    let text = with_actions(
        r#"
[[action]]
name  = "hold on"
at    = "1500ms"
every = "1s"
times = 4
http  = { service = "app", post = "/hold" }
"#,
    );
    // On a busy machine readings may be missing, and the run be not valid: these figures stand all the same.
    site.run(&text);
    let summary = site.summary();
    let figures = &summary["figures"];
    assert!(site.report().contains("| change an execution MiB |"));
    for arm in ["treatment", "control"] {
        let change = figures[format!("{arm}.actions.hold_on.rss_change")].as_f64();
        // The application keeps 8 MiB of each; a reading may fall before or after the last.
        assert!(
            change.is_some_and(|mib| (5.0..9.0).contains(&mib)),
            "{change:?}"
        );
    }
}

#[test]
fn every_kind_of_action_is_done_in_both_arms() {
    let _turn = turn();
    let site = Site::new();
    let text = with(
        &pruned(),
        "APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\"",
        "OTHER = \"x\"",
    );
    let text = with(&text, "duration = \"3s\"", "duration = \"6s\"");
    let text = with(&text, "window   = \"1s\"", "window   = \"2s\"");
    let text = with(&text, "sample   = \"1s\"", "sample   = \"3s\"");
    let actions = r#"
[[action]]
name = "insert"
at   = "500ms"
sql  = { service = "db", database = "shop", statement = "INSERT INTO jobs VALUES (-1)" }

[[action]]
name   = "go on"
at     = "1s"
signal = { service = "app", signal = "CONT" }

[[action]]
name = "stop"
at   = "1500ms"
stop = "app"

[[action]]
name  = "start"
at    = "2s"
start = "app"

[[action]]
name    = "by hand"
at      = "3s"
command = ["test", "-d", "{{ db.dir }}"]

[[action]]
name   = "squeeze"
at     = "4s"
limits = { service = "app", memory = "512MiB" }

[control]"#;
    site.run(&with(&text, "[control]", actions)).ends(0);
    site.nothing_is_left();
    let summary = site.summary();
    let figures = &summary["figures"];
    for arm in ["treatment", "control"] {
        for action in ["insert", "go_on", "stop", "start", "by_hand"] {
            let name = format!("{arm}.actions.{action}.done");
            assert_eq!(figures[&name], 1.0, "{name}");
        }
        let squeezed = figures[format!("{arm}.actions.squeeze.done")].as_f64();
        assert_eq!(
            squeezed,
            Some(f64::from(u8::from(rustix::process::geteuid().is_root())))
        );
        // While it was down requests were refused, which no gate holds against the run.
        assert!(figures[format!("{arm}.failures.refused")].as_f64() > Some(0.0));
        assert!(figures[format!("{arm}.actions.stop.recovery_ms")].as_f64() > Some(400.0));
    }
    assert_eq!(summary["validity"]["valid"], true);
}

/// The plain run with a limit on the application.
fn limited(text: &str, limit: &str) -> String {
    with(
        text,
        "command = [\"./application\"",
        &format!("limits = {limit}\ncommand = [\"./application\""),
    )
}

#[test]
fn a_memory_limit_that_is_reached_ends_the_arm_and_is_named() {
    let _turn = turn();
    let site = Site::new();
    let text = with_actions(
        r#"
[[action]]
name  = "hold on"
at    = "500ms"
every = "300ms"
times = 10
http  = { service = "app", post = "/hold" }
"#,
    );
    let ran = site.run(&limited(&text, "{ memory = \"32MiB\" }"));
    if !rustix::process::geteuid().is_root() {
        ran.ends(3).names(&["control group"]);
        return;
    }
    ran.ends(3).names(&[
        "control of pair 1",
        "app",
        "the kernel killed it for memory (its limit is 32 MiB)",
    ]);
    site.nothing_is_left();
    let report = site.report();
    assert!(
        report.contains("the kernel killed it for memory"),
        "{report}"
    );
    let first: String = report.lines().take(12).collect();
    assert!(first.contains("Not valid"), "{first}");
}

#[test]
fn time_for_which_a_limit_held_a_service_back_is_told() {
    let _turn = turn();
    let site = Site::new();
    let ran = site.run(&limited(&with_actions(""), "{ cpus = 0.02 }"));
    if !rustix::process::geteuid().is_root() {
        ran.ends(3).names(&["control group"]);
        return;
    }
    site.nothing_is_left();
    let summary = site.summary();
    let held = summary["figures"]["control.services.app.throttled_s"].as_f64();
    assert!(held.is_some_and(|s| s > 0.0), "{held:?}");
    let report = site.report();
    assert!(
        report.contains("In the control app was held back by its limit of 0.02 cores for"),
        "{report}"
    );
}

#[test]
fn a_run_in_a_server_that_runs_already_leaves_it_as_it_was() {
    let _turn = turn();
    let host = runtime().block_on(Postgres::start());
    let before = runtime().block_on(databases(&host.server));
    let site = Site::new();
    let text = with(
        &pruned(),
        "APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\"",
        "OTHER = \"x\"",
    );
    let text = with(&text, "{{ db.url }}/shop", "{{ db.databases.shop }}");
    let text = with(
        &text,
        "databases = [\"shop\"]",
        "databases = [\"shop\"]\nurl = \"{{ env.PG_URL }}\"",
    );
    let text = with(&text, "sample   = \"1s\"", "sample   = \"3s\"");
    site.write("experiment.toml", &text);
    let mut command = site.command(&["run", "experiment.toml"]);
    ran(command.env("PG_URL", url(&host.server))).ends(0);
    site.nothing_is_left();
    assert_eq!(runtime().block_on(databases(&host.server)), before);
    let summary = site.summary();
    let figures = &summary["figures"];
    assert!(figures["control.pruned.jobs"].as_f64() > Some(0.0));
    assert!(figures["treatment.services.db.table.jobs.rows"].as_f64() > Some(0.0));
    assert!(figures["treatment.services.db.sql_per_request"].is_null());
    let report = site.report();
    assert!(report.contains("db ran already"), "{report}");
    let manifest = std::fs::read_to_string(site.folder().join("manifest.json")).unwrap();
    assert!(!manifest.contains(host.server.owner.password.reveal()));
}
