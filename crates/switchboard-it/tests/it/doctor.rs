//! `doctor` names the cause of each fault without starting a server.

mod pi;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use switchboard::Environment;
use switchboard::doctor::{self, Finding};
use switchboard::load::{LoadOptions, load};
use switchboard::paths::Paths;
use switchboard_it::harness::Home;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// A configuration in which each server except `good` has one fault.
const USER: &str = r#"{
    "mcpServers": {
        "good": { "command": "fixture-server", "args": ["flaky", "--spawn-log", "spawns"] },
        "slip": { "command": "fixtrue-server" },
        "barred": { "command": "./barred.sh" },
        "nowhere": { "command": "fixture-server", "cwd": "no/such/folder" },
        "unset": { "command": "fixture-server", "env": { "KEY": "${NO_SUCH_KEY}" } },
        "launched": { "command": "npx", "args": ["-y", "x"], "env": { "PATH": "/nowhere" } },
        "two-ends": { "command": "fixture-server", "url": "https://example.com" },
        "strange": { "url": "gopher://example.com" },
        "damaged": { "command": "fixture-server", "args": ["flaky"], "description": "its files" },
        "off": { "command": "no-such-program", "disabled": true },
        "same-name": { "command": "fixture-server" },
        "same_name": { "command": "fixture-server" },
    },
}"#;

const PROJECT: &str = r#"{ "mcpServers": {
    "theirs": { "command": "fixture-server", "args": ["flaky", "--spawn-log", "spawns"] },
    "greedy": { "command": "fixture-server", "autoApprove": true },
} }"#;

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Overwrites the only file in `folder` whose name begins with `stem` and ends with `end`.
fn damage(folder: &Path, stem: &str, end: &str) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let ours = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with(stem) && name.ends_with(end)
    };
    let found: Vec<_> = files.filter(ours).collect();
    assert_eq!(found.len(), 1, "{stem} {end}");
    fs::write(&found[0], "rubbish").unwrap();
}

async fn planted() -> Installed {
    let installed = Installed::with(PROGRAMS, USER);
    installed.write("barred.sh", "#!/bin/sh\n");
    assert_eq!(installed.run(["connect", "damaged"]).await.code, Some(0));
    installed.write(".mcp.json", PROJECT);
    installed.write(".config/mcp/mcp.json", "{\n  \"mcpServers\": {\n    oops\n");
    installed.write("switchboard/state/trust.json", "{ rubbish");
    let home = installed.home().join("switchboard");
    damage(&home.join("cache/listings"), "damaged", ".listing");
    damage(&home.join("state/pins"), "damaged", ".pins");
    mode(&home.join("state"), 0o755);
    installed
}

#[tokio::test]
async fn doctor_names_every_planted_fault_with_cause_and_remedy() {
    let installed = planted().await;
    let ran = installed.run(["doctor"]).await;
    let text = ran.transcript(installed.home()).replace("switchboard-dup", "switchboard");
    // The names of files that Switchboard writes end in a hash.
    let hashes = regex::Regex::new(r"-[0-9a-f]{16}\.").unwrap();
    insta::assert_snapshot!(hashes.replace_all(&text, "-[HASH]."));
    assert_eq!(installed.spawned(), Vec::<u32>::new(), "nothing was started");
}

#[tokio::test]
async fn doctor_json_contains_level_code_message_and_remedy() {
    let installed = planted().await;
    let ran = installed.run(["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = report["findings"].as_array().unwrap().iter().map(|finding| {
        for field in ["level", "code", "message", "remedy"] {
            assert_ne!(finding[field].as_str().unwrap_or_default(), "", "{field} of {finding}");
        }
        let of = |field: &str| finding[field].as_str().unwrap_or("-").to_owned();
        format!("{} {} {}\n", of("server"), of("level"), of("code"))
    });
    insta::assert_snapshot!(rows.collect::<String>(), @r#"
    - error config_syntax
    - error forbidden_key
    - error damaged_trust
    - warning open_directory
    barred error not_executable
    damaged warning damaged_cache
    damaged error damaged_pins
    launched error launcher_missing
    nowhere error no_working_directory
    off note disabled
    same_name warning colliding_names
    slip error command_not_found
    strange error unsupported_scheme
    theirs warning untrusted
    two-ends error several_endpoints
    unset error missing_variable
    "#);
}

#[tokio::test]
async fn doctor_checks_only_the_named_servers() {
    let installed = planted().await;
    for (line, code) in [
        ("doctor good", 0),
        ("doctor off", 0),
        ("doctor slip", 1),
        ("doctor good slip", 1),
        ("doctor theirs", 1),
        ("doctor two-ends", 1),
        ("doctor good nobody", 2),
    ] {
        let ran = installed.run(line.split(' ')).await;
        assert_eq!(ran.code, Some(code), "{line}: {}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("unset"), "{line}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn doctor_connect_option_never_starts_pending_servers() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": {
            "good": { "command": "fixture-server", "args": ["flaky"] },
            "broken": { "command": "fixture-server", "args": ["broken.toml"] } } }"#,
    );
    installed.write("broken.toml", "[faults]\nexit_at_start = { code = 1 }\n");
    installed.write(".mcp.json", PROJECT);
    assert_eq!(installed.run(["doctor", "good", "broken"]).await.code, Some(0));
    assert_eq!(installed.run(["doctor", "good", "--connect"]).await.code, Some(0));
    let ran = installed.run(["doctor", "--connect", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let tried: Vec<&Value> =
        findings.iter().filter(|finding| finding["code"] == "connect_failed").collect();
    assert_eq!(tried.len(), 1, "{report:#}");
    assert_eq!(tried[0]["server"], "broken");
    assert_eq!(installed.spawned(), Vec::<u32>::new(), "the project's server was not started");
}

#[test]
fn doctor_does_not_print_variable_values() {
    let home = Home::new();
    let own = home.path().join("switchboard");
    fs::create_dir(&own).unwrap();
    let config = r#"{ "mcpServers": {
        "a": { "command": "${TOKEN}" },
        "b": { "command": "sh", "cwd": "below/${TOKEN}" },
        "c": { "command": "./${TOKEN}.sh" },
        "d": { "command": "sh", "env": { "T": "!no-such-helper canary", "U": "!sh -c canary" } } } }"#;
    fs::write(own.join("mcp.json"), config).unwrap();
    fs::write(home.path().join("canary.sh"), "").unwrap();
    let environment = Environment::made_of(
        [("SWITCHBOARD_HOME", &*own.to_string_lossy()), ("TOKEN", "canary"), ("PATH", "/bin")],
        home.path(),
    );
    let paths = Paths::of(&environment);
    let options = LoadOptions { project: home.path().to_owned(), ..LoadOptions::default() };
    let loaded = load(&environment, &paths, &options).unwrap();
    let found = doctor::examine(&environment, &paths, &loaded);
    let told = |finding: &Finding| format!("{} {:?}\n", finding.fault, finding.hints());
    insta::assert_snapshot!(found.iter().map(told).collect::<String>(), @r#"
    the program `${TOKEN}` was not found [CheckCommand("${TOKEN}")]
    the working directory `below/${TOKEN}` does not exist [Correct("cwd")]
    `./${TOKEN}.sh` cannot be run: it is not executable [MakeExecutable("./${TOKEN}.sh")]
    `env.T` comes from the program `no-such-helper`, which cannot be run [CheckCommand("no-such-helper")]
    "#);
}
