//! The templates of services: what `{{ db.url }}` and `{{ env.HOME }}` stand for.
//!
//! Each template is rendered twice: with the real values when its service starts, and with placeholders for what is written
//! down. Ports, folders and passwords differ between arms by nature, so the second form is what arms are compared by, and it
//! never holds a secret.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use minijinja::value::Object;
use minijinja::{Environment, UndefinedBehavior, Value};

/// Reads the caller's environment.
pub type ReadEnv = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a service offers to the templates of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// With scheme, and with user and password where it needs them.
    pub(crate) url: String,
    /// `host:port`.
    pub(crate) address: String,
    /// Name or number of the host.
    pub(crate) host: String,
    /// TCP port; a text, since it may be a placeholder.
    pub(crate) port: String,
    /// Its own folder for this arm.
    pub(crate) dir: String,
    /// Of PostgreSQL: the URL of each database by its declared name.
    pub(crate) databases: BTreeMap<String, String>,
}

impl Offer {
    /// Placeholders such as `<db.url>`.
    pub(crate) fn placeholder(service: &str) -> Self {
        let name = |what: &str| format!("<{service}.{what}>");
        Self {
            url: name("url"),
            address: name("address"),
            host: name("host"),
            port: name("port"),
            dir: name("dir"),
            databases: BTreeMap::new(),
        }
    }

    fn value(&self) -> Value {
        let port = self
            .port
            .parse::<u16>()
            .map_or_else(|_| Value::from(self.port.clone()), Value::from);
        let fields: BTreeMap<&str, Value> = BTreeMap::from([
            ("url", Value::from(self.url.clone())),
            ("address", Value::from(self.address.clone())),
            ("host", Value::from(self.host.clone())),
            ("port", port),
            ("dir", Value::from(self.dir.clone())),
            (
                "databases",
                Value::from_object(Databases(self.databases.clone(), self.url.clone())),
            ),
        ]);
        Value::from(fields)
    }
}

/// Everything that the templates of services may name.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    services: BTreeMap<String, Offer>,
    env: Env,
}

#[derive(Clone)]
struct Env(Option<ReadEnv>);

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("env")
    }
}

/// URLs of databases by name, and the service's own; of a placeholder, such as `<db.url>`, placeholders.
#[derive(Debug)]
struct Databases(BTreeMap<String, String>, String);

impl Object for Databases {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        if let Some(url) = self.0.get(name) {
            return Some(Value::from(url.as_str()));
        }
        let service = self.1.strip_prefix('<')?.strip_suffix(".url>")?;
        Some(Value::from(format!("<{service}.databases.{name}>")))
    }
}

impl Object for Env {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match &self.0 {
            Some(read) => read(key.as_str()?).map(Value::from),
            None => Some(Value::from("***")),
        }
    }
}

impl Names {
    /// The real values.
    pub(crate) fn real(services: BTreeMap<String, Offer>, env: ReadEnv) -> Self {
        Self {
            services,
            env: Env(Some(env)),
        }
    }

    /// Placeholders, for what is written down and compared.
    pub(crate) fn placeholders<'a>(services: impl Iterator<Item = &'a str>) -> Self {
        Self {
            services: services
                .map(|name| (name.to_owned(), Offer::placeholder(name)))
                .collect(),
            env: Env(None),
        }
    }

    /// What a service offers.
    pub(crate) fn offer(&self, service: &str) -> Result<&Offer> {
        self.services
            .get(service)
            .with_context(|| format!("there is no service {service} in this arm"))
    }

    /// Renders one template; `what` names it in messages.
    pub(crate) fn render(&self, template: &str, what: &str) -> Result<String> {
        if !template.contains('{') {
            return Ok(template.to_owned());
        }
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut context: BTreeMap<&str, Value> = self
            .services
            .iter()
            .map(|(name, offer)| (name.as_str(), offer.value()))
            .collect();
        context.insert("env", Value::from_object(self.env.clone()));
        environment
            .render_str(template, context)
            .map_err(|error| anyhow!("{what}: {}", plain(&error, template)))
    }
}

/// An error of the template engine in plain words, without the values that it was rendered with.
fn plain(error: &minijinja::Error, template: &str) -> String {
    let said = match error.detail() {
        Some(detail) => detail.to_owned(),
        None => error.kind().to_string(),
    };
    format!("can't render the template '{template}': {said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let offer = Offer {
            url: "http://127.0.0.1:4000".into(),
            address: "127.0.0.1:4000".into(),
            host: "127.0.0.1".into(),
            port: "4000".into(),
            dir: "/scratch/app".into(),
            databases: BTreeMap::from([("shop".to_owned(), "postgres://h/s1".to_owned())]),
        };
        Names::real(
            BTreeMap::from([("app".to_owned(), offer)]),
            Arc::new(|name| (name == "HOME").then(|| "/home/x".to_owned())),
        )
    }

    #[test]
    fn real_values_and_placeholders() {
        let template = "{{ app.url }}/x?p={{ app.port }}&h={{ env.HOME }}";
        assert_eq!(
            names().render(template, "test").unwrap(),
            "http://127.0.0.1:4000/x?p=4000&h=/home/x"
        );
        assert_eq!(
            names().render("{{ app.port + 1 }}", "test").unwrap(),
            "4001"
        );
        assert_eq!(
            names().render("{{ app.databases.shop }}", "test").unwrap(),
            "postgres://h/s1"
        );
        let written = Names::placeholders(["app"].into_iter());
        assert_eq!(
            written.render(template, "test").unwrap(),
            "<app.url>/x?p=<app.port>&h=***"
        );
        assert_eq!(
            written.render("{{ app.databases.shop }}", "test").unwrap(),
            "<app.databases.shop>"
        );
    }

    #[test]
    fn what_is_not_there_is_an_error_that_names_it() {
        for bad in [
            "{{ db.url }}",
            "{{ env.NOT_THERE }}",
            "{{ app.nothing }}",
            "{{ app.databases.other }}",
        ] {
            let error = names().render(bad, "app: command").unwrap_err().to_string();
            assert!(
                error.contains("app: command") && error.contains(bad),
                "{error}"
            );
        }
    }
}
