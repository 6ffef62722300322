//! `switchboard serve` over real pipes: requests of MCP clients and the exact responses.

use serde_json::{Value, json};
use switchboard::tool_card;
use switchboard_it::client::{Client, text};
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// One server, `demo`, with every feature of MCP.
const EVERYTHING: &str =
    r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#;

/// A client and its installation. The installation must be dropped after the client.
async fn client_of_everything() -> (Client, Installed) {
    let installed = Installed::with(PROGRAMS, EVERYTHING);
    (installed.connect(json!({})).await, installed)
}

#[tokio::test]
async fn initialize_returns_requested_revision_if_supported_else_the_newest() {
    let installed = Installed::bare(PROGRAMS);
    let check = async |asked: &str, expected: &str| {
        let mut client = installed.serve(&[]);
        let hello = client.initialize(asked, json!({})).await;
        assert_eq!(hello["protocolVersion"], expected, "for {asked}");
        assert_eq!(hello["serverInfo"]["name"], "switchboard");
        assert_eq!(client.end().await.code, Some(0));
    };
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        check(revision, revision).await;
    }
    for stranger in ["1999-12-31", "2099-01-01", ""] {
        check(stranger, "2025-11-25").await;
    }
}

#[tokio::test]
async fn end_of_input_before_initialize_exits_without_warning() {
    for config in ["{}", EVERYTHING] {
        let installed = Installed::with(PROGRAMS, config);
        for flags in [&["serve"][..], &["serve", "--host", "pi"]] {
            let ran = installed.run(flags.iter().copied()).await;
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{flags:?} {config}");
        }
    }
}

#[tokio::test]
async fn default_tool_list_is_identical_for_every_configuration() {
    let servers: serde_json::Map<String, Value> = (0..20)
        .map(|n| (format!("server{n}"), json!({ "command": "fixture-server", "args": ["flaky"] })))
        .collect();
    let crowded = json!({ "mcpServers": servers, "settings": { "firstListing": false } });
    let bare = Installed::bare(PROGRAMS);
    let crowded = Installed::with(PROGRAMS, &crowded.to_string());
    let expected = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"tools\":[{}]}}}}\n",
        tool_card::definition()
    );
    for installed in [&bare, &bare, &crowded, &crowded] {
        let mut client = installed.connect(json!({})).await;
        client.request("tools/list", json!({})).await;
        assert_eq!(client.line().await, expected);
        client.end().await;
    }
}

#[tokio::test]
async fn malformed_stdio_input_gets_error_and_is_skipped() {
    let (mut client, _home) = client_of_everything().await;
    let mut table = String::new();
    for sent in [
        "{not json}",
        "\u{1b}[31mred\u{1b}[0m",
        r#"{"jsonrpc":"2.0","id":10,"method":"ping""#,
        r#"[{"jsonrpc":"2.0","id":11,"method":"ping"}]"#,
        "[]",
        "42",
        r#"{"id":12,"method":"ping"}"#,
        r#"{"id":12,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":13,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":20,"method":"ping","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":14,"method":"tools/destroy"}"#,
        r#"{"jsonrpc":"2.0","id":15,"method":"tools/call"}"#,
        r#"{"jsonrpc":"2.0","id":16,"method":"tools/call","params":{"name":"demo_add"}}"#,
        r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":18,"method":"prompts/get","params":{"name":"nothing"}}"#,
        r#"{"jsonrpc":"2.0","id":19,"method":"resources/read","params":{"uri":"file:///no"}}"#,
    ] {
        client.send_bytes(format!("{sent}\n").as_bytes()).await;
        let answer = client.next().await;
        table.push_str(&format!("{sent}\n  {} {}\n", answer["id"], answer["error"]));
    }
    insta::assert_snapshot!(table.replace('\u{1b}', "ESC"), @r#"
    {not json}
      null {"code":-32700,"message":"the message is not valid JSON"}
    ESC[31mredESC[0m
      null {"code":-32700,"message":"the message is not valid JSON"}
    {"jsonrpc":"2.0","id":10,"method":"ping"
      null {"code":-32700,"message":"the message is not valid JSON"}
    [{"jsonrpc":"2.0","id":11,"method":"ping"}]
      null {"code":-32600,"message":"JSON-RPC batches are not supported"}
    []
      null {"code":-32600,"message":"JSON-RPC batches are not supported"}
    42
      null {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"id":12,"method":"ping"}
      12 {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"id":12,"result":{}}
      null {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"jsonrpc":"2.0","id":{},"method":"ping"}
      null {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"jsonrpc":"2.0","id":13,"method":7}
      13 {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"jsonrpc":"2.0","id":20,"method":"ping","method":"ping"}
      20 {"code":-32600,"message":"the message is not JSON-RPC 2.0"}
    {"jsonrpc":"2.0","id":14,"method":"tools/destroy"}
      14 {"code":-32601,"message":"this method is not supported"}
    {"jsonrpc":"2.0","id":15,"method":"tools/call"}
      15 {"code":-32602,"message":"`params` is missing"}
    {"jsonrpc":"2.0","id":16,"method":"tools/call","params":{"name":"demo_add"}}
      16 {"code":-32602,"message":"unknown tool `demo_add`"}
    {"jsonrpc":"2.0","id":17,"method":"tools/call","params":[1]}
      17 {"code":-32602,"message":"cannot parse `params`: invalid type: integer `1`, expected a string at line 1 column 2"}
    {"jsonrpc":"2.0","id":18,"method":"prompts/get","params":{"name":"nothing"}}
      18 {"code":-32602,"message":"unknown_prompt: no server has the prompt `nothing`\nSee the list of prompts"}
    {"jsonrpc":"2.0","id":19,"method":"resources/read","params":{"uri":"file:///no"}}
      19 {"code":-32602,"message":"unknown_resource: no server lists the resource `file:///no`\nSee the list of resources"}
    "#);

    // None of these messages gets a response.
    for silent in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unheard-of","params":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":999}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#,
        r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
        "",
        "   ",
    ] {
        client.send_bytes(format!("{silent}\r\n").as_bytes()).await;
    }
    let pong = client.ask("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    let ended = client.end().await;
    assert_eq!((ended.code, ended.frames), (Some(0), vec![]));
}

#[tokio::test]
async fn request_id_is_returned_unchanged() {
    let (mut client, _home) = client_of_everything().await;
    for id in ["0", "-7", "1.5", "18446744073709551615", r#""""#, r#""1""#, r#""ünï \"q\" \\""#] {
        client
            .send_bytes(
                format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n").as_bytes(),
            )
            .await;
        // This line is the response to `ping`, because the response to `initialize` was read
        // before.
        assert_eq!(
            client.line().await,
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n")
        );
    }
}

#[tokio::test]
async fn duplicate_stdio_request_id_is_refused() {
    let (mut client, _home) = client_of_everything().await;
    let call = |id: Value, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": { "name": "mcp", "arguments": arguments } })
    };
    client.send(&call(json!("twice"), json!({ "tool": "demo_wait" }))).await;
    client.send(&json!({ "jsonrpc": "2.0", "id": "twice", "method": "ping" })).await;
    let refused = client.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!("twice"), &json!(-32600)));

    // `demo_release` affects only calls that have started, so it is repeated until the first call
    // has started.
    let first = loop {
        client.send(&call(json!("release"), json!({ "tool": "demo_release" }))).await;
        let frame = client.next().await;
        if frame["id"] == "twice" {
            break frame;
        }
    };
    assert_eq!(text(&first), "released");
}

