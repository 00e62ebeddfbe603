//! A command beside the services: run under the supervisor, so that it ends with them.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::deployment::Deployment;
use super::program;
use super::supervisor::Ended;

impl Deployment {
    /// Runs a command to its end, in the caller's working folder; its output goes to `logs/command.log`.
    ///
    /// # Errors
    /// When the program can't be found or started, or the user asks to stop.
    pub async fn run_command(
        &self,
        key: &str,
        command: &[String],
        env: &BTreeMap<String, String>,
        logs: &Path,
    ) -> Result<Ended> {
        let (name, args) = command.split_first().context("a command names a program")?;
        let site = &self.site;
        let program = program::find(name, &site.working_dir, &site.env)?;
        let mut all = program::base_env(&site.env);
        all.extend(env.clone());
        let log = logs.join("command.log");
        site.run(key, program, args.to_vec(), all, &log, None, None)
            .await
    }
}
