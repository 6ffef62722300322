//! Property: for any declarations, rules and spellings, `mcp` of the pair reaches only tools that
//! declare `readOnlyHint`.

use std::collections::BTreeMap;

use fastrand::Rng;
use serde_json::{Map, Value, json};
use switchboard_it::harness::World;

use super::{host, used};

/// The number of gateways with random servers. Each gets [`REQUESTS`] requests.
const CATALOGS: usize = 500;
const REQUESTS: usize = 20;

const SERVERS: [&str; 6] = ["github", "files", "mcp", "a", "my-notes", "GitHub2"];
const VERBS: [&str; 8] = ["read", "write", "list", "delete", "get", "create", "reed", "search"];
const NOUNS: [&str; 6] = ["file", "files", "issue", "note", "", "mcp_write"];

/// Annotations that a server may declare; the first two are read-only.
const DECLARED: [&str; 11] = [
    r#"{"readOnlyHint":true}"#,
    r#"{"readOnlyHint":true,"idempotentHint":true,"destructiveHint":false}"#,
    r#"{"readOnlyHint":true,"destructiveHint":true}"#,
    r#"{"readOnlyHint":false}"#,
    r#"{"readOnlyHint":"true"}"#,
    r#"{"readOnlyHint":1}"#,
    r#"{"readonlyhint":true}"#,
    r#"{"destructiveHint":false,"idempotentHint":true}"#,
    r#"{"destructiveHint":true}"#,
    r#"{"annotations":{"readOnlyHint":true}}"#,
    "{}",
];
const READ_ONLY: usize = 2;

/// The tools of one server: the name of each, and the index of its annotations in [`DECLARED`].
type Tools = BTreeMap<String, usize>;

fn random_tools(random: &mut Rng) -> Tools {
    let name = |random: &mut Rng| {
        let (verb, noun) = (VERBS[random.usize(..VERBS.len())], NOUNS[random.usize(..NOUNS.len())]);
        let joint = if noun.is_empty() { "" } else { ["_", "-", "."][random.usize(..3)] };
        let name = format!("{verb}{joint}{noun}");
        if random.u8(..4) == 0 { name.to_uppercase() } else { name }
    };
    (0..random.usize(1..7)).map(|_| (name(random), random.usize(..DECLARED.len()))).collect()
}

fn script(tools: &Tools) -> String {
    let tool = |(name, declared): (&String, &usize)| {
        let annotations: Value = serde_json::from_str(DECLARED[*declared]).unwrap();
        let annotations: Vec<String> = annotations
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| match value {
                Value::Object(inner) => {
                    format!("{key} = {{ readOnlyHint = {} }}", inner["readOnlyHint"])
                }
                other => format!("{key} = {other}"),
            })
            .collect();
        format!(
            "[[tools]]\nname = '{name}'\ndescription = 'Can {name} anything.'\n\
             annotations = {{ {} }}\n",
            annotations.join(", ")
        )
    };
    tools.iter().map(tool).collect()
}

fn config(random: &mut Rng, servers: &BTreeMap<&str, Tools>) -> String {
    let one = |list: &[Value], random: &mut Rng| list[random.usize(..list.len())].clone();
    let entry = |name: &str, random: &mut Rng| {
        let mut entry = json!({ "command": "fixture-server", "args": [name] });
        if random.bool() {
            let prefixes = [json!("none"), json!("short"), json!("mcp"), json!("server")];
            entry["toolPrefix"] = one(&prefixes, random);
        }
        if random.u8(..3) == 0 {
            entry["approveTools"] = one(&[json!(false), json!(true), json!(["*write*"])], random);
            entry["directTools"] = json!(true);
        }
        entry
    };
    let entries: Map<String, Value> =
        servers.keys().map(|name| ((*name).to_owned(), entry(name, random))).collect();
    let approve = [json!("none"), json!("destructive"), json!("writes"), json!("all")];
    let allow = [json!([]), json!(["*"]), json!(["*/*"]), json!(["github/*"])];
    let settings = json!({
        "approve": one(&approve, random),
        "allow": one(&allow, random),
        "searchCalls": random.u8(..4) > 0,
        "pins": one(&[json!("off"), json!("warn"), json!("block")], random),
    });
    json!({ "settings": settings, "mcpServers": entries }).to_string()
}

/// The name of a tool, as a model might spell it.
fn spelled(random: &mut Rng, server: &str, tool: &str) -> String {
    let joint = ["_", "-", "/", "__", "."][random.usize(..5)];
    let mut name = match random.u8(..4) {
        0 => tool.to_owned(),
        1 => format!("{server}{joint}{tool}"),
        2 => format!("mcp__{server}__{tool}"),
        _ => format!("{server}_{tool}").replace('-', "_"),
    };
    if random.u8(..4) == 0 {
        name = name.to_lowercase();
    }
    if random.u8(..4) == 0 && name.len() > 5 {
        name.remove(random.usize(1..name.len() - 1));
    }
    name
}

fn request(random: &mut Rng, servers: &BTreeMap<&str, Tools>) -> Value {
    let (server, tools) = servers.iter().nth(random.usize(..servers.len())).unwrap();
    let tool = tools.keys().nth(random.usize(..tools.len())).unwrap();
    let name = spelled(random, server, tool);
    let words = name.replace(['_', '-', '/', '.'], " ");
    let mut request = match random.u8(..10) {
        0..4 => json!({ "tool": name, "args": {} }),
        4 => json!({ "tool": name, "args": "{}" }),
        5 => json!({ "tool": tool, "server": server }),
        6 => json!({ "search": words, "args": {} }),
        7 => json!({ "search": words, "server": server, "args": {}, "select": "." }),
        8 => json!({ "tool": name, "describe": name, "connect": server }),
        _ => json!({ "tool": name, "result": "abc", "select": ".", "regex": true }),
    };
    if random.u8(..5) == 0 {
        request["extra"] = json!(1);
    }
    request
}

#[tokio::test(start_paused = true)]
async fn only_read_only_tools_are_reachable_through_mcp() {
    let mut random = Rng::with_seed(18);
    let hosts = ["claude-code", "codex", "gemini-cli", "copilot-cli"];
    let (mut reached, mut refused) = (0, 0);
    for number in 0..CATALOGS {
        let servers: BTreeMap<&str, Tools> = (0..random.usize(1..4))
            .map(|_| (SERVERS[random.usize(..SERVERS.len())], random_tools(&mut random)))
            .collect();
        let mut world = World::with(&config(&mut random, &servers));
        for (server, tools) in &servers {
            world = world.script(server, &script(tools));
        }
        let world = world.start();
        let mut client = world.client_of(host(hosts[number % hosts.len()]), json!({})).await;
        for server in servers.keys() {
            used(&mut client, "mcp", json!({ "connect": server })).await;
        }
        for _ in 0..REQUESTS {
            let request = request(&mut random, &servers);
            let (said, _) = used(&mut client, "mcp", request).await;
            refused += usize::from(said.contains("not_read_only"));
        }
        for (server, tools) in &servers {
            for call in world.fixture(server).ledger().calls {
                let declared = tools[&call.tool];
                assert!(declared < READ_ONLY, "{server}: {call:?} declares {}", DECLARED[declared]);
                reached += 1;
            }
        }
        client.end().await;
        world.gateway.shutdown().await;
    }
    // Ensures that the property was exercised.
    assert!(reached > 500 && refused > 1_000, "{reached} reached, {refused} refused");
}
