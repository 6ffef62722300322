//! Elicitation and sampling requests during a command, answered at the terminal.

use serde_json::json;
use switchboard_it::program::Installed;
use switchboard_it::terminal;

use crate::PROGRAMS;

fn asking() -> Installed {
    Installed::with_fixture(
        PROGRAMS,
        "kit",
        r#"
        [[tools]]
        name = "order"
        behaviour = { kind = "ask_elicitation", message = "Which one?", schema = { type = "object", required = ["size"], properties = { size = { type = "string", enum = ["s", "l"], enumNames = ["Small", "Large"] }, count = { type = "integer", default = 1 }, gift = { type = "boolean" } } } }
        [[tools]]
        name = "login"
        behaviour = { kind = "ask_elicitation", message = "Log in", schema = { type = "object", properties = { password = { type = "string" } } } }
        [[tools]]
        name = "visit"
        behaviour = { kind = "ask_elicitation", message = "Pay here", url = "https://example.com/pay" }
        [[tools]]
        name = "lure"
        behaviour = { kind = "ask_elicitation", message = "Open this", url = "file:///etc/passwd" }
        [[tools]]
        name = "write"
        behaviour = { kind = "ask_sampling", prompt = "A title for \u001b[31mthis?" }
        "#,
    )
}

async fn call(installed: &Installed, tool: &str, typed: &str) -> String {
    let mut command = installed.command();
    let shown = terminal::run(command.env("NO_COLOR", "1").args(["call", tool]), typed).await;
    shown.screen.replace('\r', "")
}

#[tokio::test]
async fn terminal_shows_and_checks_an_elicitation_form() {
    let installed = asking();
    let screen = call(&installed, "kit_order", "y\n\n3\nLarge\ntwo\n2\nn\n").await;
    for part in [
        "The server `kit` asks: Which one?",
        "size\n  1 Small\n  2 Large\n  [number of the choice]:",
        "this field is required",
        "not one of the choices",
        "count [integer; Enter = 1]:",
        "not an integer",
        r#"{"action":"accept","content":{"size":"l","count":2,"gift":false}}"#,
    ] {
        assert!(screen.contains(part), "{part}\n{screen}");
    }
    let screen = call(&installed, "kit_order", "n\n").await;
    assert!(screen.contains(r#"{"action":"decline"}"#), "{screen}");
    // The user types Ctrl-D in the middle of the form.
    let screen = call(&installed, "kit_order", "y\n").await;
    assert!(screen.contains(r#"{"action":"cancel"}"#), "{screen}");
}

#[tokio::test]
async fn secret_elicitation_field_shows_warning_and_is_not_echoed() {
    let screen = call(&asking(), "kit_login", "y\nhunter2\n").await;
    assert!(screen.contains("⚠ The server `kit` asks for a secret (`password`)"), "{screen}");
    let (dialogue, answer) = screen.split_once("{\"action\"").unwrap();
    assert!(!dialogue.contains("hunter2"), "{screen}");
    assert!(answer.contains(r#""password":"hunter2""#), "{screen}");
}

#[tokio::test]
async fn elicitation_shows_https_urls_and_refuses_file_urls() {
    let installed = asking();
    let screen = call(&installed, "kit_visit", "y\n").await;
    assert!(screen.contains("The server asks you to open: https://example.com/pay"), "{screen}");
    assert!(screen.contains(r#"{"action":"accept"}"#), "{screen}");
    let screen = call(&installed, "kit_lure", "y\n").await;
    assert!(screen.contains("must be `https` or lead to this machine"), "{screen}");
    assert!(!screen.contains("The server asks you to open"), "{screen}");
}

#[tokio::test]
async fn user_answers_or_refuses_sampling_on_the_terminal() {
    let installed = asking();
    let screen = call(&installed, "kit_write", "Moby Dick\n").await;
    assert!(screen.contains("user: A title for this?"), "{screen}");
    assert!(screen.contains(r#""text":"Moby Dick""#), "{screen}");
    let screen = call(&installed, "kit_write", "\n").await;
    assert!(screen.contains("the user refused"), "{screen}");
}

#[tokio::test]
async fn elicitation_is_not_offered_without_a_terminal() {
    let installed = asking();
    let ran = installed.run(["call", "kit_order"]).await;
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(said.contains("does not offer elicitation"), "{ran:?}");
}

#[tokio::test]
async fn env_and_pass_env_settings_and_roots_reach_servers() {
    let installed = Installed::bare(PROGRAMS);
    let script = installed.write(
        "kit.toml",
        "[[tools]]\nname = 'env'\nbehaviour = 'env'\n[[tools]]\nname = 'roots'\nbehaviour = 'ask_roots'\n",
    );
    let entry = |more: serde_json::Value| {
        let mut entry = json!({ "command": "fixture-server", "args": [script] });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    let config = json!({
        "settings": { "env": { "GIVEN": "1", "OWN": "2" }, "passEnv": ["PASSED", "UNSET"] },
        "mcpServers": { "kit": entry(json!({ "env": { "OWN": "3" }, "roots": false })) },
    });
    installed.write("switchboard/mcp.json", &config.to_string());
    let mut command = installed.command();
    let ran = command.env("PASSED", "4").env("KEPT", "5").args(["call", "kit_env"]).output().await;
    let said = String::from_utf8(ran.unwrap().stdout).unwrap();
    for part in [r#""GIVEN":"1""#, r#""OWN":"3""#, r#""PASSED":"4""#] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("KEPT") && !said.contains("UNSET"), "{said}");
    let mut client = installed.connect(json!({ "roots": {} })).await;
    let refused = client.mcp(json!({ "tool": "kit_roots" })).await;
    assert!(refused.contains("does not offer roots"), "{refused}");
    client.end().await;
}
