//! Each fault of the test authorization server has exactly its documented effect.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchboard_it::authority::{
    AuthMethod, Authority, Challenge, Consent, Document, Endpoint, ExpiresIn, Iss, KnownClient,
    Layout, Manner, Registration, ResourcePlace, Setup, StepUp, get,
};

use super::{INSIDE, Raw, error, register};

#[tokio::test]
async fn test_authorization_server_sends_the_configured_www_authenticate_challenge() {
    let raw = Raw::with(Setup { challenge_scope: Some("read".into()), ..Setup::default() }).await;
    let origin = raw.authority.mcp_url().replace("/mcp", "");
    let mut said = Vec::new();
    for challenge in [
        Challenge::Proper,
        Challenge::Missing,
        Challenge::Malformed,
        Challenge::Multi,
        Challenge::CrossOrigin,
    ] {
        raw.authority.alter(|setup| setup.challenge = challenge);
        let refused = raw.call(&Value::Null, "echo").await;
        assert_eq!(refused.head.status, 401);
        let header = refused.head.header("www-authenticate").unwrap_or("-");
        let port = origin.rsplit(':').next().unwrap();
        said.push(format!("{challenge:?}: {}", header.replace(port, "PORT")));
    }
    let elsewhere = origin.replace("127.0.0.1", "localhost");
    assert_eq!(get(&format!("{elsewhere}/resource.json")).await.head.status, 200);
    let record = raw.authority.ledger().now();
    assert!(record.to(Endpoint::ResourceMetadata)[0].host.starts_with("localhost:"));
    raw.authority.alter(|setup| {
        setup.challenge = Challenge::Proper;
        setup.resource.places = vec![ResourcePlace::Root];
        setup.challenge_scope = None;
    });
    let refused = raw.call(&Value::Null, "echo").await;
    said.push(format!("bare: {}", refused.head.header("www-authenticate").unwrap()));
    insta::assert_snapshot!(said.join("\n"), @r#"
    Proper: Bearer scope="read", resource_metadata="http://127.0.0.1:PORT/resource.json"
    Missing: -
    Malformed: Bearer scope="read", resource_metadata="http://127.0.0.1:PORT/resource.json, ==
    Multi: Negotiate, Basic realm="a, \"Bearer\" b", Bearer scope="read", resource_metadata="http://127.0.0.1:PORT/resource.json", Digest qop="auth"
    CrossOrigin: Bearer scope="read", resource_metadata="http://localhost:PORT/resource.json"
    bare: Bearer
    "#);
}

#[tokio::test]
async fn configured_fault_decides_status_and_body_of_metadata() {
    let raw = Raw::with(Setup::default()).await;
    let resource = raw.authority.mcp_url().replace("/mcp", "/resource.json");
    let metadata = raw.at("/.well-known/oauth-authorization-server");
    let json = "application/json";
    // The expected status and content type, whether the body is valid JSON, and its minimum length.
    for (manner, status, kind, document, at_least) in [
        (Manner::Right, 200, json, true, 1),
        (Manner::Status(404), 404, "", false, 0),
        (Manner::Busy { retry_after: 7 }, 429, "", false, 0),
        (Manner::Error("server_error".into()), 400, json, true, 1),
        (Manner::Html, 200, "text/html", false, 1),
        (Manner::PlainText, 200, "text/plain", true, 1),
        (Manner::Huge, 200, json, true, 1 << 20),
        (Manner::Deep, 200, json, false, 20_000),
        (Manner::Redirect("http://169.254.169.254/".into()), 302, "", false, 0),
    ] {
        raw.authority.alter(|setup| {
            setup.resource.manner = manner.clone();
            setup.metadata.manner = manner.clone();
        });
        for url in [&resource, &metadata] {
            let answer = get(url).await;
            assert_eq!(answer.head.status, status, "{manner:?}");
            assert_eq!(answer.head.header("content-type").unwrap_or_default(), kind, "{manner:?}");
            let parsed = serde_json::from_str::<Value>(&answer.body);
            // `serde_json` has a nesting limit, so it refuses the deep document.
            assert_eq!(parsed.is_ok(), document, "{manner:?}");
            assert!(answer.body.len() >= at_least, "{manner:?}");
            if let Manner::Busy { .. } = manner {
                assert_eq!(answer.head.header("retry-after"), Some("7"));
            }
            if let Manner::Redirect(to) = &manner {
                assert_eq!(answer.head.header("location"), Some(to.as_str()));
            }
        }
    }
}

#[tokio::test]
async fn test_authorization_server_can_replace_or_remove_metadata_fields() {
    let hostile = "http://user$(calc)r:pass@elsewhere.example/";
    let fields =
        json!({ "issuer": null, "authorization_endpoint": hostile, "scopes_supported": 7 });
    let fields = fields.as_object().unwrap().clone();
    let wrong = json!({ "authorization_servers": ["http://169.254.169.254"] });
    let wrong = wrong.as_object().unwrap().clone();
    let authority = Authority::start(Setup {
        metadata: Document { fields, ..Document::default() },
        resource: Document { fields: wrong, ..Document::default() },
        ..Setup::default()
    })
    .await;
    let issuer = authority.issuer();
    let metadata = get(&format!("{issuer}/.well-known/openid-configuration")).await.json();
    assert_eq!(metadata.get("issuer"), None);
    assert_eq!(metadata["authorization_endpoint"], hostile);
    assert_eq!(metadata["scopes_supported"], 7);
    assert_eq!(metadata["token_endpoint"], format!("{issuer}/token"));
    let resource = get(&authority.mcp_url().replace("/mcp", "/resource.json")).await.json();
    assert_eq!(resource["authorization_servers"], json!(["http://169.254.169.254"]));
    assert_eq!(resource["resource"], authority.mcp_url());
}

#[tokio::test]
async fn test_authorization_server_serves_metadata_only_at_configured_paths() {
    let of_resource = [
        "/resource.json",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource",
    ];
    let of_metadata = [
        "/.well-known/oauth-authorization-server/acme",
        "/.well-known/openid-configuration/acme",
        "/acme/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server",
    ];
    let found = async |origin: &str, paths: &[&str]| {
        let mut found = Vec::new();
        for path in paths {
            found.push(get(&format!("{origin}{path}")).await.head.status == 200);
        }
        found
    };
    for (layout, there, elsewhere) in [
        (Layout::Apart, [true, true, false], vec![false; 4]),
        (Layout::Together, [true, true, false], vec![true, true, true, false]),
    ] {
        let setup = Setup { layout, tenant: "/acme".into(), ..Setup::default() };
        let authority = Authority::start(setup).await;
        let (mcp, issuer) = (authority.mcp_url(), authority.issuer());
        let (mcp, own) = (mcp.trim_end_matches("/mcp"), issuer.trim_end_matches("/acme"));
        assert_eq!(found(mcp, &of_resource).await, there);
        assert_eq!(found(mcp, &of_metadata).await, elsewhere);
        assert_eq!(found(own, &of_metadata).await, [true, true, true, false]);
        authority.alter(|setup| {
            setup.resource.places = Vec::new();
            setup.metadata.places = Vec::new();
        });
        assert_eq!(found(mcp, &of_resource).await, [false; 3]);
        assert_eq!(found(own, &of_metadata).await, [false; 4]);
    }
}

#[tokio::test]
async fn authorization_redirect_has_configured_issuer_or_denial() {
    let raw = Raw::with(Setup { tenant: "/acme".into(), ..Setup::default() }).await;
    let issuer = raw.authority.issuer();
    let normalised = format!("{}/", issuer.replace("http:", "HTTP:"));
    for (iss, expected) in [
        (Iss::Right, Some(issuer.as_str())),
        (Iss::Wrong, Some("https://elsewhere.example")),
        (Iss::Missing, None),
        (Iss::Normalised, Some(normalised.as_str())),
    ] {
        raw.authority.alter(|setup| setup.iss = iss);
        let returned = raw.returned(&[]).await;
        assert_eq!(returned.get("iss").map(String::as_str), expected, "{iss:?}");
        assert_eq!(returned["state"], "the state");
    }
    raw.authority.alter(|setup| setup.consent = Consent::Denied);
    assert_eq!(raw.returned(&[]).await["error"], "access_denied");
}

#[tokio::test]
async fn client_registration_mode_decides_status_and_error_code() {
    let native = json!({ "application_type": "native" });
    for (registration, more, status, code) in [
        (Registration::Open, native.clone(), 201, ""),
        (Registration::Open, json!({ "redirect_uris": [] }), 400, "invalid_redirect_uri"),
        (
            Registration::Open,
            json!({ "token_endpoint_auth_method": "private_key_jwt" }),
            400,
            "invalid_client_metadata",
        ),
        (Registration::Fails, native.clone(), 400, "invalid_client_metadata"),
        (Registration::NoNative, native.clone(), 400, "invalid_client_metadata"),
        (Registration::NoNative, json!({}), 201, ""),
        (Registration::ExpiringSecret, native, 201, ""),
    ] {
        let authority = Authority::start(Setup { registration, ..Setup::default() }).await;
        let answer = register(&authority, more).await;
        assert_eq!(error(&answer), (status, code.to_owned()), "{registration:?}");
        let expiring = registration == Registration::ExpiringSecret;
        assert_eq!(answer.json().get("client_secret").is_some(), expiring, "{registration:?}");
    }
    let setup = Setup { registration: Registration::Off, ..Setup::default() };
    let authority = Authority::start(setup).await;
    assert_eq!(register(&authority, json!({})).await.head.status, 404);
    let metadata = format!("{}/.well-known/openid-configuration", authority.issuer());
    assert_eq!(get(&metadata).await.json().get("registration_endpoint"), None);
}

#[tokio::test]
async fn expired_client_secret_is_refused() {
    let setup = Setup { registration: Registration::ExpiringSecret, ..Setup::default() };
    let authority = Authority::start(setup).await;
    let client = register(&authority, json!({})).await.json();
    assert!(client["client_secret_expires_at"].as_u64().unwrap() > 0);
    let raw = Raw { authority, client: client["client_id"].as_str().unwrap().to_owned() };
    let secret = [("client_secret", client["client_secret"].as_str().unwrap())];
    let tokens = raw.exchange(&raw.code(&[]).await, &secret).await.json();
    let tokens = raw.refresh(&tokens, &secret).await.json();
    raw.authority.expire_secrets();
    assert_eq!(error(&raw.refresh(&tokens, &secret).await), (401, "invalid_client".to_owned()));
}

#[tokio::test]
async fn token_response_has_the_configured_expires_in() {
    for (expires_in, expected) in [
        (ExpiresIn::True, Some(json!(3600))),
        (ExpiresIn::Zero, Some(json!(0))),
        (ExpiresIn::Negative, Some(json!(-1))),
        (ExpiresIn::Missing, None),
        (ExpiresIn::Huge, Some(json!(u64::MAX))),
        (ExpiresIn::Text, Some(json!("3600"))),
    ] {
        let raw = Raw::with(Setup { expires_in, ..Setup::default() }).await;
        let tokens = raw.sign_in(&[]).await;
        assert_eq!(tokens.get("expires_in").cloned(), expected, "{expires_in:?}");
        assert_eq!(raw.status(&tokens).await, INSIDE, "the true lifetime is unchanged");
    }
}

#[tokio::test]
async fn refresh_token_stays_usable_after_failed_token_requests() {
    let raw = Raw::with(Setup::default()).await;
    let tokens = raw.sign_in(&[]).await;
    raw.authority.alter(|setup| {
        let busy = Manner::Busy { retry_after: 1 };
        let rejected = Manner::Error("invalid_client".into());
        setup.token_answers =
            [Manner::Status(500), busy, Manner::Html, rejected, Manner::Right].into();
    });
    for expected in [500, 429, 200, 400] {
        assert_eq!(raw.refresh(&tokens, &[]).await.head.status, expected);
    }
    let record = raw.authority.ledger().now();
    assert_eq!((record.refusals, record.redemptions), (4, 0));
    assert_eq!(raw.refresh(&tokens, &[]).await.head.status, 200);
    let record = raw.authority.ledger().now();
    assert_eq!((record.refusals, record.redemptions, record.replays), (4, 1, 0));
}

#[tokio::test]
async fn hanging_token_request_redeems_no_authorization_code() {
    let raw = Raw::with(Setup { token_answers: [Manner::Hang].into(), ..Setup::default() }).await;
    let code = raw.code(&[]).await;
    let ledger = raw.authority.ledger();
    tokio::select! {
        answer = raw.exchange(&code, &[]) => panic!("{answer:?}"),
        _ = ledger.until(|record| record.refusals == 1) => {}
    }
    assert_eq!(raw.exchange(&code, &[]).await.head.status, 200);
}

#[tokio::test]
async fn delay_setting_slows_the_authorization_server() {
    let authority = Authority::start(Setup { delay_ms: 40, ..Setup::default() }).await;
    let before = Instant::now();
    get(&format!("{}/.well-known/openid-configuration", authority.issuer())).await;
    assert!(before.elapsed() >= Duration::from_millis(40));
}

#[tokio::test]
async fn step_up_loop_fault_refuses_call_despite_granted_scope() {
    let setup = Setup {
        tool_scopes: [("echo".to_owned(), "write".to_owned())].into(),
        step_up: StepUp::Loop,
        ..Setup::default()
    };
    let raw = Raw::with(setup).await;
    for scope in ["", "write", "write more"] {
        let tokens = raw.sign_in(&[("scope", scope)]).await;
        let refused = raw.call(&tokens, "echo").await;
        assert_eq!(refused.head.status, 403);
        let challenge = refused.head.header("www-authenticate").unwrap();
        assert!(challenge.contains(r#"error="insufficient_scope", scope="write""#), "{challenge}");
        assert_eq!(raw.call(&tokens, "add").await.head.status, INSIDE);
    }
}

#[tokio::test]
async fn migrated_authorization_server_changes_issuer_and_rejects_old_clients() {
    let (secret, method) = (None, AuthMethod::None);
    let known = KnownClient { id: "known".into(), secret, method, redirect_uris: Vec::new() };
    let setup = Setup { migrates_after: Some(2), clients: vec![known], ..Setup::default() };
    let raw = Raw::with(setup).await;
    let by_hand = [("client_id", "known")];
    assert_eq!(get(&raw.link(&by_hand)).await.head.status, 302);
    let old_issuer = raw.authority.issuer();
    let resource = raw.authority.mcp_url().replace("/mcp", "/resource.json");
    let tokens = raw.sign_in(&[]).await;
    assert_eq!(raw.status(&tokens).await, INSIDE);
    let last = raw.sign_in(&[]).await;
    assert_eq!(raw.status(&last).await, 401);

    let issuer = raw.authority.issuer();
    assert_eq!(issuer, format!("{old_issuer}/moved"));
    assert_eq!(get(&resource).await.json()["authorization_servers"], json!([issuer]));
    let metadata =
        raw.authority.issuer().replace("/moved", "/.well-known/oauth-authorization-server/moved");
    assert_eq!(get(&metadata).await.json()["issuer"], json!(issuer));
    for old in [&[], by_hand.as_slice()] {
        assert_eq!(get(&raw.link(old)).await.head.status, 400, "the old client is unknown");
    }
    let refused = raw.refresh(&last, &[]).await;
    assert_eq!(error(&refused), (401, "invalid_client".to_owned()));

    let registered = register(&raw.authority, json!({})).await.json();
    let raw = Raw { client: registered["client_id"].as_str().unwrap().to_owned(), ..raw };
    assert_eq!(raw.status(&raw.sign_in(&[]).await).await, INSIDE);
    assert_eq!(raw.authority.ledger().now().count(Endpoint::Register), 2);
}
