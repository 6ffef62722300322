//! Tools that match `deny` rules are neither listed nor found; the error of a call names the rule.

use serde_json::{Value, json};
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const TOOLS: &str = "
[[tools]]
name = 'read_page'
description = 'Reads a page of the book.'
annotations = { readOnlyHint = true }
[[tools]]
name = 'erase_page'
description = 'Erases a page of the book.'
annotations = { destructiveHint = true }
[[tools]]
name = 'erase_line'
description = 'Erases a line of the book.'
";

fn config(settings: &str) -> String {
    format!(
        r#"{{ "settings": {{ {settings} }}, "mcpServers": {{
            "book": {{ "command": "fixture-server", "args": ["tools"] }} }} }}"#
    )
}

const DENIED: &str = r#""deny": ["book/erase_*"]"#;

async fn listed(settings: &str) -> World {
    let world = World::with(&config(settings)).script("tools", TOOLS).start();
    world.ask(r#"{ "connect": "book" }"#).await;
    world
}

#[tokio::test(start_paused = true)]
async fn denied_tools_are_neither_listed_nor_found() {
    let world = listed(DENIED).await;
    let list = world.ask(r#"{ "server": "book" }"#).await;
    assert_eq!(
        list,
        "book (1 tool):\n- book_read_page: Reads a page of the book.\n2 tools denied by rules"
    );
    for search in [r#"{ "search": "erase a page" }"#, r#"{ "search": "book", "regex": true }"#] {
        let found = world.ask(search).await;
        assert!(!found.contains("erase_"), "{found}");
        assert!(found.contains("2 matching tools denied by rules"), "{found}");
    }
    let status = world.ask("{}").await;
    assert!(status.starts_with("MCP: 1/1 servers, 1 tool\n"), "{status}");
    assert!(status.contains("book (1 tool, 2 denied)"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn description_and_refusal_of_denied_tool_quote_its_rule() {
    let world = listed(DENIED).await;
    let described = world.ask(r#"{ "describe": "book_erase_page" }"#).await;
    assert!(described.contains("never called: denied by the rule `book/erase_*`"), "{described}");
    let refused = "approval_denied: `book_erase_page` is denied by the rule `book/erase_*`\n\
                   The user decided so; only they can lift the rule: \
                   switchboard deny --remove 'book/erase_*'";
    for name in ["book_erase_page", "erase_page", "book_erase_pag", "book/Erase-Page"] {
        let answer = world.ask(&json!({ "tool": name }).to_string()).await;
        assert_eq!(answer, refused, "{name}");
    }
    let unknown = world.ask(r#"{ "tool": "book_erase_papers" }"#).await;
    assert!(!unknown.contains("Did you mean: book_erase"), "{unknown}");
    assert!(world.fixture("book").ledger().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn running_gateway_applies_changed_deny_rules_at_once() {
    let world = listed("").await;
    let list = async || world.ask(r#"{ "server": "book" }"#).await;
    assert!(list().await.starts_with("book (3 tools):"));
    world.apply(&config(DENIED));
    assert!(list().await.starts_with("book (1 tool):"));
    world.apply(&config(r#""deny": ["book/erase_line"]"#));
    assert!(list().await.starts_with("book (2 tools):"));
    world.apply(&config(""));
    assert!(list().await.starts_with("book (3 tools):"));
}

#[tokio::test]
async fn deny_rule_saved_during_approval_refuses_the_call() {
    let world = listed(r#""approve": "all""#).await;
    let mut client = world.client(json!({ "elicitation": {} })).await;
    let id = client.call(json!({ "tool": "book_erase_page" })).await;
    let question = client.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    world.apply(&config(DENIED));
    let result = json!({ "action": "accept", "content": { "decision": "once" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
    let answer = client.answer_to(&id).await.to_string();
    assert!(answer.contains("is denied by the rule `book/erase_*`"), "{answer}");
    assert!(world.fixture("book").ledger().calls.is_empty());
}

/// An installation with one listed server and these settings.
async fn installed(settings: Value) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    installed.write("tools.toml", TOOLS);
    let servers = json!({ "book": { "command": "fixture-server", "args": ["tools.toml"] } });
    let config = json!({ "mcpServers": servers, "settings": settings });
    installed.write("switchboard/mcp.json", &config.to_string());
    assert_eq!(installed.run(["connect", "book"]).await.code, Some(0));
    installed
}

#[tokio::test]
async fn direct_and_transparent_lists_omit_denied_tools() {
    let installed = installed(json!({ "deny": ["book/erase_page"] })).await;
    for (toolset, name) in
        [(["--toolset", "direct"], "book_erase_page"), (["--transparent", "book"], "erase_page")]
    {
        let mut client = installed.serve(&toolset);
        client.initialize("2025-11-25", json!({})).await;
        let list = client.ask("tools/list", json!({})).await.to_string();
        assert!(list.contains("erase_line") && !list.contains("erase_page"), "{list}");
        let called = client.ask("tools/call", json!({ "name": name, "arguments": {} })).await;
        assert!(called.to_string().contains("denied by the rule"), "{called}");
        client.end().await;
    }
}

#[tokio::test]
async fn rule_that_matches_no_tool_is_saved_with_warning() {
    let installed = installed(json!({})).await;
    let stderr = async |words: &[&str]| {
        let ran = installed.run(words.iter().copied()).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stderr
    };
    let meant = "warning: `book/erase_pge` matches no known tool; did you mean `book/erase_page`?";
    assert!(stderr(&["deny", "book/erase_pge"]).await.contains(meant));
    let allowed = stderr(&["allow", "read_page"]).await;
    let meant = "warning: `read_page` matches no known tool; did you mean `book/read_page`?";
    assert!(allowed.contains(meant), "{allowed}");
    for fine in [["deny", "book/erase_page"], ["allow", "book/*"], ["deny", "erase_line"]] {
        let said = stderr(&fine).await;
        assert!(!said.contains("matches no known tool"), "{said}");
    }
    let rules = installed.run(["deny"]).await.stdout;
    assert_eq!(rules, "book/erase_pge\nbook/erase_page\nerase_line\n");
    let doctor = installed.run(["doctor"]).await;
    let found = "warning: the `deny` rule `book/erase_pge` matches no known tool\n  \
                 hint: did you mean `book/erase_page`?";
    assert!(doctor.stdout.contains(found), "{}", doctor.stdout);
    assert_eq!(doctor.code, Some(1));
}

const SHELF: &str = "
[[resources]]
uri = 'file:///notes'
name = 'notes'
text = 'notes of %NAME%'
[[resources]]
uri = 'file:///secret'
name = 'secret'
text = 'secret of %NAME%'
[[prompts]]
name = 'review'
messages = [{ role = 'user', text = 'hi' }]
";

fn shelves(settings: Value) -> Installed {
    let installed = Installed::bare(PROGRAMS);
    let servers = ["one", "two"].map(|name| {
        let script = installed.write(&format!("{name}.toml"), &SHELF.replace("%NAME%", name));
        (name.to_owned(), json!({ "command": "fixture-server", "args": [script] }))
    });
    let servers = serde_json::Map::from_iter(servers);
    let config = json!({ "mcpServers": servers, "settings": settings });
    installed.write("switchboard/mcp.json", &config.to_string());
    installed
}

#[tokio::test]
async fn equal_resource_uris_are_distinguished_by_their_server() {
    let installed = shelves(json!({}));
    let mut client = installed.connect(json!({})).await;
    for server in ["one", "two"] {
        client.mcp(json!({ "connect": server })).await;
    }
    let listed = client.ask("resources/list", json!({})).await;
    let listed = listed["result"]["resources"].as_array().unwrap().clone();
    let addresses: Vec<&str> = listed.iter().map(|row| row["uri"].as_str().unwrap()).collect();
    let [one, two] = ["switchboard://one/file:///notes", "switchboard://two/file:///notes"];
    assert!(addresses.contains(&one) && addresses.contains(&two), "{addresses:?}");
    for (uri, text) in [(one, "notes of one"), (two, "notes of two")] {
        let read = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(read["result"]["contents"][0]["text"], text);
        let subscribed = client.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(subscribed["result"], json!({}));
    }
    let bare = client.ask("resources/read", json!({ "uri": "file:///notes" })).await;
    let refused = bare["error"]["message"].as_str().unwrap();
    assert!(refused.contains("several servers have the resource"), "{refused}");
    let ran = installed.run(["read", two]).await;
    assert_eq!(ran.stdout.trim(), "notes of two", "{ran:?}");
    client.end().await;
}

#[tokio::test]
async fn denied_resource_or_prompt_refuses_subscription_and_completion() {
    let installed = shelves(json!({ "deny": ["one/read_secret", "one/review"] }));
    for mirrored in [false, true] {
        let mut command = installed.command();
        command.arg("serve");
        if mirrored {
            command.args(["--transparent", "one"]);
        }
        let mut client = switchboard_it::client::Client::start(&mut command);
        client.initialize("2025-06-18", json!({})).await;
        let (uri, prompt) = match mirrored {
            true => ("file:///secret", "review"),
            false => {
                client.mcp(json!({ "connect": "one" })).await;
                ("switchboard://one/file:///secret", "one_review")
            }
        };
        let argument = json!({ "name": "a", "value": "b" });
        let of_prompt = json!({ "type": "ref/prompt", "name": prompt });
        let of_resource = json!({ "type": "ref/resource", "uri": uri });
        for (method, params) in [
            ("resources/read", json!({ "uri": uri })),
            ("resources/subscribe", json!({ "uri": uri })),
            ("prompts/get", json!({ "name": prompt })),
            ("completion/complete", json!({ "ref": of_prompt, "argument": argument })),
            ("completion/complete", json!({ "ref": of_resource, "argument": argument })),
        ] {
            let answer = client.ask(method, params).await;
            let refused = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(refused.contains("denied by the rule"), "{mirrored} {method} {answer}");
        }
        client.end().await;
    }
}

/// A URI that no listing contains may be an alias of a denied resource.
#[tokio::test]
async fn resource_deny_rule_also_refuses_unlisted_uris() {
    let installed = shelves(json!({ "deny": ["one/read_secret"] }));
    installed.run(["connect", "one"]).await;
    for uri in ["file:///secret", "file://localhost/secret", "file:///sec\tret", "other:thing"] {
        let ran = installed.run(["read", "--server", "one", uri]).await;
        assert_eq!(ran.code, Some(4), "{uri:?} {ran:?}");
        assert!(ran.stderr.contains("denied by the rule `one/read_secret`"), "{ran:?}");
    }
    let ran = installed.run(["read", "--server", "one", "file:///notes"]).await;
    assert_eq!(ran.stdout.trim(), "notes of one", "{ran:?}");
}

/// The slash in the name of a tool or resource is a separator, and not the end of a server's name.
#[tokio::test]
async fn deny_rule_matches_names_with_slashes_after_any_prefix() {
    let script = "[[tools]]\nname = 'admin/delete'\n\
                  [[resources]]\nuri = 'file:///a'\nname = 'conf/Secrets (all)'\ntext = 'x'\n";
    for (rule, target) in [
        ("one_admin/delete", "one_admin/delete"),
        ("one_admin/*", "admin/delete"),
        ("mcp__one__admin/delete", "one/admin/delete"),
        ("read_conf/Secrets (all)", "one_read_conf_secrets_all"),
        ("one_read_conf/*", "one_read_conf_secrets_all"),
    ] {
        let config = json!({
            "mcpServers": { "one": { "command": "fixture-server", "args": ["one"] } },
            "settings": { "deny": [rule] },
        });
        let world = World::with(&config.to_string()).script("one", script).start();
        world.ask(r#"{ "connect": "one" }"#).await;
        let answer = world.ask(&json!({ "tool": target, "args": {} }).to_string()).await;
        assert!(answer.starts_with("approval_denied: "), "{rule}: {answer}");
        assert!(world.fixture("one").ledger().calls.is_empty(), "{rule}");
    }
}
