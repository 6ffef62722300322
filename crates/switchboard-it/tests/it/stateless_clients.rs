//! Clients of the stateless revision, over stdio and HTTP, with session-based servers: a
//! server-to-client request during a call becomes an `input_required` result, and the call
//! continues with the client's response.

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::World;
use switchboard_it::http_client::{Connection, HttpClient, Response, request};
use switchboard_it::program::Installed;

use crate::PROGRAMS;
use crate::http_face::Served;

const REVISION: &str = "2026-07-28";

const ASKING: &str = r#"
    [[tools]]
    name = "ask_roots"
    behaviour = "ask_roots"
    [[tools]]
    name = "ask_sampling"
    behaviour = "ask_sampling"
    [[tools]]
    name = "ask_elicitation"
    behaviour = "ask_elicitation"
    [[tools]]
    name = "echo"
"#;

fn meta(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "kit", "version": "1" },
    })
}

fn everything() -> Value {
    json!({ "roots": {}, "sampling": {}, "elicitation": {} })
}

fn mcp(arguments: &Value, capabilities: &Value) -> Value {
    json!({ "name": "mcp", "arguments": arguments, "_meta": meta(capabilities) })
}

/// The retry of a request, with the response to its input request.
fn again(first: &Value, asked: &Value, answer: &Value) -> Value {
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut params = first.clone();
    params["inputResponses"] = json!({ key: answer });
    params["requestState"] = asked["requestState"].clone();
    params
}

/// For each kind of server-to-client request: the tool, the method, and the client's response.
fn topics() -> [(&'static str, &'static str, Value); 3] {
    [
        ("ask_roots", "roots/list", json!({ "roots": [{ "uri": "file:///mine" }] })),
        (
            "ask_sampling",
            "sampling/createMessage",
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "mine" } }),
        ),
        (
            "ask_elicitation",
            "elicitation/create",
            json!({ "action": "accept", "content": { "name": "mine" } }),
        ),
    ]
}

/// A stateless HTTP client, which sends all metadata with each request.
struct Stateless {
    client: HttpClient,
    last_id: u64,
}

impl Stateless {
    async fn at(served: &Served) -> Stateless {
        Stateless { client: HttpClient::new(served.address, &served.token).await, last_id: 0 }
    }

    async fn open(&mut self, method: &str, params: &Value, headers: &[(&str, &str)]) -> Connection {
        self.last_id += 1;
        let body = request(json!(self.last_id), method, params.clone()).to_string();
        self.client.elsewhere("POST", headers, &body).await
    }

