//! The commands that need no run, and the commands that the README tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::site::{Ran, ran};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn ceteris_in(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ceteris"));
    ran(command.args(arguments).current_dir(folder))
}

fn ceteris(arguments: &[&str]) -> Ran {
    ceteris_in(&root(), arguments)
}

fn one_object(text: &str) -> Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).unwrap()
}

#[test]
fn experiments_of_the_repository_pass_the_check() {
    let mut files: Vec<_> = fs::read_dir(root().join("experiments"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let file = file.to_str().unwrap();
        let text = ceteris(&["check", file]).ends(0).out;
        for part in ["treatment", "control", "needs"] {
            assert!(text.contains(part), "{file}: {text}");
        }
        let null = text.contains("a null experiment");
        assert_ne!(null, text.contains("the one difference"), "{text}");
        let object = one_object(&ceteris(&["check", file, "--json"]).ends(0).out);
        for key in ["arms", "programs", "pairs"] {
            assert!(!object[key].is_null(), "{file}: no {key} in {object}");
        }
        assert_eq!(object["difference"].is_null(), null, "{object}");
    }
}

#[test]
fn a_file_with_faults_ends_with_2_in_text_and_in_json() {
    let bad = "tests/it/bad/many_faults.toml";
    let told = ceteris(&["check", bad]).ends(2);
    assert_eq!(told.out, "");
    told.names(&["many_faults.toml:", "help:"]);
    let object = one_object(&ceteris(&["check", bad, "--json"]).ends(2).out);
    let text = object.to_string();
    assert!(text.contains("\"line\""), "{text}");
    ceteris(&["check", "no-such-file.toml"])
        .ends(2)
        .names(&["no-such-file.toml"]);
    ceteris(&["run", "no-such-file.toml"])
        .ends(2)
        .names(&["no-such-file.toml"]);
    ceteris(&["run", bad]).ends(2).names(&["many_faults.toml:"]);
    ceteris(&["run", "experiments/quickstart.toml", "--smoke", "soon"])
        .ends(2)
        .names(&["--smoke"]);
}

#[test]
fn help_ends_with_0_and_an_unknown_word_with_2() {
    let help = ceteris(&["--help"]).ends(0).out;
    for command in [
        "check",
        "run",
        "analyze",
        "report",
        "verify",
        "publish",
        "note",
        "list",
        "load",
        "probe",
        "trend",
        "calibrate",
        "fetch",
        "init",
        "schema",
    ] {
        assert!(help.contains(command), "no {command} in {help}");
        ceteris(&[command, "--help"]).ends(0);
    }
    assert!(!help.contains("__supervise"));
    assert!(ceteris(&["--version"]).ends(0).out.starts_with("ceteris "));
    ceteris(&["rum"]).ends(2).names(&["run"]);
    ceteris(&[]).ends(2);
    ceteris(&["check"]).ends(2);
    ceteris(&["trend", "x.csv"]).ends(2).names(&["--margin"]);
}

#[test]
fn a_file_to_start_from_passes_its_check_and_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = ceteris_in(folder.path(), &["init", "my-first"]).ends(0).out;
    assert_eq!(path, "my-first.toml\n");
    let written = fs::read(folder.path().join("my-first.toml")).unwrap();
    ceteris_in(folder.path(), &["check", "my-first.toml"]).ends(0);
    ceteris_in(folder.path(), &["init", "my-first"])
        .ends(2)
        .names(&["my-first.toml is there already"]);
    assert_eq!(
        fs::read(folder.path().join("my-first.toml")).unwrap(),
        written
    );
    fs::create_dir(folder.path().join("experiments")).unwrap();
    let path = ceteris_in(folder.path(), &["init", "second"]).ends(0).out;
    assert_eq!(path, "experiments/second.toml\n");
    ceteris_in(folder.path(), &["init", "../x"]).ends(2);
    let schema: Value = serde_json::from_str(&ceteris(&["schema"]).ends(0).out).unwrap();
    assert!(schema["properties"]["experiment"].is_object());
}

/// A series of 120 seconds around 1000, with noise that a formula makes, and a line through it.
fn series(slope: f64) -> String {
    let mut text = String::from("at_s,throughput\n");
    for i in 0..120 {
        let noise = 20.0 * (f64::from(i) * 12.9898).sin();
        text.push_str(&format!("{i},{}\n", 1000.0 + noise + slope * f64::from(i)));
    }
    text
}

