//! Addresses in the OAuth metadata of a server to which the rmcp SDK sends requests. Switchboard
//! has its own check in `auth/net`; this test shows the difference.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use rmcp::transport::auth::AuthorizationManager;
use serde_json::json;
use switchboard_it::network::{Canaries, within};

/// A server with a public address; its metadata names the authorization server.
const SERVER: [u8; 4] = [9, 9, 9, 9];

const AUTHORITIES: &[&str] = &[
    "http://127.0.0.1",
    "http://0x7f.1",
    "http://[::1]",
    "http://[::ffff:127.0.0.1]",
    "http://[::127.0.0.1]",
    "http://0.0.0.0",
    "http://[::]",
    "http://10.0.0.1",
    "http://[::ffff:10.0.0.1]",
    "http://[64:ff9b::a00:1]",
    "http://[2002:a00:1::]",
    "http://[fc00::1]",
    "http://100.64.0.1",
    "http://169.254.169.254",
    "http://[::ffff:169.254.169.254]",
    "http://[64:ff9b::a9fe:a9fe]",
    "http://[fd00:ec2::254]",
    "http://[fe80::1]",
    "http://localhost",
    "http://a.localhost.",
    "http://[2001::1]",
    "http://[64:ff9b:1::1]",
    "http://224.0.0.1",
    "http://[ff02::1]",
    // The SDK sends requests to the following addresses; Switchboard does not.
    "http://168.63.129.16",
    "http://192.0.0.192",
    "http://192.0.2.1",
    "http://198.51.100.1",
    "http://203.0.113.1",
    "http://240.0.0.1",
    "http://[2001:db8::1]",
    "http://[3fff::1]",
    "http://[5f00::1]",
    "http://[fec0::1]",
    "http://[::ffff:0:7f00:1]",
    // A public address, but without encryption.
    "http://1.1.1.1",
];

#[test]
fn rmcp_guard_allows_internal_addresses_that_switchboard_refuses() {
    let name = "rmcp_guard_allows_internal_addresses_that_switchboard_refuses";
    within(module_path!(), name, || {
        let named = Arc::new(Mutex::new(""));
        let naming = Arc::clone(&named);
        let canaries =
            Canaries::start(move |address, path| document(address, path, *naming.lock().unwrap()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let manager = runtime.block_on(manager());
        let lines = AUTHORITIES.iter().map(|authority| {
            *named.lock().unwrap() = authority;
            // No authorization server responds at any address.
            assert!(runtime.block_on(manager.resolve_metadata()).is_err());
            let mut seen = canaries.seen();
            assert!(seen.contains(&SERVER.into()), "its document was not read: {authority}");
            seen.retain(|address| *address != IpAddr::from(SERVER));
            format!("{} {authority}", if seen.is_empty() { "refused" } else { "asked  " })
        });
        let lines: Vec<String> = lines.collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        refused http://127.0.0.1
        refused http://0x7f.1
        refused http://[::1]
        refused http://[::ffff:127.0.0.1]
        refused http://[::127.0.0.1]
        refused http://0.0.0.0
        refused http://[::]
        refused http://10.0.0.1
        refused http://[::ffff:10.0.0.1]
        refused http://[64:ff9b::a00:1]
        refused http://[2002:a00:1::]
        refused http://[fc00::1]
        refused http://100.64.0.1
        refused http://169.254.169.254
        refused http://[::ffff:169.254.169.254]
        refused http://[64:ff9b::a9fe:a9fe]
        refused http://[fd00:ec2::254]
        refused http://[fe80::1]
        refused http://localhost
        refused http://a.localhost.
        refused http://[2001::1]
        refused http://[64:ff9b:1::1]
        refused http://224.0.0.1
        refused http://[ff02::1]
        asked   http://168.63.129.16
        asked   http://192.0.0.192
        asked   http://192.0.2.1
        asked   http://198.51.100.1
        asked   http://203.0.113.1
        asked   http://240.0.0.1
        asked   http://[2001:db8::1]
        asked   http://[3fff::1]
        asked   http://[5f00::1]
        asked   http://[fec0::1]
        asked   http://[::ffff:0:7f00:1]
        asked   http://1.1.1.1
        "#);
    });
}

async fn manager() -> AuthorizationManager {
    let _is_there_already =
        tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    AuthorizationManager::new("http://9.9.9.9/mcp").await.unwrap()
}

/// The resource metadata of the server, which names `authority` as the authorization server; 404
/// for all other paths.
fn document(address: IpAddr, path: &str, authority: &str) -> String {
    if address != IpAddr::from(SERVER) || path != "/.well-known/oauth-protected-resource/mcp" {
        return "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            .to_owned();
    }
    let body = json!({ "resource": "http://9.9.9.9/mcp", "authorization_servers": [authority] });
    let body = body.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}
