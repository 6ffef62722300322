//! HTTP requests that are refused before any effect: requests of web pages, of unauthorized and of
//! faulty clients, all with the id of a valid session.

use serde_json::json;
use switchboard_it::http_client::{Connection, HttpClient, mcp_call};

use crate::http_face::Served;

/// One HTTP request. Each row of the matrix changes one part of it.
#[derive(Clone, Debug)]
struct Row {
    method: &'static str,
    path: &'static str,
    host: Option<String>,
    origin: Option<String>,
    fetch_site: Option<&'static str>,
    authorization: Option<String>,
    content_type: Option<&'static str>,
    accept: Option<&'static str>,
    more: Vec<(&'static str, String)>,
}

impl Row {
    /// A valid request.
    fn good(client: &HttpClient) -> Row {
        Row {
            method: "POST",
            path: "/mcp",
            host: Some(client.address.to_string()),
            origin: None,
            fetch_site: None,
            authorization: Some(format!("Bearer {}", client.token)),
            content_type: Some("application/json"),
            accept: Some("application/json, text/event-stream"),
            more: Vec::new(),
        }
    }

    fn bytes(&self, client: &HttpClient) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        let mut header = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        };
        header("Host", self.host.as_deref());
        header("Origin", self.origin.as_deref());
        header("Sec-Fetch-Site", self.fetch_site);
        header("Authorization", self.authorization.as_deref());
        header("Content-Type", self.content_type);
        header("Accept", self.accept);
        header("Mcp-Session-Id", client.session.as_deref());
        for (name, value) in &self.more {
            header(name, Some(value));
        }
        let body = mcp_call(json!(1), json!({ "tool": "demo_count" })).to_string();
        text.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        text.into_bytes()
    }
}

async fn status(row: &Row, client: &HttpClient) -> u16 {
    let mut connection = Connection::to(client.address).await;
    connection.send(&row.bytes(client)).await;
    connection.head().await.map_or(0, |head| head.status)
}

/// Foreign hostnames and ports for `Host` and `Origin`.
fn strangers(port: u16) -> Vec<String> {
    let names = [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "rebind.local",
        "0.0.0.0",
        "127.0.0.2",
        "[::]",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
        "0177.0.0.1",
        "127.1",
        "localhost.",
        "user@localhost",
        "::1",
        "",
    ];
    let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
    for ours in ["localhost", "127.0.0.1", "[::1]"] {
        hosts.push(ours.to_owned());
        for other in ["80", "443", "1", "99999", "+80", "", "x"] {
            hosts.push(format!("{ours}:{other}"));
        }
        hosts.push(format!("{ours}:{port}0"));
        hosts.push(format!("{ours}:{port}x"));
    }
    hosts
}

/// A request, and the statuses with which it may be refused.
type Refused = (Row, &'static [u16]);

/// The status is 400 if the `Host` header is not valid in HTTP.
const BAD_HOST: &[u16] = &[400, 403];
const FORBIDDEN: &[u16] = &[403];

fn with_methods(row: &Row) -> [Row; 3] {
    ["POST", "GET", "DELETE"].map(|method| Row { method, ..row.clone() })
}

/// Requests that a web page of another origin can cause.
fn from_elsewhere(client: &HttpClient) -> Vec<Refused> {
    let good = Row::good(client);
    let port = client.address.port();
    let mut rows: Vec<Refused> = Vec::new();
    for host in strangers(port) {
        let row = Row { host: Some(host.clone()), ..good.clone() };
        rows.extend(with_methods(&row).map(|row| (row, BAD_HOST)));
        let origin = Some(format!("http://{host}"));
        rows.push((Row { origin, ..good.clone() }, FORBIDDEN));
    }
    rows.push((Row { host: None, ..good.clone() }, BAD_HOST));
    let again = vec![("Host", client.address.to_string())];
    rows.push((Row { more: again, ..good.clone() }, BAD_HOST));
    rows.push((Row { path: "http://evil.example/mcp", ..good.clone() }, BAD_HOST));
    for origin in [
        "null".to_owned(),
        "file://".to_owned(),
        "https://evil.example".to_owned(),
        "chrome-extension://abcdef".to_owned(),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}/"),
        format!("HTTP://localhost:{port}"),
        format!("http://localhost:{port} http://evil.example"),
        format!("//localhost:{port}"),
        format!("localhost:{port}"),
        "*".to_owned(),
    ] {
        let row = Row { origin: Some(origin), ..good.clone() };
        rows.extend(with_methods(&row).map(|row| (row, FORBIDDEN)));
    }
    for site in ["cross-site", "same-site", "unheard-of", "CROSS-SITE"] {
        let row = Row { fetch_site: Some(site), ..good.clone() };
        rows.extend(with_methods(&row).map(|row| (row, FORBIDDEN)));
    }
    rows.push((Row { method: "OPTIONS", ..good.clone() }, FORBIDDEN));
    let preflight = vec![("Access-Control-Request-Method", "POST".to_owned())];
    rows.push((Row { method: "OPTIONS", more: preflight, ..good }, FORBIDDEN));
    rows
}

