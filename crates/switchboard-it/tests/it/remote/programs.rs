//! Proxies from the environment, and the program `conformance-client`.

use std::process::Output;

use serde_json::json;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::Installed;
use tokio::process::Command;

use super::served;
use crate::PROGRAMS;

/// Calls a server at `url` with `variable` set to `proxy`.
async fn called(url: &str, variable: &str, proxy: &str) -> Output {
    let config = json!({ "mcpServers": { "far": { "url": url } } });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    let mut command = installed.command();
    command.env(variable, proxy).args(["call", "far_echo", "text=hello"]);
    command.output().await.unwrap()
}

#[tokio::test]
async fn remote_call_uses_proxy_named_by_environment_variable() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let proxy = fixture.url().replace("/mcp", "");
    for variable in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let output = called("http://far.example/mcp", variable, &proxy).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n", "{output:?}");
        let requests = fixture.requests();
        let hosts = requests.iter().map(|request| request.header("host"));
        assert!(hosts.clone().count() > 0 && hosts.clone().all(|host| host == Some("far.example")));
    }
}

#[tokio::test]
async fn loopback_server_is_reached_without_proxy() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    // No program listens at this port.
    let output = called(&fixture.url(), "HTTP_PROXY", "http://127.0.0.1:1").await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "hello\n", "{output:?}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a program of the test kit, not a server")]
async fn conformance_client_calls_each_tool_and_answers_forms() {
    let script = r#"
        [[tools]]
        name = "add"
        input_schema = '{ "type": "object", "properties": { "a": { "type": "number" }, "b": { "type": "number", "default": 2 } }, "required": ["a", "b"] }'
        behaviour = "add"

        [[tools]]
        name = "form"

        [tools.behaviour]
        kind = "ask_elicitation"
        schema = { type = "object", properties = { name = { type = "string", default = "Ada" } } }
    "#;
    let fixture = HttpFixture::start(&served("events", script)).await;
    let mut client = Command::new(env!("CARGO_BIN_EXE_conformance-client"));
    let output = client.arg(fixture.url()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    let calls = fixture.state().ledger().calls;
    let called: Vec<(&str, String)> =
        calls.iter().map(|call| (call.tool.as_str(), call.arguments.to_string())).collect();
    assert_eq!(called, [("add", r#"{"a":1,"b":2}"#.to_owned()), ("form", "{}".to_owned())]);
    let answer = fixture.requests().into_iter().find(|request| request.what() == "POST");
    let answer = answer.map(|request| request.message["result"].clone());
    assert_eq!(answer, Some(json!({ "action": "accept", "content": { "name": "Ada" } })));
    assert_eq!(fixture.asked().last().map(String::as_str), Some("DELETE"));
}
