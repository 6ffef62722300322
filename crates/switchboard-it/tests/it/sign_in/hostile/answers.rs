//! Responses of authorization servers, and callbacks of browsers.

use std::time::Duration;

use switchboard_it::authority::{Endpoint, redirect_of};
use tokio::time::Instant;

use super::*;

#[test]
fn hostile_client_registration_response_is_rejected() {
    unseen(module_path!(), "hostile_client_registration_response_is_rejected", || async {
        let only = |manner: Value| json!({ "registered": manner });
        let large = format!("{{\"client_id\":\"{}\"}}", "x".repeat(500_000));
        let long = format!("{{\"client_id\":\"{}\"}}", "x".repeat(9_000));
        let rude = format!("\u{1b}[2J{}", "\u{202e}calc".repeat(500));
        let rows = [
            ("a page", only(json!("html"))),
            ("no id", only(raw(b"{\"client_secret\":\"x\"}"))),
            ("an id of another type", only(raw(b"{\"client_id\":7}"))),
            ("an empty id", only(raw(b"{\"client_id\":\"\"}"))),
            ("a list", only(raw(b"[]"))),
            ("500 kilobytes", only(raw(large.as_bytes()))),
            ("an id of 9,000 characters", only(raw(long.as_bytes()))),
            ("elsewhere", only(json!({ "redirect": "http://169.254.169.254/" }))),
            ("in trouble", only(json!({ "status": 500 }))),
            ("a refusal", only(json!({ "error": rude }))),
        ];
        let rows = rows.map(|(what, setup)| (what, SignInMethod::Page, setup));
        insta::assert_snapshot!("registrations", table(&rows).await);
    });
}

#[test]
fn device_flow_shows_no_unsafe_verification_page() {
    unseen(module_path!(), "device_flow_shows_no_unsafe_verification_page", || async {
        let page = |page: Value| json!({ "device-fields": { "verification_uri": page } });
        let rows = [
            ("a script", page(json!("javascript:alert(1)"))),
            ("a file", page(json!("file:///etc/passwd"))),
            ("for a shell", page(json!("{AS}/$(calc)"))),
            ("for a flag", page(json!("--calc=http://127.0.0.1"))),
            ("a user", page(json!("http://user:pass@127.0.0.1/"))),
            ("without encryption", page(json!("http://auth.example/"))),
            ("an internal address", page(json!("http://169.254.169.254/"))),
            ("mended", page(json!("https:auth.example"))),
            ("none", page(Value::Null)),
            ("of another type", page(json!(7))),
        ];
        let rows = rows.map(|(what, setup)| (what, SignInMethod::Device, setup));
        insta::assert_snapshot!("devices", table(&rows).await);
    });
}

#[test]
fn hostile_callback_or_token_response_gives_no_token() {
    unseen(module_path!(), "hostile_callback_or_token_response_gives_no_token", || async {
        let tokens = |manner: Value| json!({ "token-answers": [manner] });
        let rows = [
            ("another issuer", json!({ "iss": "wrong" })),
            ("no issuer", json!({ "iss": "missing" })),
            ("a normalised issuer", json!({ "iss": "normalised" })),
            ("another issuer, and a refusal", json!({ "iss": "wrong", "consent": "denied" })),
            ("a refusal", json!({ "consent": "denied" })),
            ("a page for tokens", tokens(json!("html"))),
            ("a megabyte for tokens", tokens(json!("huge"))),
            ("deep tokens", tokens(json!("deep"))),
            ("tokens elsewhere", tokens(json!({ "redirect": "http://169.254.169.254/" }))),
            ("a token that is not a string", tokens(raw(b"{\"access_token\":7}"))),
            ("an empty token", tokens(raw(b"{\"access_token\":\"\"}"))),
            ("a token with a header", tokens(raw(b"{\"access_token\":\"x\\r\\nX-Calc: 1\"}"))),
            (
                "a token of another type",
                tokens(raw(b"{\"access_token\":\"x\",\"token_type\":\"mac\\u001b[2J\"}")),
            ),
        ];
        let rows = rows.map(|(what, setup)| (what, SignInMethod::Page, setup));
        insta::assert_snapshot!("returns", table(&rows).await);
    });
}

/// The clock is paused once the authorization server has the token request, and then auto-advances.
#[tokio::test]
async fn device_flow_polling_stops_at_expiry_of_the_code() {
    let fields = json!({ "interval": 1_000_000_000_000_u64, "expires_in": 60 });
    let victim = Victim::of(&json!({ "device-fields": fields }), Nameless).await;
    let ledger = victim.authority.ledger();
    let asked = async {
        ledger.until(|record| record.count(Endpoint::Token) == 1).await;
        tokio::time::pause();
        Instant::now()
    };
    let (outcome, since) = tokio::join!(victim.sign_in(SignInMethod::Device), asked);
    assert!(since.elapsed() <= Duration::from_secs(61), "{:?}", since.elapsed());
    let said = victim.refusal(outcome);
    assert!(said.ends_with("the user did not complete the device authorization in time"), "{said}");
}

/// An attacker forges the callback of the authorization server.
#[tokio::test]
async fn tampered_callback_is_rejected() {
    type Tamper = fn(&str) -> String;
    let changes: [(&str, Tamper); 8] = [
        ("another state", |back| back.replace("state=", "state=x")),
        ("no state", |back| back.replace("state=", "x=")),
        ("two states", |back| format!("{back}&state=x")),
        ("two codes", |back| format!("{back}&code=x")),
        ("two issuers", |back| format!("{back}&iss=x")),
        ("two errors", |back| format!("{back}&error=x&error=y")),
        ("no code", |back| back.replace("code=", "x=")),
        ("a bare code", |_| "abc".to_owned()),
    ];
    let mut lines = Vec::new();
    for (what, change) in changes {
        let victim = Victim::of(&json!({}), Nameless).await;
        let Begun::Page(mut pending) = victim.begin(SignInMethod::Page).await.unwrap() else {
            panic!()
        };
        let back = redirect_of(pending.link().as_str()).await.unwrap();
        let outcome = pending.complete(&change(&back)).await;
        lines.push(format!("{what}\n    {}", victim.refusal(outcome)));
        if what.contains("state") {
            // A callback with another state is ignored, so the correct callback still works.
            pending.complete(&back).await.unwrap();
        }
    }
    insta::assert_snapshot!("tampered", lines.join("\n"));
}
