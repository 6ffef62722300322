//! Headers and tokens of an entry are sent to its server only, and shown nowhere.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use super::{served, world};
use crate::PROGRAMS;

/// The `watched` headers of each request if the entry has these fields.
async fn seen(fields: Value, watched: &[&str]) -> Vec<BTreeMap<String, String>> {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let mut entry = fields;
    entry["url"] = json!(fixture.url());
    let config = json!({ "mcpServers": { "far": entry } }).to_string();
    let installed = Installed::with(PROGRAMS, &config);
    let mut command = installed.command();
    command.env("TOKEN", "canary").args(["call", "far_echo", "text=x"]);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let of_interest = |(name, _): &(&String, &String)| watched.contains(&name.as_str());
    let owned = |(name, value): (&String, &String)| (name.clone(), value.clone());
    let requests = fixture.requests();
    requests.iter().map(|it| it.headers.iter().filter(of_interest).map(owned).collect()).collect()
}

async fn check(fields: Value, expected: &[(&str, &str)]) {
    let names = ["authorization", "x-api-key", "x-one", "x-two", "x-three"];
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let requests = seen(fields.clone(), &names).await;
    assert!(requests.len() >= 4, "{fields}");
    for headers in requests {
        assert_eq!(headers, expected, "{fields}");
    }
}

#[tokio::test]
async fn every_authentication_setting_becomes_a_request_header() {
    check(json!({}), &[]).await;
    let headers =
        json!({ "X-One": "a ${TOKEN}", "x-two": "!echo from a command", "X-Three": "!!x" });
    let expected = [("x-one", "a canary"), ("x-two", "from a command"), ("x-three", "!x")];
    check(json!({ "headers": headers }), &expected).await;
    check(json!({ "headers": headers, "auth": "custom" }), &expected).await;
    let bearer = [("authorization", "Bearer canary")];
    check(json!({ "bearerToken": "${TOKEN}" }), &bearer).await;
    check(json!({ "bearerToken": "!echo canary", "auth": "bearer" }), &bearer).await;
    check(json!({ "bearerTokenEnv": "TOKEN" }), &bearer).await;
    check(json!({ "bearerTokenEnv": "TOKEN", "auth": false }), &[]).await;
    let loses = json!({ "Authorization": "!echo loses" });
    check(json!({ "bearerTokenEnv": "TOKEN", "headers": loses }), &bearer).await;
    let basic = json!({ "type": "basic", "username": "me", "passwordEnv": "TOKEN" });
    check(json!({ "auth": basic }), &[("authorization", "Basic bWU6Y2FuYXJ5")]).await;
    let key = json!({ "type": "api-key", "key": "!echo canary" });
    check(json!({ "auth": key }), &[("x-api-key", "canary")]).await;
    let key = json!({ "type": "api-key", "header": "X-One", "keyEnv": "TOKEN" });
    check(json!({ "auth": key }), &[("x-one", "canary")]).await;
}

/// The distinct tokens that a server receives during one call if this script prints them.
async fn asked_for(ttl: &str, script: &str) -> Vec<String> {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let entry = json!({ "url": fixture.url(), "bearerToken": "!/bin/sh token.sh" });
    let config = json!({ "mcpServers": { "far": entry } }).to_string();
    let installed = Installed::with(PROGRAMS, &config);
    installed.write("token.sh", script);
    let mut command = installed.command();
    command.env("SWITCHBOARD_TOKEN_COMMAND_TTL_MS", ttl).args(["call", "far_echo", "text=x"]);
    let output = command.output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let requests = fixture.requests();
    let tokens = requests.iter().map(|it| it.header("authorization").unwrap_or("-").to_owned());
    let mut tokens: Vec<String> = tokens.collect();
    tokens.sort();
    tokens.dedup();
    tokens
}

/// A script that prints how often it has run.
const COUNTED: &str = "echo >> asked; echo $(wc -l < asked)";

#[tokio::test]
async fn token_command_runs_again_after_its_token_expires() {
    assert_eq!(asked_for("", COUNTED).await, ["Bearer 1"]);
    assert_eq!(asked_for("600000", COUNTED).await, ["Bearer 1"]);
    let each_time = asked_for("0", COUNTED).await;
    assert!(each_time.len() > 2, "{each_time:?}");
}

#[tokio::test]
async fn old_token_is_reused_if_its_token_command_fails() {
    let once = "test ! -e asked && echo >> asked && echo first";
    assert_eq!(asked_for("0", once).await, ["Bearer first"]);
    let unusable = "test ! -e asked && echo first || printf 'a\\001b'; echo >> asked";
    assert_eq!(asked_for("0", unusable).await, ["Bearer first"]);
}

