//! The same as an ordinary user: nothing here needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::site::{Site, plain, pruned, ran, turn, with};

/// `nobody`, who owns no file of ours.
const ORDINARY: u32 = 65_534;

#[test]
fn a_limit_that_this_user_may_not_set_is_refused_with_what_would_help() {
    let _turn = turn();
    let site = Site::new();
    let program = site.at("ceteris");
    fs::copy(env!("CARGO_BIN_EXE_ceteris"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = with(
        &plain(),
        "command = ",
        "limits = { memory = \"256MiB\" }\ncommand = ",
    );
    site.write("experiment.toml", &text);
    let mut command = Command::new(program);
    site.surround(&mut command, &["run", "experiment.toml"]);
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    // Where users may make control groups of their own, the limit just holds.
    let ran = ran(&mut command);
    if ran.code != Some(0) {
        ran.ends(3)
            .names(&["app: limits", "control group", "systemd-run"]);
    }
    site.nothing_is_left();
}

#[test]
fn a_small_run_with_a_database_works() {
    let _turn = turn();
    let site = Site::new();
    // The program may lie in a folder that only root may enter.
    let program = site.at("ceteris");
    fs::copy(env!("CARGO_BIN_EXE_ceteris"), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = with(
        &pruned(),
        "APP_PASSWORD = \"{{ env.SMALL_PASSWORD }}\", ",
        "",
    );
    let text = with(&text, "sample   = \"1s\"", "sample   = \"3s\"");
    site.write("experiment.toml", &text);
    let mut command = Command::new(program);
    site.surround(&mut command, &["run", "experiment.toml"]);
    if rustix::process::geteuid().is_root() {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    ran(&mut command).ends(0);
    site.nothing_is_left();
    let summary = site.summary();
    assert_eq!(summary["exit_code"], 0);
    assert_eq!(summary["validity"]["valid"], true);
}
