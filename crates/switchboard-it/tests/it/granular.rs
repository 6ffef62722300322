//! The `granular` toolset: the output of every tool and every error text, line by line.

mod ad_hoc;
mod errors;
mod notices;
mod reload;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

/// The script of a filesystem server.
const FILES: &str = r#"
    [server]
    name = "mcp-server-filesystem"
    [[tools]]
    name = "read_file"
    description = "Read file contents"
    annotations = { readOnlyHint = true }
    [[tools]]
    name = "write_file"
    description = "Write content to a file"
    [[tools]]
    name = "list_directory"
    description = "List directory contents"
    annotations = { readOnlyHint = true }
"#;

/// A program that records its arguments and runs the filesystem server.
const SERVER: &str =
    "#!/bin/sh\necho \"$@\" >> \"$HOME/started\"\nexec fixture-server \"$HOME/files.toml\"\n";

/// A client that records the results of its calls.
struct Story {
    client: Client,
    /// Keeps the home directory until the client is dropped.
    _home: Installed,
    told: Vec<String>,
    /// Text that differs between runs, with its replacement.
    stands_for: Vec<(String, String)>,
}

impl Story {
    /// A client whose user approves the number of connections in `consents`.
    async fn begin(installed: &Installed, consents: usize) -> Story {
        let mut story = Story::of(installed, json!({ "elicitation": {} })).await;
        let yes = json!({ "action": "accept", "content": { "decision": "connect" } });
        story.client.user.answers.extend(std::iter::repeat_n(yes, consents));
        story
    }

    /// A client with these capabilities.
    async fn of(installed: &Installed, capabilities: Value) -> Story {
        let mut client = Client::start(command(installed).args(["serve", "--toolset", "granular"]));
        client.initialize("2025-11-25", capabilities).await;
        Story { client, _home: installed.clone(), told: Vec::new(), stands_for: Vec::new() }
    }

    fn replacing(mut self, text: &str, with: &str) -> Story {
        self.stands_for.push((text.to_owned(), with.to_owned()));
        self
    }

    /// The text of a tool's result; for an error, `(error)` precedes it.
    async fn ask(&mut self, tool: &str, arguments: Value) -> String {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.client.ask("tools/call", params).await;
        let mut said = text(&answer);
        for (text, with) in &self.stands_for {
            said = said.replace(text, with);
        }
        match answer["result"]["isError"].as_bool() {
            Some(true) => format!("(error) {said}"),
            Some(false) | None => said,
        }
    }

    async fn tell(&mut self, tool: &str, arguments: Value) {
        let said = self.ask(tool, arguments).await;
        self.told.push(format!("{tool}:\n{said}"));
    }

    fn told(&mut self) -> String {
        std::mem::take(&mut self.told).join("\n\n")
    }
}

/// A command whose `PATH` begins with the directory of the fake launcher.
fn command(installed: &Installed) -> tokio::process::Command {
    let mut command = installed.command();
    let path = command.as_std().get_envs().find(|(name, _)| *name == "PATH");
    let path = path.and_then(|(_, value)| value).unwrap().to_str().unwrap().to_owned();
    command.env("PATH", format!("{}:{path}", installed.home().join("bin").display()));
    command
}

