//! What follows the pairs: the saturation probe and counted calls; and a secret that the workload sends.

use std::fs;

use super::site::{Site, files_below, interrupt, plain, ran, told, turn, until, with};

const SECRET: &str = "tr0ub4dor-and-3";

/// Two short arms, a probe of three levels, counted calls, and a header from the caller's environment.
fn apart(each: &str) -> String {
    let text = with(
        &plain(),
        "timeout = \"30s\"",
        "timeout = \"30s\"\nheaders = { X-Key = \"{{ env.SMALL_KEY }}\" }",
    );
    format!(
        "{text}
[probe]
clients = [1, 4, 2]
each    = \"{each}\"

[[micro]]
name     = \"op boundary\"
command  = [\"echo\", '{{\"calls\": 1000000, \"seconds\": 0.3}}']
baseline = [\"echo\", '{{\"calls\": 1000000, \"seconds\": 0.1}}']
rounds   = 3

[[claim]]
text = \"a call takes {{{{ micro.op_boundary.ns_per_call | round }}}} ns\"
when = \"micro.op_boundary.ns_per_call > 199 and micro.op_boundary.ns_per_call < 201\"
"
    )
}

#[test]
fn a_probe_and_counted_calls_follow_the_pairs() {
    let _turn = turn();
    let site = Site::new();
    site.write("experiment.toml", &apart("1s"));
    let mut command = site.command(&["run", "experiment.toml"]);
    let ran = ran(command.env("SMALL_KEY", SECRET)).ends(0);
    assert!(ran.err.contains("4 clients: "), "{}", ran.err);
    site.nothing_is_left();

    let (folder, summary) = (site.folder(), site.summary());
    let levels = summary["probe"]["levels"].as_array().unwrap();
    let clients: Vec<_> = levels.iter().map(|level| &level["clients"]).collect();
    assert_eq!(clients.len(), 4, "{clients:?}");
    assert_eq!(levels.iter().filter(|l| l["repeated"] == true).count(), 1);
    for level in levels {
        let [sent, ok, failed, cut] =
            ["sent", "ok", "failed", "cut"].map(|name| level[name].as_u64().unwrap());
        assert!(ok > 0, "{level}");
        assert_eq!(failed, 0, "{level}");
        assert_eq!(sent, ok + failed + cut, "{level}");
        assert_eq!(level["services"][0]["service"], "app");
        assert!(level["services"][0]["memory_mib"].as_f64().unwrap() > 0.0);
    }
    assert!(
        summary["probe"]
            .get("not_whole")
            .is_none_or(|w| w.is_null())
    );
    let ns = summary["figures"]["micro.op_boundary.ns_per_call"].as_f64();
    assert!((ns.unwrap() - 200.0).abs() < 1e-6, "{ns:?}");
    let report = site.report();
    for part in [
        "## Saturation",
        "- Verdict: ",
        "charts/probe.svg",
        "## Counted calls",
        "n = 3,000,000 calls in 3 rounds",
        "> - a call takes 200 ns",
    ] {
        assert!(report.contains(part), "no '{part}' in:\n{report}");
    }
    assert!(folder.join("logs/probe/app.log").is_file());
    let rows = |name: &str| {
        fs::read_to_string(folder.join(name))
            .unwrap()
            .lines()
            .count()
    };
    assert_eq!((rows("probe.csv"), rows("micro.csv")), (5, 4));

    // The workload's secret went to the server and nowhere else.
    for file in files_below(&folder) {
        let text = fs::read(&file).unwrap();
        let found = text.windows(SECRET.len()).any(|w| w == SECRET.as_bytes());
        assert!(!found, "{} holds a secret", file.display());
    }
    assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET));

    let run = folder.to_str().unwrap();
    site.ceteris(&["verify", run]).ends(0);
    let calls = fs::read_to_string(folder.join("micro.csv")).unwrap();
    fs::write(folder.join("micro.csv"), calls.replace(",0.3,", ",0.4,")).unwrap();
    let differs = site.ceteris(&["verify", run]).ends(1).out;
    assert!(differs.contains("micro.csv"), "{differs}");
    assert!(differs.contains("ns_per_call"), "{differs}");
    fs::write(folder.join("micro.csv"), calls).unwrap();
    site.ceteris(&["publish", run, "out"]).ends(0);
    let dictionary = fs::read_to_string(site.at("out/DATA.md")).unwrap();
    for name in ["probe.csv", "micro.csv"] {
        let text = fs::read_to_string(site.at("out").join(name)).unwrap();
        for column in text.lines().next().unwrap().split(',') {
            let general = column.replace("_app", "_SERVICE");
            let known = dictionary.contains(&format!("| `{general}` |"));
            assert!(known, "{column} of {name} is not in the dictionary");
        }
    }
    site.ceteris(&["verify", "out"]).ends(0);
}

