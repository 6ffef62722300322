//! The grant of a sign-in: tokens, issuer, client, resource and scopes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_core::sign_in::token::Lifetime;
use url::Url;

use crate::secret::{Secret, hex};

/// A grant in memory, bound to the URL of its server: the tokens are sent nowhere else.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) server: Url,
    pub(crate) issuer: String,
    /// The resource that the tokens are valid for (RFC 8707).
    pub(crate) resource: String,
    pub(crate) client: OAuthClient,
    pub(crate) endpoints: Endpoints,
    pub(crate) tokens: Tokens,
}

/// The client id and credentials of Switchboard at one authorization server.
#[derive(Clone, Debug)]
pub(crate) struct OAuthClient {
    pub(crate) id: String,
    pub(crate) secret: Option<Secret>,
    /// When the client secret expires; `None` if it never does.
    pub(crate) secret_expires: Option<SystemTime>,
    pub(crate) method: Method,
    pub(crate) source: ClientSource,
    /// The redirect URI to which the authorization server returns the browser.
    pub(crate) redirect: Option<String>,
}

/// How a client authenticates at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Method {
    None,
    ClientSecretBasic,
    ClientSecretPost,
}

/// How Switchboard obtained an OAuth client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ClientSource {
    /// The user configured the client id.
    Configured,
    /// The client id is the URL of a client metadata document.
    Document,
    /// The client was registered dynamically at the authorization server.
    Registered,
}

/// The endpoints of an authorization server, stored so that a refresh needs no discovery.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints {
    pub(crate) token: Url,
    pub(crate) revocation: Option<Url>,
}

#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) access: Secret,
    pub(crate) refresh: Option<Secret>,
    pub(crate) received: SystemTime,
    pub(crate) lifetime: Lifetime,
    pub(crate) scopes: Vec<String>,
}

impl Tokens {
    /// When the access token expires; `None` if the authorization server named no lifetime.
    pub(crate) fn expires(&self) -> Option<SystemTime> {
        self.received.checked_add(self.lifetime.duration()?)
    }
}

/// The error for a stored grant that is malformed.
#[derive(Debug, thiserror::Error)]
#[error("cannot parse the stored sign-in")]
pub(crate) struct Unreadable;

impl Grant {
    /// The vault account of the grant. `name` is the `account` of the server's entry.
    pub(crate) fn account(&self, name: Option<&str>) -> String {
        let parts = [self.issuer.as_str(), &self.client.id, &self.resource];
        account(&parts.into_iter().chain(name).collect::<Vec<_>>())
    }

    pub(crate) fn to_kept(&self) -> Secret {
        let kept = StoredGrant {
            version: 1,
            server: self.server.to_string(),
            issuer: self.issuer.clone(),
            resource: self.resource.clone(),
            client: StoredClient {
                id: self.client.id.clone(),
                secret: self.client.secret.as_ref().map(expose),
                secret_expires: self.client.secret_expires.map(seconds),
                method: self.client.method,
                source: self.client.source,
                redirect: self.client.redirect.clone(),
            },
            token_endpoint: self.endpoints.token.to_string(),
            revocation_endpoint: self.endpoints.revocation.as_ref().map(Url::to_string),
            access_token: expose(&self.tokens.access),
            refresh_token: self.tokens.refresh.as_ref().map(expose),
            received: seconds(self.tokens.received),
            expires_in: self.tokens.lifetime.duration().map(|lifetime| lifetime.as_secs()),
            scopes: self.tokens.scopes.clone(),
        };
        Secret::new(serde_json::to_string(&kept).expect("texts and numbers are JSON"))
    }

