//! The specified error texts of the granular tools.

use std::net::TcpListener;

use serde_json::json;

use super::{FILES, Story, installed};

#[tokio::test]
async fn every_failure_of_mcp_connect_has_its_message() {
    let installed = installed();
    let silent = "[faults]\nnever_answer = 'initialize'\n";
    let silent = installed.write("silent.toml", silent).display().to_string();
    // The listener is dropped at once, so it is unlikely that a program listens at this port.
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut story = Story::begin(&installed, 5).await;
    let files = "npx -y server";
    story.ask("mcp_connect", json!({ "id": "x", "url": files })).await;
    let silent = format!("fixture-server {silent}");
    for (connection, expected) in [
        (
            json!({ "id": "test", "url": silent, "timeout": 1000 }),
            "Connection failed: Connection timeout after 1000ms",
        ),
        (
            json!({ "id": "test", "url": format!("http://{deaf}/mcp"), "timeout": 1000 }),
            "Connection failed: Connection timeout after 1000ms",
        ),
        (
            json!({ "id": "test", "url": "gopher://localhost/mcp" }),
            "Connection failed: Invalid protocol: use http://, https://, sse:// or a command",
        ),
        (json!({ "id": "x", "url": files }), "Connection failed: Connection 'x' already exists"),
        (
            json!({ "id": "test", "url": "no-such-program" }),
            "Connection failed: Failed to create transport: connect_failed: cannot use the server \
             `test`: cannot connect: the program `no-such-program` was not found",
        ),
        (
            json!({ "id": "a b", "url": files }),
            "Connection failed: id: must contain only alphanumeric characters, underscores and \
             hyphens",
        ),
        (
            json!({ "id": "test", "url": files, "timeout": 999 }),
            "Connection failed: timeout: must be between 1000 and 300000 milliseconds",
        ),
        (json!({ "id": "test" }), "Error: url: is required"),
        (
            json!({ "id": "test", "url": files, "tyep": "sse" }),
            "Error: tyep: unknown parameter; mcp_connect takes id, url, type, timeout",
        ),
    ] {
        let said = story.ask("mcp_connect", connection).await;
        assert_eq!(said.lines().next().unwrap(), format!("(error) {expected}"), "{said}");
    }
    // Failed connections are not listed.
    let listed = story.ask("mcp_list_connections", json!({})).await;
    assert!(listed.starts_with("Active MCP Connections (1):\n- x: "), "{listed}");
}

#[tokio::test]
async fn error_names_an_unknown_connection_or_tool() {
    let installed = installed();
    installed.write("files.toml", FILES);
    let mut story = Story::begin(&installed, 1).await;
    story.ask("mcp_connect", json!({ "id": "my-server", "url": "npx -y server" })).await;
    let invalid = json!({ "connection_id": "my-server", "tool_name": "invalid_tool" });
    let said = story.ask("mcp_call_tool", invalid).await;
    assert_eq!(said, "(error) Error: Tool 'invalid_tool' not found on server");
    let not_found = "(error) Error: Connection 'x' not found";
    for (tool, arguments) in [
        ("mcp_disconnect", json!({ "id": "x" })),
        ("mcp_list_tools", json!({ "id": "x" })),
        ("mcp_list_resources", json!({ "id": "x" })),
        ("mcp_call_tool", json!({ "connection_id": "x", "tool_name": "y" })),
        ("mcp_read_resource", json!({ "connection_id": "x", "uri": "file:///y" })),
        ("mcp_register_notification_handler", json!({ "connection_id": "x" })),
    ] {
        assert_eq!(story.ask(tool, arguments).await, not_found, "{tool}");
    }
    let params = json!({ "name": "mcp", "arguments": {} });
    let answer = story.client.ask("tools/call", params).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}
