//! Definitions, results and limits that each host gets from its profile.

use serde_json::{Value, json};
use switchboard::host_profile::{HostProfile, PROFILES, UNKNOWN};
use switchboard_it::client::{Client, text};
use switchboard_it::harness::{World, stored_id};
use switchboard_server::HostKind;

use crate::pair::{host, used};

/// The result of `initialize` for a client with this `clientInfo` name.
async fn greeting(world: &World, client: &str) -> Value {
    let mut connection = world.silent_client(HostKind::Any);
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": client, "version": "1" },
    });
    connection.ask("initialize", params).await["result"].clone()
}

fn world(settings: Value) -> World {
    let config = json!({
        "settings": settings,
        "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } },
    });
    World::with(&config.to_string()).start()
}

#[tokio::test(start_paused = true)]
async fn instructions_of_initialize_name_mcp_and_all_servers() {
    let world = world(json!({}));
    let mut client = world.silent_client(HostKind::Any);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                         "clientInfo": { "name": "kit", "version": "1" } });
    let hello = client.ask("initialize", params.clone()).await;
    let before = hello["result"]["instructions"].as_str().unwrap().to_owned();
    assert!(before.starts_with("`mcp` reaches all MCP servers. "), "{before}");
    assert!(before.ends_with(" Servers: demo."), "{before}");
    world.call("demo_echo", json!({ "text": "" })).await.unwrap();
    let again = client.ask("initialize", params).await;
    assert_eq!(
        again["result"]["instructions"], before,
        "unchanged, so the prompt cache stays valid"
    );
    let listed = greeting(&world, "kit").await["instructions"].as_str().unwrap().to_owned();
    assert!(listed.contains(" Servers: demo (echo, add, "), "{listed}");
    assert!(!listed.contains("Use echo"), "the instructions of a server stay out: {listed}");
    let deferred = greeting(&world, "codex-mcp-client").await;
    let instructions = deferred["instructions"].as_str().unwrap();
    assert!(instructions.contains("mcp({search: \"words\"}) finds tools"), "{deferred}");
}

#[tokio::test(start_paused = true)]
async fn digest_false_removes_servers_from_the_instructions() {
    let world = world(json!({ "digest": false }));
    let hello = greeting(&world, "kit").await;
    assert!(!hello["instructions"].as_str().unwrap().contains("Servers:"), "{hello}");
}

#[tokio::test(start_paused = true)]
async fn resources_are_hidden_from_hosts_with_resource_tools() {
    let offers = async |settings: Value, client: &str| {
        greeting(&world(settings), client).await["capabilities"]["resources"].is_object()
    };
    for costly in ["claude-code", "codex-mcp-client", "gemini-cli-mcp-client", "opencode"] {
        assert!(!offers(json!({}), costly).await, "{costly}");
        assert!(offers(json!({ "advertiseResources": "on" }), costly).await, "{costly}");
    }
    for free in ["kit", "qwen-cli-mcp-client-x", "copilot-cli", "@cline/core"] {
        assert!(offers(json!({}), free).await, "{free}");
        assert!(!offers(json!({ "advertiseResources": "off" }), free).await, "{free}");
    }
}

