//! No process outlives a gateway, whichever process is killed and whenever.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use switchboard_it::client::Client;
use switchboard_it::fixture::Helper;
use switchboard_it::grove::{COMMANDS, Grove, Moment, Role, Temper, Victims, call};
use switchboard_it::processes::{is_alive, send_signal, until, until_gone};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

#[tokio::test]
async fn killed_gateway_leaves_no_process() {
    for victims in [Victims::Gateway, Victims::GatewayAndReaper, Victims::GatewayAndKeepers] {
        for moment in Moment::ALL {
            Grove::new(PROGRAMS, 1, Helper::Daemon, Temper::Stubborn).fell(victims, moment).await;
        }
    }
}

#[tokio::test]
async fn killed_reaper_or_keeper_ends_only_its_servers() {
    for victims in [Victims::Reaper, Victims::Keepers] {
        for moment in Moment::ALL {
            Grove::new(PROGRAMS, 1, Helper::Daemon, Temper::Stubborn).wound(victims, moment).await;
        }
    }
}

#[tokio::test]
async fn killed_reaper_ends_its_servers_and_is_replaced() {
    let grove = Grove::new(PROGRAMS, 2, Helper::Session, Temper::Stubborn);
    let mut client = grove.reach(Moment::TreeUp).await;
    let before = grove.having(Role::Server);
    grove.kill(Victims::Reaper);
    until_gone(&before).await;
    assert_eq!(call(&mut client, 0, "again").await, "again");
    assert_eq!(call(&mut client, 1, "new").await, "new");
    assert_eq!(grove.having(Role::Reaper).len(), 1, "a new reaper was started");
    grove.end(client, Victims::Gateway).await;
}

#[tokio::test]
async fn next_command_ends_servers_left_by_killed_gateway() {
    let grove = Grove::new(PROGRAMS, 2, Helper::Session, Temper::Stubborn);
    let mut client = grove.reach(Moment::TreeUp).await;
    assert_eq!(call(&mut client, 1, "up").await, "up");
    grove.kill_all_roles(client).await;
    assert!(grove.having(Role::Server).len() >= 6, "two launchers, servers and helpers");
    let records = grove.installed.home().join("switchboard/state/running");
    assert_eq!(fs::read_dir(&records).unwrap().count(), 2);
    assert_eq!(grove.installed.run(["status"]).await.code, Some(0));
    grove.until_empty().await;
    assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
}

#[tokio::test]
async fn command_ends_no_server_of_a_running_gateway() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Session, Temper::Stubborn);
    let mut client = grove.reach(Moment::TreeUp).await;
    let before = grove.having(Role::Server);
    assert_eq!(grove.installed.run(["status"]).await.code, Some(0));
    assert!(before.iter().all(|pid| is_alive(*pid)));
    assert_eq!(call(&mut client, 0, "here").await, "here");
    grove.end(client, Victims::Gateway).await;
}

#[tokio::test]
async fn stopping_a_server_ends_only_its_own_daemon() {
    let grove = Grove::new(PROGRAMS, 2, Helper::Daemon, Temper::Obedient);
    let mut client = grove.reach(Moment::TreeUp).await;
    let first = grove.having(Role::Server);
    assert_eq!(call(&mut client, 1, "up").await, "up");
    let second = || {
        let servers = grove.having(Role::Server).into_iter();
        servers.filter(|pid| !first.contains(pid)).collect::<Vec<u32>>()
    };
    until("both trees are up", || first.len() >= 3 && second().len() >= 3).await;
    let second = second();
    // The gateway stops the first server and continues.
    grove.plant(1..2);
    until_gone(&first).await;
    assert!(second.iter().all(|pid| is_alive(*pid)));
    assert_eq!(call(&mut client, 1, "still").await, "still");
    grove.end(client, Victims::Gateway).await;
}

