//! Watching servers: `-v`, `-vv`, `-vvv`, `serve --trace`, `debug: true`, and `inspect`.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// A secret in the environment of the server and in an argument of a call.
const SECRET: &str = "hunter2-hunter2";

fn installed(more: &str) -> Installed {
    let config = format!(
        r#"{{ "mcpServers": {{ "loud": {{
            "command": "fixture-server", "args": ["everything"],
            "env": {{ "MY_PASSPHRASE": "{SECRET}" }} {more}
        }}, "quiet": {{ "command": "fixture-server", "args": ["flaky"] }} }} }}"#
    );
    Installed::with(PROGRAMS, &config)
}

async fn stderr(installed: &Installed, line: &str) -> String {
    let ran = installed.run(line.split(' ')).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains(SECRET), "{}", ran.stderr);
    ran.stderr
}

fn call(text: &str) -> String {
    format!("call loud_echo text={text}")
}

#[tokio::test]
async fn each_verbosity_level_logs_more_about_a_server() {
    let installed = installed("");
    let line = call("something");
    let silent = stderr(&installed, &line).await;
    assert_eq!(silent, "");
    let lifecycle = stderr(&installed, &format!("-v {line}")).await;
    for part in [
        "INFO connecting server=loud endpoint=\"fixture-server everything\"",
        "INFO connected server=loud took=",
        "tools=",
        "INFO stopped server=loud",
    ] {
        assert!(lifecycle.contains(part), "{part}: {lifecycle}");
    }
    assert!(!lifecycle.contains("DEBUG"), "{lifecycle}");
    let requests = stderr(&installed, &format!("-vv {line}")).await;
    assert!(
        requests.contains("DEBUG request server=loud method=\"tools/list\" took="),
        "{requests}"
    );
    let called = "DEBUG request server=loud method=\"tools/call\" name=\"echo\" took=";
    assert!(requests.contains(called), "{requests}");
    assert!(requests.contains("outcome=answered"), "{requests}");
    assert!(!requests.contains("something"), "{requests}");
    let messages = stderr(&installed, &format!("-vvv {line}")).await;
    let sent = r#"TRACE sent server=loud json={"jsonrpc":"2.0","id":"#;
    assert!(messages.contains(sent), "{messages}");
    assert!(messages.contains("TRACE received server=loud json={"), "{messages}");
    assert!(messages.contains("something"), "{messages}");
}

