//! Sign-in to servers that require authentication.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use switchboard_it::authority::{
    AuthMethod, Authority, Endpoint, Iss, KnownClient, Registration, Setup, redirect_of, visit,
};
use switchboard_it::client::Client;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::program::Installed;

use super::{check, said};
use crate::PROGRAMS;
use crate::sign_in::files_with_tokens;

/// The only URL in a text.
pub(super) fn link_in(text: &str) -> &str {
    let start = text.find("http").unwrap_or_else(|| panic!("no address in: {text}"));
    text[start..].split_whitespace().next().unwrap()
}

/// A host with one server, `tracker`, that requires authentication.
struct Desk {
    authority: Authority,
    installed: Installed,
    client: Client,
}

impl Desk {
    async fn with(setup: Setup, more: Value) -> Desk {
        let authority = Authority::start(setup).await;
        let installed = Installed::bare(PROGRAMS);
        configure(&installed, &authority.mcp_url(), more);
        let client = installed.connect(json!({})).await;
        Desk { authority, installed, client }
    }

    async fn echo(&mut self) -> String {
        said(&mut self.client, json!({ "tool": "tracker_echo", "args": { "text": "hi" } })).await
    }

    async fn begin(&mut self) -> String {
        let begun = self.client.mcp(json!({ "action": "auth-start", "server": "tracker" })).await;
        link_in(&begun).to_owned()
    }

    async fn complete(&mut self, args: Value) -> String {
        let action = json!({ "action": "auth-complete", "server": "tracker", "args": args });
        said(&mut self.client, action).await
    }

    /// The files that contain tokens.
    fn tokens(&self) -> Vec<PathBuf> {
        files_with_tokens(&self.installed)
    }
}

fn configure(installed: &Installed, url: &str, more: Value) {
    let mut entry = json!({ "url": url });
    entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config = json!({
        "settings": { "firstListing": false }, "mcpServers": { "tracker": entry },
    });
    installed.write("switchboard/mcp.json", &config.to_string());
}

/// An authorization server that knows one client and registers no others.
fn knowing(id: &str, secret: Option<&str>, method: AuthMethod) -> Setup {
    let (id, secret) = (id.to_owned(), secret.map(str::to_owned));
    let clients = vec![KnownClient { id, secret, method, redirect_uris: Vec::new() }];
    let mut setup = Setup { clients, registration: Registration::Off, ..Setup::default() };
    let methods = json!([json!(method)]);
    setup.metadata.fields.insert("token_endpoint_auth_methods_supported".to_owned(), methods);
    setup
}

#[tokio::test]
async fn b17_sign_in_discovers_registers_and_refreshes() {
    let mut host = Desk::with(Setup::default(), json!({})).await;
    check(
        &mut host.client,
        r#"
        >>> { "tool": "tracker_echo", "args": { "text": "hi" } }
        [error]
        sign_in_required: cannot use the server `tracker`: cannot connect: the server answered with HTTP status 401: sign-in required: not signed in yet
        Begin a sign-in: mcp({ action: "auth-start", server: "tracker" }), or ask the user to run: switchboard auth tracker

        >>> {}
        MCP: 0/1 servers, 0 tools
        ⚠ tracker (needs sign-in)
        ...
        "#,
    )
    .await;
    let url = host.begin().await;
    for part in ["code_challenge_method=S256", "state=", "redirect_uri=http%3A%2F%2F127.0.0.1"] {
        assert!(url.contains(part), "{url}");
    }
    let back = redirect_of(&url).await.unwrap();
    assert_ne!(visit(&back.replace("state=", "state=x")).await, 200, "another state is refused");
    assert_eq!(visit(&back).await, 200);
    host.authority.ledger().until(|record| record.count(Endpoint::Token) == 1).await;
    // The token response is in flight; each call gives it time to arrive.
    while host.echo().await != "hi" {}
    host.authority.expire_tokens();
    // The new tokens may not be stored yet; the record shows below that they were refreshed.
    while host.echo().await != "hi" {}
    let record = host.authority.ledger().now();
    for endpoint in [Endpoint::ResourceMetadata, Endpoint::Metadata, Endpoint::Register] {
        assert!(record.count(endpoint) > 0, "{endpoint:?}");
    }
    assert_eq!((record.sign_ins, record.redemptions), (1, 1));
}

