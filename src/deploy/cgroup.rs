//! Control groups, version 1, 2 or both: limits, and what the kernel says of a service as a whole.
//!
//! A group is made where this user may make one, below the runner's own group, so limits above it hold too. The cpu
//! controller is used only for a declared limit: a group of its own changes how the scheduler shares processors.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::leftover::PREFIX;
use crate::experiment::Limits;

/// Microseconds of one accounting period of a CPU limit.
const PERIOD_US: u64 = 100_000;

/// The groups of one service, for whoever reads them. A path is absent where the user may not make a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cgroups {
    /// In the version 2 tree; on hybrid machines it has pressure and kill only.
    pub unified: Option<PathBuf>,
    /// Whether the version 2 group has `memory.current`.
    pub unified_memory: bool,
    /// Version 1, memory.
    pub memory: Option<PathBuf>,
    /// Version 1, cpuacct.
    pub cpuacct: Option<PathBuf>,
    /// Version 1, cpu; only with a declared limit.
    pub cpu: Option<PathBuf>,
}

impl Cgroups {
    /// All folders, each once.
    pub fn folders(&self) -> Vec<&Path> {
        let mut all: Vec<&Path> = [&self.unified, &self.memory, &self.cpuacct, &self.cpu]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
            .collect();
        all.dedup();
        all
    }

    /// The files that a process writes itself into.
    pub(crate) fn procs(&self) -> Vec<PathBuf> {
        self.folders()
            .into_iter()
            .map(|folder| folder.join("cgroup.procs"))
            .collect()
    }
}

/// What the limits did to a service since its groups were made.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LimitsSeen {
    /// Processes that the kernel killed for memory.
    pub oom_kills: u64,
    /// Periods in which it was held back.
    pub throttled_periods: u64,
    /// Time for which it was held back, in seconds.
    pub throttled_s: f64,
}

/// Where controllers are mounted, and where this process is in each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Layout {
    /// Mount of the version 2 tree, and the own path in it.
    unified: Option<(PathBuf, PathBuf)>,
    memory: Option<PathBuf>,
    cpuacct: Option<PathBuf>,
    cpu: Option<PathBuf>,
}

impl Layout {
    fn read() -> Self {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        Self::parse(&mounts, &own)
    }

    fn parse(mounts: &str, own: &str) -> Self {
        let path_of = |controller: &str| -> Option<&str> {
            own.lines().find_map(|line| {
                let mut parts = line.splitn(3, ':');
                let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
                controllers
                    .split(',')
                    .any(|name| name == controller)
                    .then_some(path)
            })
        };
        let below = |mount: &Path, path: &str| mount.join(path.trim_start_matches('/'));
        let mut layout = Self::default();
        for line in mounts.lines() {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let [_, mount, kind, options, ..] = fields.as_slice() else {
                continue;
            };
            let mount = PathBuf::from(mount);
            match *kind {
                "cgroup2" => {
                    if let Some(path) = path_of("") {
                        layout.unified = Some((mount.clone(), below(&mount, path)));
                    }
                }
                "cgroup" => {
                    for controller in options.split(',') {
                        let place = match controller {
                            "memory" => &mut layout.memory,
                            "cpuacct" => &mut layout.cpuacct,
                            "cpu" => &mut layout.cpu,
                            _ => continue,
                        };
                        *place = path_of(controller).map(|path| below(&mount, path));
                    }
                }
                _ => {}
            }
        }
        layout
    }
}

/// Makes the groups of a service, named after the scratch folder `mark` so that a later sweep knows them, and sets its
/// limits. Without limits, a user who may not make groups gets none; with limits that is an error. `later` are limits that
/// may be set while it runs: the groups are made fit for them.
pub(crate) fn make(mark: &str, key: &str, limits: Limits, later: Limits) -> Result<Cgroups> {
    let name = format!("{mark}.{}", key.replace('/', "."));
    let sorts = Limits {
        memory: limits.memory.or(later.memory),
        cpus: limits.cpus.or(later.cpus),
    };
    let made = create(&Layout::read(), &name, sorts);
    if let Err(error) = set(&made, limits) {
        for folder in made.folders() {
            super::leftover::remove_cgroup(folder);
        }
        return Err(error);
    }
    Ok(made)
}

