//! Elicitation forms that request a secret start with a warning that names the server.

use serde_json::{Value, json};
use switchboard_it::client::Client;
use switchboard_it::harness::World;
use switchboard_server::{HostKind, Offer};

/// A form with one field: the name, title and description of the field, and the message of the
/// form.
type Form = (&'static str, &'static str, &'static str, &'static str);

const SECRETS: [Form; 24] = [
    ("password", "", "", "Sign in"),
    ("value", "Password", "", "Sign in"),
    ("value", "", "Your password at the bank", "Sign in"),
    ("value", "", "", "Please enter your password"),
    ("apiKey", "", "", "Go on"),
    ("access_token", "", "", "Go on"),
    ("token", "", "", "Go on"),
    ("card-number", "", "", "Pay"),
    ("cvv", "", "", "Pay"),
    ("pin", "", "", "Pay"),
    ("ssn", "", "", "Who are you?"),
    ("otp", "", "", "Go on"),
    ("code", "One-time code", "", "Go on"),
    ("seedPhrase", "", "", "Restore the wallet"),
    ("p4ssw0rd", "", "", "Go on"),
    ("pass\u{200b}word", "", "", "Go on"),
    ("p\u{430}ssword", "", "", "Go on"),
    ("passwort", "", "", "Weiter"),
    ("motDePasse", "", "", "Continuer"),
    ("contraseña", "", "", "Seguir"),
    ("пароль", "", "", "Дальше"),
    ("密码", "", "", "继续"),
    ("パスワード", "", "", "次へ"),
    ("비밀번호", "", "", "계속"),
];

const OTHERS: [Form; 6] = [
    ("name", "", "", "Who are you?"),
    ("branch", "Branch", "Where to push", "Go on?"),
    ("pageToken", "", "", "Which page?"),
    ("shipping", "Address", "", "Where to?"),
    ("opinion", "", "What do you think of it?", "Well?"),
    ("code", "Postal code", "", "Where to?"),
];

fn world((field, title, description, message): Form, era: &str) -> World {
    let schema = json!({ "type": "object", "properties": {
        field: { "type": "string", "title": title, "description": description },
    } });
    let ask = json!({ "kind": "ask_elicitation", "message": message, "schema": schema });
    let script = json!({
        "server": { "era": era },
        "tools": [{ "name": "ask", "behaviour": ask }],
    });
    let script = toml::to_string(&script).expect("JSON of a script is TOML");
    let config = r#"{ "settings": { "approve": "none" },
        "mcpServers": { "kit": { "command": "fixture-server", "args": ["kit"] } } }"#;
    World::with(config).script("kit", &script).start()
}

/// The message of the elicitation during a tool call, and the response to the call.
async fn asked(client: &mut Client, offer: &Offer) -> (Option<String>, Value) {
    let params = match offer {
        Offer::Mirror(_) => json!({ "name": "ask", "arguments": {} }),
        _ => json!({ "name": "mcp", "arguments": { "tool": "kit_ask" } }),
    };
    client
        .send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }))
        .await;
    let mut message = None;
    loop {
        let frame = client.next().await;
        if frame["method"] == "elicitation/create" {
            message = frame["params"]["message"].as_str().map(str::to_owned);
            let result = json!({ "action": "decline" });
            client.send(&json!({ "jsonrpc": "2.0", "id": frame["id"], "result": result })).await;
        } else if frame["id"] == 7 {
            return (message, frame);
        }
    }
}

#[tokio::test]
async fn form_requesting_secrets_contains_warning_and_server_name() {
    for era in ["legacy", "modern"] {
        for offer in [Offer::Proxy, Offer::Mirror("kit".to_owned())] {
            for form in SECRETS {
                let world = world(form, era);
                let mut client = world.connected(offer.clone(), HostKind::Any);
                client.initialize("2025-11-25", json!({ "elicitation": {} })).await;
                let (message, answer) = asked(&mut client, &offer).await;
                let message =
                    message.unwrap_or_else(|| panic!("{form:?} {offer:?} {era}: {answer}"));
                let warns = message.starts_with("⚠ The server `kit` asks for a secret (`");
                assert!(warns && message.ends_with(form.3), "{form:?} {offer:?} {era}: {message}");
            }
            for form in OTHERS {
                let world = world(form, era);
                let mut client = world.connected(offer.clone(), HostKind::Any);
                client.initialize("2025-11-25", json!({ "elicitation": {} })).await;
                let (message, _) = asked(&mut client, &offer).await;
                let message = message.unwrap_or_default();
                assert!(!message.contains("secret") && message.ends_with(form.3), "{message}");
            }
        }
    }
}

#[tokio::test]
async fn client_without_elicitation_gets_no_form() {
    for era in ["legacy", "modern"] {
        let world = world(SECRETS[0], era);
        let mut client = world.connected(Offer::Proxy, HostKind::Any);
        client.initialize("2025-11-25", json!({})).await;
        let (message, answer) = asked(&mut client, &Offer::Proxy).await;
        assert_eq!(message, None, "{answer}");
        assert_eq!(world.fixture("kit").ledger().calls.len(), 1, "{answer}");
    }
}