#[tokio::test]
async fn b17_preregistered_machine_and_metadata_document_clients_sign_in() {
    let document = "https://client.example/metadata.json";
    for (setup, oauth) in [
        (knowing("known", None, AuthMethod::None), json!({ "clientId": "known" })),
        (
            Setup {
                client_documents: vec![document.to_owned()],
                registration: Registration::Off,
                ..Setup::default()
            },
            json!({ "clientMetadataUrl": document }),
        ),
    ] {
        let mut host = Desk::with(setup, json!({ "oauth": oauth })).await;
        let back = redirect_of(&host.begin().await).await.unwrap();
        host.complete(json!({ "redirectUrl": back })).await;
        assert_eq!(host.echo().await, "hi", "{oauth}");
        assert_eq!(host.authority.ledger().now().count(Endpoint::Register), 0, "{oauth}");
    }
    let oauth = json!({
        "grantType": "client_credentials", "clientId": "machine", "clientSecret": "s3cret",
    });
    let machine = knowing("machine", Some("s3cret"), AuthMethod::Post);
    let mut host = Desk::with(machine, json!({ "oauth": oauth })).await;
    assert_eq!(host.echo().await, "hi");
    assert_eq!(host.authority.ledger().now().visits, 0, "no browser");

    // An `Authorization` header in the entry replaces the sign-in; other headers do not.
    for (header, asked) in [("Authorization", false), ("X-Team", true)] {
        let mut host = Desk::with(Setup::default(), json!({ "headers": { header: "x" } })).await;
        let refused = host.echo().await;
        assert!(refused.contains("HTTP status 401"), "{refused}");
        assert_eq!(refused.contains("auth-start"), asked, "{header}: {refused}");
    }
}

#[tokio::test]
async fn b18_sign_in_completes_with_the_pasted_callback() {
    let mut host = Desk::with(Setup::default(), json!({})).await;
    let url = host.begin().await;
    let back = redirect_of(&url).await.unwrap();
    let code = back.split(['?', '&']).find_map(|part| part.strip_prefix("code=")).unwrap();
    for (wrong, why) in [
        (json!({ "redirectUrl": back.replace("state=", "state=x") }), "does not match the sign-in"),
        (json!({ "code": code }), "the pasted code has no `iss`"),
        (json!({ "redirectUrl": url }), "has no code"),
        (json!({}), "redirectUrl"),
    ] {
        let refused = host.complete(wrong.clone()).await;
        assert!(refused.starts_with("[error]\n") && refused.contains(why), "{wrong}: {refused}");
    }
    let done = host.complete(json!({ "redirectUrl": back })).await;
    assert_eq!(done, "Signed in to `tracker`");
    assert_eq!(host.echo().await, "hi");

    let mut host = Desk::with(Setup { iss: Iss::Wrong, ..Setup::default() }, json!({})).await;
    let back = redirect_of(&host.begin().await).await.unwrap();
    let refused = host.complete(json!({ "redirectUrl": back })).await;
    assert!(refused.contains("from another authorization server"), "{refused}");
    assert_eq!(host.authority.ledger().now().count(Endpoint::Token), 0);
}

#[tokio::test]
async fn b19_tokens_are_bound_private_and_deleted_at_logout() {
    let mut host = Desk::with(Setup::default(), json!({})).await;
    let back = redirect_of(&host.begin().await).await.unwrap();
    host.complete(json!({ "redirectUrl": back })).await;
    assert_eq!(host.echo().await, "hi");
    let [file] = &host.tokens()[..] else { panic!("{:?}", host.tokens()) };
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));

    // The same name with another URL is another server.
    let other = HttpFixture::start("[http]\nrequired = { Authorization = 'x' }\n").await;
    configure(&host.installed, &other.url(), json!({}));
    let mut client = host.installed.connect(json!({})).await;
    let refused = said(&mut client, json!({ "connect": "tracker" })).await;
    assert!(refused.starts_with("[error]\nsign_in_required"), "{refused}");
    assert!(other.requests().iter().all(|request| request.header("authorization").is_none()));
    client.end().await;

    configure(&host.installed, &host.authority.mcp_url(), json!({}));
    let mut client = host.installed.connect(json!({})).await;
    let echo = json!({ "tool": "tracker_echo", "args": { "text": "hi" } });
    assert_eq!(said(&mut client, echo.clone()).await, "hi", "a new sign-in was required");
    assert_eq!(host.installed.run(["logout", "tracker"]).await.code, Some(0));
    assert_eq!(host.tokens(), Vec::<PathBuf>::new());
    assert_eq!(host.authority.ledger().now().revocations, 1);
    let refused = said(&mut client, echo).await;
    assert!(refused.starts_with("[error]\nsign_in_required"), "{refused}");
    client.end().await;
}
