//! Three memory figures against hand arithmetic: each counts something else, and none of them is wrong.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ceteris::measure::EventKind;
use ceteris::name::ServiceName;
use ceteris::sample::{Observation, ProcessRoot, WatchedService};
use tokio::sync::watch;

use super::server::Watching;

/// Size of what is shared, mapped or read, in MiB.
const SIZE: f64 = 64.0;
/// What an interpreter may differ by from one run to the next, and what the kernel charges in batches, in MiB.
const SLACK: f64 = 4.0;

/// Joins the control group, if there is one, then maps as told and touches every page, then waits for the end of its input.
const PROGRAM: &str = r#"
import mmap, os, sys
case, size, path, group = sys.argv[1], int(sys.argv[2]) << 20, sys.argv[3], sys.argv[4]
if group:
    with open(os.path.join(group, "cgroup.procs"), "w") as procs:
        procs.write("0")
def touch(pages):
    return sum(pages[i] for i in range(0, len(pages), 4096))
kept = []
if size and case == "children":
    pages = mmap.mmap(-1, size)
    for i in range(0, size, 4096):
        pages[i] = 1
    kept.append(pages)
elif size:
    with open(path, "r+b") as file:
        for _ in range(8 if case == "eightfold" else 1):
            pages = mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ)
            touch(pages)
            kept.append(pages)
ready, told = os.pipe()
if case == "children":
    for _ in range(8):
        if os.fork() == 0:
            for pages in kept:
                touch(pages)
            os.write(told, b".")
            sys.stdin.read()
            os._exit(0)
    for _ in range(8):
        os.read(ready, 1)
print("ready", flush=True)
sys.stdin.read()
"#;

/// A process that holds memory until it is dropped: its children see the end of their input too.
struct Holder(Child);

impl Holder {
    fn start(case: &str, size: u32, file: &Path, group: Option<&Path>) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM, case, &size.to_string()])
            .arg(file)
            .arg(group.unwrap_or(Path::new("")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test needs Python to map memory in known ways: apt install python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

/// A memory control group of the test's own, where one may be made.
struct Group(PathBuf);

impl Group {
    fn make(name: &str) -> Option<Self> {
        let name = format!("ceteris-test-{}-{name}", std::process::id());
        for root in ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"] {
            let folder = Path::new(root).join(&name);
            if std::fs::create_dir(&folder).is_err() {
                continue;
            }
            let group = Self(folder);
            if ["memory.usage_in_bytes", "memory.current"]
                .iter()
                .any(|f| group.0.join(f).exists())
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A group is busy for a moment after its last process.
        for _ in 0..100 {
            if std::fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// What the three instruments read.
#[derive(Debug, Clone, Copy)]
struct Figures {
    rss: f64,
    pss: f64,
    cgroup: Option<f64>,
}

async fn measure(case: &str, size: u32, file: &Path) -> Figures {
    let group = Group::make(&format!("{case}-{size}"));
    let holder = Holder::start(case, size, file, group.as_ref().map(|g| g.0.as_path()));
    let root = ProcessRoot {
        pid: holder.0.id(),
        epoch: 0,
    };
    let service = WatchedService {
        name: ServiceName::new("app").unwrap(),
        process: watch::channel(Some(root)).1,
        cgroups: group.iter().map(|g| g.0.clone()).collect(),
        sql: None,
        status: None,
        log: None,
    };
    let watching = Watching::start(vec![service], None);
    let (_, seen) = watching.stop().await;
    let read = |metric: &str| {
        seen.iter().find_map(|one| match one {
            Observation::Sample(s) if s.metric == metric => Some(s.value),
            _ => None,
        })
    };
    let figures = Figures {
        rss: read("memory.rss").unwrap(),
        pss: read("memory.pss").unwrap(),
        cgroup: read("memory.cgroup"),
    };
    // Where no group may be made, the figure is not observed, and that is said.
    let said = seen.iter().any(|one| matches!(one,
        Observation::Event { kind: EventKind::NotObserved { metric, .. }, .. } if metric == "memory.cgroup"));
    assert_eq!(said, figures.cgroup.is_none());
    figures
}

/// Holds the figures of a case, less those of the same program without the memory, against hand arithmetic.
async fn assert_figures(case: &str, file: &Path, rss: f64, pss: f64, cgroup: f64) {
    let without = measure(case, 0, file).await;
    let with = measure(case, SIZE as u32, file).await;
    let near = |figure: f64, expected: f64, what: &str| {
        assert!(
            (figure - expected).abs() < SLACK,
            "{case}: {what} {figure:.1} MiB, by hand {expected} MiB ({with:?} less {without:?})"
        );
    };
    near(with.rss - without.rss, rss, "rss");
    near(with.pss - without.pss, pss, "pss");
    if let (Some(with), Some(without)) = (with.cgroup, without.cgroup) {
        near(with - without, cgroup, "cgroup");
    }
}

#[tokio::test]
async fn memory_shared_by_eight_children() {
    let file = Path::new("/dev/null");
    // Nine processes map it: the parent too. Proportionally, and as a charge, it is there once.
    assert_figures("children", file, 9.0 * SIZE, SIZE, SIZE).await;
}

#[tokio::test]
async fn the_same_pages_mapped_eight_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages");
    std::fs::write(&file, vec![1; (SIZE as usize) << 20]).unwrap();
    // The test wrote the file, so its pages are charged to the test; the process maps each page eight times.
    assert_figures("eightfold", &file, 8.0 * SIZE, SIZE, 0.0).await;
}

#[tokio::test]
async fn a_file_first_read_by_another_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pages");
    std::fs::write(&file, vec![1; (SIZE as usize) << 20]).unwrap();
    assert_figures("once", &file, SIZE, SIZE, 0.0).await;
}
