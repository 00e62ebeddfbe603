//! Where the load goes: a URL's parts and the addresses of its name, resolved once an arm.
//!
//! It must never let load leave this machine unless the file says so.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};

use crate::experiment::Clients;

/// Plain or TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `http://`
    Http,
    /// `https://`
    Https,
}

/// The target of an arm's load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Plain or TLS.
    pub scheme: Scheme,
    /// Name or address as written.
    pub host: String,
    /// Port, given or the scheme's own.
    pub port: u16,
    /// A Unix socket that takes the place of the addresses.
    pub socket: Option<PathBuf>,
    /// Every address of the name; all are tried in order when a connection can't be opened.
    pub addresses: Vec<SocketAddr>,
    /// Path and query of the URL, for ad hoc load; `/` when it has none.
    pub path: String,
}

impl Target {
    /// Takes a URL apart and resolves its name. `clients.socket` must already be filled.
    ///
    /// # Errors
    /// A URL that is not `http` or `https`, a name without addresses, an address of another machine while
    /// `allow_remote` is false.
    pub async fn resolve(url: &str, clients: &Clients) -> anyhow::Result<Target> {
        let uri: http::Uri = url
            .parse()
            .with_context(|| format!("'{url}' is no URL; write it like http://127.0.0.1:8080"))?;
        let scheme = match uri.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => bail!("'{url}' must begin with http:// or https://"),
        };
        let authority = uri
            .authority()
            .with_context(|| format!("'{url}' names no host"))?;
        ensure!(
            !authority.as_str().contains('@'),
            "a user or password in a URL is not sent; use an Authorization header"
        );
        let host = authority.host().to_owned();
        let port = authority.port_u16().unwrap_or(match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        });
        let socket = clients.socket.as_ref().map(PathBuf::from);
        let addresses = match &socket {
            Some(_) => Vec::new(),
            None => addresses(&host, port).await?,
        };
        if !clients.allow_remote
            && let Some(remote) = addresses.iter().find(|a| !is_loopback(a.ip()))
        {
            bail!(
                "{host} is {}, which is not this machine; load leaves it only with `allow_remote = true` under [clients]",
                remote.ip()
            );
        }
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        Ok(Target {
            scheme,
            host,
            port,
            socket,
            addresses,
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
        })
    }

    /// The value of the Host header: the port is left out when it is the scheme's own.
    pub fn authority(&self) -> String {
        match (self.scheme, self.port) {
            (Scheme::Http, 80) | (Scheme::Https, 443) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }

    /// The host without the brackets of an IPv6 address.
    pub(super) fn bare_host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }
}

async fn addresses(host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port))
        .await
        .with_context(|| format!("resolving the host '{bare}'"))?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    ensure!(!addresses.is_empty(), "the host '{bare}' has no address");
    Ok(addresses)
}

fn is_loopback(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_loopback(),
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback())
        }
    }
}
