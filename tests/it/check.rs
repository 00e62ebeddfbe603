//! The experiment file: good ones pass, each bad one is told as stored next to it.
//!
//! `CETERIS_UPDATE=1 cargo test --test it check` writes the stored texts anew; read what changed before committing it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ceteris::experiment::{
    Checked, LoadError, LoadOptions, check_bytes, load, render_check, schema,
};
use proptest::prelude::*;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn options() -> LoadOptions<'static> {
    LoadOptions {
        folder: Some(root()),
        ..LoadOptions::default()
    }
}

fn check(name: &str, bytes: &[u8]) -> Result<Checked, LoadError> {
    check_bytes(Path::new(name), bytes, &options())
}

fn told(name: &str, bytes: &[u8]) -> String {
    match check(name, bytes) {
        Ok(checked) => checked.render_warnings(),
        Err(error) => error.to_string(),
    }
}

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    found.sort();
    found
}

#[test]
fn every_experiment_of_the_repository_passes() {
    let found = files("experiments", "toml");
    assert!(found.len() >= 3);
    for path in found {
        match load(&path, &options()) {
            Ok(checked) => assert_eq!(checked.render_warnings(), "", "{}", path.display()),
            Err(error) => panic!("{}: {error}", path.display()),
        }
    }
}

#[test]
fn each_bad_file_is_told_as_stored() {
    let update = std::env::var_os("CETERIS_UPDATE").is_some();
    let found = files("tests/it/bad", "toml");
    assert!(found.len() >= 60, "{} bad files", found.len());
    let mut wrong = String::new();
    for path in found {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let shown = format!("tests/it/bad/{name}");
        let mut text = told(&shown, &fs::read(&path).unwrap());
        assert!(!text.is_empty(), "{name} is not bad at all");
        assert_eq!(
            text.matches(" --> tests/it/bad/").count(),
            text.matches("= help:").count(),
            "{name}: a problem without a place or a hint"
        );
        text.push('\n');
        let stored = path.with_extension("txt");
        if update {
            fs::write(&stored, &text).unwrap();
        }
        let expected = fs::read_to_string(&stored).unwrap_or_default();
        if expected != text {
            write!(wrong, "{name}: expected\n{expected}\nbut told\n{text}\n").unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    for path in files("tests/it/bad", "txt") {
        assert!(
            path.with_extension("toml").exists(),
            "{} is left over",
            path.display()
        );
    }
}

#[test]
fn files_that_no_editor_wrote_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let huge = write("huge.toml", &vec![b'#'; 10 << 20]);
    let unreadable = |path: &Path| match load(path, &options()) {
        Err(LoadError::Unreadable(error)) => format!("{error:#}"),
        other => panic!("{other:?}"),
    };
    assert!(unreadable(&huge).contains("larger than 1 MiB"));
    assert!(unreadable(folder.path()).contains("is a folder"));
    let missing = unreadable(&folder.path().join("none.toml"));
    assert!(missing.contains("none.toml"), "{missing}");
    for deep in [
        format!("a = {}", "[".repeat(500_000)),
        format!("a = {}", "{ a = ".repeat(100_000)),
        format!("[{}]", vec!["a"; 100_000].join(".")),
        format!("{} = 1", vec!["a"; 100_000].join(".")),
    ] {
        let path = write("deep.toml", deep.as_bytes());
        assert!(matches!(load(&path, &options()), Err(LoadError::Faulty(_))));
    }
}

#[test]
fn the_copy_in_a_runs_folder_needs_nothing_beside_itself() {
    let path = root().join("experiments/quickstart.toml");
    let elsewhere = tempfile::tempdir().unwrap();
    let with = |kept: bool| {
        let options = LoadOptions {
            folder: Some(elsewhere.path().to_owned()),
            env: None,
            kept,
        };
        load(&path, &options)
    };
    assert!(with(false).is_err());
    let kept = with(true).unwrap().experiment;
    let fresh = load(&path, &options()).unwrap().experiment;
    assert_eq!(kept.arms, fresh.arms);
}

#[test]
fn a_variable_of_the_environment_is_looked_at_only_when_asked() {
    let text = fs::read_to_string(root().join("experiments/quickstart.toml")).unwrap();
    let text = text.replace("{{ db.url }}/invoicing", "{{ env.MY_URL }}");
    let path = Path::new("x.toml");
    assert!(check_bytes(path, text.as_bytes(), &options()).is_ok());
    let with = |value: Option<&str>| {
        let lookup = |name: &str| {
            (name == "MY_URL")
                .then(|| value.map(str::to_owned))
                .flatten()
        };
        let options = LoadOptions {
            folder: Some(root()),
            env: Some(&lookup),
            kept: false,
        };
        check_bytes(path, text.as_bytes(), &options)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert!(with(Some("x")).is_ok());
    assert!(with(None).unwrap_err().contains("MY_URL is not set"));
}

#[test]
fn a_host_from_the_environment_is_judged_when_it_is_known() {
    let text = fs::read_to_string(root().join("experiments/quickstart.toml"))
        .unwrap()
        .replace(
            "[clients]\ntarget  = \"app\"",
            "[deployment.there.external]\nurl = \"http://{{ env.HOST }}:80\"\n\n[clients]\ntarget  = \"there\"",
        );
    let with = |host: &str| {
        let lookup = |_: &str| Some(host.to_owned());
        let options = LoadOptions {
            folder: Some(root()),
            env: Some(&lookup),
            kept: false,
        };
        check_bytes(Path::new("x.toml"), text.as_bytes(), &options)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(
        check("x.toml", text.as_bytes())
            .map(|_| ())
            .map_err(|e| e.to_string()),
        Ok(())
    );
    assert_eq!(with("127.0.0.1"), Ok(()));
    assert!(
        with("example.com")
            .unwrap_err()
            .contains("not this machine")
    );
}

#[test]
fn arms_differ_in_the_variable_and_nothing_else() {
    let checked = load(&root().join("experiments/quickstart.toml"), &options()).unwrap();
    let mut arms = checked.experiment.arms.clone();
    assert_ne!(arms.treatment, arms.control);
    let enabled = |setup: &mut ceteris::experiment::ArmSetup| {
        std::mem::replace(&mut setup.pruning.as_mut().unwrap().enabled, true)
    };
    assert!(!enabled(&mut arms.treatment));
    assert!(enabled(&mut arms.control));
    assert_eq!(arms.treatment, arms.control);
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_change_nothing() {
    let text = fs::read_to_string(root().join("experiments/quickstart.toml")).unwrap();
    let plain = check("x.toml", text.as_bytes()).unwrap().experiment;
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    let windows = check("x.toml", windows.as_bytes()).unwrap().experiment;
    assert_eq!(plain.arms, windows.arms);
    assert_eq!(plain.claims, windows.claims);
}

#[test]
fn the_check_report_names_what_would_be_done() {
    let checked = load(&root().join("experiments/unpruned-table.toml"), &options()).unwrap();
    let report = render_check(&checked);
    assert_eq!(
        report.arms.control.services,
        ["db (postgres)", "app (process)", "edge (caddy)"]
    );
    assert_eq!(
        report.difference.as_ref().unwrap().variable,
        "pruning.enabled"
    );
    assert!(report.arms.treatment.pruning.is_none());
    assert!(report.arms.control.pruning.is_some());
    assert_eq!(report.seconds, Some(2.0 * (120.0 + 10.0 + 5.0 + 5.0)));
    assert_eq!(report.pairs_needed, None);
    let programs: Vec<&str> = report.programs.iter().map(|p| p.program.as_str()).collect();
    assert_eq!(
        programs,
        [
            "postgres",
            "cargo",
            "target/release/invoicing",
            "caddy",
            "target/release/opbench"
        ]
    );
    assert_eq!(report.after, ["counted calls of JSON encoder, 10 rounds"]);
    // The build makes the counted calls' program as well.
    let opbench = report.programs.last().unwrap();
    assert!(opbench.built && opbench.needed_by == "JSON encoder");
}

#[test]
fn a_smoke_run_is_short_and_whole() {
    let checked = load(&root().join("experiments/unpruned-table.toml"), &options()).unwrap();
    let length = std::time::Duration::from_secs(20);
    let smoke = checked.experiment.smoke(length);
    let schedule = &smoke.experiment.schedule;
    assert_eq!(schedule.common_time(), Some(length));
    assert_eq!(schedule.warmup, length / 4);
    assert_eq!(schedule.pairs, 1);
    assert!(schedule.window <= length / 6);
    assert!(smoke.dropped_actions.is_empty());
}

#[test]
fn the_schema_knows_every_section_of_the_examples() {
    let schema = schema();
    let text = fs::read_to_string(root().join("experiments/unpruned-table.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    for key in table.keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    assert_eq!(schema["properties"]["clients"]["required"][0], "target");
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn figures_know_the_classes_of_failures() {
    let classes = ceteris::measure::FailureClass::ALL.map(|class| class.as_str());
    assert_eq!(classes, ceteris::figure::FAILURE_CLASSES);
}

/// Texts near a valid file: pieces cut out, doubled, replaced.
fn near(text: String) -> impl Strategy<Value = String> {
    let length = text.len();
    let edit = (
        0..length,
        0..60usize,
        prop_oneof![
            Just(String::new()),
            "[\\[\\]{}\"'=.,#|% a-z0-9\n-]{1,12}",
            Just("\u{1b}[2J".to_owned()),
            Just("é\u{feff}".to_owned()),
            Just("{{ app.address }}".to_owned()),
            Just("[[workload.step]]\n".to_owned()),
            Just("'''".to_owned()),
            Just("-99999999999999999999h".to_owned()),
        ],
    );
    prop::collection::vec(edit, 1..4).prop_map(move |edits| {
        let mut text = text.clone();
        for (at, cut, new) in edits {
            let floor = |text: &str, mut at: usize| {
                at = at.min(text.len());
                while !text.is_char_boundary(at) {
                    at -= 1;
                }
                at
            };
            let (from, to) = (floor(&text, at), floor(&text, at + cut));
            text.replace_range(from..to, &new);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_near_a_valid_one_panics(text in near(fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/unpruned-table.toml")).unwrap()))
    {
        let (problems, shown) = match check("x.toml", text.as_bytes()) {
            Ok(checked) => (checked.warnings.clone(), checked.render_warnings()),
            Err(LoadError::Faulty(faults)) => {
                prop_assert!(!faults.problems.is_empty());
                (faults.problems.clone(), faults.render())
            }
            Err(LoadError::Unreadable(error)) => return Err(TestCaseError::fail(error.to_string())),
        };
        for problem in &problems {
            prop_assert!(problem.span.start <= problem.span.end);
            prop_assert!(text.get(problem.span.start..problem.span.end).is_some(), "{:?}", problem);
        }
        let quiet = !shown.contains('\u{1b}');
        prop_assert!(quiet);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = told("x.toml", &bytes);
    }
}
