//! The state of the authorization server: clients, codes, sign-ins and their tokens.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use url::Url;

use super::setup::{AuthMethod, Consent, Refresh, Setup};

#[derive(Debug, Default)]
pub(super) struct Books {
    /// Dynamically registered clients.
    pub(super) clients: Vec<Client>,
    pub(super) codes: HashMap<String, Authorized>,
    /// The pending device authorizations, keyed by `device_code`.
    pub(super) devices: HashMap<String, Device>,
    /// The sign-ins. A token refers to its sign-in by the index in this list.
    grants: Vec<Grant>,
    access: HashMap<String, Access>,
    refresh: HashMap<String, RefreshToken>,
    /// Whether the second issuer has replaced the first.
    pub(super) moved: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) issuer: String,
    pub(super) id: String,
    pub(super) secret: Option<String>,
    pub(super) method: AuthMethod,
    pub(super) redirect_uris: Vec<String>,
}

/// An authorization that the user consented to.
#[derive(Debug, Clone)]
pub(super) struct Authorized {
    pub(super) grant: Grant,
    pub(super) redirect_uri: String,
    /// The PKCE challenge.
    pub(super) challenge: String,
}

#[derive(Debug)]
pub(super) struct Device {
    pub(super) grant: Grant,
    pub(super) user_code: String,
    pub(super) answer: Option<Consent>,
}

/// One sign-in with all its tokens, the token family.
#[derive(Debug, Clone)]
pub(super) struct Grant {
    issuer: String,
    client: String,
    scopes: Vec<String>,
    ended: bool,
}

#[derive(Debug)]
struct Access {
    grant: usize,
    scopes: Vec<String>,
    until: Instant,
}

#[derive(Debug)]
struct RefreshToken {
    grant: usize,
    redeemed: bool,
}

/// The tokens of a token response.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    pub(super) scopes: Vec<String>,
}

/// Why a refresh token is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stale {
    Unknown,
    /// The request asks for more scopes than were granted.
    Scope,
    Replayed {
        /// Whether the replay ended the sign-in.
        revoked: bool,
    },
}

impl Client {
    /// Whether the redirect URI is registered; on loopback any port is accepted (RFC 8252, 7.3).
    pub(super) fn may_return_to(&self, redirect_uri: &str) -> bool {
        let asked = on_loopback(redirect_uri);
        if self.redirect_uris.is_empty() {
            return asked.is_some();
        }
        self.redirect_uris
            .iter()
            .any(|known| known == redirect_uri || (asked.is_some() && asked == on_loopback(known)))
    }
}

/// The URL without its port, if it is on loopback.
fn on_loopback(address: &str) -> Option<Url> {
    let mut url = Url::parse(address).ok()?;
    let loopback = matches!(url.host_str(), Some("127.0.0.1" | "[::1]"));
    url.set_port(None).ok()?;
    (loopback && url.scheme() == "http").then_some(url)
}

impl Grant {
    pub(super) fn new(issuer: &str, client: &str, scopes: Vec<String>) -> Self {
        Self { issuer: issuer.to_owned(), client: client.to_owned(), scopes, ended: false }
    }

    pub(super) fn is_of(&self, client: &Client) -> bool {
        self.issuer == client.issuer && self.client == client.id
    }
}

impl Books {
    /// Issues the first tokens of a sign-in.
    pub(super) fn open(&mut self, grant: Grant, setup: &Setup) -> Tokens {
        let offline = grant.scopes.iter().any(|scope| scope == "offline_access");
        let asks_offline = setup.scopes.iter().any(|scope| scope == "offline_access");
        let scopes = grant.scopes.clone();
        self.grants.push(grant);
        let number = self.grants.len() - 1;
        let lasting = setup.refresh != Refresh::Never && (offline || !asks_offline);
        let refresh = lasting.then(|| self.add_refresh(number, setup));
        Tokens { access: self.add_access(number, &scopes, setup), refresh, scopes }
    }