#[tokio::test(start_paused = true)]
async fn tools_for_claude_code_are_marked_always_load() {
    let world = world(json!({}));
    let mut client = world.client_of(host("claude-code"), json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    for tool in listed["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
        assert_eq!(tool["_meta"]["anthropic/maxResultSizeChars"], 100_000, "{tool}");
    }
    let mut client = world.client(json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["_meta"], Value::Null);
}

/// Reads a stored result page by page to its end; returns all lines in order.
async fn followed(client: &mut Client, first: &str) -> Vec<String> {
    let id = stored_id(first).unwrap().to_owned();
    assert!(first.starts_with(&format!("[result: {id} ")), "{first:.80}");
    assert!(first.lines().last().unwrap().starts_with(&format!("[result: {id} ")));
    let (head, rest) = first.split_once("\n[… ").unwrap();
    let mut lines: Vec<String> = head.lines().skip(1).map(str::to_owned).collect();
    let from = rest.split_once("from offset ").unwrap().1;
    let mut next = Some(from.split(' ').next().unwrap().parse::<usize>().unwrap());
    while let Some(offset) = next {
        let (page, _) = used(client, "mcp", json!({ "result": id, "offset": offset })).await;
        let (body, foot) = page.rsplit_once('\n').unwrap();
        lines.extend(body.lines().map(str::to_owned));
        next = foot
            .split_once("next offset: ")
            .map(|(_, at)| at.trim_end_matches(']').parse().unwrap());
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn long_result_is_fully_readable_within_each_host_limit() {
    let world = world(json!({}));
    for profile in PROFILES.iter().chain([&UNKNOWN]) {
        let kind = if profile.name == "pi" { HostKind::Pi } else { host(profile.name) };
        let mut client = world.client_of(kind, json!({})).await;
        let tool = if profile.wants_pair() { "mcp_write" } else { "mcp" };
        let big = json!({ "tool": "demo_big", "args": { "bytes": 200_000 } });
        let (shown, _) = used(&mut client, tool, big).await;
        let most = profile.result_bytes.unwrap_or(51_200);
        assert!(shown.len() <= most && shown.len() > most / 2, "{}: {}", profile.name, shown.len());
        let lines = followed(&mut client, &shown).await;
        let expected: Vec<String> =
            (1..=lines.len()).map(|number| format!("line {number} of a long answer")).collect();
        assert_eq!(lines[..7_448], expected[..7_448], "{}", profile.name);
        assert_eq!(lines.len(), 7_449, "{}", profile.name);
    }
}

/// A server whose definition, instructions and tool list exceed the result limit of most hosts.
fn wordy() -> World {
    let properties: Vec<String> = (0..200)
        .map(|n| {
            let about = format!("What the option number {n} of this tool is for, at some length.");
            format!("\"option_{n}\": {{ \"type\": \"string\", \"description\": \"{about}\" }}")
        })
        .collect();
    let advice: String =
        (0..200).map(|n| format!("Rule {n}: look before the tool is called.\n")).collect();
    let mut script = format!(
        "[server]\ninstructions = '''{advice}'''\n[[tools]]\nname = 'vast'\n\
         input_schema = '{{ \"type\": \"object\", \"properties\": {{ {} }} }}'\n",
        properties.join(", ")
    );
    for n in 0..150 {
        let about = format!("Counts stars of galaxy {n} by night, through the largest telescope.");
        script.push_str(&format!("[[tools]]\nname = 'star_{n}'\ndescription = '{about}'\n"));
    }
    World::of("kit", "kit").script("kit", &script).start()
}

#[tokio::test(start_paused = true)]
async fn no_result_exceeds_the_limit_of_its_host() {
    let world = wordy();
    world.ask(r#"{ "connect": "kit" }"#).await;
    for profile in PROFILES.iter().filter(|profile| profile.name != "pi").chain([&UNKNOWN]) {
        let mut client = world.client_of(host(profile.name), json!({})).await;
        let tool = if profile.wants_pair() { "mcp_write" } else { "mcp" };
        let most = profile.result_bytes.unwrap();
        for request in [
            r#"{ "describe": "kit_vast" }"#,
            r#"{ "instructions": "kit" }"#,
            r#"{ "search": "count stars", "limit": 100 }"#,
        ] {
            let whole = world.ask(request).await;
            let about = format!("{} {request}", profile.name);
            let arguments = serde_json::from_str(request).unwrap();
            let (shown, _) = used(&mut client, tool, arguments).await;
            assert!(shown.len() <= most, "{about}: {}", shown.len());
            if whole.len() <= most {
                assert_eq!(shown, whole, "{about}");
            } else {
                assert_eq!(followed(&mut client, &shown).await.join("\n"), whole, "{about}");
            }
            assert!(profile.name != "cline" || whole.len() > most, "{about}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn user_output_limit_overrides_the_host_limit() {
    let world = world(json!({ "outputGuard": { "maxBytes": 70_000, "maxLines": 9_000 } }));
    let mut client = world.client_of(host("cline"), json!({})).await;
    let big = json!({ "tool": "demo_big", "args": { "bytes": 60_000 } });
    let (shown, _) = used(&mut client, "mcp", big).await;
    assert_eq!(shown.len(), 60_000);
}

#[tokio::test(start_paused = true)]
async fn image_becomes_a_file_for_text_only_hosts() {
    let world = world(json!({}));
    for (name, stored) in [("cline", true), ("opencode", false)] {
        let mut client = world.client_of(host(name), json!({})).await;
        let call = json!({ "name": "mcp", "arguments": { "tool": "demo_image" } });
        let answer = client.ask("tools/call", call).await;
        let kind = &answer["result"]["content"][0]["type"];
        assert_eq!(kind == "text", stored, "{name}: {answer}");
        if stored {
            let note = text(&answer);
            let path = note.strip_prefix("[Image: image/png]\nSaved to ").unwrap();
            assert!(std::path::Path::new(path).is_file(), "{note}");
        }
    }
}

#[test]
fn every_host_result_limit_is_3000_to_51200_bytes() {
    for profile in PROFILES.iter().chain([&UNKNOWN]) {
        let HostProfile { result_bytes, name, .. } = profile;
        assert!(result_bytes.is_none_or(|bytes| (3_000..=51_200).contains(&bytes)), "{name}");
    }
}

/// The host searches as soon as it has started Switchboard.
#[tokio::test(start_paused = true)]
async fn first_search_waits_briefly_for_the_first_listings() {
    let slow = |delay: u32| {
        format!(
            "[faults]\nstart_delay_ms = {delay}\n[[tools]]\nname = 'sum'\n\
             description = 'Sums two numbers.'\n"
        )
    };
    for (delay, found) in [(2_500, true), (5_000, false)] {
        let world = World::of("kit", "kit").script("kit", &slow(delay)).start();
        let mut client = world.client(json!({})).await;
        world.gateway.list_missing_in_background();
        let begun = tokio::time::Instant::now();
        let (said, _) = used(&mut client, "mcp", json!({ "search": "sum two numbers" })).await;
        assert_eq!(said.contains("kit_sum"), found, "{delay}: {said}");
        let waited = begun.elapsed().as_millis();
        assert!(waited <= 3_050, "{waited} ms");
        // Only the first search waits: a server that hangs does not delay later searches.
        let begun = tokio::time::Instant::now();
        used(&mut client, "mcp", json!({ "search": "sum" })).await;
        assert!(begun.elapsed().as_millis() < 50, "{delay}");
    }
}