#[tokio::test]
async fn stdout_contains_only_protocol_frames() {
    let installed = Installed::with(PROGRAMS, "{ \"mcpServers\": { \"demo\": ] }");
    installed.write(".mcp.json", "{ \"mcpServers\": { \"x\": { \"command\": 7 } } }");
    let mut client = installed.serve(&["-vvv"]);
    client.initialize("2025-11-25", json!({})).await;
    let status = client.mcp(json!({})).await;
    assert!(status.starts_with("MCP: 0/0 servers"), "{status}");
    client.send_bytes(b"{broken\n").await;
    let ended = client.end().await;
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.frames.len(), 1, "{:?}", ended.frames);
    assert!(ended.stderr.contains("mcp.json:1:27"), "{}", ended.stderr);
}

const WITH_LEDGER: &str = "
[[tools]]
name = 'wait'
behaviour = 'wait'
[[tools]]
name = 'ledger'
behaviour = 'ledger'
";

/// Polls the fixture's ledger until `wanted` is true.
async fn until_ledger(client: &mut Client, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..1_000 {
        let ledger = client.mcp(json!({ "tool": "demo_ledger" })).await;
        let ledger = serde_json::from_str(&ledger).unwrap_or_else(|_| panic!("{ledger}"));
        if wanted(&ledger) {
            return ledger;
        }
    }
    panic!("the ledger never matched");
}

#[tokio::test]
async fn stdio_cancellation_reaches_the_server_and_is_not_answered() {
    let installed = Installed::with_fixture(PROGRAMS, "demo", WITH_LEDGER);
    let mut client = installed.connect(json!({})).await;
    let waiting = client.call(json!({ "tool": "demo_wait" })).await;
    until_ledger(&mut client, |ledger| ledger["running"] == 2).await;
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                       "params": { "requestId": waiting, "reason": "changed my mind" } }))
        .await;
    let ledger = until_ledger(&mut client, |ledger| ledger["running"] == 1).await;
    assert_eq!(ledger["cancelled"].as_array().map(Vec::len), Some(1));
    let ended = client.end().await;
    assert_eq!(ended.frames, Vec::<Value>::new(), "a cancelled request gets no answer");
}