    /// Issues a token of the client credentials grant, which has no refresh token.
    pub(super) fn open_once(&mut self, grant: Grant, setup: &Setup) -> Tokens {
        let scopes = grant.scopes.clone();
        self.grants.push(grant);
        let access = self.add_access(self.grants.len() - 1, &scopes, setup);
        Tokens { access, refresh: None, scopes }
    }

    /// Exchanges a refresh token for new tokens, with all or some scopes of its sign-in.
    pub(super) fn redeem(
        &mut self,
        token: &str,
        client: &Client,
        narrowed: Option<Vec<String>>,
        setup: &Setup,
    ) -> Result<Tokens, Stale> {
        let known = self.refresh.get_mut(token).ok_or(Stale::Unknown)?;
        let number = known.grant;
        let grant = self.grants.get_mut(number).ok_or(Stale::Unknown)?;
        if !grant.is_of(client) {
            return Err(Stale::Unknown);
        }
        let single = matches!(setup.refresh, Refresh::SingleUse | Refresh::FamilyRevoke);
        if single && known.redeemed {
            let revoked = setup.refresh == Refresh::FamilyRevoke && !grant.ended;
            grant.ended |= revoked;
            return Err(Stale::Replayed { revoked });
        }
        if grant.ended {
            return Err(Stale::Unknown);
        }
        let scopes = narrowed.unwrap_or_else(|| grant.scopes.clone());
        if scopes.iter().any(|scope| !grant.scopes.contains(scope)) {
            return Err(Stale::Scope);
        }
        known.redeemed = true;
        let refresh = match setup.refresh {
            Refresh::Never | Refresh::Omit => None,
            Refresh::Rotate | Refresh::SingleUse | Refresh::FamilyRevoke => {
                Some(self.add_refresh(number, setup))
            }
        };
        Ok(Tokens { access: self.add_access(number, &scopes, setup), refresh, scopes })
    }

    /// Ends the sign-in of a token; `false` if there was none.
    pub(super) fn revoke(&mut self, token: &str, client: &Client) -> bool {
        let refresh = self.refresh.get(token).map(|token| token.grant);
        let number = refresh.or_else(|| self.access.get(token).map(|token| token.grant));
        let grant = number.and_then(|number| self.grants.get_mut(number));
        let Some(grant) = grant.filter(|grant| grant.is_of(client)) else {
            return false;
        };
        !std::mem::replace(&mut grant.ended, true)
    }

    /// The scopes of a valid access token.
    pub(super) fn scopes_of(&self, token: &str, issuer: &str) -> Option<&[String]> {
        let access = self.access.get(token)?;
        let grant = self.grants.get(access.grant)?;
        let holds = !grant.ended && grant.issuer == issuer && Instant::now() < access.until;
        holds.then_some(&access.scopes)
    }

    pub(super) fn expire_tokens(&mut self) {
        self.access.clear();
    }

    pub(super) fn end_all(&mut self) {
        self.grants.iter_mut().for_each(|grant| grant.ended = true);
    }

    fn add_access(&mut self, grant: usize, scopes: &[String], setup: &Setup) -> String {
        let token = secret(setup, "access");
        let until = Instant::now() + Duration::from_secs(setup.lifetime_s);
        let access = Access { grant, scopes: scopes.to_vec(), until };
        self.access.insert(token.clone(), access);
        token
    }

    fn add_refresh(&mut self, grant: usize, setup: &Setup) -> String {
        let token = secret(setup, "refresh");
        self.refresh.insert(token.clone(), RefreshToken { grant, redeemed: false });
        token
    }
}

/// A random secret that names its purpose.
pub(super) fn secret(setup: &Setup, what: &str) -> String {
    let random: String = std::iter::repeat_with(fastrand::alphanumeric).take(32).collect();
    format!("{}{what}-{random}", setup.canary)
}
