//! A headless browser for the test user, and raw HTTP requests.

use std::net::SocketAddr;

use url::Url;
use url::form_urlencoded::Serializer;

use crate::http_client::{Connection, Response};

/// Follows an authorization URL as a browser would, up to and including the loopback redirect.
/// Returns the status of the last page.
pub async fn visit(url: &str) -> u16 {
    let page = get(url).await;
    match page.head.header("location").filter(|location| address_of(location).is_some()) {
        Some(location) => get(location).await.head.status,
        None => page.head.status,
    }
}

/// The target of the redirect, for tests that paste it.
pub async fn redirect_of(url: &str) -> Option<String> {
    get(url).await.head.header("location").map(str::to_owned)
}

/// A GET without following redirects.
pub async fn get(url: &str) -> Response {
    send("GET", url, &[], "").await
}

/// A POST of a form.
pub async fn post_form(url: &str, headers: &[(&str, &str)], form: &[(&str, &str)]) -> Response {
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let kind = ("Content-Type", "application/x-www-form-urlencoded");
    let headers: Vec<_> = headers.iter().copied().chain([kind]).collect();
    send("POST", url, &headers, &body).await
}

/// A POST of JSON.
pub async fn post_json(url: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let accept = ("Accept", "application/json, text/event-stream");
    let kind = ("Content-Type", "application/json");
    let headers: Vec<_> = headers.iter().copied().chain([accept, kind]).collect();
    send("POST", url, &headers, body).await
}

async fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let address = address_of(url).unwrap_or_else(|| panic!("not on loopback: {url}"));
    let url = Url::parse(url).expect("the URL parsed before");
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let mut connection = Connection::to(address).await;
    connection.send(request.as_bytes()).await;
    connection.response().await.expect("a response")
}

/// The socket address of a URL on loopback.
fn address_of(url: &str) -> Option<SocketAddr> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "http")?;
    let host = match url.host()? {
        url::Host::Ipv4(address) if address.is_loopback() => address.into(),
        url::Host::Ipv6(address) if address.is_loopback() => address.into(),
        url::Host::Domain("localhost") => std::net::Ipv4Addr::LOCALHOST.into(),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) | url::Host::Domain(_) => return None,
    };
    Some(SocketAddr::new(host, url.port_or_known_default()?))
}
