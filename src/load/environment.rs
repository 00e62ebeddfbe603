//! `{{ env.NAME }}` in what is sent: values of the caller's environment, the only way in for a secret.
//!
//! They go into requests and nowhere else: whatever is written down of an answer passes [`Environment::hide`] first. It must
//! never show a value, also not in a message or when it is debugged.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::Context;

use super::encode::{Encoding, put_text};
use crate::experiment::{Body, Clients, Workload};
use crate::template;

/// The shortest beginning of a value that is hidden where a text breaks off.
const SHORTEST: usize = 4;

/// Values that a workload takes from the environment, by name.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// Looks up what the templates of a workload and its clients' headers name.
    ///
    /// # Errors
    /// A name that is not set, and a template that can't be parsed.
    pub fn gather(
        clients: &Clients,
        workload: &Workload,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        Self::named_in(sent(clients, workload), read)
    }

    /// Looks up what some templates name.
    ///
    /// # Errors
    /// As [`Environment::gather`].
    pub fn named_in<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut values = BTreeMap::new();
        for text in texts {
            if !template::is_template(text) {
                continue;
            }
            let names = template::names(text)
                .with_context(|| format!("reading the template '{text}' of what is sent"))?;
            for name in names.iter().filter_map(|name| name.strip_prefix("env.")) {
                let value = read(name).with_context(|| {
                    format!("the environment variable {name} is not set, and '{text}' sends it")
                })?;
                values.insert(name.to_owned(), value);
            }
        }
        Ok(Environment(values))
    }

    /// The value of a name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All values, as templates see them.
    pub(super) fn values(&self) -> minijinja::Value {
        minijinja::Value::from_pairs(
            self.0
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
    }

    /// A text from outside without these values: a server may repeat what it was sent. A text is cut somewhere, so the
    /// beginning of a value at its end is hidden too.
    pub(super) fn hide(&self, mut text: String) -> String {
        for (name, value) in &self.0 {
            let shown = format!("{{{{ env.{name} }}}}");
            for form in forms(value) {
                if text.contains(&form) {
                    text = text.replace(&form, &shown);
                }
                let cut = (SHORTEST..form.len())
                    .rev()
                    .filter(|end| form.is_char_boundary(*end))
                    .find(|end| text.ends_with(&form[..*end]));
                if let Some(end) = cut {
                    text.truncate(text.len() - end);
                    text.push_str(&shown);
                }
            }
        }
        text
    }
}

/// A value as it may stand in a text: as it is, percent-encoded, within JSON.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for encoding in [Encoding::Path, Encoding::JsonText] {
        let mut bytes = Vec::new();
        if put_text(value, encoding, &mut bytes).is_ok()
            && let Ok(form) = String::from_utf8(bytes)
            && !forms.contains(&form)
        {
            forms.push(form);
        }
    }
    forms.retain(|form| !form.is_empty());
    forms
}

/// Every template of what is sent.
fn sent<'a>(clients: &'a Clients, workload: &'a Workload) -> Vec<&'a str> {
    let mut texts: Vec<&str> = clients.headers.iter().map(|(_, v)| v.as_str()).collect();
    for step in &workload.steps {
        texts.push(&step.path);
        texts.extend(step.headers.iter().map(|(_, v)| v.as_str()));
        match &step.body {
            Some(Body::Json(json)) => json_texts(json, &mut texts),
            Some(Body::Form(form)) => texts.extend(form.iter().map(|(_, v)| v.as_str())),
            Some(Body::Raw(raw)) => texts.push(raw),
            Some(Body::File { .. }) | None => {}
        }
    }
    texts
}

fn json_texts<'a>(json: &'a serde_json::Value, texts: &mut Vec<&'a str>) {
    match json {
        serde_json::Value::String(text) => texts.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| json_texts(item, texts)),
        serde_json::Value::Object(entries) => {
            entries.values().for_each(|entry| json_texts(entry, texts));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(value: &str) -> Environment {
        Environment(BTreeMap::from([("TOKEN".to_owned(), value.to_owned())]))
    }

    #[test]
    fn a_value_is_hidden_in_every_form_and_when_it_is_cut() {
        let environment = holding("s3cr\"t/word");
        for text in [
            "no s3cr\"t/word here",
            "no s3cr%22t%2Fword here",
            "no s3cr\\\"t/word here",
        ] {
            assert_eq!(
                environment.hide(text.into()),
                "no {{ env.TOKEN }} here",
                "{text}"
            );
        }
        assert_eq!(
            environment.hide("it is s3cr\"".into()),
            "it is {{ env.TOKEN }}"
        );
        assert_eq!(environment.hide("it is s3c".into()), "it is s3c");
        assert_eq!(holding("").hide("nothing".into()), "nothing");
        assert!(!format!("{environment:?}").contains("s3cr"));
    }

    proptest::proptest! {
        #[test]
        fn no_whole_value_survives(value in "[a-z\"/é ]{4,12}", before in ".{0,20}", after in ".{0,20}", cut in 0usize..60) {
            let environment = holding(&value);
            let mut text = format!("{before}{value}{after}");
            while !text.is_char_boundary(cut.min(text.len())) {
                text.pop();
            }
            text.truncate(cut);
            let shown = environment.hide(text).replace("{{ env.TOKEN }}", "\u{0}");
            proptest::prop_assert!(!shown.contains(&value));
        }
    }
}
