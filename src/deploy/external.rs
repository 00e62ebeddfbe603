//! The kind `external`: something that runs already. It is never started, stopped or changed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

use super::kind::{self, Ending, Kind, Later, Material, Place, Plan};
use super::prepare::Site;
use super::render::{Names, Offer};
use crate::experiment::{Service, ServiceKind};
use crate::name::Arm;

#[derive(Debug)]
pub(crate) struct External {
    url: String,
}

impl External {
    pub(crate) fn new(url: String) -> Self {
        Self { url }
    }
}

impl Kind for External {
    fn prepare<'a>(&'a self, _: &'a Service, _: &'a Site) -> Later<'a, Result<Material>> {
        Box::pin(async { Ok(Material::default()) })
    }

    fn shares(&self, other: &ServiceKind) -> bool {
        matches!(other, ServiceKind::External { .. })
    }

    fn is_started(&self) -> bool {
        false
    }

    fn offer(&self, _: &Material, names: &Names, _: u16, dir: &Path, _: Arm) -> Result<Offer> {
        let url = names.render(&self.url, "url")?;
        let uri: http::Uri = url
            .parse()
            // As it is written: what is rendered may hold a secret.
            .with_context(|| format!("'{}' is no URL: write http://host:port", self.url))?;
        let host = uri
            .host()
            .with_context(|| format!("the URL '{}' names no host", self.url))?
            .to_owned();
        let port = uri.port_u16().unwrap_or(match uri.scheme_str() {
            Some("https") => 443,
            _ => 80,
        });
        Ok(Offer {
            url: url.trim_end_matches('/').to_owned(),
            address: format!("{host}:{port}"),
            host,
            port: port.to_string(),
            dir: dir.display().to_string(),
            databases: BTreeMap::new(),
        })
    }

    fn plan(&self, _: &Service, _: &Material, _: &Names) -> Result<Plan> {
        Ok(Plan::default())
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
