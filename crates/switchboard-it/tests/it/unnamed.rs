//! Calls of tools that the client did not name exactly: by a search or a misspelt name.

use serde_json::{Value, json};
use switchboard::approval::ApprovalAnswer;
use switchboard_it::client::text;
use switchboard_it::harness::{Home, Setup, World};
use switchboard_server::HostKind;

/// Tools without a common word, so that a search matches one of them or none.
const GARDEN: &str = r#"
    [[tools]]
    name = "lookup_weather"
    description = "Forecast of rain and sunshine."
    input_schema = { type = "object", properties = { city = { type = "string" }, days = { type = "integer" } }, required = ["city"] }
    annotations = { readOnlyHint = true }

    [[tools]]
    name = "post_letter"
    description = "Sends paper in an envelope."
    input_schema = { type = "object", properties = { street = { type = "string" } } }

    [[tools]]
    name = "name_stars"
    description = "Constellations at night."
    annotations = { readOnlyHint = true }

    [[tools]]
    name = "burn_wood"
    description = "Warms up a stove."
    annotations = { readOnlyHint = true, destructiveHint = true }

    [[tools]]
    name = "fill_pond"
    description = "Reports a leak."
    annotations = { readOnlyHint = true }
    behaviour = { kind = "fail", text = "the pond is dry" }
"#;

fn garden(settings: &str) -> Setup {
    World::with(&format!(
        r#"{{ "settings": {{ {settings} }}, "mcpServers": {{
            "garden": {{ "command": "fixture-server", "args": ["garden"] }} }} }}"#
    ))
    .script("garden", GARDEN)
}