fn create(layout: &Layout, name: &str, limits: Limits) -> Cgroups {
    let child = |parent: &Option<PathBuf>| -> Option<PathBuf> {
        let path = parent.as_ref()?.join(name);
        (path.is_dir() || std::fs::create_dir(&path).is_ok()).then_some(path)
    };
    let mut made = Cgroups {
        memory: child(&layout.memory),
        cpuacct: child(&layout.cpuacct),
        ..Cgroups::default()
    };
    if limits.cpus.is_some() {
        made.cpu = child(&layout.cpu);
    }
    let wanted: Vec<&str> = [
        ("memory", limits.memory.is_some() && layout.memory.is_none()),
        ("cpu", limits.cpus.is_some() && layout.cpu.is_none()),
    ]
    .into_iter()
    .filter_map(|(controller, wanted)| wanted.then_some(controller))
    .collect();
    if let Some((mount, own)) = &layout.unified {
        made.unified = unified(mount, own, name, &wanted);
        made.unified_memory = made
            .unified
            .as_ref()
            .is_some_and(|path| path.join("memory.current").is_file());
    }
    made
}

/// Makes a version 2 group whose controllers hold `wanted`: below the own group or the nearest above that permits it.
fn unified(mount: &Path, own: &Path, name: &str, wanted: &[&str]) -> Option<PathBuf> {
    let parents = own
        .ancestors()
        .take_while(|folder| folder.starts_with(mount));
    for parent in parents {
        let enabled =
            std::fs::read_to_string(parent.join("cgroup.subtree_control")).unwrap_or_default();
        let lacking: Vec<String> = wanted
            .iter()
            .filter(|controller| !enabled.split_ascii_whitespace().any(|e| e == **controller))
            .map(|controller| format!("+{controller}"))
            .collect();
        // A group with processes of its own can't pass controllers on (but the root can): then its parent is tried.
        if !lacking.is_empty()
            && std::fs::write(parent.join("cgroup.subtree_control"), lacking.join(" ")).is_err()
        {
            continue;
        }
        let path = parent.join(name);
        if path.is_dir() || std::fs::create_dir(&path).is_ok() {
            return Some(path);
        }
    }
    None
}

/// Sets or changes limits; absent ones are lifted.
pub(crate) fn set(groups: &Cgroups, limits: Limits) -> Result<()> {
    const HOW: &str = "run ceteris as root, or under 'systemd-run --user --scope -p Delegate=yes', or leave the limit out";
    let v2 = |file: &str| {
        groups
            .unified
            .as_ref()
            .map(|folder| folder.join(file))
            .filter(|path| path.is_file())
    };
    match (&groups.memory, v2("memory.max"), limits.memory) {
        (Some(folder), _, wanted) => {
            let value = wanted.map_or_else(|| "-1".to_owned(), |bytes| bytes.to_string());
            write(&folder.join("memory.limit_in_bytes"), &value)?;
        }
        (None, Some(file), wanted) => {
            let value = wanted.map_or_else(|| "max".to_owned(), |bytes| bytes.to_string());
            write(&file, &value)?;
            if let Some(swap) = v2("memory.swap.max") {
                // What is swapped out would not count against the limit.
                write(&swap, if wanted.is_some() { "0" } else { "max" })?;
            }
        }
        (None, None, Some(_)) => {
            bail!("a memory limit needs a control group, and this user may not make one: {HOW}")
        }
        (None, None, None) => {}
    }
    let quota = limits
        .cpus
        .map(|cores| ((cores * PERIOD_US as f64).round() as u64).max(1_000));
    match (&groups.cpu, v2("cpu.max"), quota) {
        (Some(folder), _, quota) => {
            write(&folder.join("cpu.cfs_period_us"), &PERIOD_US.to_string())?;
            let value = quota.map_or_else(|| "-1".to_owned(), |us| us.to_string());
            write(&folder.join("cpu.cfs_quota_us"), &value)?;
        }
        (None, Some(file), quota) => {
            let value = quota.map_or_else(|| "max".to_owned(), |us| us.to_string());
            write(&file, &format!("{value} {PERIOD_US}"))?;
        }
        (None, None, Some(_)) => {
            bail!(
                "a limit on processors needs a control group, and this user may not make one: {HOW}"
            )
        }
        (None, None, None) => {}
    }
    Ok(())
}

fn write(file: &Path, value: &str) -> Result<()> {
    std::fs::write(file, value).with_context(|| format!("writing {value} to {}", file.display()))
}