    async fn respond(
        &mut self,
        method: &str,
        params: &Value,
        headers: &[(&str, &str)],
    ) -> Response {
        let mut connection = self.open(method, params, headers).await;
        connection.response().await.expect("a response")
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Value {
        let named = params.get("name").or(params.get("uri")).and_then(Value::as_str);
        let mut headers = vec![("MCP-Protocol-Version", REVISION), ("Mcp-Method", method)];
        headers.extend(named.map(|name| ("Mcp-Name", name)));
        let stream = self.open(method, params, &headers).await.stream().await;
        stream.answer().await.expect("an answer")
    }
}

#[tokio::test]
async fn server_requests_become_input_required_results_over_stdio() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", ASKING);
    let mut client = installed.serve(&[]);
    let hello = client.ask("server/discover", json!({ "_meta": meta(&json!({})) })).await;
    assert_eq!(hello["result"]["resultType"], "complete");
    assert_eq!(hello["result"]["supportedVersions"][0], REVISION);
    let me = &hello["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(me, "switchboard");
    for (tool, method, answer) in topics() {
        let first = mcp(&json!({ "tool": format!("demo_{tool}") }), &everything());
        let asked = client.ask("tools/call", first.clone()).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let question = asked["inputRequests"].as_object().unwrap().values().next().unwrap();
        assert_eq!(question["method"], method);
        let done = client.ask("tools/call", again(&first, &asked, &answer)).await;
        assert_eq!(done["result"]["resultType"], "complete", "{done}");
        assert!(text(&done).contains("mine"), "{done}");
    }
    // The same process also accepts `initialize` of the session-based revisions.
    let removed = client.ask("ping", json!({ "_meta": meta(&json!({})) })).await;
    assert_eq!(removed["error"]["code"], -32601);
    client.initialize("2025-11-25", json!({})).await;
    assert_eq!(client.ask("ping", json!({})).await["result"], json!({}));
    client.end().await;
}

#[tokio::test]
async fn server_requests_become_input_required_results_over_http() {
    let world = World::of("demo", "asking").script("asking", ASKING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    for (tool, method, answer) in topics() {
        let first = mcp(&json!({ "tool": format!("demo_{tool}") }), &everything());
        let asked = client.ask("tools/call", &first).await["result"].clone();
        let question = asked["inputRequests"].as_object().unwrap().values().next().unwrap();
        assert_eq!(question["method"], method, "{asked}");
        // Another connection sends the response: only `requestState` identifies the call.
        let mut other = Stateless::at(&served).await;
        let done = other.ask("tools/call", &again(&first, &asked, &answer)).await;
        assert!(text(&done).contains("mine"), "{done}");
    }
    served.stop().await;
}

#[tokio::test]
async fn undeclared_capability_is_not_requested_of_the_client() {
    let world = World::of("demo", "asking").script("asking", ASKING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    let call = mcp(&json!({ "tool": "demo_ask_sampling" }), &json!({ "elicitation": {} }));
    let done = client.ask("tools/call", &call).await;
    assert_eq!(done["result"]["resultType"], "complete", "{done}");
    assert!(text(&done).contains("does not offer sampling"), "{done}");
    served.stop().await;
}

/// Some servers choose their tools by the client capabilities, which they get only at initialize.
#[tokio::test]
async fn session_based_server_is_offered_every_capability() {
    let world = World::of("demo", "asking").script("asking", ASKING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    let first = mcp(&json!({ "tool": "demo_ask_roots" }), &everything());
    client.ask("tools/call", &first).await;
    client.ask("tools/call", &first).await;
    let initializes = served.world.fixture("demo").ledger().initializes;
    for hello in &initializes {
        let declared = hello["capabilities"].as_object().unwrap();
        let declared: Vec<&String> = declared.keys().collect();
        assert_eq!(declared, ["roots", "sampling", "elicitation"], "{initializes:?}");
    }
    assert_eq!(initializes.len(), 2, "expected one shared and one private connection");
    served.stop().await;
}

#[tokio::test]
async fn unanswered_input_requests_do_not_block_other_calls() {
    let world = World::of("demo", "asking").script("asking", ASKING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    let ask = mcp(&json!({ "tool": "demo_ask_roots" }), &everything());
    let mut left = Vec::new();
    for _ in 0..5 {
        let asked = client.ask("tools/call", &ask).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        left.push(asked);
    }
    let echo = mcp(&json!({ "tool": "demo_echo", "args": { "text": "hi" } }), &json!({}));
    assert_eq!(text(&client.ask("tools/call", &echo).await), "hi");
    // Each `requestState` belongs to its own call.
    for (number, asked) in left.iter().enumerate().rev() {
        let answer = json!({ "roots": [{ "uri": format!("file:///{number}") }] });
        let done = client.ask("tools/call", &again(&ask, asked, &answer)).await;
        assert!(text(&done).contains(&format!("file:///{number}")), "{done}");
    }
    served.stop().await;
}

#[tokio::test]
async fn concurrent_calls_get_their_own_input_requests() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", ASKING);
    let mut client = installed.serve(&[]);
    let ask = mcp(&json!({ "tool": "demo_ask_roots" }), &everything());
    // The gateway now knows that this server sends requests.
    let asked = client.ask("tools/call", ask.clone()).await["result"].clone();
    let answer = json!({ "roots": [] });
    client.ask("tools/call", again(&ask, &asked, &answer)).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(client.request("tools/call", ask.clone()).await);
    }
    for (number, id) in ids.iter().enumerate() {
        let asked = client.answer_to(id).await["result"].clone();
        let questions = asked["inputRequests"].as_object().expect("each call has an input request");
        assert_eq!(questions.len(), 1, "{asked}");
        let answer = json!({ "roots": [{ "uri": format!("file:///{number}") }] });
        let done = client.ask("tools/call", again(&ask, &asked, &answer)).await;
        assert!(text(&done).contains(&format!("file:///{number}")), "{done}");
    }
    client.end().await;
}

#[tokio::test]
async fn elicitation_uses_only_declared_modes() {
    let url = "behaviour = { kind = 'ask_elicitation', url = 'https://example.com/x' }";
    let script = format!("{ASKING}[[tools]]\nname = 'ask_url'\n{url}\n");
    let world = World::of("demo", "asking").script("asking", &script).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    for (declared, tool, is_asked) in [
        (json!({}), "ask_elicitation", true),
        (json!({ "form": {} }), "ask_elicitation", true),
        (json!({ "url": {} }), "ask_elicitation", false),
        (json!(false), "ask_elicitation", false),
        (json!({}), "ask_url", false),
        (json!({ "form": {} }), "ask_url", false),
        (json!({ "form": {}, "url": {} }), "ask_url", true),
    ] {
        let can = json!({ "elicitation": declared });
        let call = mcp(&json!({ "tool": format!("demo_{tool}") }), &can);
        let answer = client.ask("tools/call", &call).await["result"]["resultType"].clone();
        let expected = if is_asked { "input_required" } else { "complete" };
        assert_eq!(answer, expected, "{can} {tool}");
    }
    served.stop().await;
}

#[tokio::test]
async fn approval_by_stateless_client_covers_one_call_only() {
    let config = r#"{
        "mcpServers": { "demo": { "command": "fixture-server", "args": ["asking"] } },
        "settings": { "approve": "all" }
    }"#;
    let served = Served::of(World::with(config).script("asking", ASKING).start()).await;
    let mut client = Stateless::at(&served).await;
    let first = mcp(&json!({ "tool": "demo_echo", "args": { "text": "hi" } }), &everything());
    for _ in 0..2 {
        let asked = client.ask("tools/call", &first).await["result"].clone();
        let question = asked["inputRequests"].as_object().unwrap().values().next().unwrap();
        let schema = &question["params"]["requestedSchema"]["properties"]["decision"];
        assert_eq!(schema["enum"], json!(["no", "once"]), "{asked}");
        let yes = json!({ "action": "accept", "content": { "decision": "once" } });
        let done = client.ask("tools/call", &again(&first, &asked, &yes)).await;
        assert_eq!(text(&done), "hi");
    }
    let asked = client.ask("tools/call", &first).await["result"].clone();
    let longer = json!({ "action": "accept", "content": { "decision": "session" } });
    let refused = client.ask("tools/call", &again(&first, &asked, &longer)).await;
    assert!(text(&refused).starts_with("approval_denied"), "{refused}");
    // Without elicitation the user cannot be asked.
    let mute = mcp(&json!({ "tool": "demo_echo", "args": { "text": "hi" } }), &json!({}));
    let refused = client.ask("tools/call", &mute).await;
    assert!(text(&refused).starts_with("approval_required"), "{refused}");
    served.stop().await;
}

#[tokio::test]
async fn forged_reused_or_foreign_request_state_is_refused() {
    let world = World::of("demo", "asking").script("asking", ASKING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    let first = mcp(&json!({ "tool": "demo_ask_roots" }), &everything());
    let asked = client.ask("tools/call", &first).await["result"].clone();
    let answer = json!({ "roots": [{ "uri": "file:///mine" }] });
    let retry = again(&first, &asked, &answer);
    let code = |answer: &Value| answer["error"]["code"].clone();

    let mut tampered = retry.clone();
    let state = format!("{}x", retry["requestState"].as_str().unwrap());
    tampered["requestState"] = json!(state);
    assert_eq!(code(&client.ask("tools/call", &tampered).await), -32602);

    let mut other_call = retry.clone();
    other_call["arguments"] = json!({ "tool": "demo_echo", "args": { "text": "hi" } });
    assert_eq!(code(&client.ask("tools/call", &other_call).await), -32602);

    let elsewhere = World::of("demo", "asking").script("asking", ASKING).start();
    let elsewhere = Served::of(elsewhere).await;
    let mut stranger = Stateless::at(&elsewhere).await;
    assert_eq!(code(&stranger.ask("tools/call", &retry).await), -32602);
    elsewhere.stop().await;

    assert!(text(&client.ask("tools/call", &retry).await).contains("mine"));
    assert_eq!(code(&client.ask("tools/call", &retry).await), -32602, "a used state was accepted");
    served.stop().await;
}

#[tokio::test]
async fn stateless_http_headers_must_match_the_message() {
    let served = Served::everything().await;
    let mut client = Stateless::at(&served).await;
    let version = ("MCP-Protocol-Version", REVISION);
    let call = mcp(&json!({ "tool": "demo_echo", "args": { "text": "hi" } }), &json!({}));
    let list = json!({ "_meta": meta(&json!({})) });
    let mut wrong_revision = list.clone();
    wrong_revision["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("v9");
    let no_meta = json!({});
    for (method, params, headers, status, code) in [
        ("tools/list", &list, vec![version, ("Mcp-Method", "tools/list")], 200, None),
        ("tools/list", &list, vec![version], 400, Some(-32020)),
        ("tools/list", &list, vec![version, ("Mcp-Method", "Tools/List")], 400, Some(-32020)),
        ("tools/list", &list, vec![("Mcp-Method", "tools/list")], 400, Some(-32020)),
        ("tools/list", &no_meta, vec![version, ("Mcp-Method", "tools/list")], 400, Some(-32602)),
        (
            "tools/list",
            &wrong_revision,
            vec![("MCP-Protocol-Version", "v9"), ("Mcp-Method", "tools/list")],
            400,
            Some(-32022),
        ),
        (
            "tools/list",
            &wrong_revision,
            vec![version, ("Mcp-Method", "tools/list")],
            400,
            Some(-32020),
        ),
        ("tools/call", &call, vec![version, ("Mcp-Method", "tools/call")], 400, Some(-32020)),
        (
            "tools/call",
            &call,
            vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", "other")],
            400,
            Some(-32020),
        ),
        (
            "tools/call",
            &call,
            vec![version, ("Mcp-Method", "tools/call"), ("Mcp-Name", " mcp ")],
            200,
            None,
        ),
        ("acme/x", &list, vec![version, ("Mcp-Method", "acme/x")], 404, Some(-32601)),
        ("ping", &list, vec![version, ("Mcp-Method", "ping")], 404, Some(-32601)),
    ] {
        let response = client.respond(method, params, &headers).await;
        assert_eq!(response.head.status, status, "{method} {headers:?}: {response:?}");
        assert_eq!(response.json()["error"]["code"].as_i64(), code, "{method} {headers:?}");
        assert_eq!(response.json()["id"], json!(client.last_id));
    }
    for method in ["GET", "DELETE"] {
        let mut connection = client.client.elsewhere(method, &[version], "").await;
        assert_eq!(connection.response().await.unwrap().head.status, 405, "{method}");
    }
    served.stop().await;
}

#[tokio::test]
async fn closed_http_response_stream_cancels_its_call() {
    let world = World::of("demo", "hanging").script("hanging", HANGING).start();
    let served = Served::of(world).await;
    let mut client = Stateless::at(&served).await;
    let call = mcp(&json!({ "tool": "demo_hang" }), &json!({}));
    let headers =
        [("MCP-Protocol-Version", REVISION), ("Mcp-Method", "tools/call"), ("Mcp-Name", "mcp")];
    let connection = client.open("tools/call", &call, &headers).await;
    let fixture = served.world.fixture("demo");
    fixture.until(|ledger| ledger.calls.len() == 1).await;
    drop(connection);
    fixture.until(|ledger| !ledger.cancelled.is_empty()).await;
    served.stop().await;
}

const HANGING: &str = "[[tools]]\nname = 'hang'\nbehaviour = 'wait'\n";

#[tokio::test]
async fn change_notifications_carry_the_id_of_the_listen_request() {
    // The server is not listed before the client connects it.
    let config = r#"{
        "mcpServers": { "demo": { "command": "fixture-server", "args": ["demo.toml"] } },
        "settings": { "firstListing": false }
    }"#;
    let installed = Installed::with(PROGRAMS, config);
    installed.write("demo.toml", LISTED);
    let mut client = installed.serve(&[]);
    let wishes = json!({ "promptsListChanged": true, "resourceSubscriptions": ["demo://no"] });
    let params = json!({ "notifications": wishes, "_meta": meta(&json!({})) });
    let listening = client.request("subscriptions/listen", params).await;
    let heard = client.next().await;
    assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(heard["params"]["notifications"], json!({ "promptsListChanged": true }));
    let tag = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(heard["params"]["_meta"][tag], listening);
    let call = mcp(&json!({ "connect": "demo" }), &json!({}));
    let connected = client.ask("tools/call", call).await;
    assert!(connected["result"].get("isError").is_none(), "{connected}");
    let heard = client.next().await;
    assert_eq!(heard["method"], "notifications/prompts/list_changed", "{heard}");
    assert_eq!(heard["params"]["_meta"][tag], listening);
    // At the end of the client's input, its subscription request gets a response.
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0));
    let answer = ended.frames.iter().find(|frame| frame["id"] == listening).expect("an answer");
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
}

const LISTED: &str = "[[tools]]\nname = 'echo'\n[[prompts]]\nname = 'greet'\nmessages = []\n";

/// Log messages are sent only for requests that set a log level.
#[tokio::test]
async fn requests_without_log_level_get_no_log_messages() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", LOGGING);
    let mut client = installed.serve(&[]);
    let quiet = mcp(&json!({ "tool": "demo_log" }), &json!({}));
    let done = client.ask("tools/call", quiet.clone()).await;
    assert!(done["result"].is_object(), "{done}");
    let mut wanted = quiet;
    wanted["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let id = client.request("tools/call", wanted).await;
    let line = client.next().await;
    assert_eq!(line["method"], "notifications/message", "{line}");
    client.answer_to(&id).await;
    let ended: Vec<Value> = end(client).await;
    assert_eq!(ended, Vec::<Value>::new(), "an unexpected message was sent");
}

const LOGGING: &str = "[[tools]]\nname = 'log'\nbehaviour = 'log'\n";

async fn end(client: Client) -> Vec<Value> {
    client.end().await.frames
}
