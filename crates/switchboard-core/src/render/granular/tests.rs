//! The exact text of each reply, also with hostile text from servers.

use std::time::Duration;

use insta::assert_snapshot;

use super::*;
use crate::catalog::pin::Pin;
use crate::catalog::search::Fit;
use crate::connection::{ConnectParams, ConnectionRequest};
use crate::failure::Subject;
use crate::name::ServerName;
use crate::notice::NotificationKind;
use crate::reply::{ReachedBy, SearchHit, ToolLine};

fn server(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

fn line(tool: &str, description: &str) -> ToolLine {
    ToolLine {
        shown: format!("my-server_{tool}"),
        server: server("my-server"),
        tool: tool.to_owned(),
        description: description.to_owned(),
        pin: Pin::Same,
        claims: None,
        hidden: None,
        reached_by: ReachedBy::SameTool,
    }
}

fn refused() -> Failure {
    let error = ConnectionRequest::read(ConnectParams::default()).unwrap_err();
    Failure::new(Code::ApprovalRequired, Subject::Request, error).hint(Hint::AskUser)
}

#[test]
fn connect_reply_lists_transport_and_tools() {
    let new = |tools: &[&str]| Connected {
        id: server("my-server"),
        address: "http://localhost:3000/mcp".to_owned(),
        transport: "HTTP",
        tools: tools.iter().map(ToString::to_string).collect(),
        resources: 0,
    };
    assert_snapshot!(connected(&new(&["read_file", "write_file", "list\u{1b}[2J_directory"])), @r"
    Successfully connected to http://localhost:3000/mcp
    Connection ID: my-server
    Transport: HTTP
    Available tools (3): read_file, write_file, list_directory
    Available resources: 0
    ");
    assert_snapshot!(connected(&new(&[])), @r"
    Successfully connected to http://localhost:3000/mcp
    Connection ID: my-server
    Transport: HTTP
    Available tools (0):
    Available resources: 0
    ");
    let many = vec!["tool"; 2_000];
    assert!(connected(&new(&many)).contains("Available tools (2000): tool, tool"));
    assert!(connected(&new(&many)).len() < 1_000);
}

#[test]
fn connection_failure_reply_states_the_cause() {
    let check = |error: ConnectError, expected: &str| {
        assert_eq!(connect_error(&error), format!("Connection failed: {expected}"));
    };
    let timed_out = ConnectError::TimedOut { after: Duration::from_secs(5), failure: refused() };
    check(timed_out, "Connection timeout after 5000ms");
    check(ConnectError::Exists(server("x")), "Connection 'x' already exists");
    check(ConnectError::TooMany, "Maximum connections (10) reached");
    check(
        ConnectError::Failed(refused()),
        "approval_required: id: must contain only alphanumeric characters, underscores and \
         hyphens\nAsk the user; this host cannot ask for you",
    );
    let no_transport = connect_error(&ConnectError::NoTransport(refused()));
    assert!(no_transport.starts_with("Connection failed: Failed to create transport: "));
}

#[test]
fn connection_list_shows_state_tools_and_server_version() {
    let line = |id: &str, address: &str, state, tools, name: &str| ConnectionLine {
        id: server(id),
        address: address.to_owned(),
        state,
        tools,
        implementation: (!name.is_empty()).then(|| (name.to_owned(), "1.0.0".to_owned())),
    };
    let up = line("fs", "npx -y server", ConnectionState::Connected, Some(5), "mcp-fs");
    let idle = line("idle", "http://h/x", ConnectionState::Disconnected, Some(1), "x");
    let bad = line("bad", "http://h/x", ConnectionState::Error, None, "");
    assert_snapshot!(connections(&[up.clone(), idle, bad]), @r"
    Active MCP Connections (2):
    - fs: npx -y server [connected] (5 tools) - mcp-fs/1.0.0
    - bad: http://h/x [error]

    Not connected (1):
    - idle: http://h/x [disconnected] (1 tool) - x/1.0.0
    ");
    assert_eq!(connections(&[]), "No active MCP connections");
    assert_snapshot!(closed(&Closed { id: up.id, address: up.address }), @"Disconnected from 'fs' (npx -y server)");
}

#[test]
fn tools_and_resources_are_grouped_by_connection() {
    let one = ToolsFrom {
        id: server("my-server"),
        tools: vec![
            line("read_file", "Read file contents"),
            ToolLine { pin: Pin::Changed, ..line("bare", "") },
        ],
    };
    let two = ToolsFrom { id: server("other"), tools: vec![line("x", "a\nb\u{202e}")] };
    assert_snapshot!(tools(&[one, two]), @r"
    Tools from 'my-server' (2):
      - read_file: Read file contents
      - bare (changed)

    Tools from 'other' (1):
      - x: a b\u{202e}
    ");
    let many = ToolsFrom { id: server("many"), tools: vec![line("x", "y"); 250] };
    assert!(tools(&[many]).ends_with("... and 50 more: mcp_search(query=\"...\") finds them"));
    let resource = crate::catalog::Resource {
        uri: "file:///a".to_owned(),
        name: "a".to_owned(),
        description: None,
        mime_type: None,
        raw: "{}".into(),
    };
    let from = ResourcesFrom { id: server("my-server"), resources: vec![resource] };
    assert_snapshot!(resources(&from), @r"
    Resources from 'my-server' (1):
      - file:///a: a
    ");
}

#[test]
fn search_result_contains_names_of_connection_and_tool() {
    let hit = |tool: &str| SearchHit {
        line: line(tool, "Does things"),
        score: 1.0,
        signature: format!("my-server_{tool}(path: string)"),
        notes: Vec::new(),
    };
    let page = SearchPage {
        denied: 0,
        clear: None,
        query: "file".to_owned(),
        hits: vec![hit("a"), hit("b"), hit("c"), hit("d")],
        total: 9,
        offset: 0,
        next: Some(4),
        fit: Fit::Plausible,
        good: 1,
        with_signatures: true,
        unavailable: Vec::new(),
        not_listed: Vec::new(),
        pending: Vec::new(),
        not_called: None,
    };
    assert_snapshot!(found(&page), @r"
    a(path: string) from 'my-server'
      Does things

    b(path: string) from 'my-server'
      Does things

    c(path: string) from 'my-server'
      Does things

    d from 'my-server'
      Does things

    4 of 9; next page: offset 4
    ");
    assert_eq!(found(&SearchPage { hits: Vec::new(), ..page }), "No tool matches \"file\"");
}

#[test]
fn reload_reply_lists_connected_failed_and_pending() {
    let mut files = Reloaded {
        closed: Some(2),
        files: vec![".pi/mcp-servers.json".to_owned()],
        connected: vec![server("server-a"), server("server-b")],
        ..Reloaded::default()
    };
    assert_snapshot!(reloaded(&files).unwrap(), @r"
    Disconnected 2 existing connection(s)
    Reloaded MCP config from .pi/mcp-servers.json
    Connected: server-a, server-b
    ");
    files.closed = None;
    files.connected.clear();
    files.pending = vec![server("theirs")];
    files.failed = vec![(server("broken"), refused())];
    files.mistakes = vec!["Failed to parse MCP config file: x".to_owned()];
    assert_snapshot!(reloaded(&files).unwrap_err(), @r"
    Error: Failed to parse MCP config file: x
    Reloaded MCP config from .pi/mcp-servers.json
    Failed: broken: approval_required: id: must contain only alphanumeric characters, underscores and hyphens
    Ask the user; this host cannot ask for you
    Pending: theirs (ask the user to run: switchboard trust)
    ");
}

#[test]
fn reply_to_a_registered_handler_describes_its_filter() {
    let filter = NoticeFilter { server: None, kinds: vec![NotificationKind::ToolsChanged] };
    assert_snapshot!(registered(HandlerId(1), &filter), @r"
    Registered notification handler: handler-1
    Connection filter: all connections
    Type filter: tools/list_changed
    ");
    let filter = NoticeFilter { server: Some(server("my-server")), kinds: Vec::new() };
    assert_snapshot!(registered(HandlerId(2), &filter), @r"
    Registered notification handler: handler-2
    Connection filter: my-server
    Type filter: all types
    ");
}

#[test]
fn granular_failures_do_not_mention_the_mcp_tool() {
    let asked = RequestedNames { connection: "x", tool: "invalid_tool" };
    let of = |code| Failure::new(code, Subject::Request, ConnectError::TooMany);
    assert_eq!(failure(&of(Code::UnknownServer), asked), "Error: Connection 'x' not found");
    let unknown = of(Code::UnknownTool).hint(Hint::Search("x".to_owned()));
    assert_eq!(failure(&unknown, asked), "Error: Tool 'invalid_tool' not found on server");
    let close = unknown.hint(Hint::DidYouMean(vec!["valid_tool".to_owned()]));
    assert_eq!(failure(&close, asked).lines().count(), 1);
    let other = of(Code::Backoff).hint(Hint::Connect(server("x")));
    assert!(failure(&other, asked).starts_with("Error: backoff: Maximum connections"));
    assert!(!failure(&other, asked).contains("mcp({"));
}
