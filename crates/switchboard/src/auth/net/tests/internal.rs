//! No request reaches an internal address; canary listeners would record it.

use std::collections::BTreeSet;

use super::network::{Canaries, within};
use super::*;

/// Hosts that a public server must not name.
const INTERNAL: &[&str] = &[
    // Loopback addresses.
    "127.0.0.1",
    "127.1",
    "127.0.0.1.",
    "127.255.255.254",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "2130706433",
    "%31%32%37.0.0.1",
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "ⓛocalhost",
    "a.b.localhost",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:7F00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    // Linux treats the unspecified address as loopback, too.
    "0",
    "0.0.0.0",
    "0x0",
    "[::]",
    "[::ffff:0.0.0.0]",
    // Private addresses.
    "10.0.0.1",
    "0xa.1",
    "012.0.0.1",
    "167772161",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[::ffff:10.0.0.1]",
    "[::10.0.0.1]",
    "[64:ff9b::a00:1]",
    "[2002:a00:1::1]",
    // Link-local addresses and metadata services.
    "169.254.169.254",
    "169.254.170.2",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "[fe80::1]",
    "100.100.100.200",
    "168.63.129.16",
    // Other reserved addresses.
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[64:ff9b:1::1]",
    "[2001::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::ffff:0:7f00:1]",
];

/// Forbidden addresses for the hostnames in URLs of a public server.
const BEHIND_NAMES: &[&str] = &[
    "127.0.0.1",
    "10.0.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "203.0.113.1",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:7f00:1::",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
];

const PUBLIC: [&str; 2] = ["9.9.9.9", "2620:fe::fe"];

#[test]
fn no_request_reaches_an_internal_address() {
    within(module_path!(), "no_request_reaches_an_internal_address", || {
        let canaries = Canaries::start(|_, _| String::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let cases = runtime.block_on(async {
            literals().await + names().await + redirects().await + other_servers().await
        });
        assert!(cases >= 60, "{cases}");
        // Permitted addresses got requests, which shows that the canaries record them.
        let seen: BTreeSet<IpAddr> = canaries.seen().into_iter().collect();
        assert_eq!(seen, PUBLIC.map(|address| address.parse().unwrap()).into());
    });
}

/// Sends every kind of request; each is refused because of the address.
async fn refused(net: &Net, address: &str) -> usize {
    let address = url(address);
    for refused in [
        net.get(&address).await.unwrap_err(),
        net.post(&address, HeaderMap::new(), b"code=canary".to_vec()).await.unwrap_err(),
    ] {
        assert!(matches!(refused, NetError::Forbidden { .. }), "{address}: {}", told(&refused));
    }
    2
}

async fn literals() -> usize {
    let local: &[&[&str]] = &[&["127.0.0.1"]];
    let book = Book::of(&[("localhost", local), ("localhost.", local), ("a.b.localhost", local)]);
    let net = net("https://mcp.example/mcp", book, "").await;
    let mut cases = 0;
    for host in INTERNAL {
        for scheme in ["http", "https"] {
            cases += refused(&net, &format!("{scheme}://{host}/latest/meta-data")).await;
        }
    }
    cases
}

async fn names() -> usize {
    let [public, public6] = PUBLIC;
    let mut cases = 0;
    for internal in BEHIND_NAMES {
        let book = Book::of(&[
            ("bad.example", &[&[*internal]]),
            ("mixed.example", &[&[public, *internal]]),
            ("mixed6.example", &[&[*internal, public6]]),
            ("rebinding.example", &[&[public], &[*internal]]),
            ("127.0.0.1.nip.example", &[&[*internal]]),
        ]);
        let net = net("https://mcp.example/mcp", book, "").await;
        // The first lookup gives a permitted address, which gets the request.
        let unanswered = net.get(&url("https://rebinding.example/")).await.unwrap_err();
        assert!(matches!(unanswered, NetError::Unreachable { .. }), "{}", told(&unanswered));
        for name in ["bad", "mixed", "mixed6", "rebinding", "127.0.0.1.nip"] {
            cases += refused(&net, &format!("https://{name}.example/")).await;
        }
    }
    let book = Book::of(&[("good.example", &[&[public, public6]]), ("six.example", &[&[public6]])]);
    let net = net("https://mcp.example/mcp", book, "").await;
    for good in ["https://good.example/", "https://six.example/"] {
        let unanswered = net.get(&url(good)).await.unwrap_err();
        assert!(matches!(unanswered, NetError::Unreachable { .. }), "{}", told(&unanswered));
    }
    let unencrypted = net.get(&url("http://good.example/")).await.unwrap_err();
    assert!(matches!(unencrypted, NetError::Address(BadLink::Unencrypted { .. })));
    cases + 1
}

/// Sends requests to a permitted server on loopback, which redirects to internal addresses.
async fn redirects() -> usize {
    let mut cases = 0;
    for host in INTERNAL {
        for (status, scheme) in [(302, "http"), (307, "https")] {
            let to = format!("{scheme}://{host}/latest/meta-data");
            // A `Location` header must be ASCII.
            let location = match host.is_ascii() {
                true => to,
                false => url(&to).into(),
            };
            let stub = Stub::start(move |_| Some(stub::redirect(status, &location))).await;
            let refused = net_of(&stub).await.get(&stub.at("/")).await.unwrap_err();
            assert!(matches!(refused, NetError::Elsewhere { .. }), "{host}: {}", told(&refused));
            cases += 1;
        }
    }
    cases
}

/// Sends requests on behalf of servers that are not public: these may reach more addresses, but not
/// all.
async fn other_servers() -> usize {
    let [public, _] = PUBLIC;
    let cases = [
        ("http://127.0.0.1:9000/mcp", "https://10.0.0.1/"),
        ("http://127.0.0.1:9000/mcp", "http://169.254.169.254/"),
        ("http://localhost:9000/mcp", "https://private.example/"),
        ("http://localhost:9000/mcp", "http://0.0.0.0/"),
        ("http://[::1]:9000/mcp", "https://metadata.example/"),
        ("https://10.0.0.2/mcp", "https://127.0.0.1/"),
        ("https://10.0.0.2/mcp", "https://local.example/"),
        ("https://10.0.0.2/mcp", "https://metadata.example/"),
        ("https://10.0.0.2/mcp", "https://[fd00:ec2::254]/"),
        // The server's own hostname may resolve to a private address, but not to a reserved one.
        ("https://local.example/mcp", "https://local.example/"),
        ("https://metadata.example/mcp", "https://metadata.example/"),
        ("https://private.example/mcp", "https://other.private.example/"),
        ("https://private.example/mcp", "https://10.0.0.1/"),
        ("http://169.254.169.254/mcp", "http://169.254.169.254/"),
    ];
    let mut count = 0;
    for (server, address) in cases {
        let book = Book::of(&[
            ("private.example", &[&["10.0.0.1"]]),
            ("other.private.example", &[&["10.0.0.1", public]]),
            ("local.example", &[&["127.0.0.1"]]),
            ("metadata.example", &[&["169.254.169.254"]]),
        ]);
        count += refused(&net(server, book, "").await, address).await;
    }
    count
}
