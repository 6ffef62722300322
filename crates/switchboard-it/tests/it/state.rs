//! Full disks and unwritable directories: everything works from memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use crate::PROGRAMS;
use crate::reaper::shell;

const TOOLS: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'big'
behaviour = { kind = 'big', bytes = 200_000 }
[[tools]]
name = 'image'
behaviour = 'image'
";

fn installed() -> Installed {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write("demo.toml", TOOLS);
    let entry = json!({ "command": "fixture-server", "args": [script] });
    installed
        .write("switchboard/mcp.json", &json!({ "mcpServers": { "demo": entry } }).to_string());
    installed
}

/// Uses every feature that writes files, more than once; returns the warnings.
async fn use_everything(mut client: Client) -> Vec<String> {
    client.initialize("2025-11-25", json!({})).await;
    for _ in 0..3 {
        let said = client.mcp(json!({ "tool": "demo_echo", "args": { "text": "hi" } })).await;
        assert_eq!(said, "hi");
        let said = client.mcp(json!({ "tool": "demo_big" })).await;
        assert!(said.contains("]\nline 1 of a long answer\n"), "{said:.200}");
        client.mcp(json!({ "tool": "demo_image" })).await;
        let said = client.mcp(json!({ "search": "echo" })).await;
        assert!(said.contains("demo_echo"), "{said}");
    }
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warnings = ended.stderr.lines().filter(|line| line.to_lowercase().contains("warn"));
    warnings.map(str::to_owned).collect()
}

fn files_below(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// A command with a full disk: a resource limit allows only empty files.
fn full(installed: &Installed, command: &str) -> tokio::process::Command {
    let program = PROGRAMS.switchboard;
    shell(installed, &format!("trap '' XFSZ; ulimit -f 0; exec '{program}' {command}"))
}

#[tokio::test]
async fn unwritable_directories_cause_one_warning_each() {
    let installed = installed();
    installed.write("switchboard/state", "in the way");
    installed.write("switchboard/cache", "in the way");
    let warnings = use_everything(installed.serve(&[])).await;
    let [approvals, pins, results] = warnings.as_slice() else { panic!("{warnings:#?}") };
    assert!(approvals.contains("cannot read or change the approvals"), "{approvals}");
    assert!(pins.contains("cannot store the pins"), "{pins}");
    assert!(results.contains("cannot store large results"), "{results}");
    for command in [&["status"][..], &["tools"], &["connect", "demo"], &["call", "demo_echo"]] {
        assert_eq!(installed.run(command.iter().copied()).await.code, Some(0), "{command:?}");
    }
}

#[tokio::test]
async fn full_disk_loses_no_response_or_existing_file() {
    let installed = installed();
    let home = installed.home().join("switchboard");
    use_everything(installed.serve(&[])).await;
    let before = files_below(&home);
    assert!(before.keys().any(|file| file.extension().is_some_and(|kind| kind == "listing")));
    // The changed listing of the server cannot be written.
    installed.write("demo.toml", &format!("{TOOLS}[[tools]]\nname = 'more'\n"));

    use_everything(Client::start(&mut full(&installed, "serve"))).await;
    assert_eq!(files_below(&home), before, "after serving");
    for command in ["add other true", "disable demo", "allow demo_echo", "pins accept demo"] {
        full(&installed, command).output().await.unwrap();
        let mut after = files_below(&home);
        // Empty lock files may be left.
        after.retain(|file, _| {
            before.contains_key(file) || file.extension().is_none_or(|kind| kind != "lock")
        });
        assert_eq!(after, before, "after `{command}`");
    }
}

#[tokio::test]
async fn full_disk_leaves_no_partial_files() {
    let installed = installed();
    use_everything(Client::start(&mut full(&installed, "serve"))).await;
    let left = files_below(&installed.home().join("switchboard"));
    let written =
        left.iter().filter(|(file, _)| file.extension().is_none_or(|kind| kind != "lock"));
    let names: Vec<_> = written.map(|(file, _)| file.file_name().unwrap()).collect();
    assert_eq!(names, ["mcp.json"]);
}

#[tokio::test]
async fn permanently_held_file_lock_does_not_block_exit() {
    let installed = installed();
    use_everything(installed.serve(&[])).await;
    let files = files_below(&installed.home().join("switchboard/cache/listings"));
    let is_lock = |file: &&PathBuf| file.extension().is_some_and(|kind| kind == "lock");
    let lock = fs::File::open(files.keys().find(is_lock).unwrap()).unwrap();
    lock.lock().unwrap();
    installed.write("demo.toml", &format!("{TOOLS}[[tools]]\nname = 'more'\n"));
    let ran = installed.run(["connect", "demo"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("demo_more"), "{}", ran.stdout);
}

#[tokio::test]
async fn next_command_removes_results_of_a_killed_gateway() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#,
    );
    let results = installed.home().join("switchboard/cache/results");
    let sessions = || fs::read_dir(&results).map_or(0, Iterator::count);
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = installed.serve(&[]);
        client.initialize("2025-11-25", json!({})).await;
        let big = json!({ "tool": "demo_big", "args": { "bytes": 200_000 } });
        client.mcp(big).await;
        clients.push(client);
    }
    assert_eq!(sessions(), 2);
    let (killed, alive) = (clients.remove(0), clients.remove(0));
    let pid = rustix::process::Pid::from_raw(killed.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    killed.ended().await;
    assert_eq!(sessions(), 2, "the results of a killed gateway are gone too early");
    assert_eq!(installed.run(["status"]).await.code, Some(0));
    assert_eq!(sessions(), 1, "expected only the results of the running gateway");
    alive.end().await;
    assert_eq!(sessions(), 0);
}