#[tokio::test]
async fn secrets_are_masked_in_logged_messages() {
    let messages = stderr(&installed(""), &format!("-vvv {}", call(SECRET))).await;
    assert!(messages.contains(r#""text":"…""#), "{messages}");
}

#[tokio::test]
async fn debug_setting_logs_messages_of_one_server_only() {
    let installed = installed(r#", "debug": true"#);
    let loud = stderr(&installed, &call("something")).await;
    assert!(loud.contains("TRACE sent server=loud json={"), "{loud}");
    assert!(!loud.contains("INFO") && !loud.contains("DEBUG"), "{loud}");
    assert_eq!(stderr(&installed, "tools quiet").await, "");
}

#[tokio::test]
async fn serve_trace_file_is_complete_and_private() {
    let installed = installed("");
    let path = installed.home().join("trace.log");
    let mut client = installed.serve(&["--trace", path.to_str().unwrap()]);
    client.initialize("2025-11-25", json!({})).await;
    client.mcp(json!({ "tool": "loud_echo", "args": { "text": SECRET } })).await;
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("TRACE"), "{}", ended.stderr);
    let trace = fs::read_to_string(&path).unwrap();
    assert!(trace.contains("TRACE sent server=loud json={"), "{trace}");
    assert!(trace.contains(r#""text":"…""#) && !trace.contains(SECRET), "{trace}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn serve_with_an_unwritable_trace_file_fails() {
    let installed = installed("");
    let ran = installed.run(["serve", "--trace", "/dev/null"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("error: cannot write the trace to `/dev/null`"),
        "{}",
        ran.stderr
    );
}

#[tokio::test]
async fn inspect_prints_the_raw_response() {
    let installed = installed("");
    let ran = installed.run(["inspect", "loud"]).await;
    let hello: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(hello["serverInfo"]["name"].is_string(), "{hello}");
    assert!(hello["protocolVersion"].is_string(), "{hello}");
    let ran = installed.run(["inspect", "loud", "tools/list"]).await;
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(listed["tools"][0]["inputSchema"].is_object(), "{listed}");
    let params = r#"{"name":"echo","arguments":{"text":"hi"}}"#;
    let ran = installed.run(["inspect", "loud", "tools/call", params]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["content"][0]["text"], "hi", "{result}");
    let ran = installed.run(["inspect", "loud", "acme/nothing"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let error: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(error["error"]["code"], -32601, "{error}");
}

#[tokio::test]
async fn inspect_applies_deny_and_approve_rules() {
    let config = |settings: Value| {
        let server = json!({ "command": "fixture-server", "args": ["everything"] });
        json!({ "settings": settings, "mcpServers": { "loud": server } }).to_string()
    };
    let check = async |settings: Value, line: &[&str], code: i32, said: &str| {
        let installed = Installed::with(PROGRAMS, &config(settings));
        let ran = installed.run(line.iter().copied()).await;
        assert_eq!(ran.code, Some(code), "{line:?}: {} {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(said), "{line:?}: {}", ran.stderr);
    };
    let params = r#"{"name":"echo","arguments":{"text":"hi"}}"#;
    let call = ["inspect", "loud", "tools/call", params];
    let approved = ["inspect", "loud", "tools/call", params, "--yes"];
    check(json!({ "deny": ["loud_echo"] }), &call, 4, "deny").await;
    check(json!({ "deny": ["loud_echo"] }), &approved, 4, "deny").await;
    check(json!({ "approve": "all" }), &call, 4, "--yes").await;
    check(json!({ "approve": "all" }), &approved, 0, "").await;
    let spelled = ["inspect", "loud", "Tools/Call", params];
    check(json!({}), &spelled, 2, "`tools/call`").await;
    check(json!({}), &["inspect", "loud", "tools/call", "{}"], 2, "`name`").await;
    check(json!({}), &["inspect", "lout", "ping"], 2, "loud").await;
}

#[tokio::test]
async fn inspect_refuses_an_untrusted_server() {
    let installed = Installed::bare(PROGRAMS);
    let server = json!({ "command": "fixture-server", "args": ["everything"] });
    installed.write(".mcp.json", &json!({ "mcpServers": { "theirs": server } }).to_string());
    for line in [&["inspect", "theirs"][..], &["inspect", "theirs", "ping"]] {
        let ran = installed.run(line.iter().copied()).await;
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        assert!(ran.stderr.contains("switchboard trust theirs"), "{}", ran.stderr);
    }
    assert!(installed.spawned().is_empty());
}

#[tokio::test]
async fn status_check_reports_each_connection_attempt() {
    let installed = Installed::with(
        PROGRAMS,
        r#"{ "mcpServers": {
            "broken": { "command": "no-such-program-anywhere" },
            "off": { "command": "fixture-server", "disabled": true },
            "works": { "command": "fixture-server", "args": ["flaky"] }
        } }"#,
    );
    let ran = installed.run(["status", "--check"]).await;
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    assert!(ran.stdout.contains("✓ works, "), "{}", ran.stdout);
    assert!(ran.stdout.contains("✗ broken, "), "{}", ran.stdout);
    let remedy = "check that `no-such-program-anywhere` is installed";
    assert!(ran.stdout.contains(remedy), "{}", ran.stdout);
    assert!(ran.stderr.contains("1 server connected, 1 failed"), "{}", ran.stderr);
    assert!(ran.stderr.contains("not checked: ⊘ off (disabled)"), "{}", ran.stderr);
    let ran = installed.run(["status", "--check", "--json"]).await;
    assert_eq!(ran.code, Some(5), "{}", ran.stderr);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let checks: Vec<&Value> =
        told["servers"].as_array().unwrap().iter().map(|server| &server["check"]["ok"]).collect();
    assert_eq!(checks, [&json!(false), &Value::Null, &json!(true)], "{told}");
    assert_eq!(told["servers"][2]["status"], "connected", "{told}");
    assert_eq!(told["servers"][0]["check"]["error"]["code"], "connect_failed", "{told}");
    let only = Installed::bare(PROGRAMS).run(["status", "--check"]).await;
    assert_eq!(only.code, Some(0), "{}", only.stderr);
}

#[tokio::test]
async fn http_token_is_printed_only_by_its_option() {
    let installed = Installed::bare(PROGRAMS);
    let ran = installed.run(["status", "--http-token"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("switchboard serve --http"), "{}", ran.stderr);
    let serving = installed.serve_http().await;
    let token = installed.run(["status", "--http-token"]).await;
    assert_eq!(token.code, Some(0), "{}", token.stderr);
    let token = token.stdout.trim();
    assert!(token.len() >= 43, "{token}");
    let status = installed.run_on_terminal(["status"], "").await;
    assert!(!status.transcript(installed.home()).contains(token));
    serving.terminate();
    serving.ended().await;
}
