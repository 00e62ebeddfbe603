//! Whether what an experiment needs is on this machine, before anything is started.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::render::ReadEnv;
use super::{postgres, program, proxy};
use crate::experiment::{ArmSetup, ServiceKind};

/// Where a program is that a service (or an action, or a counted call) of this arm needs.
///
/// # Errors
/// When it is not on this machine, with the remedies.
pub async fn where_is(
    setup: &ArmSetup,
    needed_by: &str,
    name: &str,
    dir: &Path,
    env: &ReadEnv,
) -> Result<PathBuf> {
    let service = setup
        .services
        .iter()
        .find(|service| service.name.as_str() == needed_by);
    let found = match service.map(|service| &service.kind) {
        Some(ServiceKind::Postgres(declared)) => {
            postgres::find(declared.bin.as_deref(), declared.version, dir, env)
                .await
                .map(|programs| programs.bin.join("postgres"))
        }
        Some(ServiceKind::Caddy(declared) | ServiceKind::Nginx(declared)) => {
            proxy::locate(declared, name, dir, env)
        }
        _ => program::find(name, dir, env),
    };
    found.with_context(|| needed_by.to_owned())
}
