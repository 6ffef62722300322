//! Sign-in through the `mcp` tool, with every kind of OAuth client registration, and with tokens of
//! `pi-mcp-adapter`.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::authority::{
    AuthMethod, Authority, Endpoint, KnownClient, Registration, Setup, redirect_of, visit,
};
use switchboard_it::client::Client;
use switchboard_it::program::Installed;

use crate::PROGRAMS;

const NEWEST: &str = "2025-11-25";

/// A host with one server, `tracker`, that requires authentication.
struct Served {
    authority: Authority,
    installed: Installed,
    client: Client,
}

impl Served {
    async fn with(setup: Setup, oauth: Value, settings: Value) -> Served {
        let authority = Authority::start(setup).await;
        let installed = Installed::bare(PROGRAMS);
        let mut entry = json!({ "url": authority.mcp_url() });
        if !oauth.is_null() {
            entry["oauth"] = oauth;
        }
        let config = json!({ "mcpServers": { "tracker": entry }, "settings": settings });
        installed.write("switchboard/mcp.json", &config.to_string());
        let client = connected(&installed).await;
        Served { authority, installed, client }
    }

    async fn new(setup: Setup) -> Served {
        Served::with(setup, Value::Null, json!({})).await
    }

    async fn echo(&mut self) -> String {
        self.client.mcp(json!({ "tool": "tracker_echo", "args": { "text": "hello" } })).await
    }

    async fn begin(&mut self) -> String {
        let begun = self.client.mcp(json!({ "action": "auth-start", "server": "tracker" })).await;
        link_in(&begun).to_owned()
    }

    async fn complete(&mut self, args: Value) -> String {
        let action = json!({ "action": "auth-complete", "server": "tracker", "args": args });
        self.client.mcp(action).await
    }
}

async fn connected(installed: &Installed) -> Client {
    let mut client = installed.serve(&[]);
    client.initialize(NEWEST, json!({})).await;
    client
}

/// An authorization server that knows one client, with one token endpoint auth method.
fn knowing(id: &str, secret: Option<&str>, method: AuthMethod) -> Setup {
    let mut setup = Setup::default();
    let methods = json!([json!(method)]);
    setup.metadata.fields.insert("token_endpoint_auth_methods_supported".to_owned(), methods);
    let (id, secret) = (id.to_owned(), secret.map(str::to_owned));
    setup.clients.push(KnownClient { id, secret, method, redirect_uris: Vec::new() });
    setup
}

/// The only URL in a text.
fn link_in(text: &str) -> &str {
    let start = text.find("http").unwrap_or_else(|| panic!("no address in: {text}"));
    text[start..].split_whitespace().next().unwrap()
}