#[test]
fn trend_judges_any_series() {
    let folder = tempfile::tempdir().unwrap();
    let trend = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        ceteris_in(folder.path(), &["trend", name, "--margin", "20%", "--json"])
    };
    for (name, slope, word) in [
        ("flat.csv", 0.0, "flat"),
        ("falls.csv", -6.0, "falls"),
        ("rises.csv", 6.0, "rises"),
    ] {
        let object = one_object(&trend(name, &series(slope)).ends(0).out);
        assert_eq!(object["trend"], word, "{object}");
        assert_eq!(object.as_object().unwrap().keys().next().unwrap(), "trend");
        assert!(object["margin"].as_f64() == Some(0.2), "{object}");
    }
    let words = ceteris_in(folder.path(), &["trend", "flat.csv", "--margin", "20%"]).ends(0);
    assert!(
        words.out.starts_with("flat at a margin of 20"),
        "{}",
        words.out
    );

    trend("empty.csv", "").ends(3).names(&["empty.csv"]);
    trend("words.csv", "a,b\nc,d\n")
        .ends(3)
        .names(&["words.csv"]);
    ceteris(&["trend", "no-such.csv", "--margin", "20%"])
        .ends(3)
        .names(&["no-such.csv"]);
    let margin = |text: &str| ceteris_in(folder.path(), &["trend", "flat.csv", "--margin", text]);
    for wrong in ["0%", "20", "many"] {
        margin(wrong).ends(2).names(&["--margin"]);
    }
}

#[test]
fn what_is_no_run_is_told_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for command in ["analyze", "report", "verify"] {
        ceteris_in(folder.path(), &[command, "results/none"])
            .ends(3)
            .names(&["results/none"]);
        ceteris_in(folder.path(), &[command, "."])
            .ends(3)
            .names(&["experiment.toml"]);
    }
    ceteris_in(folder.path(), &["list"])
        .ends(0)
        .names(&["no run is kept"]);
}

/// The README's blocks of one language.
fn blocks(language: &str) -> Vec<String> {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let mut found = Vec::new();
    let mut rest = readme.as_str();
    while let Some(at) = rest.find("```") {
        let (head, body) = rest[at + 3..].split_once('\n').unwrap();
        let end = body.find("```").unwrap();
        if head.trim() == language {
            found.push(body[..end].to_owned());
        }
        rest = &body[end + 3..];
    }
    found
}

#[test]
fn the_commands_of_the_readme_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    // In running text a command may go over the end of a line.
    let text = readme.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut seen = Vec::new();
    for rest in text.split("cargo run --release -- ").skip(1) {
        let end = rest.find(['`', ',', '#']).unwrap_or(rest.len());
        let words: Vec<&str> = rest[..end].split(' ').collect();
        ceteris(&[words[0], "--help"]).ends(0);
        match words[..] {
            ["run", file, ..] => {
                ceteris(&["check", file]).ends(0);
            }
            ["fetch", program, ..] => {
                let help = ceteris(&["fetch", "--help"]).ends(0).out;
                assert!(help.contains(program), "{help}");
            }
            _ => {}
        }
        seen.push(words[0]);
    }
    assert!(seen.contains(&"run"), "{seen:?}");
    assert!(
        blocks("sh").iter().any(|block| block
            .lines()
            .any(|line| line.starts_with("cargo run --release -- run experiments/"))),
        "the README shows how an experiment is run"
    );
    for rest in text.split("`ceteris ").skip(1) {
        let word = rest.split([' ', '`']).next().unwrap();
        if word.chars().all(|letter| letter.is_ascii_lowercase()) {
            ceteris(&[word, "--help"]).ends(0);
        }
    }
}

#[test]
fn the_files_of_the_readme_exist() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for rest in readme.split("](").skip(1) {
        let target = rest.split(')').next().unwrap();
        if !target.contains("://") && !target.starts_with('#') {
            assert!(root().join(target).exists(), "{target}");
        }
    }
    // A report's place follows from the name of an experiment of the repository.
    let names: Vec<String> = fs::read_dir(root().join("experiments"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .map(|text| {
            let rest = text.split("\nname ").nth(1).unwrap();
            rest.split('"').nth(1).unwrap().to_owned()
        })
        .collect();
    for rest in readme.split("results/").skip(1) {
        if let Some((name, _)) = rest.split_once("/latest")
            && !name.contains(['<', ' ', '\n'])
        {
            assert!(names.iter().any(|known| known == name), "results/{name}");
        }
    }
}

#[test]
fn the_file_of_the_readme_passes_its_check() {
    let folder = tempfile::tempdir().unwrap();
    let whole: Vec<String> = blocks("toml")
        .into_iter()
        .filter(|block| block.contains("[experiment]"))
        .collect();
    assert!(!whole.is_empty());
    for text in whole {
        let file = folder.path().join("readme.toml");
        fs::write(&file, text).unwrap();
        ceteris(&["check", file.to_str().unwrap()]).ends(0);
    }
}
