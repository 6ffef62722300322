//! Tests of the test authorization server, which is strict unless its setup contains a fault.

mod faults;
mod flows;
mod peer;

use std::collections::BTreeMap;
use std::process::Stdio;

use serde_json::{Value, json};
use switchboard_it::authority::{
    Authority, Endpoint, Setup, get, post_form, post_json, redirect_of, visit,
};
use switchboard_it::http_client::{HttpClient, Response, request};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use url::Url;

/// The code verifier and the code challenge of the example in RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
const REDIRECT: &str = "http://127.0.0.1:1/callback";

/// An OAuth client that sends raw requests.
struct Raw {
    authority: Authority,
    client: String,
}

impl Raw {
    /// Starts an authorization server, and registers a client dynamically.
    async fn with(setup: Setup) -> Self {
        let authority = Authority::start(setup).await;
        let client = register(&authority, json!({})).await.json()["client_id"].clone();
        Self { authority, client: client.as_str().unwrap().to_owned() }
    }

    fn at(&self, path: &str) -> String {
        format!("{}{path}", self.authority.issuer())
    }

    /// The authorization URL; `changed` replaces parameters, an empty value removes one.
    fn link(&self, changed: &[(&str, &str)]) -> String {
        let resource = self.authority.mcp_url();
        let usual = [
            ("response_type", "code"),
            ("client_id", &self.client),
            ("redirect_uri", REDIRECT),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("resource", &resource),
            ("state", "the state"),
        ];
        Url::parse_with_params(&self.at("/authorize"), merged(&usual, changed)).unwrap().into()
    }

    /// The parameters of the redirect from the authorization URL.
    async fn returned(&self, changed: &[(&str, &str)]) -> BTreeMap<String, String> {
        let back = redirect_of(&self.link(changed)).await.expect("a redirect");
        Url::parse(&back).unwrap().query_pairs().into_owned().collect()
    }

    async fn code(&self, changed: &[(&str, &str)]) -> String {
        self.returned(changed).await["code"].clone()
    }

    async fn token(&self, fields: &[(&str, &str)], changed: &[(&str, &str)]) -> Response {
        let resource = self.authority.mcp_url();
        let whose = [("client_id", self.client.as_str()), ("resource", &resource)];
        let usual: Vec<_> = fields.iter().copied().chain(whose).collect();
        post_form(&self.at("/token"), &[], &merged(&usual, changed)).await
    }

    async fn exchange(&self, code: &str, changed: &[(&str, &str)]) -> Response {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("code_verifier", VERIFIER),
            ("redirect_uri", REDIRECT),
        ];
        self.token(&fields, changed).await
    }

    async fn sign_in(&self, changed: &[(&str, &str)]) -> Value {
        self.exchange(&self.code(changed).await, &[]).await.json()
    }

    async fn refresh(&self, tokens: &Value, changed: &[(&str, &str)]) -> Response {
        let token = tokens["refresh_token"].as_str().unwrap();
        self.token(&[("grant_type", "refresh_token"), ("refresh_token", token)], changed).await
    }

    /// Calls a tool without a session: 404 means that the request was authorized.
    async fn call(&self, tokens: &Value, tool: &str) -> Response {
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap_or_default());
        let message = request(json!(1), "tools/call", json!({ "name": tool })).to_string();
        post_json(&self.authority.mcp_url(), &[("Authorization", &bearer)], &message).await
    }

    async fn status(&self, tokens: &Value) -> u16 {
        self.call(tokens, "echo").await.head.status
    }
}

/// The status of an authorized request: not found, because it names no MCP session.
const INSIDE: u16 = 404;

fn merged<'a>(
    usual: &[(&'a str, &'a str)],
    changed: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let kept = usual.iter().filter(|(name, _)| changed.iter().all(|(other, _)| other != name));
    kept.chain(changed).copied().filter(|(_, value)| !value.is_empty()).collect()
}

async fn register(authority: &Authority, more: Value) -> Response {
    let mut metadata = json!({
        "client_name": "raw",
        "redirect_uris": [REDIRECT],
        "token_endpoint_auth_method": "none",
    });
    let more = more.as_object().unwrap().clone();
    metadata.as_object_mut().unwrap().extend(more);
    post_json(&format!("{}/register", authority.issuer()), &[], &metadata.to_string()).await
}