#[tokio::test]
async fn model_starts_and_completes_a_sign_in() {
    let mut host = Served::new(Setup { scopes: vec!["read".into()], ..Setup::default() }).await;
    let refused = host.echo().await;
    insta::assert_snapshot!(refused, @r#"
    sign_in_required: cannot use the server `tracker`: cannot connect: the server answered with HTTP status 401: sign-in required: not signed in yet
    Begin a sign-in: mcp({ action: "auth-start", server: "tracker" }), or ask the user to run: switchboard auth tracker
    "#);
    let status = host.client.mcp(json!({})).await;
    assert!(status.contains("⚠ tracker (needs sign-in"), "{status}");
    let url = host.begin().await;
    assert_eq!(host.begin().await, url, "the pending sign-in was not reused");
    let back = redirect_of(&url).await.unwrap();
    let stray = host.complete(json!({ "redirectUrl": back.replace("state=", "state=x") })).await;
    assert!(stray.contains("the callback does not match the sign-in in progress"), "{stray}");
    let done = host.complete(json!({ "redirectUrl": back })).await;
    assert_eq!(done, "Signed in to `tracker`, for: read");
    assert_eq!(host.echo().await, "hello");
    let again = host.complete(json!({ "redirectUrl": back })).await;
    assert!(again.contains("no sign-in is in progress"), "{again}");
    let record = host.authority.ledger().now();
    assert_eq!((record.sign_ins, record.replays), (1, 0));
}

#[tokio::test]
async fn browser_callback_alone_completes_the_sign_in() {
    let mut host = Served::new(Setup::default()).await;
    let url = host.begin().await;
    assert_eq!(visit(&url).await, 200);
    let ledger = host.authority.ledger();
    ledger.until(|record| record.count(Endpoint::Token) == 1).await;
    // The token response is in flight; each call gives it time to arrive.
    for _ in 0..1_000 {
        if host.echo().await == "hello" {
            return;
        }
    }
    panic!("{}", host.echo().await);
}

#[tokio::test]
async fn auto_auth_call_returns_the_sign_in_url() {
    let settings = json!({ "autoAuth": true });
    let mut host = Served::with(Setup::default(), Value::Null, settings).await;
    let refused = host.echo().await;
    assert!(refused.contains("Ask the user to sign in, then try again"), "{refused}");
    assert!(!refused.contains("auth-start"), "{refused}");
    let url = link_in(&refused).to_owned();
    assert_eq!(link_in(&host.echo().await), url);
    let back = redirect_of(&url).await.unwrap();
    host.complete(json!(back)).await;
    assert_eq!(host.echo().await, "hello");
}

#[tokio::test]
async fn configured_client_authenticates_by_the_supported_method() {
    for (method, secret) in [
        (AuthMethod::None, None),
        (AuthMethod::Basic, Some("s3:cr%t")),
        (AuthMethod::Post, Some("s3:cr%t")),
    ] {
        let setup = knowing("known: 1", secret, method);
        let mut oauth = json!({ "clientId": "known: 1" });
        if let Some(secret) = secret {
            oauth["clientSecret"] = json!(secret);
        }
        let mut host = Served::with(setup, oauth, json!({})).await;
        let url = host.begin().await;
        let back = redirect_of(&url).await.unwrap();
        host.complete(json!({ "code": back })).await;
        assert_eq!(host.echo().await, "hello", "{method:?}");
        host.authority.expire_tokens();
        assert_eq!(host.echo().await, "hello", "{method:?}");
        let record = host.authority.ledger().now();
        assert_eq!((record.count(Endpoint::Register), record.redemptions), (0, 1), "{method:?}");
    }
}

#[tokio::test]
async fn client_credentials_grant_needs_no_user() {
    let setup = knowing("machine", Some("s3cret"), AuthMethod::Post);
    let oauth = json!({
        "grantType": "client_credentials", "clientId": "machine", "clientSecret": "s3cret",
    });
    let mut host = Served::with(setup, oauth, json!({})).await;
    assert_eq!(host.echo().await, "hello");
    host.authority.expire_tokens();
    assert_eq!(host.echo().await, "hello");
    let record = host.authority.ledger().now();
    assert_eq!((record.visits, record.count(Endpoint::Token)), (0, 2));
}

#[tokio::test]
async fn client_registration_is_reused_only_at_its_authorization_server() {
    let mut host = Served::new(Setup::default()).await;
    for _ in 0..2 {
        let url = host.begin().await;
        let back = redirect_of(&url).await.unwrap();
        host.complete(json!(back)).await;
        host.authority.end_sign_ins();
    }
    assert_eq!(host.authority.ledger().now().count(Endpoint::Register), 1);
    host.authority.migrate();
    let url = host.begin().await;
    let back = redirect_of(&url).await.unwrap();
    host.complete(json!(back)).await;
    assert_eq!(host.authority.ledger().now().count(Endpoint::Register), 2);
    assert_eq!(host.echo().await, "hello");
}

#[tokio::test]
async fn pi_adapter_tokens_are_copied_once() {
    let mut host = Served::new(Setup::default()).await;
    let url = host.begin().await;
    let back = redirect_of(&url).await.unwrap();
    host.complete(json!(back)).await;
    let kept = fs::read_dir(host.installed.home().join("switchboard/state/tokens")).unwrap();
    let kept = kept.flatten().filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let kept = kept.filter_map(|text| {
        let json = text.find('{').map(|start| text[start..].to_owned())?;
        serde_json::from_str::<Value>(&json).ok().filter(|kept| kept.get("accessToken").is_some())
    });
    let kept = kept.last().expect("a token is kept");
    let old = json!({
        "tokens": { "accessToken": kept["accessToken"], "refreshToken": kept["refreshToken"],
            "issuer": kept["issuer"] },
        "clientInfo": { "clientId": kept["client"]["id"] },
        "serverUrl": host.authority.mcp_url(),
    });

    let newer = Installed::bare(PROGRAMS);
    let config = json!({ "mcpServers": { "tracker": { "url": host.authority.mcp_url() } } });
    newer.write("switchboard/mcp.json", &config.to_string());
    let path = newer.write(".pi/agent/mcp-oauth/tracker/tokens.json", &old.to_string());
    let called = newer.run(["call", "tracker_echo", "text=hello"]).await;
    assert_eq!((called.code, called.stdout.as_str()), (Some(0), "hello\n"), "{called:?}");
    host.authority.expire_tokens();
    let called = newer.run(["call", "tracker_echo", "text=hello"]).await;
    assert_eq!(called.code, Some(0), "{called:?}");
    assert_eq!(host.authority.ledger().now().sign_ins, 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), old.to_string());
    let out = newer.run(["logout", "tracker"]).await;
    assert_eq!(out.code, Some(0), "{out:?}");
    let refused = newer.run(["call", "tracker_echo", "text=hello"]).await;
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), old.to_string());
}

#[tokio::test]
async fn disabled_or_incomplete_oauth_entry_refuses_sign_in() {
    for oauth in [json!(false), json!({ "clientSecret": "alone" })] {
        let mut host = Served::with(Setup::default(), oauth.clone(), json!({})).await;
        let begun = host.client.mcp(json!({ "action": "auth-start", "server": "tracker" })).await;
        let expected = match oauth.is_boolean() {
            true => "the server `tracker` has no sign-in",
            false => "a `clientSecret` requires a `clientId`",
        };
        assert!(begun.contains(expected), "{begun}");
        assert_eq!(host.authority.ledger().now().visits, 0);
    }
}

#[tokio::test]
async fn client_unknown_to_authorization_server_is_registered_again() {
    let registration = Registration::ExpiringSecret;
    let mut host = Served::new(Setup { registration, ..Setup::default() }).await;
    for times in 1..=2 {
        let url = host.begin().await;
        let back = redirect_of(&url).await.unwrap();
        host.complete(json!(back)).await;
        assert_eq!(host.echo().await, "hello");
        assert_eq!(host.authority.ledger().now().count(Endpoint::Register), times);
        host.authority.expire_secrets();
        host.authority.expire_tokens();
        let refused = host.echo().await;
        assert!(
            refused.contains("the authorization server does not know this client"),
            "{refused}"
        );
    }
}
