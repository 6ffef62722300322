//! Status, search, descriptions and the cache.

use serde_json::{Map, Value, json};
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use super::{acting, check, config};
use crate::PROGRAMS;

#[tokio::test]
async fn b01_status_has_one_line_per_server_without_connecting() {
    let installed = Installed::bare(PROGRAMS);
    installed.write("broken.toml", "[faults]\nexit_at_start = { code = 1 }\n");
    let entry = |script: &str, more: Value| acting(&installed, script, more);
    let servers = Map::from_iter([
        ("up".to_owned(), entry("everything", json!({}))),
        ("seen".to_owned(), entry("everything", json!({}))),
        ("fresh".to_owned(), entry("everything", json!({}))),
        ("dead".to_owned(), entry("broken.toml", json!({}))),
        ("off".to_owned(), entry("everything", json!({ "disabled": true }))),
    ]);
    installed.write("switchboard/mcp.json", &config(servers, json!({})));
    let theirs = json!({ "mcpServers": { "theirs": entry("everything", json!({})) } });
    installed.write(".mcp.json", &theirs.to_string());
    assert_eq!(installed.run(["connect", "seen"]).await.code, Some(0));

    let before = installed.spawned();
    let mut client = installed.connect(json!({})).await;
    check(
        &mut client,
        r#"
        >>> {}
        MCP: 0/5 servers, 30 tools (1 disabled)
        ○ dead (not connected)
        ○ fresh (not connected)
        ⊘ off (disabled)
        ○ seen (30 tools, cached)
        ⚠ theirs (pending: the user has to trust it)
        ○ up (not connected)

        ...
        "#,
    )
    .await;
    assert_eq!(installed.spawned(), before, "a status request started a server");
    check(
        &mut client,
        r#"
        >>> { "connect": "up", "limit": 1 }
        ...

        >>> { "connect": "dead" }
        [error]
        ...

        >>> {}
        MCP: 1/5 servers, 60 tools (1 disabled)
        ✗ dead (failed [TIME] ago: the server ended while it was starting (exit code 1))
        ○ fresh (not connected)
        ⊘ off (disabled)
        ○ seen (30 tools, cached)
        ⚠ theirs (pending: the user has to trust it)
        ✓ up (30 tools)

        ...
        "#,
    )
    .await;
    client.end().await;
}

#[tokio::test(start_paused = true)]
async fn b02_cache_answers_until_a_connection_is_needed() {
    let world = World::of("demo", "everything").start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> {}
        MCP: 0/1 servers, 0 tools
        ○ demo (not connected)
        ...

        >>> { "search": "sum" }
        No tool matches "sum".
        1 server not listed yet: demo (mcp({ server: "demo" }) connects and lists it)
        "#,
    )
    .await;
    assert_eq!(world.fixture("demo").ledger().connections, 0);
    client.mcp(json!({ "connect": "demo" })).await;
    let home = world.shut_down().await;

    let world = World::of("demo", "everything").home(home).start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> {}
        MCP: 0/1 servers, 30 tools
        ○ demo (30 tools, cached)
        ...

        >>> { "search": "two numbers" }
        demo_add(a: number, b: number)
          Adds two numbers.

        >>> { "server": "demo", "limit": 2 }
        demo (30 tools):
        - demo_echo: Returns the text that it is given.
        - demo_add: Adds two numbers.
        next page: offset 2
        its instructions: mcp({ instructions: "demo" })

        >>> { "describe": "demo_add" }
        demo_add (read-only)
        ...

        >>> { "instructions": "demo" }
        ...
        Use echo to try things out.
        "#,
    )
    .await;
    assert_eq!(world.fixture("demo").ledger().connections, 0);
}