#[test]
fn a_secret_that_is_not_set_stops_the_run_before_anything_is_made() {
    let site = Site::new();
    site.run(&apart("1s"))
        .ends(2)
        .names(&["SMALL_KEY", "is not set"]);
    assert_eq!(site.at("results").read_dir().unwrap().count(), 0);
}

#[test]
fn counted_calls_that_fail_are_told_and_leave_the_run_whole() {
    let _turn = turn();
    let site = Site::new();
    let text = format!(
        "{}\n[[micro]]\nname = \"op\"\ncommand = [\"false\"]\nbaseline = [\"true\"]\n",
        plain()
    );
    let ran = site.run(&text).ends(0);
    assert!(ran.err.contains("micro.op is not whole"), "{}", ran.err);
    let summary = site.summary();
    let why = &summary["not_observed"]["micro.op.ns_per_call"];
    assert!(why.as_str().unwrap().contains("false"), "{why}");
    assert!(summary["figures"].get("micro.op.ns_per_call").is_none());
    assert!(site.report().contains("op is not whole: "));
    let run = site.folder();
    site.ceteris(&["verify", run.to_str().unwrap()]).ends(0);
}

#[test]
fn a_probe_that_is_stopped_keeps_its_levels_and_both_arms() {
    let _turn = turn();
    let site = Site::new();
    site.write(
        "experiment.toml",
        &with(&apart("2s"), "[1, 4, 2]", "[1, 4, 2, 3, 5, 6, 7, 8, 9]"),
    );
    let mut command = site.command(&["run", "experiment.toml"]);
    let mut child = command
        .env("SMALL_KEY", SECRET)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("a level is measured", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        let file = site.at("results/small/latest/probe.csv");
        fs::read_to_string(file).is_ok_and(|text| text.lines().count() > 1)
    });
    interrupt(&child);
    told(child).ends(130);
    site.nothing_is_left();
    let summary = site.summary();
    assert_eq!(summary["exit_code"], 130);
    let why = &summary["not_observed"]["probe"];
    assert!(why.as_str().unwrap().contains("interrupted"), "{why}");
    assert!(!summary["probe"]["levels"].as_array().unwrap().is_empty());
    for arm in ["treatment", "control"] {
        assert_eq!(summary["figures"][&format!("{arm}.seconds")], 3.0);
    }
}

#[test]
fn a_deployment_can_be_probed_without_its_arms() {
    let _turn = turn();
    let site = Site::new();
    site.write("experiment.toml", &plain());
    let arguments = [
        "probe",
        "experiment.toml",
        "--clients",
        "1,2,4",
        "--each",
        "1s",
        "--json",
    ];
    let ran = site.ceteris(&arguments);
    // 1: the driver was the limit, as it may be on a machine this busy.
    assert!(matches!(ran.code, Some(0 | 1)), "{}\n{}", ran.out, ran.err);
    site.nothing_is_left();
    let probe: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let levels = probe["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 4);
    assert!(levels.iter().all(|level| level["ok"].as_u64() > Some(0)));
    assert_eq!(levels[0]["services"][0]["service"], "app");
    assert!(!probe["verdict"].as_str().unwrap().is_empty());
    let kept: Vec<_> = files_below(&site.at("results/small/probes"));
    for name in ["experiment.toml", "probe.csv", "logs/probe/app.log"] {
        assert!(kept.iter().any(|file| file.ends_with(name)), "{kept:?}");
    }
    // It is no run.
    let list = site.ceteris(&["list"]).ends(0).out;
    assert!(!list.contains("small"), "{list}");

    let dies = with(&plain(), "FAULT = \"none\"", "FAULT = \"die:200\"");
    site.write("experiment.toml", &dies);
    let ran = site.ceteris(&arguments).ends(3);
    assert!(ran.err.contains("app"), "{}", ran.err);
    site.nothing_is_left();
    site.write("experiment.toml", &plain());
    site.ceteris(&["probe", "experiment.toml", "--clients", "1,2"])
        .ends(2)
        .names(&["three different levels"]);
}
