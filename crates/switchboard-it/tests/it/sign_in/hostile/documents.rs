//! Metadata documents of servers and authorization servers.

use std::time::Duration;

use switchboard_it::authority::Endpoint;
use tokio::time::Instant;

use super::*;

#[test]
fn unsafe_authorization_page_is_not_opened() {
    unseen(module_path!(), "unsafe_authorization_page_is_not_opened", || async {
        let long = format!("{{AS}}/{}", "a".repeat(9 * 1024));
        // This URL is within the length limit, but not with the query of the authorization request.
        let full = format!("{{AS}}/{}", "a".repeat(8 * 1024 - 100));
        let pages = [
            "{AS}/authorize;calc",
            "{AS}/$(calc)",
            "{AS}/$IFS",
            "{AS}/`calc`",
            "{AS}/?a=\"&calc&\"",
            "{AS}/'calc'",
            "{AS}/!calc",
            "{AS}/|calc",
            "{AS}/>calc",
            "{AS}/a calc",
            "{AS}/\ncalc",
            "{AS}/\r\nX-Calc: 1",
            "{AS}/\u{0}",
            "{AS}/\u{1b}[2J",
            "{AS}/\u{202e}exe.calc",
            "javascript:alert(1)",
            "JaVaScRiPt://%0aalert(1)",
            "java\tscript:alert(1)",
            "file:///etc/passwd",
            "data:text/html,calc",
            "vbscript:calc",
            "ms-calculator:",
            "-flag",
            "--new-window=http://127.0.0.1/",
            "",
            "/authorize",
            "//127.0.0.1/authorize",
            "http://user$(calc)r:pass@127.0.0.1/authorize",
            "http://user:pass@127.0.0.1/authorize",
            "http://127.0.0.1\\@calc.example/authorize",
            "http://auth.example/authorize",
            "HTTPS:auth.example/authorize",
            "https:///auth.example/authorize",
            "https://%61uth.example/authorize",
            "https://%24%28calc%29.example/",
            "https://bücher.example/authorize",
            "https://xn--a/authorize",
            "https://аuth.example/authorize",
            "{AS}/authorize#calc",
            long.as_str(),
            full.as_str(),
        ];
        let rows = pages.map(|page| {
            let what = page.escape_default().to_string();
            let what = what.chars().take(60).collect::<String>();
            (what, metadata("authorization_endpoint", page))
        });
        let rows: Vec<_> = rows
            .iter()
            .map(|(what, setup)| (what.as_str(), SignInMethod::Page, setup.clone()))
            .collect();
        insta::assert_snapshot!("pages", table(&rows).await);
    });
}

/// Internal addresses that metadata must not name.
const INTERNAL: [&str; 22] = [
    "http://10.0.0.1",
    "https://10.0.0.1",
    "https://0xa.1",
    "https://012.0.0.1",
    "https://167772161",
    "https://172.16.0.1",
    "https://192.168.0.1",
    "https://100.64.0.1",
    "http://169.254.169.254",
    "https://169.254.169.254",
    "https://2852039166",
    "https://0xa9fea9fe",
    "https://0251.0376.0251.0376",
    "https://[::ffff:169.254.169.254]",
    "https://[::ffff:10.0.0.1]",
    "https://[64:ff9b::a00:1]",
    "https://[2002:a00:1::1]",
    "https://[fd00:ec2::254]",
    "https://[fe80::1]",
    "http://0.0.0.0",
    "https://[::]",
    "https://168.63.129.16",
];

const FIELDS: [&str; 5] = [
    "authorization_endpoint",
    "token_endpoint",
    "registration_endpoint",
    "device_authorization_endpoint",
    "revocation_endpoint",
];

#[test]
fn internal_endpoint_or_issuer_address_is_rejected() {
    unseen(module_path!(), "internal_endpoint_or_issuer_address_is_rejected", || async {
        // All fields share one check, so each address is tried in one field only.
        for (address, field) in INTERNAL.iter().zip(FIELDS.iter().cycle()) {
            let victim = Victim::of(&metadata(field, format!("{address}/x")), Nameless).await;
            let said = victim.refusal(victim.sign_in(SignInMethod::Page).await);
            let because = format!("the URL `{field}` is refused: ");
            assert!(said.contains(&because), "{address}: {said}");
            assert!(said.ends_with("is an internal or reserved address"), "{address}: {said}");
        }
        let issuers = INTERNAL.map(|address| {
            (address, SignInMethod::Page, resource("authorization_servers", json!([address])))
        });
        insta::assert_snapshot!("issuers", table(&issuers).await);
    });
}

#[test]
fn resource_metadata_about_another_server_is_rejected() {
    unseen(module_path!(), "resource_metadata_about_another_server_is_rejected", || async {
        let only = |manner: Value| json!({ "resource": { "manner": manner } });
        let many: Vec<String> = (0..100).map(|n| format!("https://10.0.0.{n}")).collect();
        let rows = [
            ("another path", resource("resource", "{MCP}/other")),
            ("a longer path", resource("resource", "{MCP}/mcp/more")),
            ("a path that only begins like it", resource("resource", "{MCP}/mc")),
            ("another origin", resource("resource", "https://mcp.example/mcp")),
            ("another scheme", resource("resource", "ftp://127.0.0.1/mcp")),
            ("a fragment", resource("resource", "{MCP}/mcp#x")),
            ("another query", resource("resource", "{MCP}/mcp?x=1")),
            ("no address", resource("resource", "\u{1b}]0;calc\u{7}")),
            ("no resource", resource("resource", Value::Null)),
            ("a resource of another type", resource("resource", json!(["{MCP}/mcp"]))),
            ("no authorities", resource("authorization_servers", json!([]))),
            ("no list of authorities", resource("authorization_servers", Value::Null)),
            ("an authority that is no list", resource("authorization_servers", "{AS}")),
            ("authorities of another type", resource("authorization_servers", json!([7]))),
            ("a hundred authorities", resource("authorization_servers", json!(many))),
            ("a script as authority", resource("authorization_servers", json!(["javascript:x"]))),
            ("scopes of another type", resource("scopes_supported", json!({ "a": 1 }))),
            ("a megabyte", only(json!("huge"))),
            ("ten thousand levels", only(json!("deep"))),
            ("17 levels", only(raw(nested(17).as_bytes()))),
            ("a list", only(raw(b"[]"))),
            ("half an object", only(raw(b"{\"resource\":"))),
            ("bytes", only(raw(b"\xff\xfe{}"))),
            ("elsewhere", only(json!({ "redirect": "http://169.254.169.254/latest" }))),
            ("in trouble", only(json!({ "status": 503 }))),
        ];
        let rows = rows.map(|(what, setup)| (what, SignInMethod::Page, setup));
        insta::assert_snapshot!("resources", table(&rows).await);
    });
}

