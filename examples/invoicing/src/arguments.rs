//! What the service is told at its start, by arguments and by the environment. Secrets come by the environment only:
//! arguments can be read by every user of the machine.

use std::net::SocketAddr;
use std::str::FromStr;

use anyhow::Context;
use clap::{Parser, ValueEnum};

/// A small invoicing service over PostgreSQL. The database is named by DATABASE_URL in the environment.
#[derive(Debug, Parser)]
#[command(name = "invoicing", version)]
pub struct Arguments {
    /// Where to listen
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// Threads that serve requests [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub workers: Option<u16>,

    /// Connections to the database, at most
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(2..=1000))]
    pub connections: u16,

    /// Size of the application image: texts held in memory, replaced by POST /admin/reload
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "30MiB",
        env = "INVOICING_IMAGE"
    )]
    pub image: Size,

    /// Give free heap back to the system after two seconds without a request
    #[arg(long, env = "INVOICING_TRIM_WHEN_IDLE")]
    pub trim_when_idle: bool,

    /// A fault on purpose: something that grows with each request
    #[arg(long, value_name = "KIND")]
    pub leak: Option<Leak>,

    /// A fault on purpose: make each request's service time longer by this share, for example 10%
    #[arg(long, value_name = "SHARE")]
    pub slower: Option<Share>,
}

impl Arguments {
    /// Threads that serve requests.
    #[must_use]
    pub fn threads(&self) -> usize {
        match self.workers {
            Some(workers) => usize::from(workers),
            None => std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

/// What may leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Leak {
    /// One entry a request is kept for ever, and all of them are walked on each request
    Walk,
}

/// A size in bytes, written as `30MiB`, `512KiB` or `0B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a size; write for example 30MiB, 512KiB or 0B");
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: usize = number.parse().map_err(|_| wrong())?;
        let unit = match unit {
            "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        number
            .checked_mul(unit)
            .filter(|bytes| *bytes <= 4 << 30)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is too large; at most 4GiB are held"))
    }
}

/// A share of something, written as `10%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a share between 0% and 1000%; write for example 10%");
        let number: f64 = text
            .strip_suffix('%')
            .ok_or_else(wrong)?
            .parse()
            .map_err(|_| wrong())?;
        if (0.0..=1000.0).contains(&number) {
            Ok(Self(number / 100.0))
        } else {
            Err(wrong())
        }
    }
}

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Environment {
    /// How to reach the database.
    pub database: tokio_postgres::Config,
    /// A word that `/healthz` repeats, so that whoever started this process knows that it is this one that answers.
    pub token: Option<String>,
}

impl Environment {
    /// Reads DATABASE_URL (required) and RUN_TOKEN (optional).
    ///
    /// # Errors
    /// When DATABASE_URL is missing or does not name a PostgreSQL database. The message never repeats the URL, which may
    /// hold a password.
    pub fn read() -> anyhow::Result<Self> {
        let url = std::env::var("DATABASE_URL").context(
            "DATABASE_URL is not set; set it to the database, for example postgres://user@127.0.0.1:5432/invoicing",
        )?;
        Ok(Self {
            database: database(&url)?,
            token: std::env::var("RUN_TOKEN").ok(),
        })
    }
}

/// A connection's settings from a URL, with the name under which PostgreSQL shows it.
///
/// # Errors
/// When the URL is not one, or names no host.
pub fn database(url: &str) -> anyhow::Result<tokio_postgres::Config> {
    let mut config: tokio_postgres::Config = url.parse().context(
        "DATABASE_URL is not a PostgreSQL URL; write for example postgres://user@127.0.0.1:5432/invoicing",
    )?;
    anyhow::ensure!(
        !config.get_hosts().is_empty(),
        "DATABASE_URL names no host; write for example postgres://user@127.0.0.1:5432/invoicing"
    );
    config.application_name("invoicing");
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(std::time::Duration::from_secs(2));
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn arguments_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!("30MiB".parse(), Ok(Size(30 << 20)));
        assert_eq!("0B".parse(), Ok(Size(0)));
        for wrong in [
            "30",
            "MiB",
            "-1MiB",
            "1.5MiB",
            "99999999999999999999B",
            "5GiB",
            "18446744073709551615GiB",
        ] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_need_a_percent_sign() {
        assert_eq!("10%".parse(), Ok(Share(0.1)));
        for wrong in ["10", "%", "-1%", "nan%", "inf%", "1001%"] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_url_must_name_a_host_and_is_not_repeated() {
        for wrong in ["", "postgres:///invoicing", "mysql://secret@h/x"] {
            let error = format!("{:#}", database(wrong).unwrap_err());
            assert!(error.contains("DATABASE_URL"), "{error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(database("postgres://u:p@127.0.0.1:5432/invoicing").is_ok());
        assert!(database("postgres://u@%2Frun%2Fpostgresql/invoicing").is_ok());
    }
}
