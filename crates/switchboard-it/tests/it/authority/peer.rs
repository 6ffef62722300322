//! The test authorization server with an independent client: rmcp signs in, refreshes tokens and
//! requests more scopes.

use rmcp::transport::auth::{AuthorizationRequest, ClientCredentialsConfig, OAuthState};
use serde_json::{Value, json};
use switchboard_it::authority::{
    AuthMethod, Authority, Document, Endpoint, Iss, KnownClient, Layout, MetadataPlace, Refresh,
    Registration, ResourcePlace, Setup, Usual, redirect_of,
};

use super::{REDIRECT, Raw, echo};

const SECRET: &str = "p&ss:wörd";

async fn peer(authority: &Authority) -> OAuthState {
    // The HTTP client of rmcp has no default crypto provider if it is built together with
    // Switchboard.
    let _installed_before =
        tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    OAuthState::new(authority.mcp_url(), None).await.unwrap()
}

async fn signed_in(authority: &Authority, request: AuthorizationRequest) -> OAuthState {
    let mut peer = peer(authority).await;
    peer.start_authorization(request).await.unwrap();
    let link = peer.get_authorization_url().await.unwrap();
    let back = redirect_of(&link).await.unwrap();
    peer.handle_callback_url(&back).await.unwrap();
    peer
}

async fn tokens(peer: &OAuthState) -> Value {
    let (_, tokens) = peer.get_credentials().await.unwrap();
    serde_json::to_value(tokens.unwrap()).unwrap()
}

fn known(method: AuthMethod) -> KnownClient {
    let secret = (method != AuthMethod::None).then(|| SECRET.to_owned());
    KnownClient { id: "known".into(), secret, method, redirect_uris: Vec::new() }
}

#[tokio::test]
async fn rmcp_client_signs_in_with_every_authorization_server_setup() {
    let usual = AuthorizationRequest::new(REDIRECT);
    let known_as = |secret: Option<&str>| {
        let request = AuthorizationRequest::new(REDIRECT).with_preregistered_client("known");
        secret.iter().fold(request, |request, secret| request.with_client_secret(*secret))
    };
    let only_metadata = |place| Document { places: vec![place], ..Document::default() };
    let only_resource = |place| Document { places: vec![place], ..Document::default() };
    let document = "https://client.example/metadata.json".to_owned();
    for (setup, request) in [
        (Setup::default(), usual.clone()),
        (Setup { tenant: "/acme".into(), ..Setup::default() }, usual.clone()),
        (Setup { layout: Layout::Together, ..Setup::default() }, usual.clone()),
        // Revision 2025-03-26: the origin of the server is the issuer, with or without a metadata
        // document.
        (
            Setup { layout: Layout::Together, resource: nowhere(), ..Setup::default() },
            usual.clone(),
        ),
        (
            Setup {
                layout: Layout::Together,
                resource: nowhere(),
                metadata: nowhere(),
                iss: Iss::Missing,
                ..Setup::default()
            },
            usual.clone(),
        ),
        (Setup { resource: only_resource(ResourcePlace::Path), ..Setup::default() }, usual.clone()),
        (Setup { resource: only_resource(ResourcePlace::Root), ..Setup::default() }, usual.clone()),
        (
            Setup {
                tenant: "/acme".into(),
                metadata: only_metadata(MetadataPlace::OpenId),
                ..Setup::default()
            },
            usual.clone(),
        ),
        (
            Setup {
                tenant: "/acme".into(),
                metadata: only_metadata(MetadataPlace::OpenIdAppended),
                ..Setup::default()
            },
            usual.clone(),
        ),
        (
            Setup {
                registration: Registration::ExpiringSecret,
                ..metadata_of("client_secret_post")
            },
            usual.clone(),
        ),
        (Setup { clients: vec![known(AuthMethod::None)], ..Setup::default() }, known_as(None)),
        (
            Setup { clients: vec![known(AuthMethod::Basic)], ..Setup::default() },
            known_as(Some(SECRET)),
        ),
        (
            Setup { clients: vec![known(AuthMethod::Post)], ..metadata_of("client_secret_post") },
            known_as(Some(SECRET)),
        ),
        (
            Setup { client_documents: vec![document.clone()], ..Setup::default() },
            usual.clone().with_client_metadata_url(document),
        ),
    ] {
        let told = format!("{setup:?}");
        let authority = Authority::start(setup).await;
        let peer = signed_in(&authority, request).await;
        let tokens = tokens(&peer).await;
        let said = echo(&authority, tokens["access_token"].as_str().unwrap()).await;
        assert_eq!(said, "hello", "{told}");
        peer.refresh_token().await.unwrap();
        let record = authority.ledger().now();
        let counts = (record.sign_ins, record.redemptions, record.replays, record.refusals);
        assert_eq!(counts, (1, 1, 0, 0), "{told}");
    }
}

