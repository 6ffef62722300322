//! The token endpoint: authenticates the client and exchanges its grant for tokens.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hyper::Response;
use hyper::header::WWW_AUTHENTICATE;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use super::books::{Client, Grant, Stale, Tokens};
use super::documents::{error, json_text, mannered};
use super::lock;
use super::route::{Asked, Fields};
use super::setup::{AuthMethod, Consent, ExpiresIn, Manner, Poll};
use crate::fixture::Reply;

pub(super) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// The client authentication of a request, unverified.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) client: String,
    pub(super) method: AuthMethod,
    secret: Option<String>,
}

/// A refused token request, with its OAuth error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused(&'static str);

impl Refused {
    pub(super) fn response(self) -> Response<Reply> {
        if self.0 != "invalid_client" {
            return error(400, self.0);
        }
        let mut response = error(401, self.0);
        let scheme = "Basic".parse().expect("the header value is valid");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        response
    }
}

impl Claim {
    pub(super) fn of(authorization: Option<&str>, fields: &Fields) -> Option<Self> {
        if let Some((scheme, encoded)) = authorization.and_then(|text| text.split_once(' '))
            && scheme.eq_ignore_ascii_case("basic")
        {
            let pair = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
            let (client, secret) = pair.split_once(':')?;
            let secret = Some(decoded(secret));
            return Some(Self { client: decoded(client), method: AuthMethod::Basic, secret });
        }
        let client = fields.value("client_id")?.to_owned();
        let secret = fields.value("client_secret").map(str::to_owned);
        let method = if secret.is_some() { AuthMethod::Post } else { AuthMethod::None };
        Some(Self { client, method, secret })
    }
}

