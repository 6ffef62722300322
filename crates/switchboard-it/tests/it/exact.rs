//! Arguments reach a server exactly as written: numbers keep every digit, and duplicate keys are
//! refused.

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const SCRIPT: &str = "
    [[tools]]
    name = 'say'
    behaviour = 'verbatim'
    [[tools]]
    name = 'delete'
    annotations = { destructiveHint = true }
    behaviour = 'verbatim'
    [[tools]]
    name = 'count'
    behaviour = 'verbatim'
    [tools.input_schema]
    type = 'object'
    additionalProperties = { type = 'number' }
    properties = { whole = { allOf = [{ type = 'integer' }, { minimum = 0 }] } }
    [[prompts]]
    name = 'plain'
    messages = [{ role = 'user', text = 'hi' }]";

/// Numbers that change if they are parsed as doubles.
const ARGS: &str =
    r#"{"a":12345678901234567890123,"b":[1e2,1.10],"c":{"d":-0,"e":0.1e-400},"f":7}"#;

const TWICE: &str = r#"{"a":[{"b":1,"c":2,"\u0062":3}]}"#;

fn installed() -> Installed {
    Installed::with_fixture(PROGRAMS, "kit", SCRIPT)
}

async fn proxied(installed: &Installed) -> Client {
    let mut client = installed.serve(&[]);
    client.initialize("2025-11-25", json!({})).await;
    client
}

async fn mirrored(installed: &Installed) -> Client {
    let mut client = installed.serve(&["--transparent", "kit"]);
    client.initialize("2025-11-25", json!({})).await;
    client
}

/// Sends a request with `params` exactly as written.
async fn ask(client: &mut Client, method: &str, params: &str) -> Value {
    let id = json!("written");
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    client.send_bytes(format!("{line}\n").as_bytes()).await;
    client.answer_to(&id).await
}

