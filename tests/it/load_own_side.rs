//! What the client's own machine can't do is blamed on nobody else: no descriptors left, no local ports.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::misbehaving::Misbehaving;

/// Runs a script whose first argument is the program and gives the object that it prints.
fn load(script: &str, wrap: &[&str], arguments: &[&str]) -> Value {
    let words = [wrap, &["sh", "-c", script]].concat();
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(env!("CARGO_BIN_EXE_ceteris"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}\n{told}");
    let line = text.lines().last().unwrap();
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in '{line}'; {told}"))
}

/// Exactly `sent` requests, of which some were answered and all others failed on this side.
fn only_own_side_fails(report: &Value, sent: u64) {
    let requests = &report["requests"];
    let [ok, failed, cut] = ["ok", "failed", "cut"].map(|name| requests[name].as_u64().unwrap());
    assert_eq!(requests["sent"], sent, "{report}");
    assert_eq!(ok + failed + cut, sent, "{report}");
    assert!(ok > 0 && failed > 0, "{report}");
    let failures = report["failures"].as_object().unwrap();
    assert_eq!(failures.len(), 1, "{report}");
    assert_eq!(failures["client_side"], failed, "{report}");
    assert_eq!(report["driver"]["was_the_limit"], true, "{report}");
}

#[test]
fn no_descriptors_left_is_the_client_s_own_fault() {
    let server = Misbehaving::start();
    let url = format!("{}/ok", server.url());
    let report = load(
        "ulimit -n 40; exec \"$0\" load \"$@\"",
        &[],
        &[&url, "-c", "64", "-n", "400"],
    );
    only_own_side_fails(&report, 400);
    let ok = report["requests"]["ok"].as_u64().unwrap();
    assert_eq!(server.hits("/ok"), ok);
}

#[test]
fn no_local_ports_left_is_the_client_s_own_fault() {
    // Four ports for eight clients, in a network of its own that goes with its last process.
    let script = r#"
        ip link set lo up && echo '50000 50003' > /proc/sys/net/ipv4/ip_local_port_range || exit 9
        "$1" 127.0.0.1:7000 >/dev/null &
        server=$!
        tries=0
        until "$0" load http://127.0.0.1:7000/healthz -c 1 -n 1 >/dev/null 2>&1; do
            tries=$((tries + 1))
            test $tries -lt 100 || exit 9
            sleep 0.1
        done
        "$0" load http://127.0.0.1:7000/healthz -c 8 -n 200
        code=$?
        kill $server
        exit $code
    "#;
    let application = crate::run::site::application();
    let alone: &[&str] = match rustix::process::geteuid().is_root() {
        true => &["unshare", "--net"],
        false => &["unshare", "--user", "--map-root-user", "--net"],
    };
    let report = load(script, alone, &[application.to_str().unwrap()]);
    only_own_side_fails(&report, 200);
    assert_eq!(report["first_failures"][0]["class"], "client_side");
}