fn nowhere<Place: Usual>() -> Document<Place> {
    Document { places: Vec::new(), ..Document::default() }
}

/// Metadata with a single client authentication method.
fn metadata_of(method: &str) -> Setup {
    let fields = json!({ "token_endpoint_auth_methods_supported": [method] });
    let fields = fields.as_object().unwrap().clone();
    Setup { metadata: Document { fields, ..Document::default() }, ..Setup::default() }
}

#[tokio::test]
async fn rmcp_client_steps_up_for_a_missing_scope() {
    let setup = Setup {
        scopes: vec!["read".into(), "write".into()],
        challenge_scope: Some("read".into()),
        tool_scopes: [("echo".to_owned(), "write".to_owned())].into(),
        ..Setup::default()
    };
    let raw = Raw::with(setup).await;
    let authority = &raw.authority;
    let request = AuthorizationRequest::new(REDIRECT).with_initial_scope_selection();
    let mut peer = signed_in(authority, request).await;
    let before = tokens(&peer).await;
    assert_eq!(before["scope"], "read");
    let refused = raw.call(&before, "echo").await;
    assert_eq!(refused.head.status, 403);
    let challenge = refused.head.header("www-authenticate").unwrap();
    assert!(challenge.starts_with(r#"Bearer error="insufficient_scope", scope="write""#));

    let link = peer.request_scope_upgrade("write", REDIRECT).await.unwrap();
    peer.handle_callback_url(&redirect_of(&link).await.unwrap()).await.unwrap();
    let after = tokens(&peer).await;
    assert_eq!(after["scope"], "read write");
    assert_eq!(echo(authority, after["access_token"].as_str().unwrap()).await, "hello");
    let asked: Vec<_> =
        authority.ledger().now().to(Endpoint::Authorize).into_iter().cloned().collect();
    let scopes: Vec<_> = asked.iter().filter_map(|seen| seen.scope.as_deref()).collect();
    assert_eq!(scopes, ["read", "read write"]);
}

#[tokio::test]
async fn rmcp_client_refreshes_tokens_in_every_rotation_mode() {
    for refresh in [Refresh::Omit, Refresh::Rotate, Refresh::SingleUse, Refresh::FamilyRevoke] {
        let authority = Authority::start(Setup { refresh, ..Setup::default() }).await;
        let peer = signed_in(&authority, AuthorizationRequest::new(REDIRECT)).await;
        for _ in 0..3 {
            authority.expire_tokens();
            peer.refresh_token().await.unwrap();
            let tokens = tokens(&peer).await;
            let said = echo(&authority, tokens["access_token"].as_str().unwrap()).await;
            assert_eq!(said, "hello", "{refresh:?}");
        }
        let record = authority.ledger().now();
        let counts = (record.redemptions, record.replays, record.revocations, record.sign_ins);
        assert_eq!(counts, (3, 0, 0, 1), "{refresh:?}");
    }
}

#[tokio::test]
async fn rmcp_client_gets_a_token_by_client_credentials() {
    let setup = Setup {
        clients: vec![known(AuthMethod::Post)],
        scopes: vec!["read".into()],
        ..Setup::default()
    };
    let authority = Authority::start(setup).await;
    let mut peer = peer(&authority).await;
    let config = ClientCredentialsConfig::ClientSecret {
        client_id: "known".into(),
        client_secret: SECRET.into(),
        scopes: vec!["read".into()],
        resource: Some(authority.mcp_url()),
    };
    peer.authenticate_client_credentials(config).await.unwrap();
    let tokens = tokens(&peer).await;
    assert_eq!((&tokens["scope"], tokens.get("refresh_token")), (&json!("read"), None));
    assert_eq!(echo(&authority, tokens["access_token"].as_str().unwrap()).await, "hello");
    assert_eq!(authority.ledger().now().sign_ins, 0);
}
