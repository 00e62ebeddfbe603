//! The structure that the crate promises: ranks, file length, an empty `lib.rs`, no rooms for leftovers.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules by rank. A module imports only from strictly lower ranks.
const RANKS: &[&[&str]] = &[
    &["name", "quantity"],
    &["figure", "template", "measure"],
    &["expression", "sql"],
    &["experiment"],
    &["deploy", "load", "sample", "prune", "results"],
    &["run", "analysis"],
    &["report"],
    &["archive"],
    &["cli"],
    &["main"],
];

/// Longest file, in lines.
const LONGEST: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if !folder.exists() {
        return found;
    }
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn rank(module: &str) -> Option<usize> {
    RANKS.iter().position(|modules| modules.contains(&module))
}

/// The top-level module that a file belongs to.
fn module_of(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside
        .components()
        .next()
        .unwrap()
        .as_os_str()
        .to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// Top-level modules named by `crate::…` in a text, comments left out, `use crate::{a, b::c}` taken apart.
fn imports(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (_, after) in code
        .match_indices("crate::")
        .map(|(at, word)| (at, &code[at + word.len()..]))
    {
        if let Some(group) = after.strip_prefix('{') {
            let mut depth = 0usize;
            let mut word = String::new();
            for letter in group.chars() {
                match letter {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 0 && (letter == ',' || letter == '}') {
                    found.push(
                        word.split("::")
                            .next()
                            .unwrap_or_default()
                            .trim()
                            .to_owned(),
                    );
                    word.clear();
                } else {
                    word.push(letter);
                }
            }
            found.push(
                word.split("::")
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            );
        } else {
            let word: String = after
                .chars()
                .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                .collect();
            found.push(word);
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

#[test]
fn modules_import_only_from_lower_ranks() {
    let mut faults = Vec::new();
    for path in sources(&root().join("src")) {
        let module = module_of(&path);
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(&module) else {
            faults.push(format!(
                "{}: module {module} has no rank; give it one here and in lib.rs",
                path.display()
            ));
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        let text = if module == "main" {
            text.replace("ceteris::", "crate::")
        } else {
            text
        };
        for import in imports(&text) {
            if import == module {
                continue;
            }
            match rank(&import) {
                Some(other) if other < own => {}
                Some(other) => faults.push(format!(
                    "{}: {module} (rank {own}) imports {import} (rank {other})",
                    path.display()
                )),
                // A macro or item at the crate's root would be one; lib.rs has none.
                None => faults.push(format!(
                    "{}: imports crate::{import}, which has no rank",
                    path.display()
                )),
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_import_reader_sees_groups_and_paths() {
    let text = "use crate::{name::Arm, measure::{self, Counts}};\nlet x = crate::results::read_run(y); // crate::cli";
    assert_eq!(imports(text), ["name", "measure", "results"]);
}

#[test]
fn files_stay_short_and_rooms_have_names() {
    let mut faults = Vec::new();
    for folder in ["src", "tests", "examples", "benches"] {
        for path in sources(&root().join(folder)) {
            let lines = fs::read_to_string(&path).unwrap().lines().count();
            if lines > LONGEST {
                faults.push(format!(
                    "{}: {lines} lines, {LONGEST} at most",
                    path.display()
                ));
            }
            let stem = path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if [
                "utils", "util", "helpers", "helper", "common", "imp", "misc",
            ]
            .contains(&stem.as_str())
            {
                faults.push(format!("{}: a name that says nothing", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn lib_rs_holds_only_its_doc_and_modules() {
    let text = fs::read_to_string(root().join("src/lib.rs")).unwrap();
    for line in text.lines() {
        let allowed = line.is_empty()
            || line.starts_with("//!")
            || line.starts_with("pub mod ")
            || line.starts_with("mod ");
        assert!(
            allowed,
            "lib.rs holds a line that is neither doc nor mod: {line}"
        );
    }
}