#[test]
fn malformed_or_foreign_authorization_server_metadata_is_rejected() {
    let test = "malformed_or_foreign_authorization_server_metadata_is_rejected";
    unseen(module_path!(), test, || async {
        let only = |manner: Value| json!({ "metadata": { "manner": manner } });
        let zipped = json!([["content-type", "application/json"], ["content-encoding", "gzip"]]);
        let large = format!("{{\"x\":\"{:x>1$}\"}}", "", 64 * 1024 - 7);
        let location = "{AS}/.well-known/oauth-authorization-server";
        let rows = [
            ("another issuer", metadata("issuer", "https://auth.example")),
            ("an issuer of this machine", metadata("issuer", "{MCP}")),
            ("no issuer", metadata("issuer", Value::Null)),
            ("an issuer with a path", metadata("issuer", "{AS}/tenant")),
            ("an issuer with a query", metadata("issuer", "{AS}?x")),
            ("an issuer with a slash more", tenant("{AS}/tenant/")),
            ("an issuer in other capitals", tenant("{AS}/Tenant")),
            ("an issuer of another type", metadata("issuer", json!({ "x": 1 }))),
            ("an issuer to confuse terminals", metadata("issuer", "\u{1b}[2J\u{202e}")),
            ("no proof", metadata("code_challenge_methods_supported", Value::Null)),
            ("a plain proof", metadata("code_challenge_methods_supported", json!(["plain"]))),
            ("a small s256", metadata("code_challenge_methods_supported", json!(["s256"]))),
            ("a proof that is no list", metadata("code_challenge_methods_supported", "S256")),
            ("no token endpoint", metadata("token_endpoint", Value::Null)),
            ("a token endpoint of another type", metadata("token_endpoint", 7)),
            ("no page", metadata("authorization_endpoint", Value::Null)),
            ("no registration", metadata("registration_endpoint", Value::Null)),
            (
                "a promise of another type",
                metadata("authorization_response_iss_parameter_supported", "true"),
            ),
            ("another origin", only(json!({ "redirect": "{MCP}/x" }))),
            ("an internal address", only(json!({ "redirect": "http://169.254.169.254/" }))),
            ("round and round", only(json!({ "redirect": location }))),
            ("a megabyte", only(json!("huge"))),
            ("a byte too much", only(raw(large.as_bytes()))),
            ("more than it seems", only(json!({ "raw": { "headers": zipped, "body": bomb() } }))),
            ("ten thousand levels", only(json!("deep"))),
            ("60,000 levels that do not end", only(raw(&[b'['; 60_000]))),
            ("100,000 levels", only(raw(&[b'['; 100_000]))),
            ("17 levels", only(raw(nested(17).as_bytes()))),
            ("a page", only(json!("html"))),
            ("a text", only(json!("plain-text"))),
            ("a list", only(raw(b"[{}]"))),
            ("nothing", only(raw(b""))),
            ("in trouble", only(json!({ "status": 500 }))),
            ("busy", only(json!({ "busy": { "retry_after": 9 } }))),
        ];
        let rows = rows.map(|(what, setup)| (what, SignInMethod::Page, setup));
        insta::assert_snapshot!("authorities", table(&rows).await);
    });
}

/// The server names an issuer with a path; the metadata of this path names `issuer`.
fn tenant(issuer: &str) -> Value {
    json!({
        "tenant": "/tenant",
        "resource": { "fields": { "authorization_servers": ["{AS}/tenant"] } },
        "metadata": { "fields": { "issuer": issuer } },
    })
}

/// JSON with this many nested objects of one field.
fn nested(levels: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels))
}

/// A gzip bomb: a JSON object of 200,000 bytes, compressed to a few hundred.
fn bomb() -> Vec<u8> {
    let hex = include_str!("bomb.hex").trim();
    let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// The clock is paused once the request for the document has arrived, and then auto-advances.
#[tokio::test]
async fn metadata_request_times_out_after_five_seconds() {
    for (document, endpoint) in
        [("resource", Endpoint::ResourceMetadata), ("metadata", Endpoint::Metadata)]
    {
        let victim = Victim::of(&json!({ document: { "manner": "hang" } }), Nameless).await;
        let ledger = victim.authority.ledger();
        let asked = async {
            ledger.until(|record| record.count(endpoint) == 1).await;
            tokio::time::pause();
            Instant::now()
        };
        let (outcome, since) = tokio::join!(victim.sign_in(SignInMethod::Page), asked);
        assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
        let said = victim.refusal(outcome);
        assert!(said.ends_with("the request timed out"), "{said}");
        tokio::time::resume();
    }
}