    pub(crate) fn of_kept(kept: &Secret) -> Result<Grant, Unreadable> {
        let kept: StoredGrant = serde_json::from_str(kept.expose()).map_err(|_| Unreadable)?;
        let url = |text: &str| Url::parse(text).map_err(|_| Unreadable);
        if kept.version != 1 {
            return Err(Unreadable);
        }
        Ok(Grant {
            server: url(&kept.server)?,
            issuer: kept.issuer,
            resource: kept.resource,
            client: OAuthClient {
                id: kept.client.id,
                secret: kept.client.secret.map(Secret::new),
                secret_expires: kept.client.secret_expires.map(time),
                method: kept.client.method,
                source: kept.client.source,
                redirect: kept.client.redirect,
            },
            endpoints: Endpoints {
                token: url(&kept.token_endpoint)?,
                revocation: kept.revocation_endpoint.as_deref().map(url).transpose()?,
            },
            tokens: Tokens {
                access: Secret::new(kept.access_token),
                refresh: kept.refresh_token.map(Secret::new),
                received: time(kept.received),
                lifetime: match kept.expires_in {
                    Some(seconds) => Lifetime::For(Duration::from_secs(seconds)),
                    None => Lifetime::Unknown,
                },
                scopes: kept.scopes,
            },
        })
    }
}

/// The vault account for an issuer, a client, a resource and an optional account: a digest of the
/// parts and their lengths, so that different parts give different names.
pub(crate) fn account(parts: &[&str]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    hex(&digest.finalize())
}

/// The serialized form of a grant. Its secrets are plain text, so it exists only while a grant is
/// read or written.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredGrant {
    version: u32,
    server: String,
    issuer: String,
    resource: String,
    client: StoredClient,
    token_endpoint: String,
    revocation_endpoint: Option<String>,
    access_token: String,
    refresh_token: Option<String>,
    /// When the tokens were received, in seconds since 1970.
    received: u64,
    expires_in: Option<u64>,
    scopes: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredClient {
    id: String,
    secret: Option<String>,
    secret_expires: Option<u64>,
    method: Method,
    source: ClientSource,
    redirect: Option<String>,
}

fn expose(secret: &Secret) -> String {
    secret.expose().to_owned()
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn time(seconds: u64) -> SystemTime {
    // A time beyond the clock's range comes from a damaged file, and is treated as past.
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn grant() -> Grant {
        Grant {
            server: Url::parse("https://mcp.example.com/mcp").unwrap(),
            issuer: "https://auth.example.com".to_owned(),
            resource: "https://mcp.example.com/mcp".to_owned(),
            client: OAuthClient {
                id: "client-1".to_owned(),
                secret: Some(Secret::new("CANARY-secret")),
                secret_expires: Some(time(5_000_000_000)),
                method: Method::ClientSecretBasic,
                source: ClientSource::Registered,
                redirect: Some("http://127.0.0.1:7777/callback".to_owned()),
            },
            endpoints: Endpoints {
                token: Url::parse("https://auth.example.com/token").unwrap(),
                revocation: Some(Url::parse("https://auth.example.com/revoke").unwrap()),
            },
            tokens: Tokens {
                access: Secret::new("CANARY-access"),
                refresh: Some(Secret::new("CANARY-refresh")),
                received: time(1_700_000_000),
                lifetime: Lifetime::For(Duration::from_secs(3600)),
                scopes: vec!["read".to_owned()],
            },
        }
    }

    #[test]
    fn stored_grant_round_trips_and_damage_is_rejected() {
        let kept = grant().to_kept();
        let again = Grant::of_kept(&kept).unwrap();
        assert_eq!(again.to_kept(), kept);
        assert_eq!(again.account(None), grant().account(None));
        assert_eq!(again.tokens.expires(), Some(time(1_700_003_600)));
        for damaged in ["", "{}", "null", &kept.expose().replace("\"version\":1", "\"version\":2")]
        {
            assert!(Grant::of_kept(&Secret::new(damaged)).is_err(), "{damaged}");
        }
    }

    #[test]
    fn debug_output_of_a_grant_has_no_secret() {
        let shown = format!("{:?}", grant());
        assert!(shown.contains("client-1") && !shown.contains("CANARY"), "{shown}");
    }

    #[test]
    fn account_name_is_unique_per_issuer_client_and_resource() {
        let accounts: [&[&str]; 6] = [
            &["ab", "c", "d"],
            &["a", "bc", "d"],
            &["a", "b", "cd"],
            &["", "abc", "d"],
            &["a", "b", "c", "d"],
            &["a", "b", "c", ""],
        ];
        let mut names: Vec<String> = accounts.iter().map(|parts| account(parts)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), accounts.len());
    }
}