async fn listed(setup: Setup) -> World {
    let world = setup.start();
    world.ask(r#"{ "connect": "garden" }"#).await;
    world
}

/// Sends a request; checks the start of the response and the calls that reached the server.
async fn check(settings: &str, request: Value, expected: &str, called: &[(&str, Value)]) {
    let world = listed(garden(settings)).await;
    let answer = world.ask(&request.to_string()).await;
    assert!(answer.starts_with(expected), "{request}\n{answer}");
    let calls = world.fixture("garden").ledger().calls;
    let calls: Vec<_> = calls.iter().map(|call| (&*call.tool, call.arguments.clone())).collect();
    assert_eq!(calls, called, "{request}");
}

const FORECAST: &str = "[called garden_lookup_weather, which the search clearly means]\n";

#[tokio::test(start_paused = true)]
async fn search_with_arguments_calls_the_clear_match() {
    for (args, sent) in [
        (json!({ "city": "Oslo" }), json!({ "city": "Oslo" })),
        (json!(r#"{ "city": "Oslo" }"#), json!({ "city": "Oslo" })),
        (json!({ "City": "Oslo", "days": "3" }), json!({ "days": 3, "city": "Oslo" })),
    ] {
        let request = json!({ "search": "weather forecast", "args": args });
        check("", request, &format!("{FORECAST}{sent}"), &[("lookup_weather", sent)]).await;
    }
    let request = json!({ "search": "constellations at night", "args": {} });
    let stars = "[called garden_name_stars, which the search clearly means]\n";
    check("", request, stars, &[("name_stars", json!({}))]).await;
}

#[tokio::test(start_paused = true)]
async fn search_with_arguments_calls_nothing_without_clear_match() {
    let refused = async |settings: &str, request: Value, why: &str| {
        let expected = format!("Not called: {why}");
        check(settings, request, &expected, &[]).await;
    };
    let forecast = |args: Value| json!({ "search": "weather forecast", "args": args });
    refused(
        "",
        forecast(json!({ "days": 3 })),
        "the arguments do not fit: `city` is required (garden_lookup_weather). To call: mcp({ \
         tool: \"garden_lookup_weather\", args })\n\
         garden_lookup_weather(city: string, days?: integer)",
    )
    .await;
    // The schema allows additional arguments, but `street` belongs to another tool.
    let strange = forecast(json!({ "city": "Oslo", "street": "x" }));
    refused("", strange, "the arguments do not fit: `street` is not a parameter").await;
    let letter = json!({ "search": "paper envelope", "args": { "street": "x" } });
    refused("", letter, "garden_post_letter does not declare itself read-only or additive").await;
    let stove = json!({ "search": "warms stove", "args": {} });
    refused("", stove, "garden_burn_wood does not declare itself read-only or additive").await;
    let either = json!({ "search": "weather envelope", "args": {} });
    refused("", either, "no tool is clearly the best match").await;
    let pattern = json!({ "search": "weather", "regex": true, "args": { "city": "Oslo" } });
    refused("", pattern, "no tool is clearly the best match").await;
    let off = r#""searchCalls": false"#;
    refused(
        off,
        forecast(json!({ "city": "Oslo" })),
        "calling a tool from a search is disabled (`searchCalls`)",
    )
    .await;
}

/// Tools that match a search for paint equally well.
const PAINTS: &str = r#"
    [[tools]]
    name = "find_paint"
    description = "Finds paint."
    input_schema = { type = "object", properties = { colour = { type = "string" } }, required = ["colour"] }
    annotations = { readOnlyHint = true }

    [[tools]]
    name = "list_paint"
    description = "Lists paint."
    input_schema = { type = "object", properties = { shelf = { type = "integer" } }, required = ["shelf"] }
    annotations = { readOnlyHint = true }

    [[tools]]
    name = "mix_paint"
    description = "Mixes paint."
    input_schema = { type = "object", properties = { litres = { type = "number" } }, required = ["litres"] }

    [[tools]]
    name = "store_paint"
    description = "Stores paint."
    input_schema = { type = "object", properties = { room = { type = "string" } }, required = ["room"] }
    annotations = { destructiveHint = false, openWorldHint = false }
"#;

#[tokio::test(start_paused = true)]
async fn arguments_decide_between_equally_ranked_search_matches() {
    let check = async |args: Value, expected: &str, called: usize| {
        let world = World::of("shop", "shop").script("shop", PAINTS).start();
        world.ask(r#"{ "connect": "shop" }"#).await;
        let answer = world.ask(&json!({ "search": "paint", "args": args }).to_string()).await;
        assert!(answer.starts_with(expected), "{args}: {answer}");
        assert_eq!(world.fixture("shop").ledger().calls.len(), called, "{args}");
    };
    let found = "[called shop_find_paint, which the search clearly means]\n";
    check(json!({ "colour": "red" }), found, 1).await;
    let listed = "[called shop_list_paint, which the search clearly means]\n";
    check(json!({ "shelf": 3 }), listed, 1).await;
    let stored = "[called shop_store_paint, which the search clearly means]\n";
    check(json!({ "room": "cellar" }), stored, 1).await;
    let writes = "Not called: shop_mix_paint does not declare itself read-only or additive.";
    check(json!({ "litres": 2 }), writes, 0).await;
    let unclear = "Not called: no tool is clearly the best match.";
    check(json!({}), unclear, 0).await;
    check(json!({ "brush": 1 }), unclear, 0).await;
    check(json!({ "colour": "red", "shelf": 3 }), unclear, 0).await;
}

#[tokio::test(start_paused = true)]
async fn search_without_arguments_calls_nothing() {
    for args in [json!(null), json!(" ")] {
        let request = json!({ "search": "constellations at night", "args": args });
        check("", request, "garden_name_stars()\n", &[]).await;
    }
    check("", json!({ "args": {} }), "bad_request: `args` needs a `tool` or a `search`", &[]).await;
    let nothing = json!({ "search": "zebra", "args": {} });
    check("", nothing, "No tool matches \"zebra\".", &[]).await;
    let foreign = json!({ "search": "斑马", "args": {} });
    check("", foreign, "No tool matches \"斑马\". Try English words.", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn approval_gate_applies_to_calls_by_search() {
    let request = json!({ "search": "weather forecast", "args": { "city": "Oslo" } });
    for (settings, expected) in [
        (
            r#""deny": ["garden/lookup_*"]"#,
            "approval_denied: cannot call `garden_lookup_weather`, which the search clearly means: \
             `garden_lookup_weather` is denied by the rule `garden/lookup_*`\n",
        ),
        (
            r#""approve": "all""#,
            "approval_required: cannot call `garden_lookup_weather`, which the search clearly means: ",
        ),
    ] {
        check(settings, request.clone(), expected, &[]).await;
    }
}

/// One destructive tool.
const STOVE: &str = r#"
    [[tools]]
    name = "burn_wood"
    description = "Warms up a stove."
    input_schema = { type = "object", properties = { logs = { type = "integer" } }, required = ["logs"] }
    annotations = { destructiveHint = true }
"#;

#[tokio::test(start_paused = true)]
async fn search_asks_the_user_before_a_destructive_call() {
    let request = json!({ "search": "warms stove", "args": { "logs": 2 } }).to_string();
    let check = async |settings: &str, answers: &[ApprovalAnswer], expected: &str, asked: usize| {
        let config = format!(
            r#"{{ "settings": {{ {settings} }}, "mcpServers": {{
                "house": {{ "command": "fixture-server", "args": ["house"] }} }} }}"#
        );
        let world = World::with(&config).script("house", STOVE).answers(answers.to_vec()).start();
        world.ask(r#"{ "connect": "house" }"#).await;
        let answer = world.ask(&request).await;
        assert!(answer.starts_with(expected), "{settings}: {answer}");
        assert_eq!(world.host.asked(), vec![r#"house_burn_wood {"logs":2}"#; asked], "{settings}");
        let calls = usize::from(answer.starts_with("[called"));
        assert_eq!(world.fixture("house").ledger().calls.len(), calls, "{settings}");
        world
    };
    let called = "[called house_burn_wood, which the search clearly means]\n";
    check("", &[ApprovalAnswer::Once], called, 1).await;
    let denied = "approval_denied: cannot call `house_burn_wood`, which the search clearly means: \
                  the user denied `house_burn_wood`";
    check("", &[ApprovalAnswer::No], denied, 1).await;
    // With a rule that allows the tool, the user would not be asked and not see the chosen tool.
    let hit = "Not called: house_burn_wood does not declare itself read-only or additive.";
    check(r#""allow": ["house/burn_wood"]"#, &[], hit, 0).await;
    check(r#""approve": "none""#, &[], hit, 0).await;
    // The same holds for a tool that the user has approved for the session.
    let world = check("", &[ApprovalAnswer::Tool], called, 1).await;
    let again = world.ask(&request).await;
    assert!(again.starts_with(hit), "{again}");
}

/// A search calls a tool because of its declared annotations. If these change when the server
/// connects, the tool is not called.
#[tokio::test(start_paused = true)]
async fn tool_changed_on_connect_is_not_called_by_search() {
    let home = Home::new();
    listed(garden("").home(home.clone())).await.shut_down().await;
    let world = garden("").home(home.clone()).start();
    let request = r#"{ "search": "weather forecast", "args": { "city": "Oslo" } }"#;
    assert!(world.ask(request).await.starts_with(FORECAST), "the cached listing was not used");
    world.shut_down().await;
    let writes = GARDEN.replacen("readOnlyHint = true", "readOnlyHint = false", 1);
    let world = World::of("garden", "garden").script("garden", &writes).home(home).start();
    let answer = world.ask(request).await;
    assert!(
        answer.starts_with(
            "tool_changed: cannot call `garden_lookup_weather`, which the search clearly means: "
        ),
        "{answer}"
    );
    assert!(world.fixture("garden").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn search_does_not_call_a_pin_blocked_tool() {
    let home = Home::new();
    listed(garden("").home(home.clone())).await.shut_down().await;
    let changed = GARDEN.replacen("rain and sunshine", "rain and sunshine, and more", 1);
    let config = r#"{ "settings": { "pins": "block" }, "mcpServers": {
        "garden": { "command": "fixture-server", "args": ["garden"] } } }"#;
    let world = listed(World::with(config).script("garden", &changed).home(home)).await;
    let request = r#"{ "search": "weather forecast", "args": { "city": "Oslo" } }"#;
    let answer = world.ask(request).await;
    let expected = "Not called: garden_lookup_weather does not match its pin. ";
    assert!(answer.starts_with(expected), "{answer}");
    assert!(world.fixture("garden").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn result_of_search_call_names_its_tool_first() {
    let world = listed(garden("")).await;
    let pond = json!({ "search": "leak pond", "args": {} });
    let line = "[called garden_fill_pond, which the search clearly means]";
    for (host, blocks) in [
        (HostKind::Any, vec![line.to_owned(), "the pond is dry".to_owned()]),
        (HostKind::Pi, vec![format!("MCP tool error: {line}\nthe pond is dry")]),
    ] {
        let mut client = world.client_of(host, json!({})).await;
        let id = client.call(pond.clone()).await;
        let answer = client.answer_to(&id).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        let texts: Vec<_> =
            result["content"].as_array().unwrap().iter().map(|b| &b["text"]).collect();
        assert_eq!(texts, blocks.iter().collect::<Vec<_>>());
        let tool = &result["_meta"]["switchboard/details"]["tool"];
        let expected = if host == HostKind::Pi { json!("fill_pond") } else { Value::Null };
        assert_eq!(*tool, expected, "details are for Pi only");
        let id =
            client.call(json!({ "search": "weather forecast", "args": { "city": "Oslo" } })).await;
        let answer = client.answer_to(&id).await;
        assert_eq!(answer["result"]["isError"], Value::Null);
        assert_eq!(text(&answer), format!("{FORECAST}{}", json!({ "city": "Oslo" })));
    }
}

#[tokio::test(start_paused = true)]
async fn misspelt_tool_name_calls_the_only_similar_tool() {
    let sent = json!({ "city": "Oslo" });
    let expected =
        format!("[called garden_lookup_weather: no tool is named `garden_lokup_weather`]\n{sent}");
    let request = json!({ "tool": "garden_lokup_weather", "args": sent });
    check("", request.clone(), &expected, &[("lookup_weather", sent.clone())]).await;
    check(r#""searchCalls": false"#, request, &expected, &[("lookup_weather", sent.clone())]).await;
    // A server that was never listed is connected first.
    let world = garden("").start();
    let request = json!({ "tool": "garden_lookup_wether", "args": sent });
    let answer = world.ask(&request.to_string()).await;
    assert!(answer.starts_with("[called garden_lookup_weather: "), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn refused_call_by_misspelt_tool_name_shows_the_signature() {
    let offered = async |settings: &str, request: Value, expected: &str| {
        check(settings, request, expected, &[]).await;
    };
    offered(
        "",
        json!({ "tool": "garden_lokup_weather", "args": { "days": 2 } }),
        "unknown_tool: no tool is named `garden_lokup_weather`, and nothing was called: the \
         arguments do not fit: `city` is required (garden_lookup_weather)\n\
         Did you mean: garden_lookup_weather(city: string, days?: integer)",
    )
    .await;
    offered(
        "",
        json!({ "tool": "garden_post_leter", "args": { "street": "x" } }),
        "unknown_tool: no tool is named `garden_post_leter`, and nothing was called: \
         garden_post_letter does not declare itself read-only or additive\n\
         Did you mean: garden_post_letter(street?: string)",
    )
    .await;
    let slip = json!({ "tool": "garden_lokup_weather", "args": { "city": "Oslo" } });
    let denied = "approval_denied: no tool is named `garden_lokup_weather`; the nearest match is \
                  `garden_lookup_weather`: `garden_lookup_weather` is denied";
    offered(r#""deny": ["garden/lookup_weather"]"#, slip.clone(), denied).await;
    offered(r#""approve": "all""#, slip, "approval_required: no tool is named").await;
    let far = json!({ "tool": "garden_weather", "args": { "city": "Oslo" } });
    offered("", far, "unknown_tool: no tool is named `garden_weather`\n").await;
}

#[tokio::test(start_paused = true)]
async fn unknown_tool_name_that_matches_deny_rule_calls_nothing() {
    let denied = r#""deny": ["garden/lokup_weather"]"#;
    let args = json!({ "city": "Oslo" });
    for name in ["garden/lokup_weather", "garden_lokup-weather", "lokup_weather", "Iokup_weather"] {
        let expected =
            format!("approval_denied: `{name}` is denied by the rule `garden/lokup_weather`\n");
        check(denied, json!({ "tool": name, "args": args }), &expected, &[]).await;
    }
    let search = json!({ "search": "garden_lokup_weather", "args": args, "server": "garden" });
    check(denied, search, "Not called: `garden_lokup_weather` matches the `deny` rule", &[]).await;
}

/// Calls through the library need the exact name.
#[tokio::test(start_paused = true)]
async fn library_call_by_misspelt_tool_name_is_refused() {
    let world = listed(garden("")).await;
    let failure = world.call("garden_name_star", json!({})).await.unwrap_err();
    assert_eq!(failure.code, switchboard::failure::Code::UnknownTool);
    assert!(world.fixture("garden").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn parameters_beside_tool_become_args_if_all_are_declared() {
    let taken = json!({ "city": "Oslo", "days": 3 });
    let request = json!({ "tool": "garden_lookup_weather", "city": "Oslo", "days": "3" });
    check("", request, &taken.to_string(), &[("lookup_weather", taken.clone())]).await;
    check(
        "",
        json!({ "tool": "garden_lookup_weather", "city": "Oslo", "street": "x" }),
        "bad_request: `street` is not a parameter of `mcp`; the arguments of \
         `garden_lookup_weather` go into `args`\nExpected parameters:\ncity: string\ndays?: integer",
        &[],
    )
    .await;
    let both = json!({ "tool": "garden_lookup_weather", "city": "Oslo", "args": { "days": 3 } });
    check("", both, "bad_request: `city` is not a parameter of `mcp`", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn argument_error_of_the_server_shows_expected_parameters() {
    let script = |behaviour: &str| {
        format!(
            "[[tools]]
            name = 'look'
            input_schema = {{ type = 'object', properties = {{ city = {{ type = 'string' }} }} }}
            behaviour = {behaviour}"
        )
    };
    let check = async |behaviour: &str, expected: bool| {
        let world = World::of("garden", "one").script("one", &script(behaviour)).start();
        let answer = world.ask(r#"{ "tool": "garden_look" }"#).await;
        let told = answer.matches("Expected parameters:\ncity?: string").count();
        assert_eq!(told, usize::from(expected), "{behaviour}: {answer}");
        let mut client = world.client(json!({})).await;
        assert_eq!(client.mcp(json!({ "tool": "garden_look" })).await, answer);
    };
    check("{ kind = 'fail', text = 'city must be a capital' }", true).await;
    check("{ kind = 'fail', text = 'the disk is full' }", false).await;
    check("{ kind = 'error', code = -32602, message = 'no' }", true).await;
    check("{ kind = 'error', code = -32000, message = 'missing required city' }", true).await;
    check("{ kind = 'error', code = -32000, message = 'not today' }", false).await;
}
