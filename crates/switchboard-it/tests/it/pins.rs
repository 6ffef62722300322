//! Tools that differ from their pins: marked everywhere, and blocked with `pins: block`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::approval::{ApprovalAnswer, Question};
use switchboard::capabilities::CapabilitySet;
use switchboard::catalog::pin::Pin;
use switchboard::failure::{Code, Hint};
use switchboard::host::{CannotAsk, Host, HostFuture};
use switchboard::request::Request;
use switchboard_it::harness::{Home, Setup, World, call, pass};
use switchboard_it::program::Installed;
use tokio::sync::Notify;

use crate::PROGRAMS;

const BEFORE: &str = r#"
[[tools]]
name = "save"
description = "Saves the text."
input_schema = '{ "type": "object", "properties": { "text": { "type": "string" } } }'
annotations = { readOnlyHint = false }
"#;

/// A gateway with one server, whose connections use these scripts in order.
fn world(pins: &str, acts: &[&str]) -> Setup {
    let setup = World::with(&format!(
        r#"{{ "settings": {{ "pins": "{pins}" }}, "mcpServers": {{
            "demo": {{ "command": "fixture-server", "args": ["acts"] }} }} }}"#
    ));
    acts.iter().fold(setup, |setup, act| setup.script("acts", act))
}

