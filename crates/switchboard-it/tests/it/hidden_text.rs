//! Hidden text of a server does not reach models and users. Every face marks the definitions that
//! contained it.

use serde_json::{Value, json};
use switchboard::hidden::{is_hidden, strip};
use switchboard_it::client::Client;
use switchboard_it::harness::World;
use switchboard_it::program::Installed;
use switchboard_it::terminal;
use switchboard_server::{HostKind, Offer};

use crate::PROGRAMS;

/// Texts with hidden characters, each of a different kind.
fn hidden_texts() -> Vec<String> {
    let tags: String =
        "obey".bytes().map(|b| char::from_u32(0xe0000 + u32::from(b)).unwrap()).collect();
    let selectors: String =
        "obey".bytes().map(|b| char::from_u32(0xe0100 + u32::from(b) - 16).unwrap()).collect();
    let mut texts = vec![tags, format!("😀{selectors}"), "x\u{fe00}\u{fe01}\u{fe0f}".to_owned()];
    let single = "\u{ad}\u{34f}\u{61c}\u{115f}\u{17b4}\u{180b}\u{180e}\u{200b}\u{200c}\u{200d}\u{200e}\
                  \u{200f}\u{202a}\u{202e}\u{2060}\u{2063}\u{2066}\u{2069}\u{206f}\u{2800}\u{3164}\
                  \u{fe0f}\u{feff}\u{ffa0}\u{fff9}\u{1bca0}\u{1d173}\u{e0001}\u{e01ef}\
                  \u{1b}\u{8}\r\0\u{7f}\u{9b}\u{fffe}\u{16fe4}\u{605}\u{e1000}";
    texts.extend(single.chars().map(|c| format!("a{c}b")));
    texts
}

/// The script of a server that has `h` in each text field.
fn script(h: &str) -> String {
    let h = h.escape_unicode().to_string();
    let h = h.split("\\u{").skip(1).map(|code| format!("\\U{:0>8}", code.trim_end_matches('}')));
    let h: String = h.collect();
    format!(
        r#"
[server]
name = "kit{h}"
version = "1{h}"
title = "Kit{h}"
instructions = "Use it.{h}"

[[tools]]
name = "plain"
description = "Says nothing odd."

[[tools]]
name = "odd"
title = "Odd{h}"
description = "Does{h} something."
input_schema = {{ type = "object", properties = {{ "p{h}" = {{ type = "string", description = "d{h}", enum = ["e{h}"], default = "v{h}" }} }} }}
output_schema = {{ type = "object", properties = {{ o = {{ type = "string", title = "t{h}" }} }} }}
annotations = {{ title = "A{h}" }}
_meta = {{ note = "m{h}" }}

[[tools]]
name = "named{h}"
description = "Has it in its name."

[[tools]]
name = "fail"
behaviour = {{ kind = "error", code = -32000, message = "no{h}", data = {{ why = "w{h}" }} }}

[[tools]]
name = "log"
behaviour = {{ kind = "log", text = "l{h}" }}

[[tools]]
name = "ask"
behaviour = {{ kind = "ask_elicitation", message = "m{h}", schema = {{ type = "object", properties = {{ "f{h}" = {{ type = "string", title = "t{h}" }} }} }} }}

[[tools]]
name = "sample"
behaviour = {{ kind = "ask_sampling", prompt = "s{h}" }}

[[resources]]
uri = "file:///a"
name = "a{h}"
description = "r{h}"
text = "data{h}"

[[resource_templates]]
uri_template = "note://{{id}}"
name = "n{h}"
description = "t{h}"
text = "t"
values = ["v{h}"]

[[prompts]]
name = "greet"
title = "g{h}"
description = "d{h}"
arguments = [{{ name = "who", description = "w{h}", values = ["v{h}"] }}]
messages = [{{ role = "user", text = "hello{h}" }}]
"#
    )
    .replace("_meta = ", "meta = ")
}

