//! Where a server is and who logs in.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use anyhow::Context;
use tokio_postgres::Client;

/// A password. Its `Debug` form hides it, so that it can't reach a log by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes a password as it is.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A random one: 128 bits as hexadecimal digits, which stand in a URL as they are.
    pub fn random() -> Self {
        Self(format!("{:032x}", rand::random::<u128>()))
    }

    /// The password itself; for logging in and for the environment of a service, nowhere else.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(hidden)")
    }
}

/// A user and its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The role's name in the server.
    pub user: String,
    /// Its password.
    pub password: Password,
}

/// Who acts: the sampler and the pruner log in as roles of their own, so that their statements can be left out of what is
/// counted for the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Owns the databases.
    Owner,
    /// Reads statistics.
    Sample,
    /// Deletes by the pruning policy.
    Prune,
}

impl Role {
    /// Name of the sampler's role in a server.
    pub const SAMPLE_USER: &'static str = "ceteris_sample";
    /// Name of the pruner's role in a server.
    pub const PRUNE_USER: &'static str = "ceteris_prune";
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// The folder that holds its Unix socket.
    Socket(PathBuf),
    /// A host name or address.
    Tcp(String),
}

/// A PostgreSQL server, and the logins of all roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// How it is reached.
    pub reach: Reach,
    /// Its port; names the socket file too.
    pub port: u16,
    /// Role that owns the databases (a superuser in a server of our own).
    pub owner: Login,
    /// Login of the sampler.
    pub sample: Login,
    /// Login of the pruner.
    pub prune: Login,
    /// Names of databases in the server, by the name under which they are asked for; one that is not here bears its own.
    pub names: BTreeMap<String, String>,
}

impl Server {
    /// A server whose sampler and pruner get roles of their own with random passwords; [`super::make_roles`] makes them.
    pub fn new(reach: Reach, port: u16, owner: Login) -> Self {
        let own = |user: &str| Login {
            user: user.to_string(),
            password: Password::random(),
        };
        Self {
            reach,
            port,
            owner,
            sample: own(Role::SAMPLE_USER),
            prune: own(Role::PRUNE_USER),
            names: BTreeMap::new(),
        }
    }

    /// A server in which no role may be made: sampler and pruner log in as the owner.
    pub fn of_one_login(reach: Reach, port: u16, owner: Login) -> Self {
        Self {
            reach,
            port,
            sample: owner.clone(),
            prune: owner.clone(),
            owner,
            names: BTreeMap::new(),
        }
    }

    /// Whether the sampler's statements can be told from the application's: it has a role of its own.
    pub fn samples_apart(&self) -> bool {
        self.sample.user != self.owner.user
    }

    /// The name of a database in the server.
    pub fn database<'n>(&'n self, asked: &'n str) -> &'n str {
        self.names.get(asked).map_or(asked, String::as_str)
    }

    /// Who logs in as this role.
    pub fn login(&self, role: Role) -> &Login {
        match role {
            Role::Owner => &self.owner,
            Role::Sample => &self.sample,
            Role::Prune => &self.prune,
        }
    }
}

/// Where it is, without any secret: for messages.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reach {
            Reach::Socket(folder) => write!(f, "{}/.s.PGSQL.{}", folder.display(), self.port),
            Reach::Tcp(host) if host.contains(':') => write!(f, "[{host}]:{}", self.port),
            Reach::Tcp(host) => write!(f, "{host}:{}", self.port),
        }
    }
}

/// The server's version as a number: 150019 is 15.19.
pub async fn server_version_num(client: &Client) -> anyhow::Result<u32> {
    let row = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .await
        .context("asking PostgreSQL for its version")?;
    u32::try_from(row.get::<_, i32>(0)).context("PostgreSQL gave a negative version number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_printed_with_a_server() {
        let server = Server::new(
            Reach::Tcp("::1".into()),
            5432,
            Login {
                user: "postgres".into(),
                password: Password::new("hunter2"),
            },
        );
        let debug = format!("{server:?}");
        assert!(!debug.contains("hunter2"), "{debug}");
        assert!(!debug.contains(server.sample.password.reveal()), "{debug}");
        assert_eq!(server.to_string(), "[::1]:5432");
        assert_ne!(server.sample.password, server.prune.password);
    }
}
