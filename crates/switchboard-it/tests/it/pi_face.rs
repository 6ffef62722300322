//! `switchboard serve --host pi`: the methods of the Pi extension, which no other client can use.

mod news;
mod prompts;
mod trust;

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::filtered;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const METHODS: [&str; 9] = [
    "switchboard/status",
    "switchboard/tools",
    "switchboard/search",
    "switchboard/connect",
    "switchboard/disconnect",
    "switchboard/prompts",
    "switchboard/prompt",
    "switchboard/pending",
    "switchboard/trust",
];

/// Starts `serve --host pi` and completes the handshake.
async fn pi(installed: &Installed, flags: &[&str]) -> Client {
    let mut client = installed.serve(&[&["--host", "pi"], flags].concat());
    client.initialize("2025-11-25", json!({})).await;
    client
}

/// The text for the user in the response to a Pi method, or its error.
async fn asked(client: &mut Client, method: &str, params: Value) -> String {
    let answer = client.ask(&format!("switchboard/{method}"), params).await;
    match answer["result"]["text"].as_str() {
        Some(text) => filtered(text),
        None => {
            let error = &answer["error"];
            filtered(&format!("{} {}", error["code"], error["message"].as_str().unwrap()))
        }
    }
}

/// An installation with a server that works, one that cannot start and one that is disabled. None
/// connects at start.
fn three_servers() -> Installed {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write(
        "notes.toml",
        "
[[tools]]
name = 'add_note'
description = 'Writes a note down.'
[[tools]]
name = 'fail'
behaviour = { kind = 'fail', text = 'the disk is full' }
[[tools]]
name = 'fail_silently'
behaviour = { kind = 'fail', text = '' }
[[tools]]
name = 'strict'
input_schema = { type = 'object', properties = { n = { type = 'integer' } }, required = ['n'] }
[[tools]]
name = 'wait'
behaviour = 'wait'
",
    );
    let config = json!({
        "mcpServers": {
            "notes": { "command": "fixture-server", "args": [script] },
            "broken": { "command": "no-such-program" },
            "off": { "command": "fixture-server", "args": [script], "disabled": true },
        },
        "settings": { "firstListing": false, "approve": "none" },
    });
    installed.write("switchboard/mcp.json", &config.to_string());
    installed
}

