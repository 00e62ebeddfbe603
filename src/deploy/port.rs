//! TCP ports: free ones, held until their service starts, and the proof that the right process listens.
//!
//! A health check that passes proves nothing when another program holds the port, so after a start the listening socket's
//! inode is looked up among the descriptors of the started tree.

use std::collections::{BTreeSet, HashSet};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use anyhow::{Context, Result, bail};
use rand::RngExt;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// A loopback port that is kept from others by a bound socket which does not listen.
#[derive(Debug)]
pub(crate) struct HeldPort {
    /// Its number.
    pub(crate) number: u16,
    _socket: OwnedFd,
}

/// Takes a free port outside the range from which the kernel draws local ports of outgoing connections, so that between
/// release and start nobody gets it by chance.
pub(crate) fn hold() -> Result<HeldPort> {
    let low = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().next()?.parse::<u16>().ok())
        .unwrap_or(32768);
    let mut rng = rand::rng();
    for _ in 0..200 {
        let number = if low > 12_000 {
            rng.random_range(10_240..low)
        } else {
            rng.random_range(10_240..=u16::MAX)
        };
        if let Ok(held) = bind(number) {
            return Ok(held);
        }
    }
    bail!("no free TCP port on 127.0.0.1 in 200 attempts")
}

fn bind(number: u16) -> Result<HeldPort> {
    let socket = rustix::net::socket_with(
        AddressFamily::INET,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .context("making a socket")?;
    rustix::net::bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, number))
        .context("binding a port")?;
    Ok(HeldPort {
        number,
        _socket: socket,
    })
}

/// Who listens on a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Listener {
    /// Nobody.
    Nobody,
    /// A process of the tree; the flag says whether on loopback only.
    Own {
        /// Whether only on loopback addresses.
        loopback: bool,
    },
    /// Somebody else, described.
    Other(String),
}

/// Looks up who listens on `port`, given the processes of the tree that should.
pub(crate) fn listener(port: u16, own: &HashSet<u32>) -> Listener {
    let mut inodes = BTreeSet::new();
    let mut loopback = true;
    for file in ["/proc/net/tcp", "/proc/net/tcp6"] {
        if let Ok(table) = std::fs::read_to_string(file) {
            for (inode, local) in listening(&table, port) {
                inodes.insert(inode);
                loopback &= local;
            }
        }
    }
    if inodes.is_empty() {
        return Listener::Nobody;
    }
    if own.iter().any(|pid| holds(*pid, &inodes)) {
        return Listener::Own { loopback };
    }
    let other = super::supervisor::tree::pids()
        .into_iter()
        .find(|pid| holds(*pid, &inodes))
        .map_or_else(
            || "a process of another user".to_owned(),
            |pid| {
                let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
                format!("{} (pid {pid})", name.trim())
            },
        );
    Listener::Other(other)
}

/// Listening sockets on `port` in a table of /proc/net: inode, and whether bound to loopback only.
fn listening(table: &str, port: u16) -> Vec<(u64, bool)> {
    let wanted = format!("{port:04X}");
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            let (address, number) = fields.get(1)?.rsplit_once(':')?;
            // State 0A is LISTEN.
            if number != wanted || *fields.get(3)? != "0A" {
                return None;
            }
            // Addresses are words in the machine's byte order: 127.0.0.1 ends with 7F on little-endian machines.
            let local = match address.len() {
                8 => {
                    u32::from_str_radix(address, 16).is_ok_and(|word| word.to_ne_bytes()[0] == 127)
                }
                _ => {
                    address == "00000000000000000000000001000000"
                        || (address.starts_with("0000000000000000FFFF0000")
                            && address.ends_with("7F"))
                }
            };
            Some((fields.get(9)?.parse().ok()?, local))
        })
        .collect()
}

fn holds(pid: u32, inodes: &BTreeSet<u64>) -> bool {
    let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    entries.flatten().any(|entry| {
        std::fs::read_link(entry.path())
            .ok()
            .and_then(|link| {
                let text = link.to_str()?;
                text.strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .parse::<u64>()
                    .ok()
            })
            .is_some_and(|inode| inodes.contains(&inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_port_is_taken_and_does_not_listen() {
        let held = hold().unwrap();
        assert!(bind(held.number).is_err());
        assert_eq!(listener(held.number, &HashSet::new()), Listener::Nobody);
    }

    #[test]
    fn the_listener_is_told_from_another() {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listening.local_addr().unwrap().port();
        let me = std::process::id();
        assert_eq!(
            listener(port, &HashSet::from([me])),
            Listener::Own { loopback: true }
        );
        match listener(port, &HashSet::from([1])) {
            Listener::Other(text) => assert!(text.contains(&me.to_string()), "{text}"),
            other => panic!("{other:?}"),
        }
        let open = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let port = open.local_addr().unwrap().port();
        assert_eq!(
            listener(port, &HashSet::from([me])),
            Listener::Own { loopback: false }
        );
    }
}
