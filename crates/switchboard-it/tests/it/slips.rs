//! Small mistakes in configurations and requests: repaired if the meaning is clear, else reported.

use serde_json::{Value, json};
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

fn installed(config: Value) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    installed.write("tools.toml", "[[tools]]\nname = 'look'\n");
    installed.write("switchboard/mcp.json", &config.to_string());
    installed
}

#[tokio::test]
async fn invalid_entry_is_reported_instead_of_unknown_server() {
    let installed = installed(json!({ "mcpServers": { "g": { "command": 5 } } }));
    for words in [["connect", "g"], ["tools", "g"]] {
        let ran = installed.run(words).await;
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        let said = "error: the entry of `g` is invalid and is not used\n\n\
                    hint: list all errors with `switchboard config check`\n";
        assert!(ran.stderr.ends_with(said), "{}", ran.stderr);
    }
    let doctor = installed.run(["doctor", "g"]).await;
    assert!(doctor.stderr.contains("error: the entry of `g` is refused"), "{}", doctor.stderr);
    // A removed entry is reported as unknown.
    installed.write("switchboard/mcp.json", "{}");
    let ran = installed.run(["connect", "g"]).await;
    assert!(ran.stderr.contains("error: no server is named `g`"), "{}", ran.stderr);
}

#[tokio::test]
async fn keys_of_the_other_transport_cause_warnings() {
    let installed = installed(json!({ "mcpServers": {
        "p": { "command": "x", "headers": { "A": "b" }, "args": ["c"], "env": { "D": "e" } },
        "u": { "url": "http://127.0.0.1:1/", "args": ["c"], "env": {}, "headers": { "A": "b" } },
    } }));
    let checked = installed.run(["config", "check"]).await;
    let said = format!("{}{}", checked.stdout, checked.stderr);
    for expected in [
        "`headers` of server `p` has no effect beside `command`",
        "`args` of server `u` has no effect beside `url`",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    assert_eq!(said.matches("has no effect").count(), 2, "{said}");
}

#[tokio::test]
async fn command_with_arguments_gets_a_hint_to_split() {
    let installed = installed(json!({ "mcpServers": { "n": { "command": "npx -y pkg" } } }));
    let hint = "hint: keep only `npx` in `command`, and move the arguments to `args`";
    let doctor = installed.run(["doctor"]).await;
    assert!(doctor.stdout.contains(hint), "{}", doctor.stdout);
    let connect = installed.run(["connect", "n"]).await;
    assert!(connect.stderr.contains(hint), "{}", connect.stderr);
    installed.run(["add", "--no-check", "--replace", "n", "npx -y 'my pkg'"]).await;
    let shown = installed.run(["config", "show", "--json"]).await.stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let server = &shown["servers"]["n"];
    assert_eq!((&server["command"], &server["args"]), (&json!("npx"), &json!(["-y", "my pkg"])));
}

#[tokio::test]
async fn doctor_warns_of_equal_tool_names_without_prefixes() {
    let entry =
        json!({ "command": "fixture-server", "args": ["tools.toml"], "toolPrefix": "none" });
    let installed = installed(json!({ "mcpServers": { "a": entry, "b": entry } }));
    for server in ["a", "b"] {
        assert_eq!(installed.run(["connect", server]).await.code, Some(0));
    }
    let doctor = installed.run(["doctor"]).await;
    let found = "warning: b: the server has tools of the same names as `a`, and neither shows \
                 a prefix: `look`\n  hint: correct `toolPrefix` of its entry";
    assert!(doctor.stdout.contains(found), "{}", doctor.stdout);
}

#[tokio::test(start_paused = true)]
async fn arguments_key_means_args_unless_tool_declares_it() {
    const TOOLS: &str = r#"
[[tools]]
name = "say"
input_schema = { type = "object", properties = { text = { type = "string" } } }
[[tools]]
name = "run"
input_schema = { type = "object", properties = { arguments = { type = "object" } } }
"#;
    let world = World::of("kit", "tools").script("tools", TOOLS).start();
    world.ask(r#"{ "connect": "kit" }"#).await;
    world.ask(r#"{ "tool": "kit_say", "arguments": { "text": "hi" } }"#).await;
    world.ask(r#"{ "tool": "kit_run", "arguments": { "text": "hi" } }"#).await;
    let calls = world.fixture("kit").ledger().calls.clone();
    let arguments: Vec<Value> = calls.iter().map(|call| call.arguments.clone()).collect();
    assert_eq!(arguments, [json!({ "text": "hi" }), json!({ "arguments": { "text": "hi" } })]);
}

#[tokio::test(start_paused = true)]
async fn tool_list_has_one_page_up_to_forty_tools() {
    let tools = |count: usize| -> String {
        let about = "It does something that takes many words. ".repeat(25);
        (0..count)
            .map(|at| format!("[[tools]]\nname = 't{at}'\ndescription = '{about}'\n"))
            .collect()
    };
    for (count, is_whole) in [(14, true), (40, true), (41, false)] {
        let world = World::of("kit", "tools").script("tools", &tools(count)).start();
        let list = world.ask(r#"{ "server": "kit" }"#).await;
        assert_eq!(!list.contains("next page"), is_whole, "{list}");
        let connected = world.ask(r#"{ "connect": "kit" }"#).await;
        assert_eq!(!connected.contains("next page"), is_whole, "{connected}");
    }
}
