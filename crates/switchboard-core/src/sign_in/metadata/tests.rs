//! Metadata documents: valid, imprecise and hostile ones.

use serde_json::json;

use super::*;

const ISSUER: &str = "https://auth.example.com";

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn reach() -> Reach {
    Reach::of(&url("https://mcp.example.com/mcp"))
}

fn texts(urls: &[Url]) -> Vec<&str> {
    urls.iter().map(Url::as_str).collect()
}

/// Parses minimal authorization server metadata with some fields changed.
fn authority(changes: Value) -> Result<Authority, BadDocument> {
    let mut document = json!({
        "issuer": ISSUER,
        "authorization_endpoint": "https://auth.example.com/authorize",
        "token_endpoint": "https://auth.example.com/token",
        "code_challenge_methods_supported": ["plain", "S256"],
    });
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    Authority::read(document.to_string().as_bytes(), Issuer::Is(ISSUER), &reach())
}

fn resource(server: &str, document: &Value) -> Result<Resource, BadDocument> {
    Resource::read(document.to_string().as_bytes(), &url(server))
}

#[test]
fn oauth_metadata_is_requested_at_the_well_known_urls() {
    let server = url("https://mcp.example.com/a/mcp/?x=1#y");
    assert_eq!(
        texts(&Resource::locations(&server)),
        [
            "https://mcp.example.com/.well-known/oauth-protected-resource/a/mcp",
            "https://mcp.example.com/.well-known/oauth-protected-resource",
        ]
    );
    assert_eq!(
        texts(&Resource::locations(&url("https://mcp.example.com"))),
        ["https://mcp.example.com/.well-known/oauth-protected-resource"]
    );
    assert_eq!(
        texts(&Authority::locations(&url("https://auth.example.com/tenant/1"))),
        [
            "https://auth.example.com/.well-known/oauth-authorization-server/tenant/1",
            "https://auth.example.com/.well-known/openid-configuration/tenant/1",
            "https://auth.example.com/tenant/1/.well-known/openid-configuration",
        ]
    );
    assert_eq!(
        texts(&Authority::locations(&url(ISSUER))),
        [
            "https://auth.example.com/.well-known/oauth-authorization-server",
            "https://auth.example.com/.well-known/openid-configuration",
        ]
    );
}

#[test]
fn resource_in_metadata_must_be_server_url_or_parent() {
    let check = |resource_url: &str, fits: bool| {
        let document = json!({ "resource": resource_url, "authorization_servers": [ISSUER] });
        let read = resource("https://mcp.example.com/a/mcp", &document);
        assert_eq!(read.is_ok(), fits, "{resource_url}: {read:?}");
    };
    for good in [
        "https://mcp.example.com/a/mcp",
        "https://mcp.example.com/a/mcp/",
        "https://mcp.example.com/a",
        "https://mcp.example.com/",
        "https://mcp.example.com",
    ] {
        check(good, true);
    }
    for other in [
        "https://mcp.example.com/a/m",
        "https://mcp.example.com/b",
        "http://mcp.example.com",
        "https://mcp.example.com:444",
        "https://evil.example.com/a/mcp",
        "https://mcp.example.com/a/mcp/b",
        "https://mcp.example.com/a/mcp?x=1",
        "https://mcp.example.com/a/mcp#x",
        "mcp",
        "",
    ] {
        check(other, false);
    }
}

#[test]
fn resource_metadata_names_the_authorization_servers() {
    let document = json!({ "resource": "https://mcp.example.com/mcp", "authorization_servers": [ISSUER, "b"],
        "scopes_supported": ["read", "wr ite", "read"], "jwks_uri": 7 });
    let read = resource("https://mcp.example.com/mcp", &document).unwrap();
    assert_eq!(read.resource, "https://mcp.example.com/mcp");
    assert_eq!(read.authorities, [ISSUER, "b"]);
    assert_eq!(read.scopes, ["read"]);
    let no_issuers =
        json!({ "resource": "https://mcp.example.com/mcp", "authorization_servers": [] });
    let missing = BadDocument::Missing("authorization_servers");
    assert_eq!(resource("https://mcp.example.com/mcp", &no_issuers), Err(missing));
}

