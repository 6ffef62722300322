//! The secrets of one request: they are removed from a response that is quoted in a message.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use oauth2::http::HeaderMap;
use oauth2::http::header::AUTHORIZATION;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::form_urlencoded;

use crate::secret::Secret;

/// The text that replaces a secret in a message.
const REMOVED: &str = "[removed]";

/// The minimum length of a secret that is removed. Removing shorter texts would damage the words of
/// a message.
const SHORTEST: usize = 6;

/// OAuth request parameters that are secrets.
const SECRET_PARAMETERS: [&str; 9] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "device_code",
    "password",
    "refresh_token",
    "token",
];

/// The characters to percent-encode: all but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The secrets of a request, in every encoding in which a response may repeat them.
#[derive(Debug, Default)]
pub(super) struct Sent(Vec<Secret>);

impl Sent {
    /// Collects the secrets from the request itself, so that no type of request can be missed.
    pub(super) fn of(headers: &HeaderMap, body: &[u8]) -> Sent {
        let mut spellings = Vec::new();
        for (name, value) in form_urlencoded::parse(body) {
            if SECRET_PARAMETERS.contains(&&*name) {
                add_spellings(&value, &mut spellings);
            }
        }
        let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        if let Some((_, credentials)) = authorization.and_then(|value| value.split_once(' ')) {
            spellings.push(credentials.trim_end_matches('=').to_owned());
            let decoded = STANDARD.decode(credentials).ok();
            let decoded = decoded.and_then(|bytes| String::from_utf8(bytes).ok());
            if let Some((_, secret)) = decoded.as_deref().and_then(|pair| pair.split_once(':')) {
                // Basic authentication form-encodes the client id and the secret before they are
                // joined.
                let plain = secret.replace('+', " ");
                let plain = percent_decode_str(&plain).decode_utf8_lossy();
                spellings.push(secret.to_owned());
                add_spellings(&plain, &mut spellings);
            }
        }
        spellings.retain(|spelling| spelling.chars().count() >= SHORTEST);
        // One secret can be part of another, so the longer one is removed first.
        spellings.sort_by_key(|spelling| std::cmp::Reverse(spelling.len()));
        spellings.dedup();
        Sent(spellings.into_iter().map(Secret::new).collect())
    }

    /// The text with all secrets of the request removed.
    pub(super) fn removed_from<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for secret in self.0.iter().map(Secret::expose) {
            if text.contains(secret) {
                text = Cow::Owned(text.replace(secret, REMOVED));
            }
        }
        text
    }
}

fn add_spellings(secret: &str, spellings: &mut Vec<String>) {
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let percent = utf8_percent_encode(secret, RESERVED).to_string();
    spellings.extend([lower_escapes(&form), lower_escapes(&percent), form, percent]);
    spellings.push(STANDARD.encode(secret).trim_end_matches('=').to_owned());
    spellings.push(secret.to_owned());
}

/// Lower-cases percent escapes, such as `%2f` for `%2F`: both are valid.
fn lower_escapes(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (escape, rest) = part.split_at_checked(2).unwrap_or((part, ""));
        out.push('%');
        out.push_str(&escape.to_ascii_lowercase());
        out.push_str(rest);
    }
    out
}