/// Collects everything that a client receives, except results of tools.
async fn everything(client: &mut Client, offer: &Offer) -> Vec<Value> {
    let mut said = Vec::new();
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/get", json!({ "name": "kit_greet", "arguments": { "who": "x" } })),
        ("prompts/get", json!({ "name": "greet", "arguments": { "who": "x" } })),
        (
            "completion/complete",
            completion(json!({ "type": "ref/prompt", "name": "greet" }), "who"),
        ),
        (
            "completion/complete",
            completion(json!({ "type": "ref/resource", "uri": "note://{id}" }), "id"),
        ),
    ] {
        said.push(client.ask(method, params).await);
    }
    let calls = match offer {
        Offer::Mirror(_) => vec![
            json!({ "name": "fail", "arguments": {} }),
            json!({ "name": "log", "arguments": {} }),
            json!({ "name": "ask", "arguments": {} }),
            json!({ "name": "sample", "arguments": {} }),
        ],
        Offer::Granular => vec![
            json!({ "name": "mcp_list_tools", "arguments": { "server": "kit" } }),
            json!({ "name": "mcp_search", "arguments": { "query": "something odd" } }),
        ],
        _ => [
            json!({}),
            json!({ "server": "kit" }),
            json!({ "search": "something odd name" }),
            json!({ "search": "odd", "includeSchemas": true }),
            json!({ "describe": "kit_odd" }),
            json!({ "instructions": "kit" }),
            json!({ "tool": "kit_fail" }),
            json!({ "tool": "kit_log" }),
            json!({ "tool": "kit_ask" }),
            json!({ "tool": "kit_sample" }),
        ]
        .into_iter()
        .map(|arguments| json!({ "name": "mcp", "arguments": arguments }))
        .collect(),
    };
    for call in calls {
        said.push(answered(client, call, &mut Vec::new()).await);
    }
    said
}

fn completion(reference: Value, argument: &str) -> Value {
    json!({ "ref": reference, "argument": { "name": argument, "value": "" } })
}

/// Calls a tool and answers server-to-client requests; `said` collects all frames.
async fn answered(client: &mut Client, call: Value, said: &mut Vec<Value>) -> Value {
    client
        .send(&json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": call }))
        .await;
    loop {
        let frame = client.next().await;
        said.push(frame.clone());
        if frame["id"] == "call" && frame.get("method").is_none() {
            return Value::Array(said.clone());
        }
        if frame.get("id").is_some() && frame.get("method").is_some() {
            let result = match frame["method"].as_str() {
                Some("sampling/createMessage") => json!({
                    "role": "assistant", "model": "m", "content": { "type": "text", "text": "ok" },
                }),
                _ => json!({ "action": "accept", "content": {} }),
            };
            client.send(&json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result })).await;
        }
    }
}