/// Decodes one half of the Basic credentials, which are form-encoded (RFC 6749, 2.3.1).
fn decoded(text: &str) -> String {
    let mut names = form_urlencoded::parse(text.as_bytes());
    names.next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

/// The client, if it authenticates with its registered method and secret.
pub(super) fn authenticated(asked: &Asked<'_>) -> Result<Client, Refused> {
    let claim = asked.claim.as_ref().ok_or(Refused("invalid_client"))?;
    let client = asked.client(&claim.client).ok_or(Refused("invalid_client"))?;
    let same = claim.method == client.method && claim.secret == client.secret;
    same.then_some(client).ok_or(Refused("invalid_client"))
}

pub(super) async fn token(asked: &Asked<'_>) -> Response<Reply> {
    let manner = lock(&asked.stage.setup).token_answers.pop_front().unwrap_or_default();
    if !matches!(manner, Manner::Right | Manner::Late) {
        asked.stage.ledger.note(|record| record.refusals += 1);
        return mannered(Map::new(), &manner).await;
    }
    let outcome = granted(asked);
    if manner == Manner::Late {
        asked.stage.released.notified().await;
    }
    match outcome {
        Ok(tokens) => json_text(200, handed_over(&tokens, asked).to_string()),
        Err(refused) => {
            asked.stage.ledger.note(|record| record.refusals += 1);
            refused.response()
        }
    }
}

fn granted(asked: &Asked<'_>) -> Result<Tokens, Refused> {
    if asked.fields.repeated {
        return Err(Refused("invalid_request"));
    }
    let client = authenticated(asked)?;
    if !asked.names_the_resource() {
        return Err(Refused("invalid_target"));
    }
    match asked.fields.value("grant_type") {
        Some("authorization_code") => of_code(asked, &client),
        Some("refresh_token") => of_refresh_token(asked, &client),
        Some("client_credentials") => of_the_client(asked, &client),
        Some(DEVICE_CODE) => of_device(asked, &client),
        Some(_) => Err(Refused("unsupported_grant_type")),
        None => Err(Refused("invalid_request")),
    }
}

fn of_code(asked: &Asked<'_>, client: &Client) -> Result<Tokens, Refused> {
    let field = |name: &str| asked.fields.value(name).ok_or(Refused("invalid_request"));
    let (code, verifier) = (field("code")?, field("code_verifier")?);
    // A code is used up even if the exchange fails.
    let authorized = lock(&asked.stage.books).codes.remove(code).ok_or(Refused("invalid_grant"))?;
    let hashed = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    let redirect_uri = field("redirect_uri")?;
    if !authorized.grant.is_of(client)
        || authorized.redirect_uri != redirect_uri
        || authorized.challenge != hashed
    {
        return Err(Refused("invalid_grant"));
    }
    Ok(signed_in(asked, authorized.grant))
}

fn of_device(asked: &Asked<'_>, client: &Client) -> Result<Tokens, Refused> {
    let code = asked.fields.value("device_code").ok_or(Refused("invalid_request"))?;
    let polled = lock(&asked.stage.setup).polls.pop_front();
    match polled {
        None => {}
        Some(Poll::Pending) => return Err(Refused("authorization_pending")),
        Some(Poll::SlowDown) => return Err(Refused("slow_down")),
        Some(Poll::Expired) => return Err(Refused("expired_token")),
    }
    let device = {
        let mut books = lock(&asked.stage.books);
        let device = books.devices.get(code).ok_or(Refused("invalid_grant"))?;
        if !device.grant.is_of(client) {
            return Err(Refused("invalid_grant"));
        }
        match device.answer {
            None => return Err(Refused("authorization_pending")),
            Some(Consent::Denied) => return Err(Refused("access_denied")),
            Some(Consent::Given) => books.devices.remove(code),
        }
    };
    Ok(signed_in(asked, device.ok_or(Refused("invalid_grant"))?.grant))
}

fn signed_in(asked: &Asked<'_>, grant: Grant) -> Tokens {
    let stage = asked.stage;
    let mut books = lock(&stage.books);
    let tokens = books.open(grant, &asked.setup);
    let mut sign_ins = 0;
    stage.ledger.note(|record| {
        record.sign_ins += 1;
        sign_ins = record.sign_ins;
    });
    books.moved |= asked.setup.migrates_after.is_some_and(|after| sign_ins >= after);
    tokens
}

fn of_refresh_token(asked: &Asked<'_>, client: &Client) -> Result<Tokens, Refused> {
    let token = asked.fields.value("refresh_token").ok_or(Refused("invalid_request"))?;
    let mut books = lock(&asked.stage.books);
    let redeemed = books.redeem(token, client, asked.fields.scopes(), &asked.setup);
    asked.stage.ledger.note(|record| match &redeemed {
        Ok(_) => record.redemptions += 1,
        Err(Stale::Replayed { revoked }) => {
            record.replays += 1;
            record.revocations += usize::from(*revoked);
        }
        Err(Stale::Unknown | Stale::Scope) => {}
    });
    redeemed.map_err(|stale| match stale {
        Stale::Scope => Refused("invalid_scope"),
        Stale::Unknown | Stale::Replayed { .. } => Refused("invalid_grant"),
    })
}

fn of_the_client(asked: &Asked<'_>, client: &Client) -> Result<Tokens, Refused> {
    if client.method == AuthMethod::None {
        return Err(Refused("unauthorized_client"));
    }
    let scopes = asked.grantable().ok_or(Refused("invalid_scope"))?;
    let grant = Grant::new(&asked.issuer, &client.id, scopes);
    Ok(lock(&asked.stage.books).open_once(grant, &asked.setup))
}

fn handed_over(tokens: &Tokens, asked: &Asked<'_>) -> Value {
    let lifetime = asked.setup.lifetime_s;
    let expires_in = match asked.setup.expires_in {
        ExpiresIn::True => json!(lifetime),
        ExpiresIn::Zero => json!(0),
        ExpiresIn::Negative => json!(-1),
        ExpiresIn::Missing => Value::Null,
        ExpiresIn::Huge => json!(u64::MAX),
        ExpiresIn::Text => json!(lifetime.to_string()),
    };
    let scope = Some(tokens.scopes.join(" ")).filter(|scope| !scope.is_empty());
    let mut answer = json!({ "access_token": tokens.access, "token_type": "Bearer" });
    for (name, value) in [
        ("expires_in", expires_in),
        ("refresh_token", json!(tokens.refresh)),
        ("scope", json!(scope)),
    ] {
        if !value.is_null() {
            answer[name] = value;
        }
    }
    answer
}
