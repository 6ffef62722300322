//! The test authorization server checks every request. The tests send raw requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use switchboard_it::authority::{
    AuthMethod, Authority, Consent, KnownClient, Poll, Refresh, Setup, get, post_form, post_json,
    visit,
};
use switchboard_it::http_client::request;

use super::{INSIDE, REDIRECT, Raw, VERIFIER, echo, error};

#[tokio::test]
async fn authorization_request_with_an_invalid_parameter_is_refused() {
    let redirect_uris = vec!["https://far.example:8443/callback".to_owned()];
    let (secret, method) = (None, AuthMethod::None);
    let far = KnownClient { id: "far".into(), secret, method, redirect_uris };
    let near = KnownClient { id: "near".into(), redirect_uris: Vec::new(), ..far.clone() };
    let clients = vec![far, near];
    let setup = Setup { scopes: vec!["read".into()], clients, ..Setup::default() };
    let raw = Raw::with(setup).await;
    for (name, value, expected) in [
        ("response_type", "token", "unsupported_response_type"),
        ("code_challenge", "", "invalid_request"),
        ("code_challenge", "short", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge_method", "", "invalid_request"),
        ("resource", "", "invalid_target"),
        ("resource", "http://127.0.0.1/mcp", "invalid_target"),
        ("scope", "read admin", "invalid_scope"),
    ] {
        let returned = raw.returned(&[(name, value)]).await;
        assert_eq!(returned["error"], expected, "{name}={value}");
        assert_eq!(returned["state"], "the state");
        assert_eq!(returned["iss"], raw.authority.issuer());
        assert!(!returned.contains_key("code"));
    }
    // The server does not redirect if the client is unknown or its redirect URI is not registered.
    for (name, value) in [
        ("client_id", "nobody"),
        ("redirect_uri", "https://elsewhere.example/callback"),
        ("redirect_uri", "http://127.0.0.1:1/other"),
        ("redirect_uri", "http://127.0.0.2:1/callback"),
        ("redirect_uri", "http://localhost:1/callback"),
        ("redirect_uri", ""),
    ] {
        assert_eq!(get(&raw.link(&[(name, value)])).await.head.status, 400, "{name}={value}");
    }
    for (client, redirect_uri, status) in [
        ("far", "https://far.example:8443/callback", 302),
        ("far", "https://far.example/callback", 400),
        ("far", "http://127.0.0.1:8443/callback", 400),
        ("near", "http://127.0.0.1:8443/any", 302),
        ("near", "http://far.example/callback", 400),
    ] {
        let link = raw.link(&[("client_id", client), ("redirect_uri", redirect_uri)]);
        assert_eq!(get(&link).await.head.status, status, "{client} at {redirect_uri}");
    }
    let elsewhere = [("redirect_uri", "http://127.0.0.1:40000/callback")];
    assert!(raw.returned(&elsewhere).await.contains_key("code"), "any port on loopback");
}

#[tokio::test]
async fn authorization_code_is_redeemed_once_by_its_client() {
    let raw = Raw::with(Setup::default()).await;
    for (name, value, expected) in [
        ("code_verifier", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "invalid_grant"),
        ("code_verifier", "", "invalid_request"),
        ("redirect_uri", "http://127.0.0.1:2/callback", "invalid_grant"),
        ("resource", "", "invalid_target"),
        ("resource", "http://127.0.0.1/mcp", "invalid_target"),
        ("grant_type", "password", "unsupported_grant_type"),
        ("code", "made-up", "invalid_grant"),
    ] {
        let code = raw.code(&[]).await;
        let refused = raw.exchange(&code, &[(name, value)]).await;
        assert_eq!(error(&refused), (400, expected.to_owned()), "{name}={value}");
    }
    let unknown = raw.exchange(&raw.code(&[]).await, &[("client_id", "nobody")]).await;
    assert_eq!(error(&unknown), (401, "invalid_client".to_owned()));
    let code = raw.code(&[]).await;
    let tokens = raw.exchange(&code, &[]).await.json();
    assert_eq!(echo(&raw.authority, tokens["access_token"].as_str().unwrap()).await, "hello");
    let again = raw.exchange(&code, &[]).await;
    assert_eq!(error(&again), (400, "invalid_grant".to_owned()));
    let record = raw.authority.ledger().now();
    assert_eq!((record.sign_ins, record.refusals), (1, 9));
}

#[tokio::test]
async fn client_secret_must_use_the_registered_authentication_method() {
    let of = |id: &str, method| {
        let secret = (method != AuthMethod::None).then(|| format!("{id} secret:&"));
        KnownClient { id: id.into(), secret, method, redirect_uris: vec![REDIRECT.into()] }
    };
    let clients = vec![
        of("none", AuthMethod::None),
        of("basic", AuthMethod::Basic),
        of("post", AuthMethod::Post),
    ];
    let authority = Authority::start(Setup { clients, ..Setup::default() }).await;
    let mut raw = Raw { authority, client: String::new() };
    for id in ["none", "basic", "post"] {
        raw.client = id.to_owned();
        for way in ["none", "basic", "post", "wrong"] {
            let code = raw.code(&[]).await;
            let resource = raw.authority.mcp_url();
            let secret = format!("{id} secret:&");
            let mut form = vec![
                ("grant_type", "authorization_code"),
                ("code", &code),
                ("code_verifier", VERIFIER),
                ("redirect_uri", REDIRECT),
                ("resource", &resource),
            ];
            let pair = STANDARD.encode(format!("{id}:{id}+secret%3A%26"));
            let basic = format!("Basic {pair}");
            let mut headers = Vec::new();
            match way {
                "none" => form.push(("client_id", id)),
                "basic" => headers.push(("Authorization", basic.as_str())),
                "post" => form.extend([("client_id", id), ("client_secret", &secret)]),
                _ => form.extend([("client_id", id), ("client_secret", "wrong")]),
            }
            let answer = post_form(&raw.at("/token"), &headers, &form).await;
            let expected = if way == id { 200 } else { 401 };
            assert_eq!(answer.head.status, expected, "{id} by {way}");
        }
    }
}

#[tokio::test]
async fn replayed_refresh_token_revokes_its_family() {
    let raw = Raw::with(Setup::default()).await;
    let other = raw.sign_in(&[]).await;
    let first = raw.sign_in(&[]).await;
    let second = raw.refresh(&first, &[]).await.json();
    assert_eq!(raw.status(&second).await, INSIDE);

    let replayed = raw.refresh(&first, &[]).await;
    assert_eq!(error(&replayed), (400, "invalid_grant".to_owned()));
    for tokens in [&first, &second] {
        assert_eq!(raw.status(tokens).await, 401);
        assert_eq!(error(&raw.refresh(tokens, &[]).await).1, "invalid_grant");
    }
    assert_eq!(raw.status(&other).await, INSIDE, "another sign-in stays valid");
    let record = raw.authority.ledger().now();
    assert_eq!((record.redemptions, record.replays, record.revocations), (1, 2, 1));
}

#[tokio::test]
async fn refresh_mode_decides_token_rotation_and_revocation() {
    // Whether the first and the second token response have a refresh token, and whether the old
    // refresh token stays valid.
    for (refresh, given, rotated, old_goes_on) in [
        (Refresh::Never, false, false, false),
        (Refresh::Omit, true, false, true),
        (Refresh::Rotate, true, true, true),
        (Refresh::SingleUse, true, true, false),
        (Refresh::FamilyRevoke, true, true, false),
    ] {
        let raw = Raw::with(Setup { refresh, ..Setup::default() }).await;
        let first = raw.sign_in(&[]).await;
        assert_eq!(first.get("refresh_token").is_some(), given, "{refresh:?}");
        if !given {
            continue;
        }
        let second = raw.refresh(&first, &[]).await.json();
        assert_eq!(second.get("refresh_token").is_some(), rotated, "{refresh:?}");
        let old = raw.refresh(&first, &[]).await;
        assert_eq!(old.head.status == 200, old_goes_on, "{refresh:?}");
        let holds = raw.status(&second).await == INSIDE;
        assert_eq!(holds, refresh != Refresh::FamilyRevoke, "{refresh:?}");
    }
}

#[tokio::test]
async fn refresh_token_is_bound_to_client_resource_and_scopes() {
    let setup = Setup { scopes: vec!["a".into(), "b".into()], ..Setup::default() };
    let mut raw = Raw::with(setup).await;
    let tokens = raw.sign_in(&[("scope", "a")]).await;
    for (name, value, expected) in [
        ("resource", "", "invalid_target"),
        ("resource", "http://127.0.0.1/mcp", "invalid_target"),
        ("scope", "a b", "invalid_scope"),
        ("refresh_token", "made-up", "invalid_grant"),
    ] {
        let refused = raw.refresh(&tokens, &[(name, value)]).await;
        assert_eq!(error(&refused), (400, expected.to_owned()), "{name}={value}");
    }
    let registered = super::register(&raw.authority, json!({})).await.json();
    let own = std::mem::replace(&mut raw.client, registered["client_id"].as_str().unwrap().into());
    assert_eq!(error(&raw.refresh(&tokens, &[]).await).1, "invalid_grant");
    raw.client = own;
    assert_eq!(raw.refresh(&tokens, &[("scope", "a")]).await.json()["scope"], "a");
}

#[tokio::test]
async fn offline_access_scope_is_required_for_refresh_tokens() {
    let scopes = vec!["read".to_owned(), "offline_access".to_owned()];
    let raw = Raw::with(Setup { scopes, ..Setup::default() }).await;
    let short = raw.sign_in(&[("scope", "read")]).await;
    assert_eq!(short.get("refresh_token"), None);
    let long = raw.sign_in(&[("scope", "read offline_access")]).await;
    assert!(long["refresh_token"].is_string());
}

#[tokio::test]
async fn tokens_fail_after_expiry_revocation_or_ended_session() {
    let raw = Raw::with(Setup::default()).await;
    let tokens = raw.sign_in(&[]).await;
    raw.authority.alter(|setup| setup.lifetime_s = 0);
    let late = raw.refresh(&tokens, &[]).await.json();
    assert_eq!((raw.status(&tokens).await, raw.status(&late).await), (INSIDE, 401));

    raw.authority.alter(|setup| setup.lifetime_s = 3600);
    raw.authority.expire_tokens();
    assert_eq!(raw.status(&tokens).await, 401);
    let fresh = raw.refresh(&late, &[]).await.json();
    assert_eq!(raw.status(&fresh).await, INSIDE);

    let client = raw.client.as_str();
    let token = fresh["refresh_token"].as_str().unwrap();
    for (client, token, holds) in [(client, "made-up", true), (client, token, false)] {
        let form = [("client_id", client), ("token", token)];
        assert_eq!(post_form(&raw.at("/revoke"), &[], &form).await.head.status, 200);
        assert_eq!(raw.status(&fresh).await == INSIDE, holds);
    }
    assert_eq!(raw.authority.ledger().now().revocations, 1);

    let another = raw.sign_in(&[]).await;
    raw.authority.end_sign_ins();
    assert_eq!(error(&raw.refresh(&another, &[]).await).1, "invalid_grant");
}

#[tokio::test]
async fn device_flow_poll_is_pending_until_the_user_answers() {
    let polls = [Poll::Pending, Poll::SlowDown].into();
    let raw = Raw::with(Setup { polls, ..Setup::default() }).await;
    let ask = async || -> Value {
        let form = [("client_id", raw.client.as_str())];
        post_form(&raw.at("/device"), &[], &form).await.json()
    };
    let poll = async |device: &Value| {
        let code = device["device_code"].as_str().unwrap().to_owned();
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        raw.token(&[("grant_type", grant), ("device_code", &code)], &[]).await
    };
    let device = ask().await;
    for expected in ["authorization_pending", "slow_down", "authorization_pending"] {
        assert_eq!(error(&poll(&device).await), (400, expected.to_owned()));
    }
    let user_code = device["user_code"].as_str().unwrap();
    assert!(!raw.authority.answer_device("AAAA-0000", Consent::Given));
    assert!(raw.authority.answer_device(user_code, Consent::Given));
    let tokens = poll(&device).await.json();
    assert_eq!(raw.status(&tokens).await, INSIDE);
    assert_eq!(error(&poll(&device).await).1, "invalid_grant");

    let followed = ask().await;
    assert_eq!(visit(followed["verification_uri_complete"].as_str().unwrap()).await, 200);
    assert_eq!(poll(&followed).await.head.status, 200);

    let denied = ask().await;
    raw.authority.answer_device(denied["user_code"].as_str().unwrap(), Consent::Denied);
    assert_eq!(error(&poll(&denied).await).1, "access_denied");
    raw.authority.alter(|setup| setup.polls.push_back(Poll::Expired));
    assert_eq!(error(&poll(&denied).await).1, "expired_token");
    let record = raw.authority.ledger().now();
    assert_eq!((record.sign_ins, record.visits), (2, 1));
}

#[tokio::test]
async fn protected_server_accepts_authorized_calls_of_both_eras() {
    let raw = Raw::with(Setup::default()).await;
    let tokens = raw.sign_in(&[]).await;
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(echo(&raw.authority, token).await, "hello");
    let version = "2026-07-28";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": "echo", "arguments": { "text": "hello" }, "_meta": meta });
    let call = request(json!(1), "tools/call", params).to_string();
    let bearer = format!("Bearer {token}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("MCP-Protocol-Version", version),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let url = raw.authority.mcp_url();
    let answer = post_json(&url, &headers, &call).await.json();
    assert_eq!(answer["result"]["content"][0]["text"], "hello", "{answer}");
    assert_eq!(post_json(&url, &headers[1..], &call).await.head.status, 401);
}