#[tokio::test]
async fn reaper_and_keeper_ignore_termination_signals() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Session, Temper::Stubborn);
    let mut client = grove.reach(Moment::TreeUp).await;
    let ours = [grove.having(Role::Reaper), grove.having(Role::Keeper)].concat();
    assert_eq!(ours.len(), 2);
    for (pid, signal) in ours
        .iter()
        .flat_map(|pid| [Signal::TERM, Signal::INT, Signal::HUP].map(|signal| (*pid, signal)))
    {
        send_signal(pid, signal);
    }
    assert_eq!(call(&mut client, 0, "here").await, "here");
    assert!(ours.iter().all(|pid| is_alive(*pid)));
    grove.end(client, Victims::Gateway).await;
}

/// The process name that `ps` shows.
fn shown_name(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap().trim().to_owned()
}

#[tokio::test]
async fn reaper_and_keepers_have_recognizable_process_names() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Session, Temper::Stubborn);
    let client = grove.reach(Moment::TreeUp).await;
    let check = |role: Role, expected: &str| {
        let names: Vec<String> = grove.having(role).into_iter().map(shown_name).collect();
        assert_eq!(names, [expected]);
    };
    check(Role::Reaper, "switchbd-reaper");
    check(Role::Keeper, "switchbd-keeper");
    grove.end(client, Victims::Gateway).await;
}

#[tokio::test]
async fn program_named_like_reaper_without_lifeline_runs_as_usual() {
    let installed = Installed::bare(PROGRAMS);
    for name in ["switchboard-reaper", "switchboard-keeper"] {
        for args in [&["--version"][..], &["config", "path"], &[]] {
            let as_usual = installed.command().args(args).output().await.unwrap();
            let ran = installed.command().arg0(name).args(args).output().await.unwrap();
            assert_eq!(ran.status, as_usual.status, "{name} {args:?}");
            assert_eq!(ran.stdout.is_empty(), as_usual.stdout.is_empty(), "{name} {args:?}");
        }
    }
}

/// The targets of the open descriptors of a process.
fn open_files(pid: u32) -> BTreeSet<PathBuf> {
    let listed = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    listed.filter_map(|entry| fs::read_link(entry.path()).ok()).collect()
}

/// A host may wait until all copies of a descriptor that it passed to the gateway are closed.
#[tokio::test]
async fn helper_processes_hold_no_descriptors_of_the_host() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Session, Temper::Stubborn);
    let canary = grove.installed.write("canary", "");
    let script = format!("exec 7<'{}'; exec '{}' serve", canary.display(), PROGRAMS.switchboard);
    let mut client = Client::start(&mut shell(&grove.installed, &script));
    client.initialize("2025-11-25", json!({})).await;
    assert_eq!(call(&mut client, 0, "here").await, "here");
    let null = PathBuf::from("/dev/null");
    let given: BTreeSet<PathBuf> = [0, 1, 2, 7]
        .map(|fd| fs::read_link(format!("/proc/{}/fd/{fd}", client.pid())).unwrap())
        .into();
    assert!(given.contains(&canary) && !given.contains(&null), "{given:?}");
    for (pid, role) in grove.processes().into_iter().filter(|(_, role)| *role != Role::Gateway) {
        let held: Vec<PathBuf> = open_files(pid).intersection(&given).cloned().collect();
        assert_eq!(held, Vec::<PathBuf>::new(), "{role:?}");
    }
    grove.end(client, Victims::Gateway).await;
}

/// `/bin/sh` with the environment in which the tests run `switchboard`.
pub(crate) fn shell(installed: &Installed, script: &str) -> tokio::process::Command {
    let program = installed.command();
    #[expect(clippy::disallowed_methods, reason = "a host, which no Spawner may own")]
    let mut shell = tokio::process::Command::new("/bin/sh");
    shell.env_clear().args(["-c", script]).current_dir(installed.home());
    for (name, value) in program.as_std().get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
}