/// A script that prints a header that depends on the method and body of the request.
const SIGNER: &str = r#"read -r question; case "$question" in
  *'"version":1'*'"method":"POST"'*'"bodyBase64":"ey'*) echo '{"X-One":"post"}';;
  *'"method":"GET"'*|*'"method":"DELETE"'*) echo '{"X-One":"other"}';;
esac"#;

#[tokio::test]
async fn headers_command_can_sign_each_request() {
    let command = json!({ "command": "/bin/sh", "args": ["-c", SIGNER] });
    let fields = json!({ "requestHeadersCommand": command, "headers": { "X-One": "loses" } });
    let mut values: Vec<String> =
        seen(fields, &["x-one"]).await.into_iter().flat_map(BTreeMap::into_values).collect();
    values.dedup();
    values.sort();
    values.dedup();
    assert_eq!(values, ["other", "post"]);
}

#[tokio::test]
async fn failing_headers_command_stops_the_request() {
    for script in ["exit 1", "echo no", "echo '{\"X\":1}'", "echo '{\"Host\":\"x\"}'"] {
        let fixture = HttpFixture::start(&served("json", "everything")).await;
        let command = json!({ "command": "/bin/sh", "args": ["-c", script] });
        let world = world(&fixture, &format!(", \"requestHeadersCommand\": {command}"));
        let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
        assert!(failure.to_string().contains("requestHeadersCommand"), "{script}: {failure}");
        assert!(fixture.requests().is_empty(), "{script}");
    }
}

#[tokio::test]
async fn headers_command_refuses_a_command_in_its_variables() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let command = json!({ "command": "/bin/sh", "env": { "TOKEN": "!echo canary" } });
    let world = world(&fixture, &format!(", \"requestHeadersCommand\": {command}"));
    let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
    let expected = "`TOKEN` in the `env` of `requestHeadersCommand` must not be a `!command`";
    assert!(failure.to_string().contains(expected), "{failure}");
    assert!(fixture.requests().is_empty());
}

#[tokio::test]
async fn error_about_invalid_header_omits_its_value() {
    let cases = [
        (json!({ "headers": { "X-One": "canary\r\nX-Two: canary" } }), "X-One"),
        (json!({ "headers": { "X One": "canary" } }), "X One"),
        (json!({ "headers": { "Transfer-Encoding": "canary" } }), "Transfer-Encoding"),
        (json!({ "bearerToken": "canary\n" }), "bearerToken"),
    ];
    for (fields, name) in cases {
        let fixture = HttpFixture::start(&served("json", "everything")).await;
        let mut entry = fields;
        entry["url"] = json!(fixture.url());
        let config = json!({ "mcpServers": { "far": entry } }).to_string();
        let world = World::with(&config).start();
        let failure = world.call("far_echo", json!({ "text": "x" })).await.unwrap_err();
        assert_eq!(failure.code, Code::Config);
        assert!(failure.to_string().contains(name), "{failure}");
        assert!(!format!("{failure} {failure:?}").contains("canary"), "{failure:?}");
        assert!(fixture.requests().is_empty(), "{name}");
    }
}

#[tokio::test]
async fn project_header_command_with_changed_script_does_not_run() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let installed = Installed::bare(PROGRAMS);
    let entry = json!({ "url": fixture.url(), "headers": { "X-One": "!/bin/sh token.sh" } });
    installed.write(".mcp.json", &json!({ "mcpServers": { "far": entry } }).to_string());
    installed.write("token.sh", "echo one");
    let pending = installed.run(["call", "far_echo", "text=x"]).await;
    assert_eq!(pending.code, Some(4), "{}", pending.stderr);
    assert_eq!(fixture.requests(), []);
    let trusted = installed.run_on_terminal(["trust"], "y\n").await;
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    let called = installed.run(["call", "far_echo", "text=x"]).await;
    assert_eq!(called.code, Some(0), "{}", called.stderr);
    let before = fixture.requests();
    assert_eq!(before[0].header("x-one"), Some("one"));
    installed.write("token.sh", "touch canary; echo two");
    let changed = installed.run(["call", "far_echo", "text=x"]).await;
    assert_eq!(changed.code, Some(4), "{}", changed.stderr);
    assert_eq!(fixture.requests().len(), before.len());
    assert!(!installed.home().join("canary").exists());
}

#[tokio::test]
async fn missing_url_variable_is_reported_before_any_request() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let url = format!("{}/${{NO_SUCH_VARIABLE}}", fixture.url());
    let config = json!({ "mcpServers": { "far": { "url": url } } }).to_string();
    let failure = World::with(&config).start().call("far_echo", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::Config, "{failure}");
    assert!(failure.to_string().contains("NO_SUCH_VARIABLE"), "{failure}");
    assert!(fixture.requests().is_empty());
}
