//! Stateless servers over HTTP.

use serde_json::{Value, json};
use switchboard::failure::Code;
use switchboard_it::fixture::{HttpFixture, SeenRequest};
use switchboard_it::harness::World;

use crate::remote::world;

/// The script of a stateless server with responses in this form.
fn modern(form: &str, tools: &str) -> String {
    let changes = "[server.capabilities]\nlist_changed = false";
    format!("[server]\nera = 'modern'\n{changes}\n[http]\nform = '{form}'\n{tools}")
}

const ECHO: &str = "[[tools]]\nname = 'echo'\n";

fn shown(request: &SeenRequest, names: &[&str]) -> String {
    let header = |name: &&str| request.header(name).unwrap_or("-").to_owned();
    let headers: Vec<String> = names.iter().map(header).collect();
    format!("{} | {}", request.what(), headers.join(" | "))
}

#[tokio::test]
async fn stateless_http_headers_repeat_method_and_name() {
    for form in ["json", "events"] {
        let tools = format!("{ECHO}[[resources]]\nuri = 'a://b'\nname = 'b'\n");
        let fixture = HttpFixture::start(&modern(form, &tools)).await;
        let world = world(&fixture, "");
        assert_eq!(world.call("far_echo", json!({ "text": "hello" })).await.unwrap(), "hello");
        world.call("far_read_b", json!({})).await.unwrap();
        world.shut_down().await;
        let names = ["mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"];
        let seen: Vec<String> = fixture.requests().iter().map(|it| shown(it, &names)).collect();
        let expected = [
            "server/discover | 2026-07-28 | server/discover | - | -",
            "tools/list | 2026-07-28 | tools/list | - | -",
            "resources/list | 2026-07-28 | resources/list | - | -",
            "resources/templates/list | 2026-07-28 | resources/templates/list | - | -",
            "tools/call | 2026-07-28 | tools/call | echo | -",
            "resources/read | 2026-07-28 | resources/read | a://b | -",
        ];
        assert_eq!(seen, expected, "{form}");
    }
}

#[tokio::test]
async fn x_mcp_header_parameters_become_headers() {
    let property = |annotation: &str| {
        format!(
            "{{ type = 'object', properties = {{ region = {{ type = 'string', x-mcp-header = '{annotation}' }}, query = {{ type = 'string' }} }} }}"
        )
    };
    let tools = format!(
        "[[tools]]\nname = 'echo'\ninput_schema = {}\n[[tools]]\nname = 'bad'\ninput_schema = {}\n",
        property("Region"),
        property("My Region"),
    );
    let fixture = HttpFixture::start(&modern("json", &tools)).await;
    let world = world(&fixture, "");
    for region in [json!("us west"), json!("a\r\nx-evil: 1"), Value::Null] {
        let mut args = json!({ "query": "q" });
        if !region.is_null() {
            args["region"] = region;
        }
        world.call("far_echo", args).await.unwrap();
    }
    let calls: Vec<String> = fixture
        .requests()
        .iter()
        .filter(|request| request.what() == "tools/call")
        .map(|request| shown(request, &["mcp-param-region", "mcp-param-query", "x-evil"]))
        .collect();
    let expected = [
        "tools/call | us west | - | -",
        "tools/call | =?base64?YQ0KeC1ldmlsOiAx?= | - | -",
        "tools/call | - | - | -",
    ];
    assert_eq!(calls, expected);
    let listed = world.ask(r#"{ "server": "far" }"#).await;
    assert!(!listed.contains("far_bad"), "{listed}");
    // On stdio, which has no headers, the annotation is not checked.
    let world = World::of("near", "near").script("near", &modern("json", &tools)).start();
    world.ask(r#"{ "connect": "near" }"#).await;
    assert!(world.ask(r#"{ "server": "near" }"#).await.contains("near_bad"));
}

#[tokio::test]
async fn header_mismatch_is_retried_once_after_relisting() {
    let refused = json!({ "code": -32020, "message": "Mcp-Param-Region differs" });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "error": refused });
    for (times, expected) in [(1, Ok("hello")), (2, Err("error -32020: Mcp-Param-Region differs"))]
    {
        let canned = format!(
            "[[http.canned]]\nto = 'tools/call'\ntimes = {times}\nstatus = 400\nbody = '{body}'\n"
        );
        let fixture = HttpFixture::start(&modern("json", &format!("{canned}{ECHO}"))).await;
        let world = world(&fixture, "");
        let answer = world.call("far_echo", json!({ "text": "hello" })).await;
        match expected {
            Ok(text) => assert_eq!(answer.unwrap(), text),
            Err(text) => {
                let chain = answer.unwrap_err().chain().join(": ");
                assert!(chain.contains(text), "{chain}");
            }
        }
        let asked = fixture.asked();
        let again: Vec<&str> = asked.iter().map(String::as_str).skip(2).collect();
        assert_eq!(again, ["tools/call", "tools/list", "tools/call"], "{times}");
    }
}

#[tokio::test]
async fn abandoned_stateless_call_closes_the_response_stream() {
    let tools = "[[tools]]\nname = 'wait'\nbehaviour = 'wait'\n";
    let fixture = HttpFixture::start(&modern("events", tools)).await;
    let world = world(&fixture, "");
    world.ask(r#"{ "connect": "far" }"#).await;
    tokio::select! {
        answer = world.call("far_wait", json!({})) => panic!("{answer:?}"),
        _ = fixture.state().call_started(1) => {}
    }
    // The fixture records a cancellation when its response is no longer read.
    fixture.state().until(|ledger| ledger.cancelled.len() == 1).await;
    world.shut_down().await;
    assert!(fixture.requests().iter().all(|request| request.message.get("id").is_some()));
}

#[tokio::test]
async fn broken_stateless_response_stream_is_not_resumed() {
    // With event ids a client could resume the stream.
    let script = modern("events", &format!("event_ids = true\ncut_calls = true\n{ECHO}"));
    let fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, "");
    let failure = world.call("far_echo", json!({ "text": "hello", "cut": 60 })).await.unwrap_err();
    assert_eq!(failure.code, Code::OutcomeUnknown, "{failure}");
    world.shut_down().await;
    assert_eq!(fixture.asked(), ["server/discover", "tools/list", "tools/call"]);
}

#[tokio::test]
async fn stateless_list_change_arrives_on_the_listen_response_stream() {
    let tools = "[[tools]]\nname = 'change'\nbehaviour = 'change_tools'\n";
    let script = modern("json", tools).replace("list_changed = false", "list_changed = true");
    let fixture = HttpFixture::start(&script).await;
    let world = world(&fixture, "");
    let mut catalogs = world.gateway.watch();
    world.ask(r#"{ "connect": "far" }"#).await;
    fixture.until(|seen| seen.iter().any(|it| it.what() == "subscriptions/listen")).await;
    world.call("far_change", json!({ "name": "later" })).await.unwrap();
    let listed = catalogs
        .wait_for(|catalog| catalog.tools().any(|item| item.entry.name.as_str() == "later"));
    assert!(listed.await.is_ok());
    world.shut_down().await;
}