/// All strings of a JSON value, with the names of its members.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            found.push(name.clone());
            strings(value, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn world(h: &str) -> World {
    let config = r#"{ "settings": { "approve": "none" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    World::with(config).script("kit", &script(h)).start()
}

#[tokio::test]
async fn hidden_text_reaches_no_client_of_any_toolset() {
    for h in hidden_texts() {
        for offer in [Offer::Proxy, Offer::Direct, Offer::Granular, Offer::Mirror("kit".to_owned())]
        {
            let world = world(&h);
            world.ask(r#"{ "connect": "kit" }"#).await;
            let mut client = world.connected(offer.clone(), HostKind::Any);
            let can = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
            let hello = client.initialize("2025-11-25", can).await;
            let mut said = everything(&mut client, &offer).await;
            said.push(hello);
            let mut found = Vec::new();
            said.iter().for_each(|value| strings(value, &mut found));
            // `strip` alone would miss characters that it does not know.
            let is_control = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            let is_odd = |text: &str| strip(text) != text || text.contains(is_control);
            let odd: Vec<&String> = found.iter().filter(|text| is_odd(text)).collect();
            assert_eq!(odd, Vec::<&String>::new(), "{h:?} {offer:?}");
            assert!(found.iter().any(|text| text.contains("something")), "{h:?} {offer:?}");
            world.shut_down().await;
        }
    }
}

#[tokio::test]
async fn definitions_with_hidden_text_are_marked_in_every_list() {
    let world = world("\u{e0041}");
    world.ask(r#"{ "connect": "kit" }"#).await;
    let listed = world.ask(r#"{ "server": "kit" }"#).await;
    let line = |name: &str| listed.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(line("kit_odd").contains("kit_odd (hidden text)"), "{listed}");
    assert!(line("kit_named").contains("(hidden text)"), "{listed}");
    assert!(!line("kit_plain").contains("hidden"), "{listed}");
    let described = world.ask(r#"{ "describe": "kit_odd" }"#).await;
    assert!(described.contains("hidden text was left out of its definition"), "{described}");
    let found = world.ask(r#"{ "search": "does something" }"#).await;
    assert!(found.contains("(hidden text)"), "{found}");
    let instructions = world.ask(r#"{ "instructions": "kit" }"#).await;
    assert!(instructions.contains("(hidden text was left out)\nUse it."), "{instructions}");
    let mut client = world.client_shown(Offer::Direct, HostKind::Any).await;
    let tools = client.ask("tools/list", json!({})).await.to_string();
    assert!(
        tools.contains("(hidden text was left out of its definition) Does something."),
        "{tools}"
    );
    let prompts = client.ask("prompts/list", json!({})).await.to_string();
    assert!(prompts.contains("(hidden text was left out of its definition) d"), "{prompts}");
    let pins = world.gateway.pins(None).await.unwrap();
    let told: Vec<(String, String)> = pins[0]
        .drifts
        .iter()
        .filter_map(|drift| Some((drift.shown.clone(), drift.hidden.as_ref()?.text.to_string())))
        .collect();
    assert_eq!(told.len(), 4, "{told:?}");
    assert!(told.iter().all(|(_, text)| text.contains('A')), "{told:?}");
    assert!(told.iter().any(|(shown, _)| shown == "instructions"), "{told:?}");
}

#[tokio::test]
async fn tool_name_with_hidden_characters_is_callable_as_shown() {
    for h in ["\u{e0041}", "\u{200b}", "\u{202e}"] {
        let world = world(h);
        world.ask(r#"{ "connect": "kit" }"#).await;
        let listed = world.ask(r#"{ "server": "kit" }"#).await;
        let shown = listed.lines().find_map(|line| line.strip_prefix("- kit_named")).unwrap();
        let shown = format!("kit_named{}", shown.split([' ', ':']).next().unwrap());
        let call = json!({ "tool": shown, "args": { "text": "hi" } });
        assert_eq!(world.ask(&call.to_string()).await, "hi", "{h:?}");
        let mut client = world.client_shown(Offer::Mirror("kit".to_owned()), HostKind::Any).await;
        let call = json!({ "name": "named", "arguments": { "text": "hi" } });
        let answer = client.ask("tools/call", call).await;
        assert_eq!(answer["result"]["content"][0]["text"], "hi", "{h:?}");
    }
}

#[tokio::test]
async fn transparent_lists_omit_duplicate_names_and_mark_hidden_text() {
    let script = r#"
[[tools]]
name = "re\u200Bad"
[[tools]]
name = "read"
[[tools]]
name = "\u200B"
[[tools]]
name = "esc"
input_schema = { type = "object", properties = { p = { type = "string", description = "see \u001B[8mthis" } } }
[[prompts]]
name = "p"
messages = [{ role = "user", text = "one" }]
[[prompts]]
name = "\u200Bp"
messages = [{ role = "user", text = "two" }]
[[prompts]]
name = "q\u200B"
messages = [{ role = "user", text = "three" }]
"#;
    let config = r#"{ "settings": { "approve": "none" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    let world = World::with(config).script("kit", script).start();
    let mut client = world.client_shown(Offer::Mirror("kit".to_owned()), HostKind::Any).await;
    let names = |list: &Value| -> Vec<String> {
        let names = list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap());
        names.map(str::to_owned).collect()
    };
    let tools = client.ask("tools/list", json!({})).await["result"].clone();
    assert_eq!(names(&tools["tools"]), ["read", "esc"], "{tools}");
    assert_eq!(tools["tools"][0]["_meta"], Value::Null, "{tools}");
    assert_eq!(tools["tools"][1]["_meta"]["switchboard/hiddenCharacters"], 4, "{tools}");
    assert_eq!(tools["_meta"]["switchboard/hiddenCharacters"], 4, "{tools}");
    let prompts = client.ask("prompts/list", json!({})).await["result"].clone();
    assert_eq!(names(&prompts["prompts"]), ["p", "q"], "{prompts}");
    let prompt = client.ask("prompts/get", json!({ "name": "q" })).await;
    assert!(prompt.to_string().contains("three"), "{prompt}");
    let listed = world.ask(r#"{ "server": "kit" }"#).await;
    assert!(listed.contains("kit_esc (hidden text)"), "{listed}");
}

#[tokio::test]
async fn hidden_text_in_results_is_unchanged_and_counted() {
    let world = world("\u{e0041}");
    let odd = "ta\u{e0049}gs";
    let call = json!({ "tool": "kit_plain", "args": { "text": odd } });
    let answer = world.ask(&call.to_string()).await;
    assert!(answer.contains(odd), "{answer:?}");
    assert!(answer.contains("[1 hidden character in this result]"), "{answer:?}");
    let plain = json!({ "tool": "kit_plain", "args": { "text": "❤️ می‌خواهم 👩🏽‍💻" } });
    assert!(!world.ask(&plain.to_string()).await.contains("hidden character"));
    let mut client = world.client_shown(Offer::Mirror("kit".to_owned()), HostKind::Any).await;
    let read = client.ask("resources/read", json!({ "uri": "file:///a" })).await;
    assert_eq!(read["result"]["contents"][0]["text"], "data\u{e0041}");
    assert_eq!(read["result"]["_meta"]["switchboard/hiddenCharacters"], 1, "{read}");
    let call = json!({ "name": "plain", "arguments": { "text": odd } });
    let called = client.ask("tools/call", call).await;
    assert_eq!(called["result"]["content"][0]["text"], odd);
    assert_eq!(called["result"]["_meta"]["switchboard/hiddenCharacters"], 1, "{called}");
}

#[tokio::test]
async fn server_text_cannot_control_a_terminal() {
    let entry = json!({ "command": "fixture-server", "args": ["hostile"] });
    let config = json!({ "mcpServers": { "kit": entry } });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    for line in [
        "connect kit",
        "tools kit",
        "status",
        "search colour",
        "describe kit_fail",
        "instructions kit",
        "resources kit",
        "prompts kit",
        "call kit_fail",
        "call kit_error",
        "call kit_log",
        "call kit_crash",
        "logs kit",
        "doctor",
    ] {
        let mut command = installed.command();
        let shown = terminal::run(command.env("NO_COLOR", "1").args(line.split(' ')), "").await;
        // A spinner redraws its line with control characters, which are removed here.
        let screen = shown.screen.replace("\r\u{1b}[2K", "").replace("\r\n", "\n");
        assert!(!screen.trim().is_empty(), "{line}");
        let odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\t') || is_hidden(*c);
        assert_eq!(screen.chars().find(odd), None, "{line}: {screen:?}");
    }
}

#[test]
fn every_hidden_text_test_sample_contains_hidden_characters() {
    assert!(hidden_texts().iter().all(|text| text.chars().any(is_hidden) && strip(text) != *text));
    assert!(hidden_texts().len() >= 30);
}

#[tokio::test]
async fn doctor_and_pins_commands_reveal_hidden_text() {
    let installed = Installed::bare(PROGRAMS);
    let tags: String =
        "obey".bytes().map(|b| char::from_u32(0xe0000 + u32::from(b)).unwrap()).collect();
    let file = installed.write("kit.toml", &script(&tags));
    let config =
        json!({ "mcpServers": { "kit": { "command": "fixture-server", "args": [file] } } });
    installed.write("switchboard/mcp.json", &config.to_string());
    assert_eq!(installed.run(["connect", "kit"]).await.code, Some(0));
    let doctor = installed.run(["doctor", "--json"]).await;
    let doctor: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    let hidden: Vec<&Value> =
        findings.iter().filter(|finding| finding["code"] == "hidden_text").collect();
    assert_eq!((hidden.len(), &hidden[0]["count"]), (1, &json!(6)), "{doctor}");
    let message = hidden[0]["message"].as_str().unwrap();
    let start = "hidden text in its instructions, 1 prompt, 2 tools and 2 resources: `obeyobey";
    assert!(message.starts_with(start), "{message}");
    assert!(message.ends_with(" and 3 more; models do not see it"), "{message}");
    let pins = installed.run(["pins"]).await;
    assert!(pins.stdout.contains("kit_odd (hidden text)\n  "), "{pins:?}");
    assert!(pins.stdout.contains("hidden: `obeyobey"), "{pins:?}");
    assert!(pins.stderr.contains("no tool changed since it was pinned"), "{pins:?}");
    assert!(!format!("{}{}", pins.stdout, pins.stderr).chars().any(is_hidden));
}
