//! Messages to a client nest at most 64 levels, however deep a server nests.

use serde_json::{Value, json};
use switchboard::nesting::MOST_LEVELS;
use switchboard_it::client::Client;
use switchboard_it::harness::World;
use switchboard_server::{HostKind, Offer};

fn nested(levels: usize) -> String {
    format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
}

/// The depth of nested brackets outside of strings.
fn depth(line: &str) -> usize {
    let (mut depth, mut most, mut in_string, mut escaped) = (0_usize, 0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        most = most.max(depth);
    }
    most
}

/// A server whose schemas and results nest this deep.
fn world(levels: usize) -> World {
    // The TOML parser limits its depth, so deep JSON is written as strings.
    let deep = nested(levels);
    let schema = format!(r#"{{"type":"object","properties":{{"p":{deep}}}}}"#);
    let blocks = format!(
        r#"{{"content":[{{"type":"text","text":"t","_meta":{deep}}},{{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{deep}}}]}}"#
    );
    let levels = levels.min(70);
    let value = format!("{}1{}", "{ a = ".repeat(levels), " }".repeat(levels));
    let script = format!(
        "[[tools]]\nname = 'deep'\ninput_schema = '{schema}'\n\
         [[tools]]\nname = 'echo'\n\
         [[tools]]\nname = 'structured'\nbehaviour = {{ kind = 'structured', value = {value} }}\n\
         [[tools]]\nname = 'blocks'\nbehaviour = {{ kind = 'raw', rest = '\"result\":{blocks}' }}\n"
    );
    let config = r#"{ "settings": { "approve": "none" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    World::with(config).script("kit", &script).start()
}

async fn said(client: &mut Client, id: u64, method: &str, params: Value) -> String {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    client.send(&request).await;
    loop {
        let line = client.line().await;
        if line.contains(&format!("\"id\":{id},")) || line.ends_with(&format!("\"id\":{id}}}")) {
            return line;
        }
        assert!(depth(&line) <= MOST_LEVELS, "{line}");
    }
}

#[tokio::test]
async fn no_message_nests_deeper_than_64_levels() {
    for levels in [10, 50, 60, 100] {
        for offer in [Offer::Proxy, Offer::Direct, Offer::Mirror("kit".to_owned())] {
            let world = world(levels);
            world.ask(r#"{ "connect": "kit" }"#).await;
            let mut client = world.connected(offer.clone(), HostKind::Any);
            client.initialize("2025-11-25", json!({})).await;
            let listed = said(&mut client, 2, "tools/list", json!({})).await;
            assert!(depth(&listed) <= MOST_LEVELS, "{levels} {offer:?}: {}", depth(&listed));
            if levels >= 60 && offer != Offer::Proxy {
                assert!(listed.contains("its schema nests too deep"), "{offer:?} {listed}");
            }
            let text = nested(levels);
            let call = match &offer {
                Offer::Mirror(_) => json!({ "name": "echo", "arguments": { "text": text } }),
                _ => {
                    json!({ "name": "mcp", "arguments": { "tool": "kit_echo", "args": { "text": text } } })
                }
            };
            let called = said(&mut client, 3, "tools/call", call).await;
            assert!(depth(&called) <= MOST_LEVELS, "{levels} {offer:?}");
            assert!(called.contains(r#"\"a\":"#), "{called}");
            let call = match &offer {
                Offer::Mirror(_) => json!({ "name": "structured", "arguments": {} }),
                _ => json!({ "name": "mcp", "arguments": { "tool": "kit_structured" } }),
            };
            let called = said(&mut client, 5, "tools/call", call).await;
            assert!(depth(&called) <= MOST_LEVELS, "{levels} {offer:?}: {}", depth(&called));
            let call = match &offer {
                Offer::Mirror(_) => json!({ "name": "blocks", "arguments": {} }),
                _ => json!({ "name": "mcp", "arguments": { "tool": "kit_blocks" } }),
            };
            let called = said(&mut client, 6, "tools/call", call).await;
            assert!(depth(&called) <= MOST_LEVELS, "{levels} {offer:?}: {}", depth(&called));
            assert!(called.contains("annotations"), "{called}");
            let described = json!({ "name": "mcp", "arguments": { "describe": "kit_deep" } });
            let described = said(&mut client, 4, "tools/call", described).await;
            assert!(depth(&described) <= MOST_LEVELS);
            world.shut_down().await;
        }
    }
}
