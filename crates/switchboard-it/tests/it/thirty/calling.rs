//! Arguments and results of calls.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::{World, stored_id};
use switchboard_server::HostKind;

use super::{check, one};
use crate::content::{mode, stored};

#[tokio::test(start_paused = true)]
async fn b08_args_are_an_object_or_a_json_string() {
    let world = World::of("demo", "everything").start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "demo_add", "args": { "a": 2, "b": 40 } }
        42

        >>> { "tool": "demo_add", "args": "{\"a\": 2, \"b\": 40}" }
        42

        >>> { "tool": "demo_count" }
        3

        >>> { "tool": "demo_count", "args": "" }
        4

        >>> { "tool": "demo_add", "args": "{ a: 2" }
        [error]
        bad_request: `args` is not valid JSON (line 1, column 3)

        >>> { "tool": "demo_add", "args": "[2, 40]" }
        [error]
        bad_request: `args` must hold a JSON object, not an array

        >>> { "tool": "demo_add", "args": [2, 40] }
        [error]
        bad_request: `args` must hold a JSON object, not an array

        >>> { "tool": "demo_add", "args": 7 }
        [error]
        bad_request: `args` must hold a JSON object, not a number

        >>> { "args": { "tool": "demo_add" } }
        [error]
        bad_request: `args` needs a `tool` or a `search` beside it
        Example: mcp({ tool: "demo_add", args: { "a": 2, "b": 40 } })
        "#,
    )
    .await;
    assert_eq!(world.fixture("demo").ledger().calls.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn b09_errors_are_flagged_with_expected_parameters() {
    let script = r#"
        [[tools]]
        name = "fail"
        behaviour = { kind = "fail", text = "the disk is full" }
        [[tools]]
        name = "refuse"
        input_schema = { type = "object", properties = { when = { type = "string", description = "Not today" } } }
        behaviour = { kind = "error", code = -32602, message = "not today" }
        [[tools]]
        name = "visit"
        behaviour = { kind = "error", code = -32042, message = "go there first", data = { elicitations = [{ mode = "url", url = "https://example.com/consent", elicitationId = "1", message = "Allow it" }] } }
        [[tools]]
        name = "crash"
        behaviour = "crash"
        [[tools]]
        name = "silent"
        behaviour = { kind = "raw", rest = '"result":{"content":[]}' }
    "#;
    let world = World::of("demo", "failing").script("failing", script).start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "demo_fail" }
        [error]
        the disk is full

        >>> { "tool": "demo_refuse" }
        [error]
        server_error: the server answered with an error: error -32602: not today
        Expected parameters:
        when?: string - Not today

        >>> { "tool": "demo_visit" }
        [error]
        server_error: the server answered with an error: error -32042: go there first
        Nothing was done. Ask the user to open this page, then call it again: https://example.com/consent

        >>> { "tool": "demo_silent" }
        (empty result)

        >>> { "tool": "demo_crash" }
        [error]
        outcome_unknown: the server ended before it answered (it closed its output)
        It may have taken effect: check before you call it again
        "#,
    )
    .await;
    let id = client.call(json!({ "tool": "demo_fail" })).await;
    assert_eq!(
        client.answer_to(&id).await["result"]["_meta"],
        Value::Null,
        "details are for Pi only"
    );
}

#[tokio::test(start_paused = true)]
async fn b10_arguments_are_checked_before_the_server_sees_them() {
    let script = r#"
        [[tools]]
        name = "book"
        input_schema = '{ "type": "object", "properties": { "room": { "type": "string", "description": "Which one", "enum": ["small", "large"] }, "hours": { "type": "integer", "minimum": 1, "default": 1 } }, "required": ["room"] }'
    "#;
    let world = World::of("demo", "rooms").script("rooms", script).start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "tool": "demo_book", "args": { "hours": 0 } }
        [error]
        bad_arguments: the arguments do not fit: `room` is required; `hours` must be at least 1
        Expected parameters:
        room: "small"|"large" - Which one
        hours?: integer [1..] = 1

        >>> { "tool": "demo_book", "args": { "room": "blue" } }
        [error]
        bad_arguments: the arguments do not fit: `room` must be "small"|"large"
        Expected parameters:
        room: "small"|"large" - Which one
        hours?: integer [1..] = 1
        "#,
    )
    .await;
    assert_eq!(world.fixture("demo").ledger().calls, []);
    let fits = json!({ "tool": "demo_book", "args": { "room": "small" } });
    assert_eq!(client.mcp(fits).await, r#"{"room":"small"}"#);
}

