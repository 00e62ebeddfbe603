//! What must not be published: passwords, tokens, the host's name, a user's name in paths.

use std::borrow::Cow;

use anyhow::{Context, Result};
use regex::{Captures, Regex};
use serde_json::Value;

/// How the name of a secret ends; of a variable in capitals, what it holds somewhere.
const SECRET: &str = "(?:password|passwd|secret|token|\
    (?:api|access|private|signing|encryption|client|auth|ssh|secret)[_-]?key|\
    (?-i:(?:PASSWORD|SECRET|TOKEN|KEY)[A-Z0-9_]*))";

/// Rules by which a text is made fit to publish.
#[derive(Debug, Clone)]
pub struct Redaction {
    rules: Vec<Rule>,
    secret: Regex,
}

#[derive(Debug, Clone)]
struct Rule {
    find: Regex,
    replace: &'static str,
}

/// Host names that say nothing about anybody.
const COMMON_HOSTS: [&str; 2] = ["localhost", "localdomain"];
/// A shorter host name would be found inside ordinary texts.
const SHORTEST_HOST: usize = 4;

impl Redaction {
    /// Rules for secrets and users' folders; `host`, when given, is a name to leave out.
    ///
    /// # Errors
    /// When a rule can't be compiled.
    pub fn new(host: Option<&str>) -> Result<Self> {
        let name = format!(r"(?i)(?P<keep>\b[a-z0-9_\-]*{SECRET}[\\\x22']*\s*[=:]\s*");
        let mut rules = vec![
            // The password of a URL.
            rule(
                r"(?P<keep>[A-Za-z][A-Za-z0-9+.\-]*://[^/\s:@\x22']*:)[^@/\s\x22']+@",
                "${keep}***@",
            )?,
            // A header's credentials.
            rule(
                r"(?i)(?P<keep>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=\-]{8,}",
                "${keep}***",
            )?,
            // NAME_PASSWORD="value", secret: 'value', also inside a text that escapes its quotes.
            rule(&format!(r"{name}\\*\x22)[^\x22\\\n{{}}]+"), "${keep}***")?,
            rule(&format!(r"{name}\\*')[^'\\\n{{}}]+"), "${keep}***")?,
            rule(&format!(r"{name})[^\s\\\x22',;&{{}}]+"), "${keep}***")?,
            rule(r"(?P<keep>/(?:home|Users)/)[^/\s\x22':,;]+", "${keep}user")?,
        ];
        if let Some(host) = host
            && host.chars().count() >= SHORTEST_HOST
            && !COMMON_HOSTS.contains(&host)
        {
            rules.push(rule(
                &format!(
                    r"(?i)(?P<keep>^|[^A-Za-z0-9_\-]){}(?P<after>$|[^A-Za-z0-9_\-])",
                    regex::escape(host)
                ),
                "${keep}host${after}",
            )?);
        }
        let secret =
            Regex::new(&format!("(?i){SECRET}$")).context("compiling a rule of redaction")?;
        Ok(Redaction { rules, secret })
    }

    /// The text without what must not be published.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for rule in &self.rules {
            let next = rule.find.replace_all(&text, |found: &Captures<'_>| {
                let mut out = String::new();
                found.expand(rule.replace, &mut out);
                out
            });
            if let Cow::Owned(changed) = next {
                text = Cow::Owned(changed);
            }
        }
        text
    }

    /// Redacts every text of a JSON value, and whole values whose key names a secret.
    pub fn apply_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(changed) = self.apply(text) {
                    *text = changed;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply_json(item)),
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    match field {
                        Value::String(text) if self.secret.is_match(key) => "***".clone_into(text),
                        field => self.apply_json(field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn rule(find: &str, replace: &'static str) -> Result<Rule> {
    let find = Regex::new(find).context("compiling a rule of redaction")?;
    Ok(Rule { find, replace })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_users_and_the_host_are_left_out_and_the_rest_stays() {
        let redaction = Redaction::new(Some("build-7")).unwrap();
        for (text, want) in [
            (
                "postgres://app:s3cret@127.0.0.1:5432/x",
                "postgres://app:***@127.0.0.1:5432/x",
            ),
            (
                "Authorization: Bearer abcdefgh12345",
                "Authorization: Bearer ***",
            ),
            ("PGPASSWORD=hunter2 psql", "PGPASSWORD=*** psql"),
            (
                r#"{"api_key": "abc def", "n": 1}"#,
                r#"{"api_key": "***", "n": 1}"#,
            ),
            (r#"{"DB_PASSWORD":"***"}"#, r#"{"DB_PASSWORD":"***"}"#),
            (
                "/home/alice/x/target/release/app",
                "/home/user/x/target/release/app",
            ),
            ("on build-7: ready", "on host: ready"),
            ("rebuild-7x is another word", "rebuild-7x is another word"),
            (
                "http://127.0.0.1:8080/invoices?limit=25",
                "http://127.0.0.1:8080/invoices?limit=25",
            ),
            (
                "DB_PASSWORD = \"{{ env.DB_PASSWORD }}\"",
                "DB_PASSWORD = \"{{ env.DB_PASSWORD }}\"",
            ),
            ("12,token_bucket,200", "12,token_bucket,200"),
            ("AWS_SECRET_ACCESS_KEY=abc/def", "AWS_SECRET_ACCESS_KEY=***"),
            ("STRIPE_KEY: sk_live_1", "STRIPE_KEY: ***"),
            ("SECRET_KEY_BASE=0123", "SECRET_KEY_BASE=***"),
            ("private_key: 'ab c'", "private_key: '***'"),
            (r#"{"accessKey":"x"}"#, r#"{"accessKey":"***"}"#),
            (
                "DETAIL:  Key (id)=(5) already exists.",
                "DETAIL:  Key (id)=(5) already exists.",
            ),
            ("sort_key=name", "sort_key=name"),
            ("keys = 5, PRIMARY KEY (id)", "keys = 5, PRIMARY KEY (id)"),
        ] {
            assert_eq!(redaction.apply(text), want);
        }
    }

    #[test]
    fn a_host_name_that_is_an_ordinary_word_part_is_not_replaced() {
        let redaction = Redaction::new(Some("db")).unwrap();
        assert_eq!(
            redaction.apply("db: ready on localhost"),
            "db: ready on localhost"
        );
    }

    #[test]
    fn values_of_json_are_redacted_by_key_and_by_content() {
        let redaction = Redaction::new(Some("build-7")).unwrap();
        let mut value = serde_json::json!({
            "DB_PASSWORD": "a\"b", "password_encryption": "scram", "n": 1.5,
            "list": ["token=abc", "build-7"], "url": "http://u:p@h/x",
        });
        redaction.apply_json(&mut value);
        let want = serde_json::json!({
            "DB_PASSWORD": "***", "password_encryption": "scram", "n": 1.5,
            "list": ["token=***", "host"], "url": "http://u:***@h/x",
        });
        assert_eq!(value, want);
    }
}
