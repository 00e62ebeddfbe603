//! The commented file that `ceteris init NAME` writes.

use anyhow::{Result, bail};

use super::shape::is_slug;

const STARTER: &str = include_str!("starter.toml");

/// A commented experiment file with this name.
///
/// # Errors
/// The name can't name a folder.
pub fn starter(name: &str) -> Result<String> {
    if !is_slug(name) {
        bail!(
            "\"{}\" can't name an experiment: write lower-case letters, digits and dashes (at most 64)",
            super::problem::visible(name)
        );
    }
    Ok(STARTER.replace("@NAME@", name))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{LoadOptions, check_bytes};
    use super::*;

    #[test]
    fn the_starter_passes_its_own_check() {
        let text = starter("my-first").unwrap();
        let checked = check_bytes(
            Path::new("my-first.toml"),
            text.as_bytes(),
            &LoadOptions::default(),
        );
        match checked {
            Ok(checked) => assert_eq!(checked.render_warnings(), ""),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn a_name_that_is_no_folder_is_refused() {
        for bad in ["", "../x", "A", "a b", "a_b", "--", "\u{1b}[2J"] {
            let told = starter(bad).map_err(|e| e.to_string()).unwrap_err();
            assert!(!told.contains('\u{1b}'), "{told}");
        }
    }
}
