//! The kind `caddy`: a reverse proxy with a generated JSON configuration, or the user's own Caddyfile or JSON.
//!
//! JSON, since a Caddyfile site of a loopback address still listens on every interface.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

use super::kind::{self, Ending, Kind, Later, Material, Place, Plan};
use super::prepare::Site;
use super::proxy;
use super::render::{Names, Offer};
use crate::experiment::{Proxy, Service, ServiceKind};
use crate::name::Arm;

#[derive(Debug)]
pub(crate) struct Caddy {
    declared: Proxy,
}

impl Caddy {
    pub(crate) fn new(declared: Proxy) -> Self {
        Self { declared }
    }
}

impl Kind for Caddy {
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(proxy::prepare(
            &self.declared,
            service,
            site,
            "caddy",
            &["version"],
        ))
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        matches!(other, ServiceKind::Caddy(other)
            if other.bin == self.declared.bin && other.config == self.declared.config)
    }

    fn offer(&self, _: &Material, _: &Names, port: u16, dir: &Path, _: Arm) -> Result<Offer> {
        Ok(kind::loopback("http", port, dir))
    }

    fn plan(&self, service: &Service, material: &Material, names: &Names) -> Result<Plan> {
        let offer = names.offer(service.name.as_str())?;
        let (file, text) = match proxy::own_configuration(service, material, names)? {
            Some(text) if is_json(material) => ("caddy.json", text),
            Some(text) => ("Caddyfile", text),
            None => {
                let upstreams = proxy::upstreams(&self.declared, service, names)?;
                ("caddy.json", generated(&offer.address, &upstreams)?)
            }
        };
        let mut args: Vec<String> = ["run", "--config"].map(str::to_owned).to_vec();
        args.push(format!("{}/{file}", offer.dir));
        if file == "Caddyfile" {
            args.extend(["--adapter", "caddyfile"].map(str::to_owned));
        }
        // Whatever it stores goes with the arm.
        let home = ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]
            .map(|name| (name.to_owned(), offer.dir.clone()));
        Ok(Plan {
            args,
            files: BTreeMap::from([(file.to_owned(), text)]),
            env: BTreeMap::from(home),
            ..Plan::default()
        })
    }

    fn answers<'a>(&'a self, place: &'a Place<'a>) -> Later<'a, Result<()>> {
        Box::pin(kind::accepts(&place.offer.address))
    }

    fn ending(&self) -> Ending {
        Ending {
            signal: "TERM",
            group: false,
            last: "TERM",
        }
    }
}

fn is_json(material: &Material) -> bool {
    material
        .config
        .as_ref()
        .is_some_and(|(path, _)| path.extension().is_some_and(|end| end == "json"))
}

fn generated(address: &str, upstreams: &[String]) -> Result<String> {
    let dial: Vec<_> = upstreams
        .iter()
        .map(|address| json!({ "dial": address }))
        .collect();
    let config = json!({
        "admin": { "disabled": true, "config": { "persist": false } },
        "logging": { "logs": { "default": { "level": "WARN" } } },
        "apps": { "http": { "servers": { "edge": {
            "listen": [address],
            "automatic_https": { "disable": true },
            "routes": [{ "handle": [{
                "handler": "reverse_proxy",
                "upstreams": dial,
                "transport": {
                    "protocol": "http",
                    "keep_alive": {
                        "enabled": true,
                        "max_idle_conns_per_host": proxy::KEPT_ALIVE,
                    },
                },
            }] }],
        } } } },
    });
    let mut text =
        serde_json::to_string_pretty(&config).context("writing Caddy's configuration")?;
    text.push('\n');
    Ok(text)
}