/// Passes without a check if the test cannot mount file systems.
#[tokio::test]
async fn gateway_without_proc_runs_servers_and_warns_once() {
    let config =
        r#"{ "mcpServers": { "s": { "command": "fixture-server", "args": ["everything"] } } }"#;
    let installed = Installed::with(PROGRAMS, config);
    let apart = async |line: &str| {
        let script = format!("exec unshare -rm sh -c \"mount -t tmpfs none /proc && {line}\"");
        shell(&installed, &script).output().await.unwrap()
    };
    if !apart("true").await.status.success() {
        return;
    }
    let ran = apart(&format!("exec '{}' -v tools s", PROGRAMS.switchboard)).await;
    let [listed, said] = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(ran.status.success() && listed.contains("s_echo"), "{listed}{said}");
    assert_eq!(said.matches("/proc is unavailable").count(), 1, "{said}");
}

#[tokio::test]
async fn server_inherits_only_its_three_standard_streams() {
    let installed = Installed::bare(PROGRAMS);
    // Descriptor 3 is the directory that `ls` itself opens.
    let listing = "exec ls /proc/self/fd >open";
    let entry = json!({ "command": "sh", "args": ["-c", listing] });
    let config = json!({ "mcpServers": { "s": entry } });
    installed.write("switchboard/mcp.json", &config.to_string());
    let command = format!("exec 7</dev/null; exec '{}' connect s", PROGRAMS.switchboard);
    shell(&installed, &command).output().await.unwrap();
    assert_eq!(fs::read_to_string(installed.home().join("open")).unwrap(), "0\n1\n2\n3\n");
}

#[tokio::test]
async fn program_that_cannot_start_reports_the_reason() {
    let installed = Installed::bare(PROGRAMS);
    installed.write("no-program", "just text");
    let check = async |command: &str, part: &str| {
        let config = json!({ "mcpServers": { "s": { "command": command } } });
        installed.write("switchboard/mcp.json", &config.to_string());
        let ran = installed.run(["connect", "s"]).await;
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert!(ran.stderr.contains(part), "{part} is not in {}", ran.stderr);
    };
    check("nowhere-to-be-found", "the program `nowhere-to-be-found` was not found").await;
    check("./no-program", "ermission denied").await;
    // The limit leaves enough descriptors to run, but too few for three more pipes.
    let command = format!("ulimit -n 14; exec '{}' connect s", PROGRAMS.switchboard);
    let ran = shell(&installed, &command).output().await.unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(5) && said.contains("Too many open files"), "{said}");
}

#[tokio::test]
async fn twenty_servers_that_ignore_signals_are_stopped_concurrently() {
    let took = Grove::new(PROGRAMS, 20, Helper::Session, Temper::Stubborn).close(20).await;
    // Stopping the servers one after the other would take 80 s. The soak test measures the time on
    // an idle machine.
    assert!(took < Duration::from_secs(20), "took {took:?}");
}

#[tokio::test]
async fn no_command_leaves_a_process_behind() {
    let grove = Grove::new(PROGRAMS, 1, Helper::Daemon, Temper::Obedient);
    for command in COMMANDS {
        grove.installed.run(command.iter().copied()).await;
        // The gateway has waited for all processes, but the kernel may take a moment to remove
        // them.
        until(&format!("{command:?} left nothing"), || grove.processes().is_empty()).await;
    }
}

/// The paths of all commands without subcommands.
fn leaves(command: &clap::Command, path: &[&str]) -> Vec<Vec<String>> {
    let inner = command.get_subcommands().filter(|inner| inner.get_name() != "help");
    let mut found: Vec<Vec<String>> =
        inner.flat_map(|inner| leaves(inner, &[path, &[inner.get_name()]].concat())).collect();
    if found.is_empty() {
        found.push(path.iter().map(|&word| word.to_owned()).collect());
    }
    found
}

#[test]
fn leftover_process_test_covers_every_command() {
    for leaf in leaves(&switchboard_cli::command(), &[]) {
        let tried = COMMANDS.iter().any(|command| {
            command.starts_with(&leaf.iter().map(String::as_str).collect::<Vec<_>>())
        });
        assert!(tried, "{leaf:?}");
    }
}