#[tokio::test(start_paused = true)]
async fn b21_resources_are_read_as_tools_unless_hidden() {
    let script = r#"
        [[tools]]
        name = "echo"
        [[resources]]
        uri = "file:///Team Notes.md"
        name = "Team Notes (2026)"
        text = "all of them"
        [[resources]]
        uri = "file:///plan.md"
        name = "plan"
        description = "What comes next"
        text = "more"
    "#;
    let world = World::of("demo", "notes").script("notes", script).start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "connect": "demo" }
        demo (3 tools):
        - demo_echo
        - demo_read_team_notes_2026: Read resource: file:///Team Notes.md
        - demo_read_plan: What comes next

        >>> { "search": "notes" }
        demo_read_team_notes_2026()
          Read resource: file:///Team Notes.md

        >>> { "tool": "demo_read_team_notes_2026" }
        all of them

        >>> { "tool": "read_plan", "args": {} }
        more
        "#,
    )
    .await;
    let world = one(json!({ "exposeResources": false }), "notes").script("notes", script).start();
    let mut client = world.client(json!({})).await;
    check(
        &mut client,
        r#"
        >>> { "connect": "demo" }
        demo (1 tool):
        - demo_echo

        >>> { "tool": "demo_read_plan" }
        [error]
        unknown_tool: no tool is named `demo_read_plan`
        ...
        "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn b23_images_are_inline_and_blobs_in_private_files() {
    let world = World::of("demo", "everything").start();
    let mut client = world.client(json!({})).await;
    let weather = r#"{"temperature":21.5,"conditions":"cloudy"}"#;
    for (tool, expected) in [
        ("echo", "hi"),
        ("resource", "[Resource: fixture://embedded]\nembedded"),
        ("resource_link", "[Resource Link: linked]\nURI: fixture://linked"),
        ("weather", weather),
        ("weather_structured_only", weather),
        ("unknown_content", r#"{"type":"hologram","depth":3,"data":{"voxels":[1,2,3]}}"#),
        ("read_readme", "# Everything\n"),
    ] {
        let arguments = json!({ "tool": format!("demo_{tool}"), "args": { "text": "hi" } });
        assert_eq!(client.mcp(arguments).await, expected, "{tool}");
    }
    let content = async |client: &mut Client, tool: &str| {
        let id = client.call(json!({ "tool": tool })).await;
        client.answer_to(&id).await["result"]["content"].clone()
    };
    let image = content(&mut client, "demo_image").await;
    assert_eq!((&image[0]["type"], &image[0]["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(image[0]["data"].as_str().unwrap().starts_with("iVBOR"), "{image}");
    let audio = content(&mut client, "demo_audio").await;
    assert_eq!((&audio[0]["type"], &audio[0]["mimeType"]), (&json!("audio"), &json!("audio/wav")));
    let logo = content(&mut client, "demo_read_logo").await;
    let [file] = &stored(&world)[..] else { panic!("one blob is one file: {:?}", stored(&world)) };
    assert!(logo[0]["text"].as_str().unwrap().contains(&*file.to_string_lossy()), "{logo}");
    assert_eq!(mode(file), 0o600);
    assert!(fs::read(file).unwrap().starts_with(b"\x89PNG"));
}

#[tokio::test(start_paused = true)]
async fn b24_long_result_is_truncated_stored_and_bounded() {
    let world = World::of("demo", "everything").start();
    let mut client = world.client_of(HostKind::Pi, json!({})).await;
    for (number, (args, lines)) in
        [(json!({ "bytes": 200_000, "lines": false }), 5), (json!({ "bytes": 200_000 }), 2_000)]
            .into_iter()
            .enumerate()
    {
        let id = client.call(json!({ "tool": "demo_big", "args": args })).await;
        let answer = client.answer_to(&id).await;
        let shown = text(&answer);
        assert!(shown.len() <= 51_200 && shown.lines().count() <= lines, "{}", shown.len());
        let details = &answer["result"]["_meta"]["switchboard/details"];
        assert_eq!(details["mcpResult"]["omitted"], true);
        assert!(details["data"].to_string().len() <= 17 * 1024, "{details}");

        let files = stored(&world);
        assert_eq!(files.len(), number + 1);
        assert!(files.iter().all(|file| mode(file) == 0o600), "{files:?}");
        let id = stored_id(&shown).unwrap();
        let read = client.mcp(json!({ "result": id, "offset": 3_000, "limit": 1 })).await;
        assert_eq!(read.starts_with("line 3001 of a long answer\n"), number == 1, "{read}");
    }
    client.end().await;
}
