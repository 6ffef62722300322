//! Servers at a URL: transports, lost sessions and credentials.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use switchboard_it::client::Client;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::World;
use switchboard_it::program::Installed;

use super::said;
use crate::PROGRAMS;
use crate::remote::served;

fn world(fixture: &HttpFixture) -> World {
    World::with(&json!({ "mcpServers": { "far": { "url": fixture.url() } } }).to_string()).start()
}

async fn echo(client: &mut Client) -> String {
    said(client, json!({ "tool": "far_echo", "args": { "text": "hi" } })).await
}

/// A server that answers the first request to its URL with this status.
async fn answering(status: u16, form: &str) -> HttpFixture {
    let mut script = served(form, "everything");
    for method in ["server/discover", "initialize"] {
        script.push_str(&format!(
            "[[http.canned]]\nto = '{method}'\npath = '/mcp'\nstatus = {status}\n"
        ));
    }
    HttpFixture::start(&script).await
}

#[tokio::test]
async fn b15_client_falls_back_to_sse_and_recovers_sessions() {
    for status in [404, 405, 406, 415] {
        let fixture = answering(status, "legacy").await;
        let world = world(&fixture);
        assert_eq!(echo(&mut world.client(json!({})).await).await, "hi", "{status}");
        assert!(fixture.asked().contains(&"GET".to_owned()), "{status}");
        world.shut_down().await;
    }
    for status in [401, 403, 500, 503] {
        let fixture = answering(status, "legacy").await;
        let world = world(&fixture);
        let failed = echo(&mut world.client(json!({})).await).await;
        assert!(failed.starts_with("[error]\n"), "{status}: {failed}");
        assert!(!fixture.asked().contains(&"GET".to_owned()), "{status}: {:?}", fixture.asked());
        world.shut_down().await;
    }

    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let world = world(&fixture);
    let mut client = world.client(json!({})).await;
    assert_eq!(echo(&mut client).await, "hi");
    fixture.forget_sessions();
    assert_eq!(echo(&mut client).await, "hi");
    let ledger = fixture.state().ledger();
    assert_eq!(
        (ledger.initializes.len(), ledger.calls.len()),
        (2, 2),
        "expected one new session and no repeated call"
    );
    world.shut_down().await;
}

/// Fields of an entry, and the headers that its server receives.
fn shown() -> Vec<(Value, Vec<(&'static str, &'static str)>)> {
    let bearer = vec![("authorization", "Bearer canary")];
    vec![
        (json!({ "bearerToken": "canary" }), bearer.clone()),
        (json!({ "bearerTokenEnv": "TOKEN" }), bearer.clone()),
        (json!({ "bearerToken": "!echo canary", "auth": "bearer" }), bearer.clone()),
        (json!({ "bearerTokenStore": true }), bearer.clone()),
        (json!({ "bearerToken": "${TOKEN}" }), bearer.clone()),
        (json!({ "bearerToken": "$env:TOKEN" }), bearer.clone()),
        (json!({ "bearerToken": "{env:TOKEN}" }), bearer),
        (
            json!({ "headers": { "X-One": "a ${TOKEN}", "X-Two": "!echo b", "X-Three": "!!c" } }),
            vec![("x-one", "a canary"), ("x-two", "b"), ("x-three", "!c")],
        ),
        (json!({ "headers": { "X-One": "${NOTHING:-otherwise}" } }), vec![("x-one", "otherwise")]),
    ]
}

#[tokio::test]
async fn b16_tokens_and_headers_are_sent_as_configured() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let mut servers = json!({ "gap": { "url": format!("{}?key=${{NOTHING}}", fixture.url()) } });
    for (number, (entry, _)) in shown().into_iter().enumerate() {
        let mut entry = entry;
        entry["url"] = json!(fixture.url());
        servers[format!("s{number}")] = entry;
    }
    let config = json!({ "settings": { "firstListing": false }, "mcpServers": servers });
    let installed = Installed::with(PROGRAMS, &config.to_string());
    let set = installed.run_with_input(["token", "set", "s3"], "canary\n").await;
    assert_eq!(set.code, Some(0), "{set:?}");
    let mut client = Client::start(installed.command().env("TOKEN", "canary").arg("serve"));
    client.initialize("2025-11-25", json!({})).await;

    let failed = said(&mut client, json!({ "connect": "gap" })).await;
    assert!(failed.contains("`NOTHING` is not set"), "{failed}");
    assert_eq!(fixture.requests(), [], "nothing was sent");
    let watched = ["authorization", "x-one", "x-two", "x-three"];
    for (number, (entry, expected)) in shown().into_iter().enumerate() {
        let before = fixture.requests().len();
        let arguments = json!({ "tool": format!("s{number}_echo"), "args": { "text": "hi" } });
        assert_eq!(said(&mut client, arguments).await, "hi", "{entry}");
        let expected: BTreeMap<&str, &str> = expected.into_iter().collect();
        for request in fixture.requests().iter().skip(before).filter(|it| it.method == "POST") {
            let seen = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let seen: BTreeMap<&str, &str> =
                seen.filter(|(name, _)| watched.contains(name)).collect();
            assert_eq!(seen, expected, "{entry}");
        }
    }
    client.end().await;
}
