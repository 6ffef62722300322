//! Tests of the requests of a sign-in, with stubs on loopback; `internal` has those with foreign
//! addresses.

mod internal;
#[path = "../../../../switchboard-it/src/network.rs"]
#[expect(
    unreachable_pub,
    reason = "the module belongs to the test kit, which cannot be a dependency here"
)]
mod network;
mod stub;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use stub::{Stub, ok};

use super::*;
use crate::dial::names::Names;
use crate::dial::spawn::Promise;
use crate::env::Environment;

/// A fake resolver: the addresses of each hostname, one set per lookup. The last set repeats.
#[derive(Default)]
struct Book(Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>);

impl Book {
    fn of(entries: &[(&str, &[&[&str]])]) -> Arc<Book> {
        let addresses =
            |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        let entry = |(name, answers): &(&str, &[&[&str]])| {
            ((*name).to_owned(), answers.iter().map(addresses).collect())
        };
        Arc::new(Book(Mutex::new(entries.iter().map(entry).collect())))
    }
}

impl Names for Book {
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        let mut book = self.0.lock().unwrap();
        let answer = match book.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.concat()),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        let answer = answer.map(|answer| answer.into_iter().map(|ip| (ip, 0).into()).collect());
        Box::pin(std::future::ready(answer))
    }
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

/// The client for requests on behalf of this server.
async fn net(server: &str, names: Arc<dyn Names>, proxy: &str) -> Net {
    let environment = Environment::made_of([("HTTPS_PROXY", proxy)], "/");
    let clients = Clients::new(environment, names);
    Net::of(&clients, Reach::of(&url(server)), Some(testdata("ca.pem"))).await.unwrap()
}

async fn net_of(stub: &Stub) -> Net {
    net(&stub.url("/mcp"), Book::of(&[("localhost", &[&["127.0.0.1"]])]), "").await
}

/// Certificates of the test kit, for `localhost` and `127.0.0.1`.
fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../switchboard-it/testdata/tls").join(name)
}

/// The error with all its causes, as the user sees it.
fn told(error: &NetError) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

