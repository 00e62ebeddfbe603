//! Ready by a connection, by a line of the log, by a command: not before it is so, and not by what an earlier life left.

use super::*;

/// Listens on its address after a moment, or never.
fn late_listener(service_name: &str, listens: bool) -> Service {
    let program = "import socket, sys, time\ntime.sleep(0.3)\nprint('about to listen', flush=True)\n\
                   s = socket.create_server((sys.argv[1], int(sys.argv[2]))) if sys.argv[3] == 'True' else None\n\
                   time.sleep(600)";
    let host = format!("{{{{ {service_name}.host }}}}");
    let port = format!("{{{{ {service_name}.port }}}}");
    let listens = if listens { "True" } else { "False" };
    let mut service = process(
        service_name,
        &["python3", "-c", program, &host, &port, listens],
    );
    service.ready.by = Some(ReadyBy::Tcp(format!("{{{{ {service_name}.address }}}}")));
    service
}

#[test]
fn a_connection_is_waited_for() {
    runtime().block_on(async {
        let site = Site::new("tcp");
        let services = [late_listener("app", true)];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        assert!(deployment.started()[0].ready_ms >= 300.0);
        assert!(site.log("app").contains("about to listen"));
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();

        let site = Site::new("tcpnever");
        let mut never = late_listener("app", false);
        never.ready.within = Duration::from_secs(2);
        let services = [never];
        let prepared = site.prepare(&services).await.unwrap();
        let text = site
            .start(&prepared, &services)
            .await
            .unwrap_err()
            .to_string();
        for part in [
            "app: not ready within 2s",
            "to accept a connection",
            "about to listen",
        ] {
            assert!(text.contains(part), "no '{part}' in: {text}");
        }
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_command_that_exits_with_0_says_so() {
    runtime().block_on(async {
        let site = Site::new("command");
        let mut app = process("app", &["sh", "-c", "sleep 0.3; touch up; exec sleep 600"]);
        let test = ["test", "-e", "up"].map(str::to_owned);
        app.ready.by = Some(ReadyBy::Command(test.to_vec()));
        let services = [app];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        assert!(deployment.started()[0].ready_ms >= 300.0);
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_line_of_an_earlier_life_is_no_sign_of_this_one() {
    runtime().block_on(async {
        let site = Site::new("oldline");
        let mut app = script(
            "app",
            "test -e silent || echo ready; touch silent; exec sleep 600",
        );
        app.ready.within = Duration::from_secs(2);
        let services = [app];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let error = deployment.restart(&name("app"), "KILL").await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("a line of its log"), "{text}");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}
