//! Users of the machine: PostgreSQL refuses to run as root, so root lends it another one.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::supervisor::User;

/// The user that a program which refuses root runs as: none for an ordinary user; `postgres` or the next best for root.
pub(crate) fn unprivileged() -> Result<Option<User>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let text = std::fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| find(&text, name))
        .map(Some)
        .context(
            "PostgreSQL refuses to run as root, and /etc/passwd has neither a user postgres nor nobody: \
             run ceteris as an ordinary user",
        )
}

/// A user by name from the text of /etc/passwd; root is never returned.
fn find(passwd: &str, name: &str) -> Option<User> {
    passwd.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        if fields.first() != Some(&name) {
            return None;
        }
        let uid = fields.get(2)?.parse().ok()?;
        let gid = fields.get(3)?.parse().ok()?;
        (uid != 0).then(|| User {
            name: name.to_owned(),
            uid,
            gid,
        })
    })
}

/// Makes a folder that belongs to `user` alone (mode 700).
pub(crate) fn private_folder(path: &Path, user: Option<&User>) -> Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("creating {}", path.display()))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
        .with_context(|| format!("closing {} to others", path.display()))?;
    give(path, user)
}

/// Gives a file or folder to a user.
pub(crate) fn give(path: &Path, user: Option<&User>) -> Result<()> {
    if let Some(user) = user {
        std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid))
            .with_context(|| format!("giving {} to {}", path.display(), user.name))?;
    }
    Ok(())
}

/// The first folder on the way to `path` that `user` may not pass, if any.
pub(crate) fn blocked_at(path: &Path, user: &User) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    folders
        .into_iter()
        .find(|folder| {
            folder.metadata().is_ok_and(|data| {
                let bit = if data.uid() == user.uid {
                    0o100
                } else if data.gid() == user.gid {
                    0o010
                } else {
                    0o001
                };
                data.mode() & bit == 0
            })
        })
        .map(Path::to_owned)
}

/// Refuses a path that a service's user could not reach.
pub(crate) fn must_reach(path: &Path, user: Option<&User>, what: &str) -> Result<()> {
    if let Some(user) = user
        && let Some(folder) = blocked_at(path, user)
    {
        bail!(
            "{what} {} can't be reached by the user {}, since {} is closed to others: choose another folder, or run ceteris \
             as an ordinary user",
            path.display(),
            user.name,
            folder.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_its_whole_name_and_root_never() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\npostgres2:x:7:8::/:/bin/sh\npostgres:x:101:104:a,b:/var:/bin/bash\n";
        let user = find(passwd, "postgres").unwrap();
        assert_eq!((user.uid, user.gid), (101, 104));
        assert_eq!(find(passwd, "root"), None);
        assert_eq!(find(passwd, "nobody"), None);
    }

    #[test]
    fn a_closed_parent_is_named() {
        let base = tempfile::tempdir().unwrap();
        let closed = base.path().join("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
        let nobody = User {
            name: "someone".into(),
            uid: 4_000_000,
            gid: 4_000_000,
        };
        std::fs::set_permissions(base.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(blocked_at(&closed.join("x"), &nobody), Some(closed));
    }
}