#[tokio::test(start_paused = true)]
async fn b03_call_connects_lists_and_uses_the_original_name() {
    let world = World::of("demo-mcp", "everything").start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "demo-mcp_add", "args": { "a": 2, "b": 40 } }
        42

        >>> { "search": "two numbers" }
        demo-mcp_add(a: number, b: number)
          Adds two numbers.
        "#,
    )
    .await;
    let ledger = world.fixture("demo-mcp").ledger();
    assert_eq!((ledger.connections, ledger.calls.len()), (1, 1));
    assert_eq!(ledger.calls[0].tool, "add");
    let position = |method: &str| ledger.methods.iter().position(|seen| seen == method).unwrap();
    assert!(position("tools/list") < position("tools/call"), "{:?}", ledger.methods);
}

#[tokio::test(start_paused = true)]
async fn b06_search_is_ranked_paged_and_knows_user_keywords() {
    let world = World::with(
        r#"{ "mcpServers": {
            "forge": { "command": "fixture-server", "args": ["hundred-tools"],
                       "searchKeywords": { "archive_label": ["sticker"] } } } }"#,
    )
    .start();
    let mut client = world.client(json!({})).await;
    client.mcp(json!({ "connect": "forge" })).await;
    check(
        &mut client,
        r#"
        >>> { "search": "repository", "includeSchemas": false }
        - forge_archive_commit: Tool 26: archive a commit of a repository.
        ...
        - forge_create_release: Tool 30: create a release of a repository.
        12 of 100; next page: offset 12

        >>> { "search": "repository", "includeSchemas": false, "limit": 2, "offset": 12 }
        - forge_search_release: Tool 35: search a release of a repository.
        - forge_update_branch: Tool 13: update a branch of a repository.
        14 of 100; next page: offset 14

        >>> { "search": "list label", "limit": 1 }
        forge_list_label(repository: string, label?: string, limit?: integer = 20)
          Tool 41: list a label of a repository.
          repository: Owner and name.
        1 of 19; next page: offset 1

        >>> { "search": "label zeppelin", "limit": 1, "includeSchemas": false }
        - forge_assign_label: Tool 47: assign a label of a repository.
        1 of 10; next page: offset 1

        >>> { "search": "sticker", "includeSchemas": false }
        - forge_archive_label: Tool 46: archive a label of a repository.

        >>> { "search": "zeppelin" }
        No tool matches "zeppelin".

        >>> { "search": "zeppelin", "server": "forge" }
        No tool matches "zeppelin".

        >>> { "search": "" }
        [error]
        bad_request: `search` is empty

        >>> { "search": "^forge_list_.*e$", "regex": true, "includeSchemas": false }
        - forge_list_issue: Tool 1: list a issue of a repository.
        - forge_list_release: Tool 31: list a release of a repository.
        - forge_list_milestone: Tool 71: list a milestone of a repository.

        >>> { "search": "(a", "regex": true }
        [error]
        bad_pattern: the search is not a supported regular expression: the pattern is not a regular expression: regex parse error: (a ^ error: unclosed group
        "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn b07_describe_prints_definition_or_nearest_name() {
    let script = r#"
        [[tools]]
        name = "book"
        description = "Books a room."
        input_schema = '{ "type": "object", "properties": { "room": { "type": "string", "description": "Which one", "enum": ["small", "large"] }, "hours": { "type": "integer", "description": "For how long", "minimum": 1, "default": 1 } }, "required": ["room"] }'
        [[resources]]
        uri = "file:///rooms.md"
        name = "rooms"
        text = "two"
    "#;
    let world = World::of("demo", "rooms").script("rooms", script).start();
    let mut client = world.client(json!({})).await;
    client.mcp(json!({ "connect": "demo" })).await;
    check(
        &mut client,
        r#"
        >>> { "describe": "demo_book" }
        demo_book
        Books a room.

        room: "small"|"large" - Which one
        hours?: integer [1..] = 1 - For how long

        >>> { "describe": "demo_read_rooms" }
        demo_read_rooms()
        reads the resource file:///rooms.md
        Read resource: file:///rooms.md

        >>> { "describe": "demo_boko" }
        [error]
        unknown_tool: no tool is named `demo_boko`
        Did you mean: demo_book
        Find it: mcp({ search: "demo boko" })
        "#,
    )
    .await;
}