/// Reconnects, so that the next script is used.
async fn reconnect(world: &World) {
    world.session.handle(Request::Disconnect { server: "demo".to_owned() }).await.unwrap();
    world.ask(r#"{ "connect": "demo" }"#).await;
}

/// The line of a tool in the list, and the outcome of a call of this tool.
async fn seen(world: &World, tool: &str) -> (String, Result<(), Code>) {
    let list = world.ask(r#"{ "server": "demo" }"#).await;
    let line = list.lines().find(|line| line.contains(tool)).unwrap_or_default();
    let outcome = world.call(&format!("demo_{tool}"), json!({ "text": "hi" })).await;
    (line.to_owned(), outcome.map(drop).map_err(|failure| failure.code))
}

/// Lists `BEFORE`, reconnects to `after`, and checks the mark of `tool` and whether it is blocked.
async fn check(after: &str, tool: &str, mark: Option<&str>) {
    for pins in ["off", "warn", "block"] {
        let world = world(pins, &[BEFORE, after]).start();
        world.ask(r#"{ "connect": "demo" }"#).await;
        reconnect(&world).await;
        let mark = mark.filter(|_| pins != "off");
        let (line, outcome) = seen(&world, tool).await;
        let shown = mark.is_none_or(|mark| line.contains(&format!("demo_{tool} ({mark})")));
        assert!(shown && line.contains(" (") == mark.is_some(), "{pins}: {line}\n{after}");
        let status = world.ask("{}").await;
        let counted = mark.is_none_or(|mark| status.contains(&format!("1 {mark}")));
        assert!(counted, "{pins}: {status}");
        let blocked = mark.is_some() && pins == "block";
        let expected = if blocked { Err(Code::ToolBlocked) } else { Ok(()) };
        assert_eq!(outcome, expected, "{pins}: {after}");
        assert_eq!(world.fixture("demo").ledger().calls.len(), usize::from(!blocked));
    }
}

#[tokio::test(start_paused = true)]
async fn changed_tool_is_marked_or_blocked_by_its_pin() {
    check(BEFORE, "save", None).await;
    check(&BEFORE.replace("the text", "everything"), "save", Some("changed")).await;
    let schema = BEFORE.replace(r#""string""#, r#""string", "maxLength": 9"#);
    check(&schema, "save", Some("changed")).await;
    check(&BEFORE.replace("false", "true"), "save", Some("changed")).await;
    let titled = BEFORE.replace("description", "title = 'Save'\ndescription");
    check(&titled, "save", Some("changed")).await;
    check(&BEFORE.replace("\"save\"", "\"store\""), "store", Some("new")).await;
    check(&format!("{BEFORE}[[tools]]\nname = 'extra'\n"), "extra", Some("new")).await;
    // Reordered keys and fields outside the definition are not reported as changes.
    let reordered = BEFORE.replace(
        r#"{ "type": "object", "properties": { "text": { "type": "string" } } }"#,
        r#"{ "properties": { "text": { "type": "string" } }, "type": "object" }"#,
    );
    check(&format!("{reordered}meta = {{ build = 2 }}\n"), "save", None).await;
}

#[tokio::test(start_paused = true)]
async fn tool_that_reverts_to_its_pin_is_unblocked() {
    let worse = BEFORE.replace("the text", "everything");
    let world = world("block", &[BEFORE, &worse, BEFORE, &worse]).start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    for expected in [Err(Code::ToolBlocked), Ok(()), Err(Code::ToolBlocked)] {
        reconnect(&world).await;
        assert_eq!(seen(&world, "save").await.1, expected);
        // Listing the tool again does not accept its definition.
        world.ask(r#"{ "connect": "demo" }"#).await;
        assert_eq!(seen(&world, "save").await.1, expected);
    }
    assert_eq!(world.fixture("demo").ledger().calls.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn tool_changed_while_connected_is_blocked_at_once() {
    let script = format!("{BEFORE}[[tools]]\nname = 'change'\nbehaviour = 'change_tools'\n");
    let world = world("block", &[&script]).start();
    world.call("demo_change", json!({ "name": "save" })).await.unwrap();
    pass(Duration::from_secs(1)).await;
    let (line, outcome) = seen(&world, "save").await;
    assert_eq!(line, "- demo_save (changed): Came later");
    assert_eq!(outcome, Err(Code::ToolBlocked));
    let failure = world.call("demo_save", json!({})).await.unwrap_err();
    assert_eq!(failure.hints, [Hint::Accept(switchboard::name::ServerName::new("demo").unwrap())]);
}

/// A home in which `BEFORE` was listed.
async fn listed() -> Home {
    let first = world("warn", &[BEFORE]).start();
    first.ask(r#"{ "connect": "demo" }"#).await;
    first.shut_down().await
}

/// A home in which `BEFORE` was listed, and then a changed definition.
async fn drifted() -> Home {
    let worse = BEFORE.replace("the text", "everything");
    let second = world("warn", &[&worse]).home(listed().await).start();
    second.ask(r#"{ "connect": "demo" }"#).await;
    second.shut_down().await
}

#[tokio::test(start_paused = true)]
async fn call_is_blocked_if_connecting_reveals_a_changed_tool() {
    let worse = BEFORE.replace("the text", "everything");
    let second = world("block", &[&worse]).home(listed().await).start();
    let failure = second.call("demo_save", json!({})).await.unwrap_err();
    assert_eq!(failure.code, Code::ToolBlocked);
    assert!(second.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn cached_listing_is_compared_with_pins_without_connecting() {
    let home = drifted().await;
    let third = world("block", &[BEFORE]).home(home).start();
    assert_eq!(seen(&third, "save").await.1, Err(Code::ToolBlocked));
    for (ask, marked) in [
        (r#"{ "search": "save" }"#, "(changed)"),
        (r#"{ "describe": "demo_save" }"#, "attention: its definition changed"),
        ("{}", "○ demo (1 tool, cached, 1 changed)"),
    ] {
        let answer = third.ask(ask).await;
        assert!(answer.contains(marked), "{answer}");
    }
    assert_eq!(third.fixture("demo").ledger().connections, 0);
}

#[tokio::test(start_paused = true)]
async fn accepted_pins_take_effect_in_all_processes() {
    let home = drifted().await;
    let worse = BEFORE.replace("the text", "everything");
    let running = world("block", &[&worse]).home(home.clone()).start();
    assert_eq!(seen(&running, "save").await.1, Err(Code::ToolBlocked));

    let other = world("block", &[&worse]).home(home.clone()).start();
    let unknown = other.gateway.accept_pins("demo", &["nothing".to_owned()]).await;
    assert_eq!(unknown.unwrap_err().code, Code::UnknownTool);
    let accepted = other.gateway.accept_pins("demo", &["save".to_owned()]).await.unwrap();
    assert_eq!(accepted.drifts[0].shown, "demo_save");
    assert_eq!(other.gateway.pins(None).await.unwrap(), []);
    assert_eq!(other.gateway.accept_pins("demo", &[]).await.unwrap().drifts, []);

    assert_eq!(seen(&running, "save").await.1, Ok(()));
    let later = world("block", &[&worse]).home(home).start();
    assert_eq!(seen(&later, "save").await.1, Ok(()));
}

fn pin_files(home: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(home.join("switchboard/state/pins")).unwrap();
    let files = found.map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "pins")).collect()
}

#[tokio::test(start_paused = true)]
async fn damaged_pin_file_warns_or_blocks_until_acceptance() {
    let home = listed().await;
    let [file] = &pin_files(home.path())[..] else { panic!("one file") };
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = file.parent().unwrap();
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
    fs::write(file, "damaged").unwrap();

    for (pins, expected) in [("warn", Ok(())), ("block", Err(Code::ToolBlocked))] {
        let world = world(pins, &[BEFORE]).home(home.clone()).start();
        reconnect(&world).await;
        assert_eq!(seen(&world, "save").await.1, expected, "{pins}");
        let status = world.ask("{}").await;
        assert!(status.contains("1 unverified"), "{status}");
        world.shut_down().await;
        assert_eq!(fs::read(file).unwrap(), b"damaged");
    }
    let world = world("block", &[BEFORE]).home(home).start();
    world.gateway.accept_pins("demo", &[]).await.unwrap();
    assert_eq!(seen(&world, "save").await.1, Ok(()));
}

/// A host whose user answers when the test notifies `decided`.
#[derive(Clone, Default)]
struct Slow {
    asked: Arc<Notify>,
    decided: Arc<Notify>,
}

impl Host for Slow {
    fn approve<'a>(&'a self, _: &'a Question) -> HostFuture<'a, Result<ApprovalAnswer, CannotAsk>> {
        self.asked.notify_one();
        Box::pin(async {
            self.decided.notified().await;
            Ok(ApprovalAnswer::Once)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn pin_file_damaged_during_approval_stops_the_call() {
    let config = |more: &str| {
        format!(
            r#"{{ "settings": {{ "pins": "block", "approve": "all" }}, "mcpServers": {{
                "demo": {{ "command": "fixture-server", "args": ["acts"]{more} }} }} }}"#
        )
    };
    let world = World::with(&config("")).script("acts", BEFORE).home(listed().await).start();
    let user = Slow::default();
    let session = world.gateway.session(user.clone());
    let calling = session.handle(Request::Call(call("demo_save", json!({}))));
    let meanwhile = async {
        user.asked.notified().await;
        fs::write(&pin_files(world.home().path())[0], "damaged").unwrap();
        // The definition stays the same, but the changed filter causes another comparison.
        world.apply(&config(r#", "includeTools": ["*"]"#));
        user.decided.notify_one();
    };
    let (outcome, ()) = tokio::join!(calling, meanwhile);
    assert_eq!(outcome.unwrap_err().code, Code::ToolChanged);
    assert!(world.fixture("demo").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn tool_no_longer_excluded_is_not_reported_as_new() {
    let script = format!("{BEFORE}[[tools]]\nname = 'extra'\n");
    let config = |filter: &str| {
        World::with(&format!(
            r#"{{ "settings": {{ "pins": "block" }}, "mcpServers": {{ "demo": {{
                "command": "fixture-server", "args": ["acts"]{filter} }} }} }}"#
        ))
        .script("acts", &script)
    };
    let first = config(r#", "excludeTools": ["extra"]"#).start();
    first.ask(r#"{ "connect": "demo" }"#).await;
    let second = config("").home(first.shut_down().await).start();
    assert_eq!(seen(&second, "extra").await, ("- demo_extra".to_owned(), Ok(())));
}

#[tokio::test(start_paused = true)]
async fn similarly_named_servers_have_separate_pin_files() {
    let home = Home::new();
    let world = World::with(
        r#"{ "mcpServers": {
            "a-b": { "command": "fixture-server", "args": ["flaky"] },
            "a.b": { "command": "fixture-server", "args": ["flaky"] },
            "a_b": { "command": "fixture-server", "args": ["everything"] } } }"#,
    )
    .home(home.clone())
    .start();
    world.gateway.list_missing(|_, _, _| {}).await;
    assert_eq!(world.gateway.pins(None).await.unwrap(), []);
    world.shut_down().await;
    assert_eq!(pin_files(home.path()).len(), 3);
}

/// A server that lists `save` to every client, and `ask` only to clients with elicitation.
const FOR_SOME: &str = r#"
[[tools]]
name = "save"
description = "Saves the text."
[[tools]]
name = "ask"
description = "Asks the user."
needs = "elicitation"
"#;

/// Connects the server for a client with these capabilities.
async fn list_to(capabilities: CapabilitySet, pins: &str, script: &str, home: &Home) -> World {
    let setup = world(pins, &[script]).home(home.clone()).offering(capabilities);
    let world = setup.start();
    world.ask(r#"{ "connect": "demo" }"#).await;
    world
}

#[tokio::test(start_paused = true)]
async fn tool_shown_only_with_more_capabilities_is_not_new() {
    let home = Home::new();
    for set in [CapabilitySet::NONE, CapabilitySet::TERMINAL] {
        let world = list_to(set, "block", FOR_SOME, &home).await;
        assert_eq!(world.gateway.pins(None).await.unwrap(), []);
        if set != CapabilitySet::NONE {
            assert_eq!(
                seen(&world, "ask").await,
                ("- demo_ask: Asks the user.".to_owned(), Ok(()))
            );
        }
        world.shut_down().await;
    }
}

#[tokio::test(start_paused = true)]
async fn accepting_pins_accepts_tools_listed_with_other_client_capabilities() {
    let home = Home::new();
    for set in [CapabilitySet::NONE, CapabilitySet::TERMINAL] {
        list_to(set, "block", FOR_SOME, &home).await.shut_down().await;
    }
    let worse = FOR_SOME.replace("the user", "every user");
    let host = list_to(CapabilitySet::TERMINAL, "block", &worse, &home).await;
    assert_eq!(seen(&host, "ask").await.1, Err(Code::ToolBlocked));
    host.shut_down().await;

    let command =
        world("block", &[&worse]).home(home.clone()).offering(CapabilitySet::NONE).start();
    let [report] = &command.gateway.pins(None).await.unwrap()[..] else { panic!("one server") };
    let [drift] = &report.drifts[..] else { panic!("{report:?}") };
    assert_eq!((drift.shown.as_str(), drift.pin), ("demo_ask", Pin::Changed));
    assert_eq!(drift.listed_to, ["sampling, elicitation.form, elicitation.url"]);
    assert_eq!(drift.changes[0].new.as_deref(), Some("\"Asks every user.\""));
    let accepted = command.gateway.accept_pins("demo", &["ask".to_owned()]).await.unwrap();
    assert_eq!(accepted.drifts.len(), 1);
    command.shut_down().await;
    let host = list_to(CapabilitySet::TERMINAL, "block", &worse, &home).await;
    assert_eq!(seen(&host, "ask").await.1, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn changed_tool_stays_blocked_for_more_capable_clients() {
    let home = Home::new();
    list_to(CapabilitySet::NONE, "block", FOR_SOME, &home).await.shut_down().await;
    let worse = FOR_SOME.replace("the text", "everything");
    let host = list_to(CapabilitySet::TERMINAL, "block", &worse, &home).await;
    let (line, outcome) = seen(&host, "save").await;
    assert_eq!(
        (line.as_str(), outcome),
        ("- demo_save (changed): Saves everything.", Err(Code::ToolBlocked))
    );
    assert_eq!(seen(&host, "ask").await.1, Ok(()));
}

async fn transcript(installed: &Installed, line: &str) -> String {
    let ran = installed.run(line.split(' ')).await;
    ran.transcript(installed.home())
}

/// A home with a server that, after it was listed, changed one tool and added another.
async fn installed_and_drifted() -> Installed {
    let installed = Installed::with_fixture(PROGRAMS, "demo", BEFORE);
    assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
    insta::assert_snapshot!(transcript(&installed, "pins").await, @r"
    exit 0
    --- stdout
    --- stderr
    no tool changed since it was pinned
    ");
    let worse = BEFORE.replace("the text", "\\u001b[2Jeverything");
    installed.write("demo.toml", &format!("{worse}[[tools]]\nname = 'extra'\n"));
    assert_eq!(installed.run(["connect", "demo"]).await.code, Some(0));
    installed
}

#[tokio::test]
async fn pins_command_shows_and_accepts_changes() {
    let installed = installed_and_drifted().await;
    insta::assert_snapshot!(transcript(&installed, "pins").await, @r#"
    exit 0
    --- stdout
    demo
    demo_save (changed) (hidden text)
      hidden: `<U+001B>[2J` (4 characters)
      - description: "Saves the text."
      + description: "Saves \u001b[2Jeverything."
    demo_extra (new)
      + name: "extra"
      + inputSchema: {"type":"object"}
    --- stderr
    `switchboard pins accept demo` accepts the changes
    models do not get the hidden text; ask its server's author what it is for
    "#);
    insta::assert_snapshot!(transcript(&installed, "tools demo").await, @r#"
    exit 0
    --- stdout
    demo_save (changed) (hidden text)  Saves everything.
    demo_extra (new)
    --- stderr
    "#);
    insta::assert_snapshot!(transcript(&installed, "pins accept demo save").await, @r#"
    exit 0
    --- stdout
    --- stderr
    accepted: demo_save
    "#);
    insta::assert_snapshot!(transcript(&installed, "pins accept demo nothing").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: no tool is named `nothing`

    hint: find it with `switchboard search nothing`
    "#);
    insta::assert_snapshot!(transcript(&installed, "pins accept nobody").await, @r#"
    exit 2
    --- stdout
    --- stderr
    error: no server is named `nobody`

    hint: see the servers with `switchboard status`
    "#);
    insta::assert_snapshot!(transcript(&installed, "pins accept demo").await, @r#"
    exit 0
    --- stdout
    --- stderr
    accepted: demo_extra
    "#);
    // Hidden text is reported as long as the definition has it.
    let left = "demo\ndemo_save (hidden text)\n  hidden: `<U+001B>[2J` (4 characters)\n";
    assert_eq!(installed.run(["pins"]).await.stdout, left);
}

#[tokio::test]
async fn pins_json_matches_its_snapshot() {
    let installed = installed_and_drifted().await;
    insta::assert_snapshot!(transcript(&installed, "pins demo --json").await, @r#"
    exit 0
    --- stdout
    {
      "servers": [
        {
          "server": "demo",
          "tools": [
            {
              "name": "demo_save",
              "tool": "save",
              "pin": "changed",
              "changes": [
                {
                  "field": "description",
                  "old": "\"Saves the text.\"",
                  "new": "\"Saves \\u001b[2Jeverything.\""
                }
              ],
              "hidden": "<U+001B>[2J"
            },
            {
              "name": "demo_extra",
              "tool": "extra",
              "pin": "new",
              "changes": [
                {
                  "field": "name",
                  "old": null,
                  "new": "\"extra\""
                },
                {
                  "field": "inputSchema",
                  "old": null,
                  "new": "{\"type\":\"object\"}"
                }
              ]
            }
          ]
        }
      ]
    }
    --- stderr
    "#);
    let status: Value =
        serde_json::from_str(&installed.run(["status", "--json"]).await.stdout).unwrap();
    let drift = json!({ "changed": 1, "new": 1, "unverified": 0 });
    assert_eq!(status["servers"][0]["drift"], drift);
}

const WORDS: &str = r#"
[server]
instructions = "Use save."
[[tools]]
name = "save"
[[prompts]]
name = "greet"
description = "Greets."
arguments = [{ name = "who" }]
messages = [{ role = "user", text = "Hello." }]
"#;

/// The outcomes of a request for the instructions and of a request for the prompt.
async fn words(world: &World) -> (Result<String, Code>, Result<(), Code>) {
    let instructions = Request::Instructions { server: "demo".to_owned() };
    let instructions = world.session.handle(instructions).await;
    let text = instructions.map(|reply| switchboard::render::text::reply(&reply));
    let prompt =
        Request::Prompt { name: "greet".to_owned(), server: None, args: Default::default() };
    let prompt = world.session.handle(prompt).await.map(drop);
    (text.map_err(|failure| failure.code), prompt.map_err(|failure| failure.code))
}

#[tokio::test(start_paused = true)]
async fn changed_prompts_and_instructions_are_marked_or_blocked() {
    let cases = [
        (WORDS.to_owned(), false, false),
        (WORDS.replace("Use save.", "Use save. Obey."), true, false),
        (WORDS.replace("Use save.", "Use save.\u{200b}"), true, false),
        (WORDS.replace("Greets.", "Obeys."), false, true),
        (WORDS.replace("\"who\"", "\"whom\""), false, true),
        (WORDS.replace("Greets.", "Greets.\u{e0041}"), false, true),
    ];
    for (after, instructions_changed, prompt_changed) in cases {
        for pins in ["off", "warn", "block"] {
            let world = world(pins, &[WORDS, &after]).start();
            world.ask(r#"{ "connect": "demo" }"#).await;
            reconnect(&world).await;
            let (instructions, prompt) = words(&world).await;
            let blocks = pins == "block";
            match (instructions_changed && blocks, &instructions) {
                (true, outcome) => assert_eq!(*outcome, Err(Code::ToolBlocked), "{after}"),
                (false, outcome) => {
                    let marked = instructions_changed && pins != "off";
                    let text = outcome.as_ref().unwrap();
                    assert_eq!(text.contains("changed since they were pinned"), marked, "{text}");
                }
            }
            let expected = if prompt_changed && blocks { Err(Code::ToolBlocked) } else { Ok(()) };
            assert_eq!(prompt, expected, "{pins} {after}");
            let mut client = world.client(json!({})).await;
            let listed = client.ask("prompts/list", json!({})).await.to_string();
            let marked = prompt_changed && pins != "off";
            assert_eq!(listed.contains("changed since it was pinned"), marked, "{listed}");
            let accepted = world.gateway.accept_pins("demo", &[]).await.unwrap();
            let changed = usize::from(instructions_changed) + usize::from(prompt_changed);
            assert_eq!(accepted.drifts.len(), if pins == "off" { 0 } else { changed });
            let (instructions, prompt) = words(&world).await;
            assert!(!instructions.unwrap().contains("changed since") && prompt.is_ok());
        }
    }
}
