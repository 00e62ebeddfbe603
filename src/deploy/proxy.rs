//! What the proxy kinds share: where their program is, what stands behind them, the user's own configuration.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::cache;
use super::kind::Material;
use super::prepare::Site;
use super::program::{self, Program};
use super::render::{Names, ReadEnv};
use crate::experiment::{Proxy, Service};

/// Idle connections to its upstreams that a proxy keeps: more than any closed loop here has clients, so that the proxy never
/// runs out of local ports by opening one for each request.
pub(crate) const KEPT_ALIVE: usize = 512;

/// Where the program is: `bin`, the tool's cache, PATH.
///
/// # Errors
/// When it is nowhere, with the remedies.
pub(crate) fn locate(
    declared: &Proxy,
    program: &str,
    dir: &Path,
    env: &ReadEnv,
) -> Result<PathBuf> {
    if let Some(bin) = &declared.bin {
        let path = dir.join(bin);
        // A folder of programs is as good as the program itself.
        let path = if path.is_dir() {
            path.join(program)
        } else {
            path
        };
        if !program::is_executable(&path) {
            bail!("bin names {}, which is no program", path.display());
        }
        return Ok(path);
    }
    cache::folders(program, env)
        .into_iter()
        .map(|folder| folder.join(program))
        .find(|path| program::is_executable(path))
        .or_else(|| program::on_path(program, env))
        .with_context(|| {
            let remedies = match program {
                "caddy" => "apt install caddy\n  ceteris fetch caddy",
                _ => "apt install nginx-light",
            };
            format!("no program {program} on this machine. Any of these helps:\n  {remedies}")
        })
}

/// Finds the program and asks for its version. `version` are the arguments that make it tell its version.
pub(crate) async fn prepare(
    declared: &Proxy,
    service: &Service,
    site: &Site,
    program: &str,
    version: &[&str],
) -> Result<Material> {
    let path = locate(declared, program, &site.working_dir, &site.env)
        .with_context(|| service.name.to_string())?;
    let output = tokio::process::Command::new(&path)
        .args(version)
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("{}: running {}", service.name, path.display()))?;
    let said = [output.stdout, output.stderr].concat();
    let version = version_in(&String::from_utf8_lossy(&said));
    if !output.status.success() || version.is_none() {
        bail!(
            "{}: {} does not tell its version: {}",
            service.name,
            path.display(),
            String::from_utf8_lossy(&said).trim()
        );
    }
    // Read once: what is compared between the arms is what each of them runs with, whatever becomes of the file.
    let config = declared
        .config
        .as_ref()
        .map(|config| {
            let path = site.working_dir.join(config);
            std::fs::read_to_string(&path)
                .with_context(|| format!("reading the configuration {}", path.display()))
                .map(|text| (path, text))
        })
        .transpose()?;
    Ok(Material {
        program: Some(Program::at(path)?),
        version,
        config,
        ..Material::default()
    })
}

/// The user's own configuration, rendered; `None` when it is to be generated.
pub(crate) fn own_configuration(
    service: &Service,
    material: &Material,
    names: &Names,
) -> Result<Option<String>> {
    let Some((path, text)) = &material.config else {
        return Ok(None);
    };
    names
        .render(text, &format!("{}: {}", service.name, path.display()))
        .map(Some)
}

/// `host:port` of each service behind a proxy.
pub(crate) fn upstreams(declared: &Proxy, service: &Service, names: &Names) -> Result<Vec<String>> {
    declared
        .upstream
        .iter()
        .map(|upstream| {
            let offer = names.offer(upstream.as_str())?;
            if offer.url.starts_with("https:") {
                bail!(
                    "{}: the upstream {upstream} speaks TLS, and a generated configuration does not: write one of your own and \
                     name it in config",
                    service.name
                );
            }
            Ok(offer.address.clone())
        })
        .collect()
}

/// The first word that looks like a version: `1.22.1` out of `nginx version: nginx/1.22.1`.
fn version_in(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || c == '/')
        .map(|word| word.trim_start_matches('v'))
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_programs_tell_them() {
        let read = |text: &str| version_in(text).unwrap_or_default();
        assert_eq!(read("2.6.2\n"), "2.6.2");
        assert_eq!(read("v2.11.0 h1:abc=\n"), "2.11.0");
        assert_eq!(read("nginx version: nginx/1.22.1\n"), "1.22.1");
        assert_eq!(version_in("nothing here"), None);
    }
}
