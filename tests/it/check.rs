//! The experiment file: good ones pass, each bad one is told as stored.

use std::path::{Path, PathBuf};

use ceteris::experiment::{LoadOptions, load};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_experiment_of_the_repository_passes() {
    let folder = root().join("experiments");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let options = LoadOptions {
            folder: Some(root()),
            env: None,
        };
        match load(&path, &options) {
            Ok(checked) => assert!(checked.warnings.is_empty(), "{}", checked.render_warnings()),
            Err(error) => panic!("{}: {error}", path.display()),
        }
        count += 1;
    }
    assert!(count >= 3);
    assert!(load(Path::new("experiments/none.toml"), &LoadOptions::default()).is_err());
}
