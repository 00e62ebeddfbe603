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
        "Time from a start until ready",
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
    assert!(site.report().contains("Memory around actions"));
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
