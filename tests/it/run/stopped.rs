//! Runs that do not come to their end: stopped by the user, killed, or left by a service.

use std::fs;
use std::process::Child;

use super::site::{Site, interrupt, plain, pruned, told, turn, until, with};

/// Waits until the measured time has begun, or fails with what the program said when it ended before.
fn measuring(site: &Site, child: &mut Child) {
    until("two seconds are measured", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        site.measures(2)
    });
}

fn long(text: &str) -> String {
    with(text, "duration = \"3s\"", "duration = \"300s\"")
}

#[test]
fn ctrl_c_once_keeps_and_reports_what_was_measured() {
    let _turn = turn();
    let site = Site::new();
    let mut child = site.start(&long(&plain()));
    measuring(&site, &mut child);
    interrupt(&child);
    let ran = told(child).ends(130);
    assert!(ran.err.contains("once more to stop now"), "{}", ran.err);
    site.nothing_is_left();
    let report = site.report();
    assert!(report.contains("nterrupted"), "{report}");
    let summary = site.summary();
    assert_eq!(summary["exit_code"], 130);
    let ok = summary["figures"]["control.requests.ok"].as_f64();
    assert!(ok.is_some_and(|ok| ok > 0.0), "{ok:?}");
    let folder = site.folder();
    assert!(folder.join("SHA256SUMS").is_file());
    let run = folder.to_str().unwrap();
    site.ceteris(&["verify", run]).ends(0);
    site.ceteris(&["analyze", run]).ends(130);
    let list = site.ceteris(&["list"]).ends(0).out;
    assert!(list.contains("interrupted"), "{list}");
}

#[test]
fn ctrl_c_twice_stops_now_though_requests_never_end() {
    let _turn = turn();
    let site = Site::new();
    let text = with(&long(&plain()), "FAULT = \"none\"", "FAULT = \"hang:900\"");
    let text = with(&text, "timeout = \"30s\"", "timeout = \"10m\"");
    let mut child = site.start(&text);
    measuring(&site, &mut child);
    interrupt(&child);
    // The second one is another signal only when the first was taken.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("once more to stop now") {
        use std::io::BufRead as _;
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    interrupt(&child);
    until("it has ended", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    site.nothing_is_left();
    let run = site.folder();
    site.ceteris(&["analyze", run.to_str().unwrap()]).ends(130);
}

#[test]
fn ctrl_c_before_any_load_is_an_interrupted_run_too() {
    let _turn = turn();
    let site = Site::new();
    // Never ready: the application does not know the path.
    let text = with(&plain(), "\"/healthz\"", "\"/never\"");
    let child = site.start(&text);
    let log = site.at("results/small/latest/pairs/01/control/events.jsonl");
    until("the first arm starts", || log.is_file());
    interrupt(&child);
    told(child).ends(130);
    site.nothing_is_left();
    assert!(site.report().contains("nterrupted"));
}

#[test]
fn kill_9_leaves_no_service_and_a_folder_that_reads_back() {
    let _turn = turn();
    let site = Site::new();
    let text = with(
        &long(&pruned()),
        "APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\", ",
        "",
    );
    let mut child = site.start(&text);
    measuring(&site, &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    site.nothing_is_left();
    let folder = site.folder();
    assert!(!folder.join("summary.json").exists());
    let run = folder.to_str().unwrap();
    let list = site.ceteris(&["list"]).ends(0).out;
    assert!(list.contains("unfinished"), "{list}");
    let analyzed = site.ceteris(&["analyze", run]).ends(3);
    assert!(analyzed.out.contains("unfinished") || analyzed.out.contains("never ended"));
    let summary = site.summary();
    let ok = summary["figures"]["control.requests.ok"].as_f64();
    assert!(ok.is_some_and(|ok| ok > 0.0), "{ok:?}");
    site.ceteris(&["report", run]).ends(3);
    assert!(site.report().contains("unfinished") || site.report().contains("never ended"));
    site.ceteris(&["verify", run]).ends(0);
}

#[test]
fn a_service_that_dies_is_named_with_its_last_words() {
    let _turn = turn();
    let site = Site::new();
    let text = with(&plain(), "FAULT = \"none\"", "FAULT = \"die:900\"");
    let ran = site.run(&text).ends(3);
    ran.names(&["control", "app", "status 9", "my last words: out of luck"]);
    site.nothing_is_left();
    let report = site.report();
    for part in ["app", "status 9", "my last words: out of luck"] {
        assert!(report.contains(part), "no '{part}' in:\n{report}");
    }
    let first = report.lines().take(12).collect::<Vec<_>>().join("\n");
    assert!(first.to_lowercase().contains("not valid"), "{first}");
    let summary = site.summary();
    assert_eq!(summary["exit_code"], 3);
    let log = fs::read_to_string(site.folder().join("pairs/01/control/logs/app.log")).unwrap();
    assert!(log.contains("out of luck"));
}
