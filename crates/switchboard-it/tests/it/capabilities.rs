//! A server may list different tools to clients with different capabilities. Each client sees the
//! tools that it can call.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard::Gateway;
use switchboard::host::Abilities;
use switchboard_it::client::Client;
use switchboard_it::harness::{Home, Setup, World};
use switchboard_wire::Raw;

const KIT: &str = "
    [[tools]]
    name = 'plain'

    [[tools]]
    name = 'of_roots'
    needs = 'roots'
    behaviour = { kind = 'ask_roots' }

    [[tools]]
    name = 'of_sampling'
    needs = 'sampling'

    [[tools]]
    name = 'of_elicitation'
    needs = 'elicitation'
";

fn kit(home: &Home) -> Setup {
    World::of("kit", "kit").script("kit", KIT).home(home.clone()).for_clients()
}

/// A client that declares these capabilities, connected to the gateway for this set.
async fn client(gateway: &Gateway, home: &Home, capabilities: &Value) -> Client {
    let of = |name: &str| capabilities.get(name).map(|it| Raw::from_json(it.to_string()));
    let abilities =
        Abilities { roots: of("roots"), sampling: of("sampling"), elicitation: of("elicitation") };
    let world = World::of_gateway(gateway.for_client(&abilities), home.clone());
    world.client(capabilities.clone()).await
}

/// The listed tools of a client; checks that it can call each of them.
async fn callable_tools(client: &mut Client) -> Vec<String> {
    let listed = client.mcp(json!({ "connect": "kit" })).await;
    let names = listed.split(['\n', ' ', ':', '(']).filter(|word| word.starts_with("kit_"));
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort();
    names.dedup();
    for name in &names {
        let id = client.call(json!({ "tool": name })).await;
        let answer = loop {
            let message = client.next().await;
            if message["method"] == "roots/list" {
                let answer =
                    json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "roots": [] } });
                client.send(&answer).await;
            } else if message["id"] == id {
                break message;
            }
        };
        assert_eq!(answer["result"]["isError"], Value::Null, "{name}: {answer}");
        assert!(answer["error"].is_null(), "{name}: {answer}");
    }
    names
}

fn capabilities(bits: u8) -> Value {
    let mut capabilities = json!({});
    for (bit, name) in [(1, "roots"), (2, "sampling"), (4, "elicitation")] {
        if bits & bit != 0 {
            capabilities[name] = json!({});
        }
    }
    capabilities
}

fn expected(bits: u8) -> Vec<&'static str> {
    let mut names = vec!["kit_plain"];
    for (bit, name) in [(1, "kit_of_roots"), (2, "kit_of_sampling"), (4, "kit_of_elicitation")] {
        names.extend((bits & bit != 0).then_some(name));
    }
    names.sort_unstable();
    names
}

/// Runs 100 random sequences of clients, on one gateway or on successive gateways.
#[tokio::test(start_paused = true)]
async fn callable_tools_depend_only_on_capabilities_of_the_client() {
    for seed in 0..100 {
        let mut random = fastrand::Rng::with_seed(seed);
        let home = Home::new();
        let mut world = kit(&home).start();
        let mut known: BTreeMap<u8, Vec<String>> = BTreeMap::new();
        for _ in 0..random.usize(2..6) {
            if random.u8(..4) == 0 {
                world.shut_down().await;
                world = kit(&home).start();
            }
            let bits = random.u8(..8);
            let mut client = client(&world.gateway, &home, &capabilities(bits)).await;
            let tools = callable_tools(&mut client).await;
            assert_eq!(tools, expected(bits), "seed {seed}, capabilities {bits:b}");
            let before = known.entry(bits).or_insert_with(|| tools.clone());
            assert_eq!(*before, tools, "seed {seed}, capabilities {bits:b}");
        }
        world.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn cached_listings_are_separate_for_each_capability_set() {
    let home = Home::new();
    for (bits, known) in [(1, false), (0, false), (1, true), (0, true), (7, false)] {
        let world = kit(&home).start();
        let mut client = client(&world.gateway, &home, &capabilities(bits)).await;
        let status = client.mcp(json!({})).await;
        let count = expected(bits).len();
        let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
        assert_eq!(status.contains(&format!("kit ({tools}, cached)")), known, "{bits}: {status}");
        callable_tools(&mut client).await;
        world.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn eager_server_starts_after_the_first_client_connects() {
    let config = r#"{ "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"],
        "lifecycle": "eager" } } }"#;
    let world = World::with(config).script("kit", KIT).for_clients().start();
    let fixture = world.fixture("kit");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(fixture.ledger().connections, 0);
    let _client = world.client(json!({ "roots": {} })).await;
    fixture.until(|ledger| !ledger.initializes.is_empty()).await;
    assert_eq!(fixture.ledger().initializes[0]["capabilities"]["sampling"], Value::Null);
    assert!(fixture.ledger().initializes[0]["capabilities"]["roots"].is_object());
    world.shut_down().await;
}
