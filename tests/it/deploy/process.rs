//! Processes: ready, proven, ended, whatever they do.

use std::time::Duration;

use super::*;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    runtime().block_on(future)
}

#[test]
fn a_process_comes_up_answers_and_goes_without_trace() {
    block_on(async {
        let site = Site::new("up");
        site.write("answer.py", HTTP);
        let services = [http("app")];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let started = deployment.started()[0].clone();
        assert!(alive(started.pid));
        let endpoint = deployment.endpoint(&name("app")).unwrap();
        assert_eq!(endpoint.url, format!("http://127.0.0.1:{}", endpoint.port));
        let watched = deployment.watched();
        assert_eq!(watched[0].life.borrow().pid, Some(started.pid));
        let facts = deployment.facts();
        assert_eq!(facts[0].sha256.as_ref().map(String::len), Some(64));
        assert!(facts[0].named_files.contains_key("answer.py"));
        assert_eq!(facts[0].command[2..], ["<app.host>", "<app.port>"]);
        assert!(deployment.stop().await.unwrap().killed.is_empty());
        assert!(!alive(started.pid));
        let root = site.scratch.path().to_owned();
        prepared.finish().await.unwrap();
        assert_eq!(marked(&root), Vec::<String>::new());
        assert!(!root.exists());
    });
}

