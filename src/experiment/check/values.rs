//! Strings with a syntax of their own: paths, pointers, URLs, processor lists, regular expressions.

use std::collections::BTreeSet;

use minijinja::Value;

use super::Checker;
use crate::experiment::document::Node;
use crate::template;

pub(super) fn regular_expression(node: &Node, key: &str, checker: &mut Checker<'_>) {
    let Some(text) = node.text() else {
        return;
    };
    if let Err(error) = regex::Regex::new(text) {
        let reason = error.to_string();
        let reason = reason
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        checker.error(
            node.span.clone(),
            format!("`{key}` is not a regular expression: {reason}"),
            "see the syntax of the regex crate; escape what is meant literally with a backslash",
        );
    }
}

/// A command: a program and its arguments.
pub(super) fn command(node: &Node, key: &str, checker: &mut Checker<'_>) {
    if node.kind() == "a list" && node.items().is_empty() {
        checker.error(
            node.span.clone(),
            format!("`{key}` is empty"),
            "name a program",
        );
    }
    if let Some(first) = node.items().first()
        && node.items().len() == 1
        && let Some(text) = first.text()
        && text.trim().contains(' ')
    {
        checker.error(
            first.span.clone(),
            format!("`{key}` is one string with spaces, and no shell takes it apart"),
            "write a list: program and each argument apart",
        );
    }
}

/// A path on a service: begins with a slash, holds no spaces.
pub(super) fn absolute_path(node: &Node, key: &str, checker: &mut Checker<'_>) {
    let Some(text) = node.text() else {
        return;
    };
    if text.contains("://") && !text.starts_with('/') {
        checker.error(
            node.span.clone(),
            format!("`{key}` is a whole URL"),
            "write the path alone; the service says where it is",
        );
    } else if !text.starts_with('/') && !text.starts_with("{{") {
        checker.error(
            node.span.clone(),
            format!("`{key}` does not begin with a slash"),
            format!("write \"/{text}\""),
        );
    }
    let outside = text
        .split("{{")
        .map(|part| part.split_once("}}").map_or(part, |(_, after)| after));
    for part in outside {
        if let Some(bad) = part
            .chars()
            .find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii())
        {
            checker.error(
                node.span.clone(),
                format!("`{key}` holds {:?}, which a path can't", bad),
                "percent-encode it, as in %20",
            );
            return;
        }
    }
}

/// A JSON Pointer; `*` as a part only where one element is taken at random.
pub(super) fn pointer(node: &Node, key: &str, star: bool, checker: &mut Checker<'_>) {
    let Some(text) = node.text() else {
        return;
    };
    if !text.is_empty() && !text.starts_with('/') {
        checker.error(
            node.span.clone(),
            format!("`{key}`: \"{text}\" is not a JSON Pointer"),
            format!(
                "write \"/{}\"",
                text.trim_start_matches("$.").replace('.', "/")
            ),
        );
    } else if !star && text.split('/').any(|part| part == "*") {
        checker.error(
            node.span.clone(),
            format!("`{key}` takes one number, and `*` stands for many"),
            "name one place",
        );
    }
}

/// A list of processors such as "0-1,4".
pub(super) fn processors(node: &Node, key: &str, checker: &mut Checker<'_>) -> Option<Vec<usize>> {
    let text = node.text()?;
    let number = |text: &str| text.trim().parse::<usize>().ok().filter(|n| *n < 4096);
    let mut found = BTreeSet::new();
    let sound = text.split(',').all(|part| {
        let range = match part.split_once('-') {
            Some((from, to)) => number(from).zip(number(to)).filter(|(a, b)| a <= b),
            None => number(part).map(|n| (n, n)),
        };
        range.is_some_and(|(from, to)| {
            found.extend(from..=to);
            true
        })
    });
    if sound {
        return Some(found.into_iter().collect());
    }
    checker.error(
        node.span.clone(),
        format!("`{key}`: \"{text}\" is not a list of processors"),
        "write numbers and ranges, as in \"0-1\" or \"0,2\"",
    );
    None
}

pub(super) fn unique(node: Option<&Node>, key: &str, checker: &mut Checker<'_>) {
    let mut seen = BTreeSet::new();
    for item in node.map_or(&[][..], Node::items) {
        if let Some(text) = item.text()
            && !seen.insert(text)
        {
            checker.error(
                item.span.clone(),
                format!("`{key}` names \"{text}\" twice"),
                "keep one",
            );
        }
    }
}

/// Another machine needs `clients.allow_remote`. A host that stands in the caller's environment is known only when that may be
/// looked at.
pub(super) fn remote(url: &Node, name: &str, allow_remote: bool, checker: &mut Checker<'_>) {
    let Some(text) = url.text() else {
        return;
    };
    let filled = checker.env.and_then(|lookup| {
        let variable = |path: &str| lookup(path.strip_prefix("env.")?).map(Value::from);
        template::render(&template::environment(), text, variable).ok()
    });
    let known = filled.as_deref().unwrap_or(text);
    let host = match host(known) {
        Some(host) if template::is_template(&host) => return,
        None if template::is_template(known) => return,
        host => host,
    };
    let Some(host) = host else {
        checker.error(
            url.span.clone(),
            format!("`{name}.url`: \"{text}\" is not a URL"),
            "write one such as \"http://127.0.0.1:8080\"",
        );
        return;
    };
    if !allow_remote && !is_loopback(&host) {
        checker.error(
            url.span.clone(),
            format!("`{name}.url`: {host} is not this machine"),
            "load leaves this machine only by intent: add `allow_remote = true` to [clients]",
        );
    }
}

fn host(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    if scheme.is_empty()
        || !scheme
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+')
    {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let authority = authority.rsplit('@').next()?;
    let host = match authority.strip_prefix('[') {
        Some(v6) => v6.split(']').next()?,
        None => authority.split(':').next()?,
    };
    // A PostgreSQL URL without a host means the local socket.
    let local = scheme.starts_with("postgres");
    (local || !host.is_empty()).then(|| host.to_owned())
}

/// Whether a host is this machine, without asking a name server.
fn is_loopback(host: &str) -> bool {
    host.is_empty()
        || host.eq_ignore_ascii_case("localhost")
        || host.starts_with("%2F")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_found_and_loopback_is_known_without_a_name_server() {
        for (url, local) in [
            ("http://127.0.0.1:80/x", true),
            ("http://[::1]:80", true),
            ("http://localhost", true),
            ("postgres:///shop", true),
            ("postgres://u:{{ env.P }}@127.0.0.1/x", true),
            ("http://0.0.0.0", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1@example.com/", false),
            ("http://example.com/{{ env.X }}", false),
            ("http://[2001:db8::1]/", false),
        ] {
            assert_eq!(host(url).map(|h| is_loopback(&h)), Some(local), "{url}");
        }
        assert_eq!(host("localhost:80"), None);
        assert_eq!(host("http:///x"), None);
        assert!(host("http://{{ env.HOST }}:80").is_some_and(|h| template::is_template(&h)));
    }
}
