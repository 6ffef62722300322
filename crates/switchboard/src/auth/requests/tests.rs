//! Tests of requests to an authorization server that repeats each request in its refusal.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use percent_encoding::percent_decode_str;
use serde_json::json;
use switchboard_core::sign_in::address::Reach;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::auth::grant::{ClientSource, Endpoints};
use crate::dial::http::Clients;
use crate::dial::names::SystemNames;
use crate::env::Environment;

const REFRESH: &str = "REFRESH/secret+1";
const CLIENT: &str = "CLIENT secret%2";
const CODE: &str = "CODE-secret.3";
const VERIFIER: &str = "VERIFIER~secret~4";
const DEVICE: &str = "DEVICE=secret&5";

/// A server that refuses each request, and repeats its credentials and body in the error, as sent
/// and decoded.
struct Echo {
    url: Url,
    requests: Arc<AtomicUsize>,
    _serving: JoinSet<()>,
}

impl Echo {
    /// Every request is refused with `error`.
    async fn start(error: &'static str) -> Echo {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut serving = JoinSet::new();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        serving.spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let mut request = Vec::new();
                let request = loop {
                    socket.read_buf(&mut request).await.unwrap();
                    let text = String::from_utf8_lossy(&request).into_owned();
                    if is_whole(&text) {
                        break text;
                    }
                };
                let (head, body) = request.split_once("\r\n\r\n").unwrap();
                let credentials =
                    head.lines().find_map(|line| line.strip_prefix("authorization: "));
                let spaced = body.replace('+', " ");
                let plain = percent_decode_str(&spaced).decode_utf8_lossy();
                let said = format!("{} {body} {plain}", credentials.unwrap_or_default());
                let refusal = json!({ "error": error, "error_description": said });
                let refusal = refusal.to_string();
                let answer = format!(
                    "HTTP/1.1 400 No\r\nconnection: close\r\ncontent-type: application/json\r\n\
                     content-length: {}\r\n\r\n{refusal}",
                    refusal.len()
                );
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let url = Url::parse(&format!("http://127.0.0.1:{port}/token")).unwrap();
        Echo { url, requests, _serving: serving }
    }

    async fn net(&self) -> Net {
        let clients =
            Clients::new(Environment::made_of([("HOME", "/")], "/"), Arc::new(SystemNames));
        Net::of(&clients, Reach::of(&self.url), None).await.unwrap()
    }

    fn grant(&self, method: Method) -> Grant {
        Grant {
            server: self.url.clone(),
            issuer: self.url.to_string(),
            resource: self.url.to_string(),
            client: client(method),
            endpoints: Endpoints { token: self.url.clone(), revocation: None },
            tokens: Tokens {
                access: Secret::new("ACCESS-secret"),
                refresh: Some(Secret::new(REFRESH)),
                received: SystemTime::now(),
                lifetime: Lifetime::read(None),
                scopes: Vec::new(),
            },
        }
    }
}

fn is_whole(request: &str) -> bool {
    let Some((head, body)) = request.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_none_or(|length| body.len() >= length.parse().unwrap())
}

fn client(method: Method) -> OAuthClient {
    OAuthClient {
        id: "client".to_owned(),
        secret: Some(Secret::new(CLIENT)),
        secret_expires: None,
        method,
        source: ClientSource::Configured,
        redirect: None,
    }
}

/// Asserts that the message contains none of the secrets, and that something was removed from it.
#[track_caller]
fn check<T>(what: &str, refused: Result<T, TokenError>) {
    let Err(error) = refused else { panic!("{what}: must be refused") };
    let told = format!("{error} {error:?}");
    assert!(told.contains("[removed]"), "{what}: {told}");
    // Every secret contains the word `secret`; the other texts are encodings of the client secret.
    for secret in ["secret", "Y2xpZW50Ok", "Q0xJRU5U"] {
        let told = told.replace("client_secret", "");
        assert!(!told.contains(secret), "{what}: {told}");
    }
}

#[tokio::test]
async fn error_that_quotes_the_request_omits_its_secrets() {
    let echo = Echo::start("invalid_grant").await;
    let (net, url) = (echo.net().await, &echo.url);
    let device_code: Device = serde_json::from_value(json!({
        "device_code": DEVICE, "user_code": "ABC", "verification_uri": url, "expires_in": 60,
        "interval": 0,
    }))
    .unwrap();
    for method in [Method::ClientSecretBasic, Method::ClientSecretPost] {
        let (client, grant) = (client(method), echo.grant(method));
        let verifier = Secret::new(VERIFIER);
        let request = AuthorizationRequest {
            state: Secret::new("state"),
            verifier: verifier.clone(),
            redirect: "http://127.0.0.1/callback".to_owned(),
            resource: "r".to_owned(),
            scopes: Vec::new(),
            params: Vec::new(),
        };
        check("code", request.exchange(&net, &client, url, CODE.to_owned()).await);
        check("refresh", refresh(&net, &grant, &Secret::new(REFRESH)).await);
        check("client credentials", of_client(&net, &client, url, ("r", &[])).await);
        check("device", device(&net, &client, url, ("r", &[])).await);
        check("device code", of_device(&net, &client, url, &device_code, ("r", &[])).await);
        check("revocation", revoke(&net, &grant, url).await);
    }
}

#[test]
fn error_text_omits_request_secrets_in_every_encoding() {
    use oauth2::http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    let body =
        b"grant_type=x&refresh_token=a%2Fb+cdef&assertion=eyJhbGci&code=short&client_id=public";
    let basic = HeaderValue::from_static("Basic YzpDTElFTlQlMkZTRUNSRVQ=");
    let sent = sent::Sent::of(&HeaderMap::from_iter([(AUTHORIZATION, basic)]), body);
    for (text, expected) in [
        ("bad token: a/b cdef", "bad token: [removed]"),
        ("bad token: a%2Fb+cdef", "bad token: [removed]"),
        ("bad token: a%2fb%20cdef", "bad token: [removed]"),
        ("assertion=eyJhbGci&x", "assertion=[removed]&x"),
        ("Basic YzpDTElFTlQlMkZTRUNSRVQ=", "Basic [removed]="),
        ("client_secret=CLIENT%2FSECRET or CLIENT/SECRET", "client_secret=[removed] or [removed]"),
        // `short` is too short to be removed, and the client id `public` is no secret.
        ("short of public code", "short of public code"),
    ] {
        assert_eq!(sent.removed_from(text), expected);
    }
}

#[tokio::test]
async fn device_flow_polls_at_most_once_a_second() {
    let echo = Echo::start("authorization_pending").await;
    let device: Device = serde_json::from_value(json!({
        "device_code": DEVICE, "user_code": "ABC", "verification_uri": echo.url, "expires_in": 1,
        "interval": 0,
    }))
    .unwrap();
    let (net, client) = (echo.net().await, client(Method::ClientSecretPost));
    let refused = of_device(&net, &client, &echo.url, &device, ("r", &[])).await;
    assert!(refused.is_err());
    let requests = echo.requests.load(Ordering::Relaxed);
    assert!((1..=2).contains(&requests), "{requests}");
}
