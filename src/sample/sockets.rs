//! Descriptors by type, and sockets by state.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use procfs::process::Stat;

use super::output::Output;
use super::process::refused;
use super::thrift::Thrift;

/// Types and states are told this far apart at least: a pass over all of the machine's sockets takes milliseconds.
const LEAST: Duration = Duration::from_secs(10);
/// Services of one round share a pass.
const FRESH: Duration = Duration::from_millis(500);

/// The TCP sockets of each network that services live in, as last read.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<PathBuf, Table>);

#[derive(Debug)]
struct Table {
    read: Instant,
    /// The kernel's number of each socket's state, by inode.
    states: HashMap<u64, u8>,
}

/// The instrument for one service's descriptors.
#[derive(Debug)]
pub(super) struct Descriptors {
    /// Telling their types costs one call each, and the states of sockets a pass over all of the machine's.
    thrift: Thrift,
}

/// Open descriptors by type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Types {
    sockets: HashSet<u64>,
    socket: u64,
    pipe: u64,
    file: u64,
    other: u64,
}

/// TCP sockets by state, as far as they belong to someone; what waits out its time belongs to no process any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct States {
    established: u64,
    listen: u64,
    opening: u64,
    close_wait: u64,
    closing: u64,
}

impl Descriptors {
    pub(super) fn new() -> Self {
        Self {
            thrift: Thrift::at_least(LEAST),
        }
    }

    /// Emits how many descriptors the processes hold, and of which types when that is due.
    pub(super) fn round(
        &mut self,
        members: &[Stat],
        at_s: f64,
        epoch: u32,
        out: &mut Output,
        tables: &mut Tables,
    ) {
        let began = Instant::now();
        let typed = self.thrift.is_due(began);
        let mut types = Types::default();
        let mut total = 0;
        for member in members {
            let entries = match fs::read_dir(format!("/proc/{}/fd", member.pid)) {
                Ok(entries) => entries,
                Err(error) => match refused(member, &error) {
                    Some(reason) => {
                        out.not_observed("sockets", reason.as_str());
                        return out.not_observed("descriptors", reason);
                    }
                    None => continue,
                },
            };
            for entry in entries.flatten() {
                total += 1;
                if typed && let Ok(target) = fs::read_link(entry.path()) {
                    types.add(&target.to_string_lossy());
                }
            }
        }
        let emit = |metric: &str, count: u64| {
            out.reading(at_s, metric, "count", count as f64, epoch);
        };
        emit("descriptors", total);
        if typed {
            emit("descriptors_socket", types.socket);
            emit("descriptors_pipe", types.pipe);
            emit("descriptors_file", types.file);
            emit("descriptors_other", types.other);
            if let Some(states) = members
                .first()
                .and_then(|member| tables.states(member.pid, &types.sockets))
            {
                emit("sockets.established", states.established);
                emit("sockets.listen", states.listen);
                emit("sockets.opening", states.opening);
                emit("sockets.close_wait", states.close_wait);
                emit("sockets.closing", states.closing);
            }
            self.thrift.spent(began, began.elapsed());
        }
    }
}

impl Types {
    fn add(&mut self, target: &str) {
        match target.split_once(':') {
            Some(("socket", inode)) => {
                self.socket += 1;
                self.sockets
                    .extend(inode.trim_matches(['[', ']']).parse::<u64>());
            }
            Some(("pipe", _)) => self.pipe += 1,
            _ if target.starts_with('/') => self.file += 1,
            _ => self.other += 1,
        }
    }
}

impl Tables {
    /// The states of the TCP sockets with these inodes, in the network that a process lives in.
    fn states(&mut self, pid: i32, inodes: &HashSet<u64>) -> Option<States> {
        let mut states = States::default();
        if inodes.is_empty() {
            return Some(states);
        }
        let network = fs::read_link(format!("/proc/{pid}/ns/net")).ok()?;
        let fresh = |table: &&Table| table.read.elapsed() < FRESH;
        if self.0.get(&network).filter(fresh).is_none() {
            self.0.insert(network.clone(), Table::read(pid)?);
        }
        let table = self.0.get(&network)?;
        for state in inodes.iter().filter_map(|inode| table.states.get(inode)) {
            states.add(*state);
        }
        Some(states)
    }
}

impl Table {
    fn read(pid: i32) -> Option<Self> {
        let mut states = HashMap::new();
        let mut read = false;
        for table in ["tcp", "tcp6"] {
            // Machines without IPv6 have no second table.
            if let Ok(text) = fs::read_to_string(format!("/proc/{pid}/net/{table}")) {
                states.extend(text.lines().skip(1).filter_map(of_line));
                read = true;
            }
        }
        read.then(|| Self {
            read: Instant::now(),
            states,
        })
    }
}

/// Inode and state of a socket. One without an inode belongs to no process any more.
fn of_line(line: &str) -> Option<(u64, u8)> {
    let mut words = line.split_ascii_whitespace().skip(3);
    let state = u8::from_str_radix(words.next()?, 16).ok()?;
    let inode = words.nth(5)?.parse().ok().filter(|inode| *inode != 0)?;
    Some((inode, state))
}

impl States {
    /// Counts a socket by the kernel's number for its state.
    fn add(&mut self, state: u8) {
        match state {
            1 => self.established += 1,
            2 | 3 => self.opening += 1,
            8 => self.close_wait += 1,
            10 => self.listen += 1,
            _ => self.closing += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn own_sockets_are_told_by_state() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let inode = |fd: &dyn std::os::fd::AsRawFd| {
            let link = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap();
            let mut types = Types::default();
            types.add(&link.to_string_lossy());
            assert_eq!(types.socket, 1);
            types.sockets.into_iter().next().unwrap()
        };
        let ours: HashSet<u64> = [inode(&listener), inode(&client), inode(&server)].into();
        let pid = std::process::id() as i32;
        let before = Tables::default().states(pid, &ours).unwrap();
        assert_eq!((before.listen, before.established), (1, 2));
        drop(client);
        let after = Tables::default().states(pid, &ours).unwrap();
        assert_eq!((after.listen, after.close_wait), (1, 1));
        // One that has none needs no table, in whatever network it lives.
        assert_eq!(
            Tables::default().states(-1, &HashSet::new()),
            Some(States::default())
        );
    }

    #[test]
    fn types_are_told_by_what_a_descriptor_leads_to() {
        let mut types = Types::default();
        for target in [
            "socket:[12]",
            "pipe:[3]",
            "/dev/null",
            "anon_inode:[eventpoll]",
            "/a:b",
        ] {
            types.add(target);
        }
        assert_eq!(
            (types.socket, types.pipe, types.file, types.other),
            (1, 1, 2, 1)
        );
    }
}
