//! Literal secrets: the file is copied into every run's folder, so none may stand in it.

use super::Checker;
use crate::experiment::document::{Content, Node};
use crate::template::is_template;

/// Parts of a variable's name that say that its value is a secret.
const SECRET_NAMES: [&str; 4] = ["PASSWORD", "SECRET", "TOKEN", "KEY"];
/// Headers whose value is a secret.
const SECRET_HEADERS: [&str; 4] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
];

pub(super) fn check(root: &Node, checker: &mut Checker<'_>) {
    for service in root.get("deployment").map_or(&[][..], Node::entries) {
        for kind in service.node.entries() {
            for entry in kind.node.get("env").map_or(&[][..], Node::entries) {
                let upper = entry.key.to_ascii_uppercase();
                let named = SECRET_NAMES.iter().any(|word| upper.contains(word));
                if named
                    && entry
                        .node
                        .text()
                        .is_some_and(|text| !text.is_empty() && !is_template(text))
                {
                    checker.error(
                        entry.node.span.clone(),
                        format!(
                            "`{}.env.{}` looks like a literal secret",
                            service.key, entry.key
                        ),
                        format!(
                            "take it from the caller's environment: \"{{{{ env.{} }}}}\"",
                            entry.key
                        ),
                    );
                }
            }
        }
    }
    let steps = root
        .table("workload")
        .and_then(|w| w.get("step"))
        .map_or(&[][..], Node::items);
    for place in root.table("clients").into_iter().chain(steps) {
        for entry in place.get("headers").map_or(&[][..], Node::entries) {
            let lower = entry.key.to_ascii_lowercase();
            if SECRET_HEADERS.contains(&lower.as_str())
                && entry.node.text().is_some_and(|text| !is_template(text))
            {
                checker.error(
                    entry.node.span.clone(),
                    format!("the header `{}` looks like a literal secret", entry.key),
                    "take it from the caller's environment: \"Bearer {{ env.API_TOKEN }}\"",
                );
            }
        }
    }
    urls(root, checker);
}

/// A password in any URL of the file.
fn urls(node: &Node, checker: &mut Checker<'_>) {
    match &node.value {
        Content::Table(entries) => entries.iter().for_each(|entry| urls(&entry.node, checker)),
        Content::Array(items) => items.iter().for_each(|item| urls(item, checker)),
        Content::Text(text) if has_password(text) => checker.error(
            node.span.clone(),
            "this URL holds a literal password",
            "take it from the caller's environment: \"postgres://user:{{ env.DB_PASSWORD }}@…\"",
        ),
        _ => {}
    }
}

fn has_password(text: &str) -> bool {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("://") {
        let authority = after
            .split(['/', '?', '#', '"', '\''])
            .next()
            .unwrap_or_default();
        if let Some((user_info, _)) = authority.rsplit_once('@')
            && let Some((_, password)) = user_info.split_once(':')
            && !password.is_empty()
            && !is_template(password)
        {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn passwords_in_urls_are_seen() {
        for bad in [
            "postgres://u:p@h/d",
            "x http://a.b http://u:p%20q@[::1]:80/",
        ] {
            assert!(has_password(bad), "{bad}");
        }
        for good in [
            "http://h:80/a@b:c",
            "postgres://u@h/d",
            "postgres://u:{{ env.P }}@h",
            "http://a/b:c@d",
            "u:p@h",
        ] {
            assert!(!has_password(good), "{good}");
        }
    }
}
