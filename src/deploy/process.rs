//! The kind `process`: any program, built once, started per arm.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::kind::{self, Ending, Kind, Later, Material, Place, Plan};
use super::logs;
use super::prepare::Site;
use super::program::{self, Program};
use super::render::{Names, Offer};
use crate::experiment::{Process, Service, ServiceKind};
use crate::name::Arm;

#[derive(Debug)]
pub(crate) struct ProcessKind {
    declared: Process,
}

impl ProcessKind {
    pub(crate) fn new(declared: Process) -> Self {
        Self { declared }
    }

    /// Where the command is looked up and run: `dir` when it holds no template, else the caller's folder.
    fn lookup_dir(&self, site: &Site) -> PathBuf {
        match &self.declared.dir {
            Some(dir) if !dir.contains('{') => site.working_dir.join(dir),
            _ => site.working_dir.clone(),
        }
    }
}

impl Kind for ProcessKind {
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(async move {
            if let Some(build) = &self.declared.build {
                self.build(service, site, build).await?;
            }
            let name = self
                .declared
                .command
                .first()
                .with_context(|| format!("{}: the command is empty", service.name))?;
            let names = Names::placeholders(std::iter::empty());
            let name = names.render(name, &format!("{}: command", service.name))?;
            // A path is relative to where the file's author stands; only the program itself runs in `dir`.
            let path = program::find(&name, &site.working_dir, &site.env)
                .or_else(|error| {
                    program::find(&name, &self.lookup_dir(site), &site.env).map_err(|_| error)
                })
                .with_context(|| match &self.declared.build {
                    Some(_) => format!("{}: its build left no such program", service.name),
                    None => format!(
                        "{}: write the path of its program, or a build that makes it",
                        service.name
                    ),
                })?;
            Ok(Material {
                program: Some(Program::at(path)?),
                named_files: program::named_files(
                    &self.declared.command[1..],
                    &self.lookup_dir(site),
                )?,
                named_in: self.lookup_dir(site),
                ..Material::default()
            })
        })
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        // A different `dir` or argument may name another program or file.
        matches!(other, ServiceKind::Process(other) if *other == self.declared)
    }

    fn offer(&self, _: &Material, _: &Names, port: u16, dir: &Path, _: Arm) -> Result<Offer> {
        Ok(kind::loopback("http", port, dir))
    }

    fn plan(&self, service: &Service, _: &Material, names: &Names) -> Result<Plan> {
        let what = format!("{}: command", service.name);
        let args = self
            .declared
            .command
            .iter()
            .skip(1)
            .map(|argument| names.render(argument, &what))
            .collect::<Result<_>>()?;
        let dir = self
            .declared
            .dir
            .as_ref()
            .map(|dir| names.render(dir, &format!("{}: dir", service.name)))
            .transpose()?;
        Ok(Plan {
            args,
            dir: Some(dir.map_or_else(PathBuf::new, PathBuf::from)),
            ..Plan::default()
        })
    }

    fn answers<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(kind::accepts(&place.offer.address))
    }

    fn ending(&self) -> Ending {
        Ending {
            signal: "TERM",
            group: true,
            last: "TERM",
        }
    }
}

impl ProcessKind {
    async fn build(&self, service: &Service, site: &Site, build: &[String]) -> Result<()> {
        let mut built = site.built.lock().await;
        if built.contains(build) {
            return Ok(());
        }
        let (name, args) = build
            .split_first()
            .with_context(|| format!("{}: the build command is empty", service.name))?;
        let path = program::find(name, &site.working_dir, &site.env)
            .with_context(|| format!("{}: build", service.name))?;
        let log = site.logs.join(format!("{}.build.log", service.name));
        // A build is the author's own tool chain at work: it gets the whole environment, unlike a service.
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let ended = site
            .run(
                &format!("build/{}", service.name),
                path,
                args.to_vec(),
                env,
                &log,
                None,
                None,
            )
            .await
            .with_context(|| format!("{}: building", service.name))?;
        if !ended.success() {
            bail!(
                "{}: the build '{}' {ended}; {}",
                service.name,
                build.join(" "),
                logs::quoted(&log)
            );
        }
        built.insert(build.to_vec());
        Ok(())
    }
}