#[tokio::test]
async fn numbers_reach_the_tool_exactly_as_written() {
    let installed = installed();
    let arguments = format!("{{\"name\":\"say\",\"arguments\":{ARGS},");

    let mut client = proxied(&installed).await;
    let in_a_string = Value::from(ARGS.replace(',', " ,\n ")).to_string();
    for args in [ARGS, &in_a_string] {
        let call = format!(r#"{{"name":"mcp","arguments":{{"tool":"kit_say","args":{args}}}}}"#);
        let heard = text(&ask(&mut client, "tools/call", &call).await);
        assert!(heard.starts_with(&arguments), "{heard}");
    }
    client.end().await;

    let mut client = mirrored(&installed).await;
    let call = format!(r#"{{"name":"say","arguments":{ARGS}}}"#);
    let heard = text(&ask(&mut client, "tools/call", &call).await);
    assert!(heard.starts_with(&arguments), "{heard}");
    client.end().await;

    let ran = installed.run(["call", "kit_say", "--args", ARGS]).await;
    assert!(ran.stdout.starts_with(&arguments), "{} {}", ran.stdout, ran.stderr);
}

#[tokio::test]
async fn numbers_in_key_value_arguments_arrive_unchanged() {
    let installed = installed();
    for number in ["1e2", "-0", "12345678901234567890123", "1.0"] {
        let [whole, extra] = ["whole", "extra"].map(|name| format!("{name}={number}"));
        let ran = installed.run(["call", "kit_count", &whole, &extra]).await;
        let expected =
            format!(r#"{{"name":"count","arguments":{{"whole":{number},"extra":{number}}},"#);
        assert!(ran.stdout.starts_with(&expected), "{} {}", ran.stdout, ran.stderr);
    }
}

#[tokio::test]
async fn out_of_range_number_is_named_in_the_error() {
    let installed = installed();
    let mut client = proxied(&installed).await;
    let call = r#"{"name":"mcp","arguments":{"tool":"kit_say","args":{"a":1e400}}}"#;
    assert_eq!(
        text(&ask(&mut client, "tools/call", call).await),
        "bad_request: `args` holds the number `1e400`, which is out of range"
    );
    client.end().await;

    let mut client = mirrored(&installed).await;
    let call = r#"{"name":"say","arguments":{"a":1e400}}"#;
    let answer = ask(&mut client, "tools/call", call).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the number `1e400` is out of range"), "{answer}");
    client.end().await;
}

#[tokio::test]
async fn duplicate_key_in_call_arguments_is_refused() {
    let installed = installed();
    let said = "bad_request: `args` contains the duplicate key `b`";

    let mut client = proxied(&installed).await;
    for args in [TWICE, &Value::from(TWICE).to_string()] {
        let call = format!(r#"{{"name":"mcp","arguments":{{"tool":"kit_say","args":{args}}}}}"#);
        assert_eq!(text(&ask(&mut client, "tools/call", &call).await), said);
    }
    client.end().await;

    let mut client = mirrored(&installed).await;
    for method in ["tools/call", "prompts/get", "fixture/written"] {
        let call = format!(r#"{{"name":"say","arguments":{TWICE}}}"#);
        let answer = ask(&mut client, method, &call).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("duplicate key `b`"), "{answer}");
    }
    client.end().await;

    let ran = installed.run(["call", "kit_say", "--args", TWICE]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("`args` contains the duplicate key `b`"), "{}", ran.stderr);
}

#[tokio::test]
async fn duplicate_key_in_request_params_is_refused() {
    let installed = installed();
    let mut client = proxied(&installed).await;
    for call in [
        r#"{"name":"mcp","name":"mcp","arguments":{}}"#,
        r#"{"name":"mcp","arguments":{},"arguments":{"tool":"kit_say"}}"#,
    ] {
        let answer = ask(&mut client, "tools/call", call).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    client.end().await;

    let mut client = mirrored(&installed).await;
    for method in ["tools/call", "prompts/get", "fixture/written"] {
        let call = r#"{"name":"say","name":"delete","arguments":{}}"#;
        let answer = ask(&mut client, method, call).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn approval_question_shows_the_exact_numbers_sent() {
    let world = World::of("demo", "exact").script("exact", SCRIPT).start();
    world.host.will_answer([switchboard::approval::ApprovalAnswer::Once]);
    let call = format!(r#"{{"tool":"demo_delete","args":{ARGS}}}"#);
    let sent = world.ask(&call).await;
    assert!(sent.contains(ARGS), "{sent}");
    assert_eq!(world.host.asked(), [format!("demo_delete {ARGS}")]);
}

#[tokio::test]
async fn transparent_serve_forwards_unknown_but_not_misspelt_methods() {
    let installed = installed();
    let mut client = mirrored(&installed).await;
    let notified = r#"{"jsonrpc":"2.0","method":"acme/news","params":{"at":1.10}}"#;
    client.send_bytes(format!("{notified}\n").as_bytes()).await;
    let bare = r#"{"jsonrpc":"2.0","method":"acme/bare"}"#;
    client.send_bytes(format!("{bare}\n").as_bytes()).await;
    let answer = ask(&mut client, "fixture/written", r#"{"n": 1e2, "_meta": {"x": 1.10}}"#).await;
    assert_eq!(answer["result"]["written"], r#"{"n":1e2,"_meta":{"x":1.10}}"#);
    let answer = client.ask("fixture/told", json!({})).await;
    let told = json!([
        ["notifications/initialized", ""],
        ["acme/news", r#"{"at":1.10}"#],
        ["acme/bare", ""],
    ]);
    assert_eq!(answer["result"]["told"], told);
    let answer = client.ask("acme/unheard-of", json!({})).await;
    assert_eq!(
        answer["error"],
        json!({ "code": -32601, "message": "Method not found: acme/unheard-of" })
    );
    let answer = client.ask("Tools/Call", json!({ "name": "delete" })).await;
    assert_eq!(answer["error"]["message"], "this method is not forwarded");
    client.end().await;
}

#[tokio::test]
async fn transparent_serve_forwards_call_meta_and_mcp_drops_it() {
    let installed = installed();
    let meta = r#""_meta":{"acme/trace":1.10,"progressToken":"mine","z":[]}"#;

    let mut client = mirrored(&installed).await;
    let call = format!(r#"{{"name":"say","arguments":{{}},{meta}}}"#);
    let heard: Value =
        serde_json::from_str(&text(&ask(&mut client, "tools/call", &call).await)).unwrap();
    assert_eq!(heard["_meta"]["acme/trace"], 1.1);
    assert_eq!(heard["_meta"]["z"], json!([]));
    assert!(heard["_meta"]["progressToken"].is_u64(), "{heard}");
    client.end().await;

    let mut client = proxied(&installed).await;
    let call = format!(r#"{{"name":"mcp","arguments":{{"tool":"kit_say","args":{{}}}},{meta}}}"#);
    let heard: Value =
        serde_json::from_str(&text(&ask(&mut client, "tools/call", &call).await)).unwrap();
    let members: Vec<&String> = heard["_meta"].as_object().unwrap().keys().collect();
    assert_eq!(members, ["progressToken"]);
    client.end().await;
}