/// Calls the tool `echo` with this token and returns its text.
async fn echo(authority: &Authority, token: &str) -> Value {
    let url = Url::parse(&authority.mcp_url()).unwrap();
    let address = url.socket_addrs(|| None).unwrap()[0];
    let mut client = HttpClient::new(address, token).await;
    client.initialize("2025-11-25", json!({})).await;
    let call = json!({ "name": "echo", "arguments": { "text": "hello" } });
    client.ask("tools/call", call).await["result"]["content"][0]["text"].clone()
}

fn error(response: &Response) -> (u16, String) {
    (response.head.status, response.json()["error"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a program of the kit, started as a user would")]
async fn test_authorization_server_obeys_stdin_and_exits_at_eof() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_authority"))
        .args(["refresh=rotate", "tenant=/acme", r#"resource={"fields":{"resource":"x"}}"#])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut stdin = program.stdin.take().unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let mut said = async || -> Value {
        serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap()
    };
    let urls = said().await;
    assert!(urls["issuer"].as_str().unwrap().ends_with("/acme"), "{urls}");
    let resource = urls["mcp"].as_str().unwrap().replace("/mcp", "/resource.json");
    let document = get(&resource).await.json();
    assert_eq!(document["resource"], "x");
    assert_eq!(document["authorization_servers"], json!([urls["issuer"]]));
    stdin.write_all(b"expire-tokens\nledger\nnonsense\n").await.unwrap();
    assert_eq!(said().await, json!(true));
    assert_eq!(said().await["requests"][0]["endpoint"], "resource-metadata");
    assert_eq!(said().await, Value::Null);
    let visited = Command::new(env!("CARGO_BIN_EXE_authority")).args(["visit", &resource]).output();
    assert_eq!(visited.await.unwrap().stdout, b"200\n");
    drop(stdin);
    assert!(program.wait().await.unwrap().success());
}

#[tokio::test]
async fn test_authorization_server_records_fingerprints_instead_of_tokens() {
    let canary = "CANARY-";
    let raw = Raw::with(Setup { canary: canary.into(), ..Setup::default() }).await;
    let ledger = raw.authority.ledger();
    let waiting = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.until(|record| record.redemptions == 1).await }
    });
    let first = raw.sign_in(&[]).await;
    let second = raw.refresh(&first, &[]).await.json();
    assert_eq!(raw.status(&second).await, INSIDE);
    let record = waiting.await.unwrap();
    assert_eq!((record.sign_ins, record.visits), (1, 1));
    for secret in [&first["access_token"], &first["refresh_token"], &second["access_token"]] {
        assert!(secret.as_str().unwrap().starts_with(canary), "{secret}");
    }
    let all = ledger.now();
    assert!(!format!("{all:?}").contains(canary), "{all:?}");
    let refresh = all.to(Endpoint::Token)[1].clone();
    assert_eq!(refresh.grant_type.as_deref(), Some("refresh_token"));
    assert_eq!(refresh.resource, Some(raw.authority.mcp_url()));
    let seen =
        |value: &Value| Some(switchboard_it::authority::fingerprint(value.as_str().unwrap()));
    assert_eq!(refresh.token, seen(&first["refresh_token"]));
    assert_eq!(all.to(Endpoint::Mcp)[0].token, seen(&second["access_token"]));
}

#[tokio::test]
async fn visit_helper_follows_redirect_to_loopback_callback() {
    let raw = Raw::with(Setup::default()).await;
    // Any server that listens can receive the callback.
    let callback = Authority::start(Setup::default()).await;
    let port = Url::parse(&callback.mcp_url()).unwrap().port().unwrap();
    let redirect = format!("http://127.0.0.1:{port}/callback");
    assert_eq!(visit(&raw.link(&[("redirect_uri", &redirect)])).await, 404);
    assert_eq!(callback.ledger().now().count(Endpoint::Unknown), 1);
    assert_eq!(visit(&raw.link(&[("client_id", "nobody")])).await, 400);
}
