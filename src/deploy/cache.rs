//! The tool's own cache of fetched programs.

use std::path::PathBuf;

use super::render::ReadEnv;

/// The cache folder: `CETERIS_CACHE`, else `/var/cache/ceteris` for root (whose home other users can't enter, and a
/// PostgreSQL that root starts runs as another user), else `ceteris` under `XDG_CACHE_HOME` or `~/.cache`.
pub fn root(env: &ReadEnv) -> PathBuf {
    if let Some(folder) = env("CETERIS_CACHE").filter(|folder| !folder.is_empty()) {
        return PathBuf::from(folder);
    }
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/cache/ceteris");
    }
    let base = env("XDG_CACHE_HOME")
        .filter(|folder| folder.starts_with('/'))
        .map(PathBuf::from)
        .or_else(|| env("HOME").map(|home| PathBuf::from(home).join(".cache")))
        .unwrap_or_else(std::env::temp_dir);
    base.join("ceteris")
}

/// Folders of one program's fetched versions, the newest first: `<root>/postgres/18.6.0`, ...
pub(crate) fn folders(program: &str, env: &ReadEnv) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root(env).join(program)) else {
        return Vec::new();
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let version = name
                .to_str()?
                .split(['.', '-'])
                .map_while(|part| part.parse().ok())
                .collect::<Vec<u32>>();
            (!version.is_empty()).then(|| (version, entry.path()))
        })
        .collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn versions_are_sorted_as_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_owned();
        for version in ["18.6.0", "18.10.0", "9.0", ".part"] {
            std::fs::create_dir_all(base.join("postgres").join(version)).unwrap();
        }
        let text = base.display().to_string();
        let env: ReadEnv = Arc::new(move |name| (name == "CETERIS_CACHE").then(|| text.clone()));
        let found = folders("postgres", &env);
        assert_eq!(found.len(), 3);
        assert!(found[0].ends_with("18.10.0"), "{found:?}");
    }
}