#[tokio::test]
async fn oauth_request_has_minimal_headers_and_no_cookies() {
    let stub = Stub::start(|_| {
        Some(b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 2\r\n\r\n{}".to_vec())
    })
    .await;
    let net = net_of(&stub).await;
    net.get(&stub.at("/document")).await.unwrap();
    let headers = HeaderMap::from_iter([(
        reqwest::header::AUTHORIZATION,
        HeaderValue::from_static("Basic Y2xpZW50"),
    )]);
    net.post(&stub.at("/token?tenant=1"), headers, b"grant".to_vec()).await.unwrap();
    net.get(&stub.at("/document#top")).await.unwrap();
    insta::assert_snapshot!(stub.asked().join("\n--\n").replace(env!("CARGO_PKG_VERSION"), "VERSION"), @r#"
    GET /document HTTP/1.1
    accept: application/json
    user-agent: switchboard/VERSION
    host: 127.0.0.1:PORT


    --
    POST /token?tenant=1 HTTP/1.1
    authorization: Basic Y2xpZW50
    accept: application/json
    user-agent: switchboard/VERSION
    host: 127.0.0.1:PORT
    content-length: 5

    grant
    --
    GET /document HTTP/1.1
    accept: application/json
    user-agent: switchboard/VERSION
    host: 127.0.0.1:PORT
    "#);
}

#[tokio::test]
async fn at_most_three_same_origin_redirects_are_followed() {
    for status in [301, 302, 303, 307, 308] {
        let stub = Stub::start(move |path| {
            let step: u32 = path.trim_start_matches('/').parse().unwrap();
            Some(match step {
                0 => ok("{}"),
                step => stub::redirect(status, &format!("/{}", step - 1)),
            })
        })
        .await;
        let net = net_of(&stub).await;
        assert_eq!(net.get(&stub.at("/3")).await.unwrap().body, b"{}", "{status}");
        let endless = net.get(&stub.at("/4")).await.unwrap_err();
        assert!(matches!(endless, NetError::EndlessRedirects), "{status}: {endless}");
        // A POST is not redirected.
        let posted = stub.asked().len();
        let answer = net.post(&stub.at("/1"), HeaderMap::new(), Vec::new()).await.unwrap();
        assert_eq!((answer.status, stub.asked().len()), (status, posted + 1));
    }
}

#[tokio::test]
async fn redirect_to_another_origin_is_refused() {
    let other = Stub::start(|_| Some(ok("{}"))).await;
    let elsewhere = [
        (other.url("/"), format!("http://127.0.0.1:{}", other.port)),
        (format!("//127.0.0.1:{}/", other.port), format!("http://127.0.0.1:{}", other.port)),
        ("http://localhost:1/".to_owned(), "http://localhost:1".to_owned()),
        ("https://127.0.0.1:1/?code=canary".to_owned(), "https://127.0.0.1:1".to_owned()),
        ("https://user:canary@auth.example/".to_owned(), "https://auth.example".to_owned()),
        ("file:///etc/passwd".to_owned(), "null".to_owned()),
        ("javascript:alert(1)".to_owned(), "null".to_owned()),
        ("http://[::1".to_owned(), String::new()),
    ];
    for (location, origin) in elsewhere {
        let to = location.clone();
        let stub = Stub::start(move |_| Some(stub::redirect(302, &to))).await;
        let refused = net_of(&stub).await.get(&stub.at("/")).await.unwrap_err();
        match refused {
            NetError::Elsewhere { origin: named } => assert_eq!(named, origin, "{location}"),
            other => panic!("{location}: {other}"),
        }
        assert_eq!(stub.asked().len(), 1);
    }
    assert_eq!(other.asked(), [""; 0]);
}

#[tokio::test]
async fn url_with_user_info_is_not_requested() {
    let stub = Stub::start(|_| Some(stub::redirect(302, "//user:canary@127.0.0.1:PORT/"))).await;
    let net = net_of(&stub).await;
    for refused in [
        net.get(&url(&format!("http://user:canary@127.0.0.1:{}/", stub.port))).await.unwrap_err(),
        net.get(&stub.at("/")).await.unwrap_err(),
    ] {
        assert!(matches!(refused, NetError::Address(BadLink::UserInfo { .. })), "{refused}");
        assert!(!told(&refused).contains("canary"));
    }
    assert_eq!(stub.asked().len(), 1);
}

#[tokio::test]
async fn oauth_response_size_is_bounded() {
    let stub = Stub::start(|path| {
        let length = path.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap();
        let body = "x".repeat(length);
        Some(match path.starts_with("/chunked") {
            false => ok(&body),
            true => format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
            )
            .into_bytes(),
        })
    })
    .await;
    let net = net_of(&stub).await;
    for form in ["/sized", "/chunked"] {
        let all = net.get(&stub.at(&format!("{form}{LARGEST_BODY}"))).await.unwrap();
        assert_eq!(all.body.len(), LARGEST_BODY, "{form}");
        for length in [LARGEST_BODY + 1, 50 * LARGEST_BODY] {
            let address = stub.at(&format!("{form}{length}"));
            let refused = [
                net.get(&address).await.unwrap_err(),
                net.post(&address, HeaderMap::new(), Vec::new()).await.unwrap_err(),
            ];
            for refused in refused {
                assert!(matches!(refused, NetError::TooLarge), "{form} {length}: {refused}");
            }
        }
    }
}

#[tokio::test]
async fn compressed_response_is_not_decompressed() {
    // A thousand blanks, compressed by gzip.
    const PACKED: &[u8] =
        b"\x1f\x8b\x08\0\0\0\0\0\x02\x03SP\x18\x05\xa3`\x14\x0cw\0\0\x19\xda\x98\xd2\xe8\x03\0\0";
    let stub = Stub::start(|_| {
        let head = format!("content-encoding: gzip\r\ncontent-length: {}", PACKED.len());
        Some([format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes(), PACKED].concat())
    })
    .await;
    let answer = net_of(&stub).await.get(&stub.at("/")).await.unwrap();
    assert_eq!(answer.body, PACKED);
    assert!(!stub.asked().concat().contains("accept-encoding"));
}

#[tokio::test(start_paused = true)]
async fn silent_authorization_server_times_out() {
    let begun = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{".as_slice();
    for beginning in [None, Some(begun)] {
        let stub = Stub::start_slow(move |_| beginning.map(<[u8]>::to_vec)).await;
        let net = net_of(&stub).await;
        let address = stub.at("/");
        for (asking, limit) in [
            (Box::pin(net.get(&address)) as Asking<'_>, DOCUMENT),
            (Box::pin(net.post(&address, HeaderMap::new(), Vec::new())), ENDPOINT),
        ] {
            let start = tokio::time::Instant::now();
            let given_up = asking.await.unwrap_err();
            assert!(matches!(given_up, NetError::TimedOut), "{given_up}");
            assert!(start.elapsed() <= limit + Duration::from_secs(1), "{:?}", start.elapsed());
        }
    }
}

type Asking<'a> = std::pin::Pin<Box<dyn Future<Output = Result<NetResponse, NetError>> + 'a>>;

#[tokio::test]
async fn response_status_type_and_retry_after_are_parsed() {
    let cases = [
        ("200 OK", "content-type: application/json", (200, true, None)),
        ("200 OK", "content-type: Application/JSON; charset=utf-8", (200, true, None)),
        ("200 OK", "content-type: application/problem+json", (200, true, None)),
        ("200 OK", "content-type: text/html", (200, false, None)),
        ("404 Not Found", "x: y", (404, false, None)),
        ("429 Too Many Requests", "retry-after: 7", (429, false, Some(7))),
        ("503 Unavailable", "retry-after: Thu, 01 Jan 1970 00:00:00 GMT", (503, false, Some(0))),
        ("503 Unavailable", "retry-after: -7", (503, false, None)),
        ("302 Found", "x: y", (302, false, None)),
        ("304 Not Modified", "location: https://auth.example/", (304, false, None)),
    ];
    for (status, header, expected) in cases {
        let head = format!("HTTP/1.1 {status}\r\n{header}\r\ncontent-length: 0\r\n\r\n");
        let stub = Stub::start(move |_| Some(head.clone().into_bytes())).await;
        let NetResponse { status, json, retry_after, .. } =
            net_of(&stub).await.get(&stub.at("/")).await.unwrap();
        let seconds = retry_after.map(|wait| wait.as_secs());
        assert_eq!((status, json, seconds), expected, "{header}");
    }
}

#[tokio::test]
async fn connection_error_does_not_quote_the_request() {
    let stub = Stub::start(|_| Some(Vec::new())).await;
    let net = net_of(&stub).await;
    let address = stub.at("/?code=canary");
    let cut = net.get(&address).await.unwrap_err();
    assert!(matches!(cut, NetError::Unreachable { .. }), "{cut}");
    assert!(!told(&cut).contains("canary") && !format!("{cut:?}").contains("canary"), "{cut:?}");
    let unreachable = net.get(&url("http://127.0.0.1:1/?code=canary")).await.unwrap_err();
    assert_eq!(told(&unreachable), "no response from `http://127.0.0.1:1`: connection refused");
    let answer = NetResponse {
        status: 200,
        json: true,
        body: b"canary".to_vec(),
        retry_after: None,
        challenges: Vec::new(),
    };
    assert!(!format!("{answer:?}").contains("canary"));
}

#[tokio::test]
async fn redirect_from_https_to_http_is_refused() {
    let plain = Stub::start(|_| Some(ok("{}"))).await;
    let to = plain.url("/");
    let stub = Stub::start_secure(move |path| {
        Some(match path {
            "/document" => ok("{}"),
            "/here" => stub::redirect(307, "http://localhost:PORT/document"),
            _ => stub::redirect(307, &to),
        })
    })
    .await;
    let net = net(&plain.url("/mcp"), Book::of(&[("localhost", &[&["127.0.0.1"]])]), "").await;
    let at = |path: &str| url(&format!("https://localhost:{}{path}", stub.port));
    assert_eq!(net.get(&at("/document")).await.unwrap().body, b"{}");
    for path in ["/here", "/there"] {
        let refused = net.get(&at(path)).await.unwrap_err();
        assert!(matches!(refused, NetError::Elsewhere { .. }), "{refused}");
    }
    assert_eq!((plain.asked().len(), stub.asked().len()), (0, 3));
}

#[tokio::test]
async fn proxy_gets_hostnames_and_never_internal_addresses() {
    let proxy =
        Stub::start(|_| Some(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n".to_vec()))
            .await;
    let book = Book::of(&[("proxy.example", &[&["127.0.0.1"]]), ("auth.example", &[&["9.9.9.9"]])]);
    for spelled in ["http://proxy.example:PORT", "proxy.example:PORT"] {
        let proxied = spelled.replace("PORT", &proxy.port.to_string());
        let net = net("https://mcp.example/mcp", Arc::clone(&book) as _, &proxied).await;
        let before = proxy.asked().len();
        let failed = net.get(&url("https://auth.example/")).await.unwrap_err();
        assert!(matches!(failed, NetError::Unreachable { .. }), "{failed}");
        let asked = proxy.asked().split_off(before).concat();
        assert!(asked.starts_with("CONNECT auth.example:443 "), "{asked}");
        let before = proxy.asked().len();
        for internal in
            ["https://10.0.0.1/", "https://[::1]/", "https://0x7f.1/", "https://proxy.example/"]
        {
            let refused = net.get(&url(internal)).await.unwrap_err();
            assert!(matches!(refused, NetError::Forbidden { .. }), "{internal}: {refused}");
        }
        assert_eq!(proxy.asked().len(), before);
    }
}
