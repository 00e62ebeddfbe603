//! Limits and processors: what was declared is what the process has, and what a limit did is seen.

use super::*;

/// Whether this user may make control groups here; where not, limits must be refused with a reason.
fn may_limit() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_process_over_its_memory_limit_is_reported_as_such() {
    runtime().block_on(async {
        let site = Site::new("oom");
        let mut hungry = process(
            "hungry",
            &[
                "python3",
                "-uc",
                "import time\nprint('ready')\ntime.sleep(1)\nx = []\nwhile True: x.append(bytearray(1 << 20))",
            ],
        );
        hungry.ready.by = Some(ReadyBy::Log("^ready$".to_owned()));
        hungry.limits.memory = Some(64 << 20);
        let services = [hungry];
        let prepared = site.prepare(&services).await.unwrap();
        let started = site.start(&prepared, &services).await;
        if !may_limit() {
            let text = started.unwrap_err().to_string();
            assert!(text.contains("control group"), "{text}");
            return;
        }
        let deployment = started.unwrap();
        let exit = deployment.next_exit().await;
        assert!(exit.status.contains("killed it for memory"), "{exit:?}");
        assert!(exit.status.contains("64 MiB"), "{exit:?}");
        assert!(deployment.limits_seen(&name("hungry")).unwrap().oom_kills >= 1);
        let groups = deployment.watched()[0].cgroups.folders().into_iter().map(Path::to_owned).collect::<Vec<_>>();
        assert!(!groups.is_empty() && groups.iter().all(|group| group.is_dir()));
        deployment.stop().await.unwrap();
        assert!(groups.iter().all(|group| !group.exists()));
        prepared.finish().await.unwrap();
    });
}

#[test]
fn processors_are_pinned_and_limited() {
    runtime().block_on(async {
        let site = Site::new("cpu");
        let mut busy = script("busy", "echo ready; while :; do :; done");
        busy.pin = Some(vec![0]);
        if may_limit() {
            busy.limits.cpus = Some(0.2);
        }
        let services = [busy];
        let prepared = site.prepare(&services).await.unwrap();
        let deployment = site.start(&prepared, &services).await.unwrap();
        let pid = deployment.started()[0].pid;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
        if may_limit() {
            let busy = name("busy");
            until("it was held back", || {
                deployment.limits_seen(&busy).unwrap().throttled_periods > 3
            })
            .await;
            assert!(deployment.limits_seen(&busy).unwrap().throttled_s > 0.0);
            deployment
                .set_limits(
                    &busy,
                    Limits {
                        memory: Some(128 << 20),
                        cpus: None,
                    },
                )
                .unwrap();
            let now = deployment.limits(&busy).unwrap();
            assert_eq!((now.memory, now.cpus), (Some(128 << 20), None));
        }
        deployment.stop().await.unwrap();
        prepared.finish().await.unwrap();
    });
}
