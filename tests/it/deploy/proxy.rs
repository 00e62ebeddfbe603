//! Caddy and nginx in front of a process, and equality of what was rendered.

use ceteris::deploy::{Exempt, compare, undeclared};
use ceteris::experiment::{Control, Proxy};

use super::*;

fn proxy(kind: fn(Proxy) -> ServiceKind, config: Option<&str>) -> Service {
    let mut edge = service(
        "edge",
        kind(Proxy {
            upstream: if config.is_some() {
                Vec::new()
            } else {
                vec![name("app")]
            },
            config: config.map(PathBuf::from),
            bin: None,
        }),
    );
    edge.needs = vec![name("app")];
    // Through the proxy the application's own token comes back.
    edge.ready.by = Some(ReadyBy::Path("/healthz".to_owned()));
    edge
}

fn passes_requests_on(token: &str, kind: fn(Proxy) -> ServiceKind, config: Option<(&str, &str)>) {
    runtime().block_on(async {
        let site = Site::new(token);
        site.write("answer.py", HTTP);
        if let Some((file, text)) = config {
            site.write(file, text);
        }
        let services = [http("app"), proxy(kind, config.map(|(file, _)| file))];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let facts = deployment.facts();
        let edge = facts.iter().find(|facts| facts.service == "edge").unwrap();
        assert!(
            edge.version
                .as_ref()
                .is_some_and(|version| version.contains('.'))
        );
        let (file, text) = edge.files.first_key_value().unwrap();
        assert!(text.contains("<app.address>"), "{file}: {text}");
        // Facts of both arms are the same text, whatever ports they got.
        let both = compare(
            prepared.facts(Arm::Treatment),
            prepared.facts(Arm::Control),
            &Exempt::new(&Control::Null),
        );
        assert_eq!(undeclared(&both), None);
        assert!(deployment.stop().await.unwrap().killed.is_empty());
        let root = site.scratch.path().to_owned();
        prepared.finish().await.unwrap();
        assert_eq!(marked(&root), Vec::<String>::new());
    });
}

#[test]
fn caddy_passes_requests_on() {
    passes_requests_on("caddy", ServiceKind::Caddy, None);
}

#[test]
fn caddy_takes_the_users_own_file() {
    let text = "{\n  admin off\n  auto_https off\n}\nhttp://{{ edge.address }} {\n  bind 127.0.0.1\n  \
                reverse_proxy {{ app.address }}\n}\n";
    passes_requests_on("caddyfile", ServiceKind::Caddy, Some(("Caddyfile", text)));
}

#[test]
fn nginx_passes_requests_on() {
    passes_requests_on("nginx", ServiceKind::Nginx, None);
}