/// An installation with a launcher and a filesystem server, without configuration.
fn installed() -> Installed {
    let installed = Installed::bare(PROGRAMS);
    installed.write("files.toml", FILES);
    // Configured servers use `files`, because Switchboard resolves a configured `npx` to its
    // package.
    for program in ["bin/npx", "bin/files"] {
        let program = installed.write(program, SERVER);
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    installed
}

#[tokio::test]
async fn granular_session_connects_lists_calls_and_disconnects() {
    let fixture = HttpFixture::start(FILES).await;
    let mut story =
        Story::begin(&installed(), 1).await.replacing(&fixture.url(), "http://localhost:3000/mcp");
    let connection = json!({ "id": "my-server" });
    story.tell("mcp_connect", json!({ "id": "my-server", "url": fixture.url() })).await;
    story.tell("mcp_list_tools", connection.clone()).await;
    let call = json!({
        "connection_id": "my-server",
        "tool_name": "read_file",
        "arguments": { "text": "Hello, World!" },
    });
    story.tell("mcp_call_tool", call).await;
    story.tell("mcp_list_resources", connection.clone()).await;
    story.tell("mcp_disconnect", connection.clone()).await;
    story.tell("mcp_list_connections", json!({})).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_connect:
    Successfully connected to http://localhost:3000/mcp
    Connection ID: my-server
    Transport: HTTP
    Available tools (3): read_file, write_file, list_directory
    Available resources: 0

    mcp_list_tools:
    Tools from 'my-server' (3):
      - read_file: Read file contents
      - write_file: Write content to a file
      - list_directory: List directory contents

    mcp_call_tool:
    Hello, World!

    mcp_list_resources:
    Resources from 'my-server' (0):

    mcp_disconnect:
    Disconnected from 'my-server' (http://localhost:3000/mcp)

    mcp_list_connections:
    No active MCP connections
    ");
}

#[tokio::test]
async fn granular_connects_programs_and_urls_side_by_side() {
    let installed = installed();
    let fixture = HttpFixture::start("everything").await;
    let mut story =
        Story::begin(&installed, 2).await.replacing(&fixture.url(), "http://api.example.com/mcp");
    let line = "npx -y @anthropic/mcp-server-filesystem /srv/files";
    story.tell("mcp_connect", json!({ "id": "filesystem", "url": line })).await;
    story.ask("mcp_connect", json!({ "id": "remote-api", "url": fixture.url() })).await;
    story.tell("mcp_list_connections", json!({})).await;
    story.tell("mcp_search", json!({ "query": "write a file", "limit": 1 })).await;
    story.tell("mcp_disconnect", json!({ "id": "filesystem" })).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_connect:
    Successfully connected to npx -y @anthropic/mcp-server-filesystem /srv/files
    Connection ID: filesystem
    Transport: stdio
    Available tools (3): read_file, write_file, list_directory
    Available resources: 0

    mcp_list_connections:
    Active MCP Connections (2):
    - filesystem: npx -y @anthropic/mcp-server-filesystem /srv/files [connected] (3 tools) - mcp-server-filesystem/1.0.0
    - remote-api: http://api.example.com/mcp [connected] (28 tools) - everything/1.0.0

    mcp_search:
    write_file() from 'filesystem'
      Write content to a file

    1 of 3; next page: offset 1

    mcp_disconnect:
    Disconnected from 'filesystem' (npx -y @anthropic/mcp-server-filesystem /srv/files)
    ");
    let started = fs::read_to_string(installed.home().join("started")).unwrap();
    assert_eq!(started, "-y @anthropic/mcp-server-filesystem /srv/files\n");
}

/// The script of a filesystem server with eight tools.
const MORE_FILES: &str = r#"
    [server]
    name = "mcp-server-filesystem"
    [[tools]]
    name = "read_file"
    description = "Read the complete contents of a file from the file system"
    annotations = { readOnlyHint = true }
    [[tools]]
    name = "read_multiple_files"
    description = "Read the contents of multiple files simultaneously"
    [[tools]]
    name = "write_file"
    description = "Create a new file or overwrite an existing file"
    [[tools]]
    name = "edit_file"
    description = "Make line-based edits to a text file"
    [[tools]]
    name = "create_directory"
    description = "Create a new directory"
    [[tools]]
    name = "list_directory"
    description = "Get a detailed listing of all files and directories"
    annotations = { readOnlyHint = true }
    [[tools]]
    name = "directory_tree"
    description = "Get a recursive tree view of files and directories"
    [[tools]]
    name = "search_files"
    description = "Recursively search for files and directories"
    annotations = { readOnlyHint = true }
"#;

#[tokio::test]
async fn granular_session_lists_and_calls_file_server_tools() {
    let installed = installed();
    installed.write("files.toml", MORE_FILES);
    let mut story = Story::begin(&installed, 1).await;
    let line = "npx -y @anthropic/mcp-server-filesystem /srv/projects";
    story.tell("mcp_connect", json!({ "id": "fs", "url": line })).await;
    story.tell("mcp_list_tools", json!({ "id": "fs" })).await;
    for (tool, answer) in [
        ("list_directory", "[DIR] src\n[FILE] package.json (1.2KB)"),
        ("read_file", "{\n  \"name\": \"myapp\"\n}"),
        ("search_files", "Found 2 files:\n- src/index.ts\n- src/utils/helper.ts"),
    ] {
        let arguments = json!({ "text": answer });
        let call = json!({ "connection_id": "fs", "tool_name": tool, "arguments": arguments });
        assert_eq!(story.ask("mcp_call_tool", call).await, answer);
    }
    story.tell("mcp_disconnect", json!({ "id": "fs" })).await;
    insta::assert_snapshot!(story.told(), @r"
    mcp_connect:
    Successfully connected to npx -y @anthropic/mcp-server-filesystem /srv/projects
    Connection ID: fs
    Transport: stdio
    Available tools (8): read_file, read_multiple_files, write_file, edit_file, ...
    Available resources: 0

    mcp_list_tools:
    Tools from 'fs' (8):
      - read_file: Read the complete contents of a file from the file system
      - read_multiple_files: Read the contents of multiple files simultaneously
      - write_file: Create a new file or overwrite an existing file
      - edit_file: Make line-based edits to a text file
      - create_directory: Create a new directory
      - list_directory: Get a detailed listing of all files and directories
      - directory_tree: Get a recursive tree view of files and directories
      - search_files: Recursively search for files and directories

    mcp_disconnect:
    Disconnected from 'fs' (npx -y @anthropic/mcp-server-filesystem /srv/projects)
    ");
}

#[tokio::test]
async fn sse_transport_is_chosen_by_scheme_or_type() {
    let fixture = HttpFixture::start(&format!("{FILES}\n[http]\nform = 'legacy'\n")).await;
    let mut story = Story::begin(&installed(), 2).await;
    let by_type = json!({ "id": "by-type", "url": fixture.url(), "type": "sse" });
    let by_address =
        json!({ "id": "by-address", "url": fixture.url().replace("http://", "sse://") });
    for connection in [by_type, by_address] {
        let said = story.ask("mcp_connect", connection).await;
        assert!(said.contains("\nTransport: SSE\nAvailable tools (3): read_file"), "{said}");
    }
}

#[tokio::test]
async fn granular_tools_list_and_read_resources() {
    let mut story = Story::begin(&installed(), 1).await;
    let url = "fixture-server resources-only";
    let said = story.ask("mcp_connect", json!({ "id": "notes", "url": url })).await;
    assert!(said.contains("Available tools (0):\nAvailable resources: "), "{said}");
    let listed = story.ask("mcp_list_resources", json!({ "id": "notes" })).await;
    let uri = listed.lines().nth(1).unwrap().trim_start_matches("  - ");
    let uri = uri.rsplit_once(": ").unwrap().0;
    let read = json!({ "connection_id": "notes", "uri": uri });
    let read = story.ask("mcp_read_resource", read).await;
    assert!(!read.starts_with("(error)"), "{uri}: {read}");
}

#[tokio::test]
async fn configured_server_requires_approval_for_writes_but_not_connecting() {
    let installed = installed();
    let config = json!({
        "settings": { "toolset": "granular", "firstListing": false },
        "mcpServers": { "fs": { "command": "files", "args": ["-y", "server"] } },
    });
    installed.write("switchboard/mcp.json", &config.to_string());
    let mut client = Client::start(command(&installed).arg("serve"));
    client.initialize("2025-11-25", json!({ "elicitation": {} })).await;
    let mut story =
        Story { client, _home: installed.clone(), told: Vec::new(), stands_for: Vec::new() };
    let idle = story.ask("mcp_list_connections", json!({})).await;
    let line = "\n\nNot connected (1):\n- fs: files -y server [disconnected]";
    assert_eq!(idle, format!("No active MCP connections{line}"));
    let said = story.ask("mcp_connect", json!({ "id": "fs", "url": "files -y server" })).await;
    assert!(said.starts_with("Successfully connected to files -y server\n"), "{said}");
    assert_eq!(story.client.user.asked.len(), 0);

    let call = |tool: &str| json!({ "connection_id": "fs", "tool_name": tool });
    story.ask("mcp_call_tool", call("read_file")).await;
    assert_eq!(story.client.user.asked.len(), 0);
    let refused = story.ask("mcp_call_tool", call("write_file")).await;
    assert!(refused.starts_with("(error) Error: approval_required: "), "{refused}");
    assert_eq!(story.client.user.asked.len(), 1);
}