#[test]
fn services_start_in_order_and_see_each_other() {
    block_on(async {
        let site = Site::new("order");
        site.write("answer.py", HTTP);
        let mut second = script("second", "echo $UPSTREAM; echo ready; exec sleep 600");
        second
            .env
            .insert("UPSTREAM".to_owned(), "{{ app.url }}/x".to_owned());
        second.needs = vec![name("app")];
        let services = [second, http("app")];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let order: Vec<&str> = deployment
            .started()
            .iter()
            .map(|started| started.service.as_str())
            .collect();
        assert_eq!(order, ["app", "second"]);
        let url = deployment.endpoint(&name("app")).unwrap().url;
        assert!(site.log("second").contains(&format!("{url}/x")));
        assert_eq!(deployment.facts()[0].env["UPSTREAM"], "<app.url>/x");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn children_that_ignore_term_or_fork_away_are_gone_after_stop() {
    block_on(async {
        let site = Site::new("stubborn");
        let mut stubborn = script(
            "stubborn",
            "trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 600; done' & \
             (setsid sleep 600 &) ; echo ready; while :; do sleep 600; done",
        );
        stubborn.grace = Duration::from_millis(300);
        let services = [stubborn];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let root = site.scratch.path().to_owned();
        until("four processes run", || marked(&root).len() >= 4).await;
        let report = deployment.stop().await.unwrap();
        assert_eq!(report.killed, [name("stubborn")]);
        assert_eq!(marked(&root), Vec::<String>::new());
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_parent_that_exits_leaves_no_daemon_behind() {
    block_on(async {
        let site = Site::new("daemon");
        // The first process ends by itself; what it left in another session is found by its mark.
        let services = [script(
            "daemon",
            "setsid sleep 600 & echo ready; sleep 0.5; exit 3",
        )];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let exit = deployment.next_exit().await;
        assert_eq!(exit.status, "exited with status 3");
        assert_eq!(exit.log_tail, ["ready"]);
        let root = site.scratch.path().to_owned();
        assert_eq!(marked(&root).len(), 1);
        deployment.stop().await.unwrap();
        assert_eq!(marked(&root), Vec::<String>::new());
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_process_that_exits_at_once_is_reported_with_its_log() {
    block_on(async {
        let site = Site::new("atonce");
        let services = [script("broken", "echo 'no such table' >&2; exit 7")];
        let prepared = site.prepare(&services).await.unwrap();
        let error = site.start(&prepared, &services).await.unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, StartError::Failed { .. }), "{text}");
        assert!(
            text.contains("broken") && text.contains("no such table"),
            "{text}"
        );
        prepared.finish().await.unwrap();
    });
}

#[test]
fn one_that_is_never_ready_is_ended_and_named() {
    block_on(async {
        let site = Site::new("never");
        let mut never = script("never", "echo still thinking; exec sleep 600");
        never.ready.within = Duration::from_millis(300);
        let services = [never];
        let prepared = site.prepare(&services).await.unwrap();
        let text = site
            .start(&prepared, &services)
            .await
            .unwrap_err()
            .to_string();
        for part in [
            "never",
            "not ready within 300ms",
            "still thinking",
            "^ready$",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(marked(site.scratch.path()), Vec::<String>::new());
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_server_of_somebody_else_on_the_port_is_not_measured() {
    block_on(async {
        let site = Site::new("trap");
        site.write("answer.py", HTTP);
        // The started process lives, while the one that answers on its port was started by nobody here.
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        std::thread::spawn(move || {
            use std::io::{Read, Write};
            for mut stream in taken.incoming().flatten() {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
            }
        });
        let mut external = service(
            "app",
            ServiceKind::External {
                url: format!("http://127.0.0.1:{port}"),
            },
        );
        external.ready.by = Some(ReadyBy::Path("/".to_owned()));
        let services = [external];
        let prepared = site.prepare(&services).await.unwrap();
        // Declared as external it is what it is ...
        let deployment = site.start(&prepared, &services).await.unwrap();
        assert_eq!(deployment.endpoint(&name("app")).unwrap().port, port);
        assert!(deployment.watched().is_empty());
        assert!(deployment.signal(&name("app"), "TERM").await.is_err());
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
        // ... and one that echoes another token is not ours.
        let site = Site::new("trap2");
        site.write("answer.py", HTTP);
        let mut other = http("app");
        other
            .env
            .insert("ECHO".to_owned(), "another run".to_owned());
        let services = [other];
        let prepared = site.prepare(&services).await.unwrap();
        let text = site
            .start(&prepared, &services)
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains("echoes another run token"), "{text}");
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_missing_program_and_a_failing_build_are_named_before_anything_starts() {
    block_on(async {
        let site = Site::new("missing");
        let text = format!(
            "{:#}",
            site.prepare(&[process("app", &["no-such-program"])])
                .await
                .unwrap_err()
        );
        assert!(
            text.contains("app") && text.contains("no-such-program is not on PATH"),
            "{text}"
        );
        let site = Site::new("build");
        let mut built = process("app", &["sh"]);
        if let ServiceKind::Process(process) = &mut built.kind {
            process.build = Some(
                ["sh", "-c", "echo error: it does not compile; exit 101"]
                    .map(str::to_owned)
                    .to_vec(),
            );
        }
        let text = format!("{:#}", site.prepare(&[built]).await.unwrap_err());
        for part in ["app", "status 101", "app.build.log", "it does not compile"] {
            assert!(text.contains(part), "{text}");
        }
    });
}

#[test]
fn a_restart_is_a_new_life_at_the_same_address() {
    block_on(async {
        let site = Site::new("restart");
        site.write("answer.py", HTTP);
        let services = [http("app")];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let before = deployment.endpoint(&name("app")).unwrap();
        let first = deployment.started()[0].clone();
        let second = deployment.restart(&name("app"), "KILL").await.unwrap();
        assert_eq!((first.epoch, second.epoch), (0, 1));
        assert_ne!(first.pid, second.pid);
        assert_eq!(deployment.endpoint(&name("app")).unwrap(), before);
        deployment.stop_service(&name("app")).await.unwrap();
        assert_eq!(deployment.watched()[0].life.borrow().pid, None);
        let third = deployment.start_service(&name("app")).await.unwrap();
        assert_eq!(third.epoch, 2);
        // Two ends were asked for; nobody asked for the third.
        deployment.signal(&name("app"), "USR1").await.unwrap();
        assert!(deployment.next_exit().await.expected);
        assert!(deployment.next_exit().await.expected);
        let exit = deployment.next_exit().await;
        assert!(exit.status.contains("USR1") && !exit.expected, "{exit:?}");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_command_that_nobody_waits_for_any_more_is_ended() {
    block_on(async {
        let site = Site::new("dropped");
        let services = [script("app", "echo ready; exec sleep 600")];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let root = site.scratch.path().to_owned();
        assert_eq!(marked(&root).len(), 1);
        let command = ["sh", "-c", "sleep 600 & exec sleep 601"].map(str::to_owned);
        let none = BTreeMap::new();
        let run = deployment.run_command("action/long", &command, &none, &site.logs);
        let long = async {
            until("the command runs", || marked(&root).len() >= 3).await;
        };
        tokio::select! {
            ended = run => panic!("{ended:?}"),
            () = long => {}
        }
        until("the command is gone", || marked(&root).len() == 1).await;
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_start_that_nobody_waits_for_any_more_leaves_nothing_running() {
    block_on(async {
        let site = Site::new("slow");
        site.write(
            "slow.sh",
            "echo start; test -e once && sleep 600; touch once; echo ready; exec sleep 600\n",
        );
        let mut slow = process("app", &["sh", "slow.sh"]);
        slow.ready.by = Some(ReadyBy::Log("^ready$".to_owned()));
        let services = [slow];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let root = site.scratch.path().to_owned();
        let service = name("app");
        let restart = deployment.restart(&service, "TERM");
        let ended = tokio::time::timeout(Duration::from_secs(2), restart).await;
        assert!(ended.is_err(), "{ended:?}");
        until("nothing of it runs", || marked(&root).is_empty()).await;
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_script_that_changed_is_not_started_again() {
    block_on(async {
        let site = Site::new("changed");
        site.write("app.sh", "echo ready; exec sleep 600\n");
        let mut app = process("app", &["sh", "app.sh"]);
        app.ready.by = Some(ReadyBy::Log("^ready$".to_owned()));
        let services = [app];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        site.write("app.sh", "echo ready; exec sleep 601\n");
        let error = deployment.restart(&name("app"), "TERM").await.unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("app.sh changed during the run"), "{text}");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}

#[test]
fn a_signal_that_a_program_handles_excuses_no_later_death() {
    block_on(async {
        let site = Site::new("handled");
        let mut app = script(
            "app",
            "trap 'echo dump' QUIT; echo ready; while :; do sleep 0.1; done",
        );
        app.grace = Duration::from_millis(500);
        let services = [app];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let service = name("app");
        deployment.signal(&service, "QUIT").await.unwrap();
        until("it has handled it", || site.log("app").contains("dump")).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let pid = deployment.started()[0].pid as i32;
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let exit = deployment.next_exit().await;
        assert!(!exit.expected, "{exit:?}");
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}
