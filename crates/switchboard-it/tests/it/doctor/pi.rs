//! A configuration of the earlier MCP adapter for Pi works, and `doctor` lists findings about it.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::{Installed, Ran};

use crate::PROGRAMS;
use crate::remote::served;

const AGENT: &str = ".pi/agent";
const SETTINGS: &str = ".pi/agent/settings.json";
const PACKAGE: &str = "switchboard/data/pi-switchboard";

/// A typical `~/.pi/agent/mcp.json`: every kind of server, import, variable and setting.
const OLD: &str = r#"// My servers.
{
  "imports": ["cursor"],
  "settings": {
    "toolPrefix": "server",
    "idleTimeout": 5,
    "requestTimeoutMs": 30000,
    "directTools": false,
    "approveTools": false,
    "autoAuth": true,
    "sampling": true,
    "elicitation": true,
    "outputGuard": { "maxBytes": 40000, "maxLines": 1000 },
    "oauthCredentialStore": "encrypted-file",
    "scriptMode": false,
    "namespaceProxyTools": false,
    "hostConfigDiscovery": "off",
    "jev": false,
  },
  "mcpServers": {
    "local": {
      "command": "sh",
      "args": ["-c", "echo $A $B $C > seen; exec fixture-server everything"],
      "env": { "A": "${MY_TOKEN}", "B": "$env:MY_TOKEN", "C": "{env:MY_TOKEN}" },
      "cwd": "~/",
      "lifecycle": "keep-alive",
      "directTools": ["echo"],
      "tasks": true,
      "debug": false
    },
    "secret": {
      "command": "sh",
      "args": ["-c", "echo $D > secret; exec fixture-server everything"],
      "env": { "D": "!printf canary-4711" },
      "inheritEnv": true,
      "excludeTools": ["fail", "hang*"],
      "exposeResources": false,
      "idleTimeout": 0
    },
    "far": {
      "url": "[URL]",
      "auth": "bearer",
      "bearerTokenEnv": "MY_TOKEN",
      "headers": { "X-Team": "${TEAM}" },
      "lifecycle": "lazy",
      "protocolVersion": "legacy",
      "requestTimeoutMs": 20000
    },
    "signed": { "url": "[URL]", "auth": "oauth" },
    "parked": { "command": "no-such-program", "disabled": true }
  }
}
"#;

async fn run(installed: &Installed, line: &str) -> Ran {
    let mut command = installed.command();
    command.env("MY_TOKEN", "canary-4711").env("TEAM", "blue").args(line.split(' '));
    let output = command.stdin(std::process::Stdio::null()).output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (stdout, stderr) = (text(output.stdout), text(output.stderr));
    assert!(!format!("{stdout}{stderr}").contains("canary"), "{line}: {stdout}{stderr}");
    Ran { code: output.status.code(), stdout, stderr }
}

/// The level and code of each finding of `doctor`.
async fn found(installed: &Installed) -> Vec<String> {
    let ran = run(installed, "doctor --json").await;
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let of = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    findings.map(|found| format!("{} {}", of(found, "level"), of(found, "code"))).collect()
}

#[tokio::test]
async fn pi_adapter_configuration_works_and_doctor_lists_findings() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let installed = Installed::bare(PROGRAMS);
    installed.write(&format!("{AGENT}/mcp.json"), &OLD.replace("[URL]", &fixture.url()));
    installed.write(SETTINGS, r#"{ "packages": ["npm:pi-mcp-adapter@2.36.0"] }"#);
    let cursor =
        json!({ "mcpServers": { "drawn": { "command": "fixture-server", "args": ["flaky"] } } });
    installed.write(".cursor/mcp.json", &cursor.to_string());
    let tokens = json!({ "serverUrl": fixture.url(), "tokens": { "accessToken": "canary" } });
    for server in ["far", "signed"] {
        let left = format!("{AGENT}/mcp-oauth/{server}/tokens.json");
        installed.write(&left, &tokens.to_string());
    }

    for tool in ["local_echo", "secret_echo", "drawn_echo", "far_echo"] {
        let ran = run(&installed, &format!("call {tool} text=hello")).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{tool}: {ran:?}");
        // A valid file causes no warnings.
        assert_eq!(ran.stderr, "", "{tool}");
    }
    let read = |file: &str| fs::read_to_string(installed.home().join(file)).unwrap();
    assert_eq!(read("seen"), "canary-4711 canary-4711 canary-4711\n");
    assert_eq!(read("secret"), "canary-4711\n");
    let requests = fixture.requests();
    let last = requests.last().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer canary-4711"));
    assert_eq!(last.header("x-team"), Some("blue"));
    let ran = run(&installed, "call secret_fail").await;
    assert_eq!(ran.code, Some(2), "it is left out: {ran:?}");

    let ran = run(&installed, "doctor").await;
    insta::assert_snapshot!(ran.transcript(installed.home()));
}

#[tokio::test]
async fn doctor_names_faults_of_the_pi_package() {
    let installed = Installed::bare(PROGRAMS);
    fs::create_dir_all(installed.home().join(AGENT)).unwrap();
    assert_eq!(found(&installed).await, Vec::<String>::new());
    let ran = run(&installed, "install pi --yes").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(found(&installed).await, Vec::<String>::new());

    let good = fs::read_to_string(installed.home().join(SETTINGS)).unwrap();
    let with_other = good.replace("\"packages\": [", "\"packages\": [\"npm:pi-mcp-adapter\", ");
    installed.write(SETTINGS, &with_other.replace("-builtin", "+builtin"));
    assert_eq!(found(&installed).await, ["warning pi_other_package", "warning pi_built_in"]);
    installed.write(SETTINGS, "{ \"packages\": 3 }");
    assert_eq!(found(&installed).await, ["warning pi_settings"]);
    installed.write(SETTINGS, &good);
    installed.write(&format!("{PACKAGE}/binary.json"), r#"{ "path": "/no/such/program" }"#);
    assert_eq!(found(&installed).await, ["error pi_program"]);
    fs::remove_dir_all(installed.home().join(PACKAGE)).unwrap();
    assert_eq!(found(&installed).await, ["error pi_package"]);
    let ran = run(&installed, "doctor").await;
    assert!(ran.stdout.ends_with("hint: change that with `switchboard install pi`\n"), "{ran:?}");
    let ran = run(&installed, "install pi --yes").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(found(&installed).await, Vec::<String>::new());
}