#[tokio::test]
async fn pi_methods_exist_only_for_pi() {
    let installed = three_servers();
    let mut other = installed.connect(json!({})).await;
    for method in METHODS {
        let params = json!({ "server": "notes", "hash": "0", "query": "x", "line": "" });
        let answer = other.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    other.end().await;

    let server = installed.serve_http().await;
    let mut http = server.connect(json!({})).await;
    for method in METHODS {
        let answer = http.ask(method, json!({})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    drop(server);

    let mut pi = pi(&installed, &[]).await;
    let unknown = asked(&mut pi, "destroy", json!({})).await;
    assert_eq!(unknown, "-32601 this method is not supported");
    for flags in [&["--http", "0"][..], &["--transparent", "notes"]] {
        let ran = installed.run([&["serve", "--host", "pi"], flags].concat()).await;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    }
}

#[tokio::test]
async fn pi_status_has_fields_of_status_json_and_texts() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    let status = client.ask("switchboard/status", json!({})).await["result"].clone();
    let printed = installed.run(["status", "--json"]).await.stdout;
    let printed: Value = serde_json::from_str(&printed).unwrap();
    for shared in ["servers", "tools", "connected"] {
        assert_eq!(status[shared], printed[shared], "{shared}");
    }
    let more = json!({
        "text": status["text"], "pending": status["pending"], "footer": status["footer"],
        "greeting": status["greeting"], "lines": status["lines"],
    });
    insta::assert_snapshot!(format!("{more:#}"), @r#"
    {
      "text": "MCP: 0/2 servers, 0 tools (1 disabled)\n○ broken (not connected)\n○ notes (not connected)\n⊘ off (disabled)",
      "pending": [],
      "footer": "🔌 MCP: 2 servers (0 connected, 1 disabled)",
      "greeting": "MCP: 2 servers, 0 tools",
      "lines": 1
    }
    "#);
    assert_eq!(client.ask("switchboard/status", json!(7)).await["error"]["code"], -32602);
}

#[tokio::test]
async fn pi_settings_decide_footer_greeting_and_result_lines() {
    let check = async |settings: Value, expected: Value| {
        let servers = json!({ "a": { "command": "a" } });
        let config = json!({ "mcpServers": servers, "settings": settings });
        let installed = Installed::with(PROGRAMS, &config.to_string());
        let mut client = pi(&installed, &[]).await;
        let status = &client.ask("switchboard/status", json!({})).await["result"];
        let shown = json!([status["footer"], status["greeting"], status["lines"]]);
        assert_eq!(shown, expected, "{settings}");
    };
    let (full, greeting) = ("🔌 MCP: 1 server (0 connected)", "MCP: 1 server, 0 tools");
    check(json!({}), json!([full, greeting, 1])).await;
    let boxed = json!({ "showStatusIcon": false, "toolResultRendering": "boxed" });
    check(boxed, json!(["MCP: 1 server (0 connected)", greeting, 3])).await;
    let compact = json!({ "mcpFooterStatus": "compact", "notifyOnStartupConnect": false });
    check(compact, json!(["MCP 0/1", null, 1])).await;
    let off = json!({ "mcpFooterStatus": "off", "collapsedResultLines": 2 });
    check(off, json!([null, greeting, 2])).await;
    // If a value is invalid, the default applies.
    check(json!({ "collapsedResultLines": 4 }), json!([full, greeting, 1])).await;
}

fn questions() -> Vec<(&'static str, Value)> {
    vec![
        ("tools", json!({})),
        ("connect", json!({ "server": "notes" })),
        ("connect", json!({ "server": "notes", "again": true })),
        ("tools", json!({ "server": "notes" })),
        ("tools", json!({ "server": "off" })),
        ("tools", json!({ "server": "note" })),
        ("tools", json!({ "server": 7 })),
        ("search", json!({ "query": "write a note" })),
        ("search", json!({ "query": "weather\u{1b}]0;x\u{7}" })),
        ("search", json!({})),
        ("connect", json!({ "server": "broken" })),
        ("connect", json!({ "server": "off" })),
        ("connect", json!({ "server": "notes", "again": "yes" })),
        ("connect", json!({})),
        ("disconnect", json!({ "server": "notes" })),
        ("disconnect", json!({ "server": "nobody\u{202e}" })),
        ("disconnect", json!({})),
        ("status", json!({})),
    ]
}

#[tokio::test]
async fn pi_responses_suggest_pi_commands_in_their_text() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    let mut table = String::new();
    for (method, params) in questions() {
        let said = asked(&mut client, method, params.clone()).await;
        table.push_str(&format!("{method} {params}\n{}\n", indented(&said)));
    }
    insta::assert_snapshot!(table.replace('\u{202e}', "[RLO]"), @r#"
    tools {}
        No tools.
        2 servers not listed yet: broken and notes (try `/mcp connect broken`)

    connect {"server":"notes"}
        ✓ notes: connected, 5 tools

    connect {"server":"notes","again":true}
        ✓ notes: connected, 5 tools

    tools {"server":"notes"}
        notes:
        - notes_add_note: Writes a note down.
        - notes_fail
        - notes_fail_silently
        - notes_strict
        - notes_wait

    tools {"server":"off"}
        -32603 the server `off` is disabled
        hint: enable it with `/mcp enable off`

    tools {"server":"note"}
        -32602 no server is named `note`
        hint: did you mean `notes`?
        hint: see the servers with `/mcp status`

    tools {"server":7}
        -32602 cannot parse `params`: invalid type: integer `7`, expected a string at line 1 column 11

    search {"query":"write a note"}
        notes_add_note()
          Writes a note down.
        notes_wait()
        notes_fail()
        - notes_fail_silently
        - notes_strict
        1 server not listed yet: broken (try `/mcp connect broken`)

    search {"query":"weather\u001b]0;x\u0007"}
        No tool matches "weather\u{1b}]0;x\u{7}".
        1 server not listed yet: broken (try `/mcp connect broken`)

    search {}
        -32602 cannot parse `params`: missing field `query` at line 1 column 2

    connect {"server":"broken"}
        -32603 cannot use the server `broken`: cannot connect: the program `no-such-program` was not found
        hint: check that `no-such-program` is installed and can be run

    connect {"server":"off"}
        -32603 the server `off` is disabled
        hint: enable it with `/mcp enable off`

    connect {"server":"notes","again":"yes"}
        -32602 cannot parse `params`: invalid type: string "yes", expected a boolean at line 1 column 31

    connect {}
        ✗ broken: cannot use the server `broken`: cannot connect: the program `no-such-program` was not found
        ✓ notes: connected, 5 tools

    disconnect {"server":"notes"}
        ○ notes: disconnected

    disconnect {"server":"nobody[RLO]"}
        -32602 no server is named `nobody\u{202e}`
        hint: see the servers with `/mcp status`

    disconnect {}
        -32602 cannot parse `params`: missing field `server` at line 1 column 2

    status {}
        MCP: 0/2 servers, 5 tools (1 disabled)
        ✗ broken (failed [TIME] ago: the program `no-such-program` was not found)
        ○ notes (5 tools, cached)
        ⊘ off (disabled)
    "#);
    assert_eq!(client.end().await.code, Some(0));
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}\n")).collect()
}

#[tokio::test]
async fn pi_error_text_begins_with_mcp_error_prefix() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    let check = async |client: &mut Client, arguments: Value, head: &str, error_type: &str| {
        let id = client.call(arguments.clone()).await;
        let answer = client.answer_to(&id).await;
        assert!(text(&answer).starts_with(head), "{arguments}: {}", text(&answer));
        assert_eq!(answer["result"]["isError"], true, "{arguments}");
        let details = &answer["result"]["_meta"]["switchboard/details"];
        assert_eq!(details["errorType"], error_type, "{arguments}");
    };
    let client = &mut client;
    let tool = |tool: &str| json!({ "tool": tool, "server": "notes" });
    check(client, tool("fail"), "MCP tool error: the disk is full", "MCPToolError").await;
    check(client, tool("fail_silently"), "MCP tool error: Unknown error", "MCPToolError").await;
    check(client, tool("strict"), "MCP tool error: bad_arguments: ", "ValidationError").await;
    check(client, tool("gone"), "MCP tool error: unknown_tool: ", "ValidationError").await;
    let broken = json!({ "connect": "broken" });
    check(client, broken, "MCP connection error: connect_failed: ", "MCPConnectionError").await;
    // The text of a successful result has no prefix.
    let works = client.mcp(json!({ "tool": "add_note", "args": { "text": "hi" } })).await;
    assert_eq!(works, "hi");
}

#[tokio::test]
async fn every_toolset_has_pi_methods_and_error_prefixes() {
    let installed = three_servers();
    let check = async |toolset: &str, name: &str, arguments: Value| {
        let mut client = pi(&installed, &["--toolset", toolset]).await;
        let connected = asked(&mut client, "connect", json!({ "server": "notes" })).await;
        assert_eq!(connected, "✓ notes: connected, 5 tools", "{toolset}");
        let params = json!({ "name": name, "arguments": arguments });
        let answer = client.ask("tools/call", params).await;
        assert_eq!(text(&answer), "MCP tool error: the disk is full", "{toolset}");
    };
    check("proxy", "mcp", json!({ "tool": "notes_fail" })).await;
    check("direct", "notes_fail", json!({})).await;
    let arguments = json!({ "connection_id": "notes", "tool_name": "fail" });
    check("granular", "mcp_call_tool", arguments).await;

    let mut granular = pi(&installed, &["--toolset", "granular"]).await;
    let params = json!({ "name": "mcp_list_resources", "arguments": { "id": "nobody" } });
    let answer = granular.ask("tools/call", params).await;
    assert!(text(&answer).starts_with("MCP tool error: Error: "), "{}", text(&answer));
}

#[tokio::test]
async fn pi_gateway_ends_at_once_at_end_of_input() {
    let installed = three_servers();
    let mut client = pi(&installed, &[]).await;
    client.call(json!({ "tool": "notes_wait", "server": "notes" })).await;
    // `connect` returns once the server is listed; the call is in flight by then.
    asked(&mut client, "connect", json!({ "server": "notes" })).await;
    let ended = client.end().await;
    // Other clients get an error for an interrupted call, but Pi does not wait for it.
    assert_eq!((ended.code, ended.frames), (Some(0), vec![]), "{}", ended.stderr);
}
