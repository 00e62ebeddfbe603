//! The kind `nginx`: a reverse proxy with a generated configuration, or the user's own.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::kind::{self, Ending, Kind, Later, Material, Place, Plan};
use super::prepare::Site;
use super::proxy;
use super::render::{Names, Offer};
use crate::experiment::{Proxy, Service, ServiceKind};
use crate::name::Arm;

#[derive(Debug)]
pub(crate) struct Nginx {
    declared: Proxy,
}

impl Nginx {
    pub(crate) fn new(declared: Proxy) -> Self {
        Self { declared }
    }
}

impl Kind for Nginx {
    fn prepare<'a>(&'a self, service: &'a Service, site: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(proxy::prepare(
            &self.declared,
            service,
            site,
            "nginx",
            &["-v"],
        ))
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        matches!(other, ServiceKind::Nginx(other)
            if other.bin == self.declared.bin && other.config == self.declared.config)
    }

    fn offer(&self, _: &Material, _: &Names, port: u16, dir: &Path, _: Arm) -> Result<Offer> {
        Ok(kind::loopback("http", port, dir))
    }

    fn plan(&self, service: &Service, material: &Material, names: &Names) -> Result<Plan> {
        let offer = names.offer(service.name.as_str())?;
        let text = match proxy::own_configuration(service, material, names)? {
            Some(text) => text,
            None => {
                let upstreams = proxy::upstreams(&self.declared, service, names)?;
                generated(&offer.address, &offer.dir, &upstreams)
            }
        };
        let mut args = vec![
            "-p".to_owned(),
            offer.dir.clone(),
            "-c".to_owned(),
            format!("{}/nginx.conf", offer.dir),
            // Before it reads its configuration it would write to the system's log.
            "-e".to_owned(),
            "stderr".to_owned(),
        ];
        let says = |directive: &str| {
            text.lines()
                .any(|line| line.trim_start().starts_with(directive))
        };
        // In the foreground it stays in the tree that is watched; saying so twice is an error to nginx.
        if !says("daemon ") {
            args.extend(["-g", "daemon off;"].map(str::to_owned));
        }
        Ok(Plan {
            args,
            files: BTreeMap::from([("nginx.conf".to_owned(), text)]),
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

/// Upstream keep-alive must be asked for three times: the pool, HTTP/1.1, and an empty Connection header.
fn generated(address: &str, dir: &str, upstreams: &[String]) -> String {
    let servers: String = upstreams
        .iter()
        .map(|upstream| format!("        server {upstream};\n"))
        .collect();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|what| format!("    {what}_temp_path {dir}/{what};\n"))
        .collect();
    format!(
        "worker_processes auto;\n\
         pid {dir}/nginx.pid;\n\
         error_log stderr warn;\n\
         events {{\n    worker_connections 4096;\n}}\n\
         http {{\n    access_log off;\n{temporary}    upstream behind {{\n{servers}        keepalive {kept};\n    }}\n    \
         server {{\n        listen {address};\n        location / {{\n            proxy_pass http://behind;\n            \
         proxy_http_version 1.1;\n            proxy_set_header Connection \"\";\n            proxy_set_header Host $host;\n        \
         }}\n    }}\n}}\n",
        kept = proxy::KEPT_ALIVE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_configuration_keeps_upstream_connections() {
        let text = generated(
            "<edge.address>",
            "<edge.dir>",
            &["<app.address>".to_owned()],
        );
        for part in [
            "listen <edge.address>;",
            "server <app.address>;",
            "keepalive 512;",
            "proxy_http_version 1.1;",
            "proxy_set_header Connection \"\";",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