/// Requests with a wrong token, content type, method, path or revision.
fn from_strangers(client: &HttpClient) -> Vec<Refused> {
    let good = Row::good(client);
    let token = &client.token;
    let mut rows: Vec<Refused> = Vec::new();
    for authorization in [
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some(token.clone()),
        Some(format!("Basic {token}")),
        Some(format!("Bearer {}", &token[1..])),
        Some(format!("Bearer {}", &token[..token.len() - 1])),
        Some(format!("Bearer {token}x")),
        Some(format!("Bearer {}", token.to_lowercase())),
        Some(format!("Bearer {token}, Bearer {token}")),
        Some(format!("Bearer \"{token}\"")),
    ] {
        let row = Row { authorization, ..good.clone() };
        rows.extend(with_methods(&row).map(|row| (row, &[401][..])));
    }
    let twice = vec![("Authorization", "Bearer other".to_owned())];
    rows.push((Row { more: twice, ..good.clone() }, &[401]));
    let asked = Row { path: "/mcp?token=secret", authorization: None, ..good.clone() };
    rows.push((asked, &[401]));
    for content_type in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("multipart/form-data"),
        Some("text/plain;application/json"),
        Some("application/json5"),
        Some("json"),
    ] {
        rows.push((Row { content_type, ..good.clone() }, &[415]));
    }
    for accept in [Some("text/html"), Some("application/json"), Some("text/event-stream;q=0")] {
        rows.push((Row { accept, ..good.clone() }, &[406]));
    }
    for method in ["PUT", "PATCH", "HEAD", "TRACE", "BREW"] {
        rows.push((Row { method, ..good.clone() }, &[405]));
    }
    for path in ["/", "/mcp/", "/mcp/x", "/sse", "/.well-known/oauth-protected-resource"] {
        rows.push((Row { path, ..good.clone() }, &[404]));
    }
    for revision in ["2026-07-28", "1999-01-01", "", "latest"] {
        let more = vec![("MCP-Protocol-Version", revision.to_owned())];
        rows.push((Row { more, ..good.clone() }, &[400]));
    }
    rows
}

#[tokio::test]
async fn unauthorized_http_requests_have_no_effect() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let mut rows = from_elsewhere(&client);
    rows.extend(from_strangers(&client));
    assert!(rows.len() >= 200, "{} rows", rows.len());
    let mut wrong = Vec::new();
    for (row, expected) in &rows {
        let status = status(row, &client).await;
        if !expected.contains(&status) {
            wrong.push(format!("{status} instead of {expected:?}: {row:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ledger = served.world.fixture("demo").ledger();
    assert_eq!((ledger.connections, ledger.calls.len()), (0, 0), "{ledger:?}");

    // Valid requests in the same session: each of these calls the tool.
    let good = Row::good(&client);
    let port = client.address.port();
    let named = |host: &str| Some(format!("{host}:{port}"));
    let accepted = [
        good.clone(),
        Row { host: named("localhost"), ..good.clone() },
        Row { host: named("LocalHost"), ..good.clone() },
        Row { host: named("[::1]"), ..good.clone() },
        Row { origin: Some(format!("http://localhost:{port}")), ..good.clone() },
        Row { origin: Some(format!("http://127.0.0.1:{port}")), ..good.clone() },
        Row { fetch_site: Some("none"), ..good.clone() },
        Row { fetch_site: Some("same-origin"), ..good.clone() },
        Row { content_type: Some("Application/JSON; charset=utf-8"), ..good.clone() },
        Row { accept: Some("*/*"), ..good.clone() },
        Row { accept: None, ..good.clone() },
        Row { authorization: Some(format!("bearer {}", client.token)), ..good.clone() },
        Row { more: vec![("MCP-Protocol-Version", "2025-03-26".to_owned())], ..good.clone() },
        Row { more: vec![("Cookie", "a=b".to_owned())], ..good.clone() },
    ];
    for row in &accepted {
        assert_eq!(status(row, &client).await, 200, "{row:?}");
    }
    let ledger = served.world.fixture("demo").until(|l| l.calls.len() >= accepted.len()).await;
    assert_eq!(ledger.calls.len(), accepted.len());
    // The token is not forwarded to the server.
    assert!(!format!("{ledger:?}").contains(&client.token));
}

#[tokio::test]
async fn health_check_needs_no_token_and_reveals_nothing() {
    let served = Served::everything().await;
    let client = HttpClient::new(served.address, "none").await;
    let port = served.address.port();
    for (host, expected) in [(format!("localhost:{port}"), 200), ("evil.example".to_owned(), 403)] {
        let mut connection = Connection::to(client.address).await;
        connection.send(format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).await;
        let response = connection.response().await.unwrap();
        assert_eq!(response.head.status, expected, "{host}");
        assert!(response.body.len() < 64, "{}", response.body);
        assert_eq!(response.head.header("access-control-allow-origin"), None);
    }
}