#[tokio::test]
async fn progress_with_the_progress_token_precedes_the_response() {
    let (mut client, _home) = client_of_everything().await;
    for token in [json!("my-token"), json!(7)] {
        let arguments = json!({ "tool": "demo_slow", "args": { "ms": 30 } });
        let id = client
            .request(
                "tools/call",
                json!({ "name": "mcp", "arguments": arguments, "_meta": { "progressToken": token } }),
            )
            .await;
        let mut steps = Vec::new();
        let answer = loop {
            let frame = client.next().await;
            if frame["id"] == id {
                break frame;
            }
            assert_eq!(frame["method"], "notifications/progress");
            assert_eq!(frame["params"]["progressToken"], token);
            steps.push(frame["params"]["progress"].clone());
        };
        assert_eq!(steps, [0, 1, 2]);
        assert_eq!(text(&answer), "took 30 ms");
    }
    assert_eq!(client.end().await.frames, Vec::<Value>::new());
}

#[tokio::test]
async fn destructive_tool_runs_only_after_explicit_approval() {
    let installed = Installed::with(PROGRAMS, EVERYTHING);
    let check = async |capabilities: Value, answer: Value, expected: &str| {
        let mut client = installed.connect(capabilities).await;
        client.user.answers.push_back(answer.clone());
        let arguments = json!({ "tool": "demo_delete_everything", "args": { "text": "done" } });
        let said = client.mcp(arguments).await;
        assert!(said.starts_with(expected), "{answer}: {said}");
        client.user.asked.len()
    };
    let able = || json!({ "elicitation": {} });
    let accept = |decision: Value| json!({ "action": "accept", "content": decision });
    for yes in ["once", "session", "server"] {
        assert_eq!(check(able(), accept(json!({ "decision": yes })), "done").await, 1);
    }
    for no in [
        accept(json!({ "decision": "no" })),
        accept(json!({ "decision": "maybe" })),
        accept(json!({})),
        json!({ "action": "accept" }),
    ] {
        assert_eq!(check(able(), no, "approval_denied").await, 1);
    }
    let command = "switchboard allow demo/delete_everything";
    for unanswered in [
        json!({ "action": "decline" }),
        json!({ "action": "cancel", "content": { "decision": "once" } }),
        json!({}),
        json!("yes"),
    ] {
        let expected = format!(
            "approval_required: `demo_delete_everything` needs the user's approval: \
             the user did not answer\nAsk the user; this host cannot ask for you\n\
             The user can allow it with this command: {command}"
        );
        assert_eq!(check(able(), unanswered, &expected).await, 1);
    }
    let once = accept(json!({ "decision": "once" }));
    assert_eq!(check(json!({}), once, "approval_required").await, 0);
}

#[tokio::test]
async fn requests_before_end_of_input_are_all_answered() {
    let (mut client, _home) = client_of_everything().await;
    let mut frames = String::new();
    for id in 100..200 {
        let arguments = json!({ "tool": "demo_echo", "args": { "text": format!("{id}") } });
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
                              "params": { "name": "mcp", "arguments": arguments } });
        frames.push_str(&format!("{request}\n"));
    }
    client.send_bytes(frames.as_bytes()).await;
    let ended = client.end().await;
    let mut answered: Vec<String> = ended.frames.iter().map(text).collect();
    answered.sort();
    assert_eq!(answered, (100..200).map(|id| id.to_string()).collect::<Vec<_>>());
    assert!(
        ended.frames.iter().all(|frame| text(frame).parse() == Ok(frame["id"].as_u64().unwrap()))
    );
    assert_eq!(ended.code, Some(0));
}

#[tokio::test]
async fn prompts_and_resources_of_servers_reach_the_client() {
    let (mut client, _home) = client_of_everything().await;
    client.mcp(json!({ "connect": "demo" })).await;
    let mut table = String::new();
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "greet", "arguments": { "who": "Ada" } })),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "file:///readme.md" })),
        ("resources/read", json!({ "uri": "file:///logo.png" })),
        ("resources/templates/list", json!({})),
    ] {
        let answer = client.ask(method, params).await;
        table.push_str(&format!("{method}\n  {}\n", answer["result"]));
    }
    insta::assert_snapshot!(table, @r##"
    prompts/list
      {"prompts":[{"name":"demo_greet","title":"Greeting","description":"Greets somebody.","arguments":[{"name":"who","description":"Whom to greet","required":true}]},{"name":"demo_plain","arguments":[]}]}
    prompts/get
      {"messages":[{"role":"user","content":{"type":"text","text":"Say hello to Ada."}}],"description":"Greets somebody."}
    resources/list
      {"resources":[{"uri":"file:///readme.md","name":"readme","description":"What this is","mimeType":"text/markdown"},{"uri":"file:///logo.png","name":"logo","mimeType":"image/png"}]}
    resources/read
      {"contents":[{"uri":"file:///readme.md","text":"# Everything\n","mimeType":"text/markdown"}]}
    resources/read
      {"contents":[{"uri":"file:///logo.png","blob":"iVBORw0KGgo=","mimeType":"image/png"}]}
    resources/templates/list
      {"resourceTemplates":[{"uriTemplate":"note://{id}","name":"note","description":"A note by its number","mimeType":"text/plain"}]}
    "##);
}