/// What the limits did so far.
pub(crate) fn seen(groups: &Cgroups) -> LimitsSeen {
    let read = |folder: &Option<PathBuf>, file: &str| {
        folder
            .as_ref()
            .and_then(|folder| std::fs::read_to_string(folder.join(file)).ok())
            .unwrap_or_default()
    };
    let memory =
        read(&groups.memory, "memory.oom_control") + &read(&groups.unified, "memory.events");
    let cpu = match groups.cpu {
        Some(_) => read(&groups.cpu, "cpu.stat"),
        None => read(&groups.unified, "cpu.stat"),
    };
    let number = |text: &str, key: &str| -> Option<u64> {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == key).then(|| value.trim().parse().ok())?
        })
    };
    LimitsSeen {
        oom_kills: number(&memory, "oom_kill").unwrap_or(0),
        throttled_periods: number(&cpu, "nr_throttled").unwrap_or(0),
        throttled_s: number(&cpu, "throttled_usec").map_or_else(
            || number(&cpu, "throttled_time").unwrap_or(0) as f64 / 1e9,
            |us| us as f64 / 1e6,
        ),
    }
}

/// Groups of a dead run, by the name of its scratch folder, anywhere in the mounted trees.
pub(crate) fn groups_named(mark: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if !mark.starts_with(PREFIX) {
        return found;
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let prefix = format!("{mark}.");
    for line in mounts.lines() {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if let [_, mount, "cgroup" | "cgroup2", ..] = fields.as_slice() {
            collect(Path::new(mount), &prefix, &mut found);
        }
    }
    found
}

fn collect(folder: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        } else {
            collect(&entry.path(), prefix, found);
        }
    }
}

/// The machine's layout in words: `v2`, `v1`, `hybrid` or `none`.
pub fn layout_word() -> &'static str {
    let layout = Layout::read();
    match (layout.unified.is_some(), layout.memory.is_some()) {
        (true, true) => "hybrid",
        (true, false) => "v2",
        (false, true) => "v1",
        (false, false) => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hybrid_and_unified_layouts_are_read() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let own = "4:memory:/a/b\n2:cpu,cpuacct:/\n0::/\n";
        let layout = Layout::parse(mounts, own);
        assert_eq!(
            layout.memory.as_deref(),
            Some(Path::new("/sys/fs/cgroup/memory/a/b"))
        );
        assert_eq!(layout.cpu, layout.cpuacct);
        let layout = Layout::parse(
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "0::/user.slice/x.scope\n",
        );
        let (mount, own) = layout.unified.unwrap();
        assert_eq!(mount, Path::new("/sys/fs/cgroup"));
        assert_eq!(own, Path::new("/sys/fs/cgroup/user.slice/x.scope"));
        assert_eq!(layout.memory, None);
    }

    #[test]
    fn a_unified_group_is_made_where_controllers_may_be_passed_on() {
        let tree = tempfile::tempdir().unwrap();
        let own = tree.path().join("user.slice/x.scope");
        std::fs::create_dir_all(&own).unwrap();
        // The own group can't pass controllers on: no such file here stands for the refused write.
        std::fs::create_dir(own.join("cgroup.subtree_control")).unwrap();
        std::fs::write(
            tree.path().join("user.slice/cgroup.subtree_control"),
            "memory pids",
        )
        .unwrap();
        let made = unified(tree.path(), &own, "ceteris-x.db", &["memory"]).unwrap();
        assert_eq!(made, tree.path().join("user.slice/ceteris-x.db"));
        std::fs::write(made.join("memory.max"), "max").unwrap();
        std::fs::write(made.join("memory.events"), "oom 1\noom_kill 2\n").unwrap();
        std::fs::write(
            made.join("cpu.stat"),
            "usage_usec 5\nnr_throttled 3\nthrottled_usec 1500000\n",
        )
        .unwrap();
        let groups = Cgroups {
            unified: Some(made.clone()),
            unified_memory: true,
            ..Cgroups::default()
        };
        let limits = Limits {
            memory: Some(1 << 20),
            cpus: None,
        };
        set(&groups, limits).unwrap();
        assert_eq!(
            std::fs::read_to_string(made.join("memory.max")).unwrap(),
            "1048576"
        );
        let seen = seen(&groups);
        assert_eq!((seen.oom_kills, seen.throttled_periods), (2, 3));
        assert!((seen.throttled_s - 1.5).abs() < 1e-9);
        let limits = Limits {
            memory: None,
            cpus: Some(0.5),
        };
        let error = set(&groups, limits).unwrap_err().to_string();
        assert!(error.contains("control group"), "{error}");
    }
}