#[test]
fn authorization_server_metadata_is_parsed() {
    let read = authority(json!({
        "registration_endpoint": "https://auth.example.com/register",
        "revocation_endpoint": null,
        "scopes_supported": ["openid", "offline_access"],
        "token_endpoint_auth_methods_supported": ["none"],
        "client_id_metadata_document_supported": true,
        "authorization_response_iss_parameter_supported": true,
    }))
    .unwrap();
    assert_eq!(read.issuer, ISSUER);
    assert_eq!(read.token.as_str(), "https://auth.example.com/token");
    assert_eq!(read.registration.unwrap().as_str(), "https://auth.example.com/register");
    assert_eq!((read.revocation, read.device), (None, None));
    assert_eq!(read.scopes, ["openid", "offline_access"]);
    assert_eq!(read.methods.unwrap(), ["none"]);
    assert!(read.client_documents && read.issuer_promised);
    assert_eq!(read.proof, Proof::Offered);
    let plain = authority(json!({ "code_challenge_methods_supported": ["plain"] })).unwrap();
    assert_eq!(plain.proof, Proof::NotOffered);
    let unsaid = authority(json!({ "code_challenge_methods_supported": null })).unwrap();
    assert_eq!(unsaid.proof, Proof::NotOffered);
}

#[test]
fn issuer_must_match_the_metadata_location() {
    let read = |issuer: Value| authority(json!({ "issuer": issuer })).map(|read| read.issuer);
    assert_eq!(
        read(json!("https://auth.example.com/")),
        Ok("https://auth.example.com/".to_owned())
    );
    assert_eq!(read(json!(null)), Err(BadDocument::Missing("issuer")));
    for other in [
        "https://auth.example.com/a",
        "https://AUTH.example.com",
        "https://auth.example.com:443",
        "https://auth.example.com//",
        "http://auth.example.com",
        "https://evil.example.com",
        "",
    ] {
        assert!(matches!(read(json!(other)), Err(BadDocument::OtherIssuer { .. })), "{other}");
    }
    let path =
        json!({ "issuer": "https://a.example/t/", "token_endpoint": "https://a.example/token" });
    let read = |expected| Authority::read(path.to_string().as_bytes(), expected, &reach());
    assert!(read(Issuer::Is("https://a.example/t/")).is_ok());
    assert!(read(Issuer::Is("https://a.example/t")).is_err());
    assert_eq!(read(Issuer::Assumed("https://b.example")).unwrap().issuer, "https://a.example/t/");
}

#[test]
fn internal_endpoint_in_metadata_is_rejected() {
    let fields = [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "device_authorization_endpoint",
        "revocation_endpoint",
    ];
    let addresses = [
        "http://auth.example.com/x",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user:pass@auth.example.com",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://169.254.169.254/latest",
        "https://auth.example.com/$(calc)`x`",
        "https://auth.example.com/x#y",
        "-flag",
        "",
        "//x",
    ];
    for field in fields {
        for address in addresses {
            let read = authority(json!({ field: address }));
            assert!(matches!(read, Err(BadDocument::Link { .. })), "{field} {address}: {read:?}");
        }
        let read = authority(json!({ field: 7 }));
        assert_eq!(read, Err(BadDocument::WrongType(field)));
    }
}

#[test]
fn malformed_metadata_document_is_rejected() {
    let read = |body: &[u8]| Authority::read(body, Issuer::Is(ISSUER), &reach()).unwrap_err();
    for body in ["", "null", "[]", "\"x\"", "<html></html>", "{\"issuer\":", "\u{fffd}"] {
        assert_eq!(read(body.as_bytes()), BadDocument::NotJson, "{body}");
    }
    let deep = format!("{}{}", "{\"a\":".repeat(17), "}".repeat(17));
    assert_eq!(read(deep.as_bytes()), BadDocument::TooDeep);
    assert_eq!(read("[".repeat(100_000).as_bytes()), BadDocument::TooDeep);
    let flat = format!("{{\"a\":\"{}\\\"[\"}}", "{".repeat(100));
    assert_eq!(read(flat.as_bytes()), BadDocument::Missing("issuer"));
}

#[test]
fn issuer_quoted_in_metadata_error_is_short_and_escaped() {
    let long = format!("https://evil.example/\u{1b}[31m{}", "x".repeat(5_000));
    let message = authority(json!({ "issuer": long })).unwrap_err().to_string();
    assert!(message.len() < 400 && !message.contains('\u{1b}'), "{message}");
}
