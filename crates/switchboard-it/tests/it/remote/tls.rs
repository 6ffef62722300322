//! TLS certificates are verified before any request is sent.

use serde_json::json;
use switchboard::failure::{Code, Failure};
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::World;

use super::served;

/// Calls `echo` of a server at `url` with this `caFile`.
async fn echo(url: &str, ca_file: &str) -> Result<String, Failure> {
    let path = format!("{}/testdata/tls/{ca_file}", env!("CARGO_MANIFEST_DIR"));
    let entry = json!({ "url": url, "caFile": path, "bearerToken": "canary" });
    let world = World::with(&json!({ "mcpServers": { "far": entry } }).to_string()).start();
    let answer = world.call("far_echo", json!({ "text": "hello" })).await;
    world.shut_down().await;
    answer
}

#[tokio::test]
async fn only_certificates_of_the_ca_file_are_trusted() {
    let fixture = HttpFixture::start_secure(&served("events", "everything")).await;
    assert_eq!(echo(&fixture.url(), "ca.pem").await.unwrap(), "hello");
    let before = fixture.requests().len();
    let distrusted = echo(&fixture.url(), "other-ca.pem").await.unwrap_err();
    assert_eq!(distrusted.code, Code::ConnectFailed);
    assert!(distrusted.to_string().contains("invalid peer certificate"), "{distrusted}");
    for unusable in ["server.key", "not-there.pem"] {
        let failure = echo(&fixture.url(), unusable).await.unwrap_err();
        assert_eq!(failure.code, Code::Config, "{failure}");
    }
    assert_eq!(fixture.requests().len(), before);
}

#[tokio::test]
async fn plain_http_server_behind_https_url_fails_to_connect() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let url = fixture.url().replace("http://", "https://");
    let failure = echo(&url, "ca.pem").await.unwrap_err();
    assert_eq!(failure.code, Code::ConnectFailed);
    assert!(failure.to_string().contains("no connection to"), "{failure}");
    assert_eq!(fixture.requests(), []);
}
