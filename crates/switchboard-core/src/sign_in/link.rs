//! Validates URLs that come from servers and authorization servers, before a browser opens them or
//! requests are sent to them.

use std::fmt;

use url::Url;

use super::address::{Class, Reach, class_of_host};
use crate::render::words::{clean_line, visible};

/// The maximum length of a URL in bytes.
pub const LONGEST: usize = 8 * 1024;

/// The maximum length of a text from the network in a message.
const SHOWN: usize = 100;

/// A URL that may be opened in a browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(String);

impl Link {
    pub fn of(text: &str, reach: &Reach) -> Result<Link, BadLink> {
        Ok(Link(parse(text, reach)?.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Validates the URL of an authorization server's endpoint.
pub fn endpoint(text: &str, reach: &Reach) -> Result<Url, BadLink> {
    let url = parse(text, reach)?;
    if url.fragment().is_some() {
        return Err(BadLink::Fragment);
    }
    Ok(url)
}

/// Why a URL is refused. The text is limited in length, and safe for a terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLink {
    #[error("the URL is longer than {} KiB", LONGEST / 1024)]
    TooLong,
    /// The character is escaped for display.
    #[error("the URL contains `{character}`, which is not allowed")]
    Character { character: String },
    #[error("`{text}` is not a valid URL")]
    NotAnAddress { text: String },
    #[error("`{scheme}:` URLs are not allowed for sign-in, only `https:`")]
    Scheme { scheme: String },
    #[error("the connection to `{host}` would not be encrypted")]
    Unencrypted { host: String },
    #[error("the URL contains a user name or a password for `{host}`")]
    UserInfo { host: String },
    #[error("`{host}` is an internal or reserved address")]
    Internal { host: String },
    #[error("the URL has a fragment")]
    Fragment,
}

/// Parses a URL from the network. It must be valid without corrections, because the browser may
/// correct it differently than this parser.
fn parse(text: &str, reach: &Reach) -> Result<Url, BadLink> {
    bounded(text)?;
    let not_an_address = || BadLink::NotAnAddress { text: shown(text) };
    let url = Url::parse(text).map_err(|_| not_an_address())?;
    admissible(&url, reach)?;
    refuse_shell_characters(text)?;
    // The parsed URL is checked again, because parsing decodes escapes in the hostname.
    refuse_shell_characters(url.as_str())?;
    is_as_written(text, &url).then_some(url).ok_or_else(not_an_address)
}

/// Whether the text contains the hostname exactly as it was parsed. IPv6 addresses are exempt,
/// because they have many spellings.
fn is_as_written(text: &str, url: &Url) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.split(':').next().unwrap_or_default();
    authority.starts_with('[') || url.host_str().is_some_and(|read| read.eq_ignore_ascii_case(host))
}

/// Refuses a URL that is not safe to open or request: no http(s), forbidden characters,
/// credentials, an internal address, or plain http to another machine. Configured URLs are
/// checked, too.
pub fn admissible(url: &Url, reach: &Reach) -> Result<(), BadLink> {
    let host = match (url.scheme(), url.host()) {
        ("http" | "https", Some(host)) => host,
        (scheme, _) => return Err(BadLink::Scheme { scheme: shown(scheme) }),
    };
    bounded(url.as_str())?;
    let shown = shown(&host.to_string());
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadLink::UserInfo { host: shown });
    }
    if !reach.admits_host(&host) {
        return Err(BadLink::Internal { host: shown });
    }
    if url.scheme() == "http" && class_of_host(&host) != Class::Loopback {
        return Err(BadLink::Unencrypted { host: shown });
    }
    Ok(())
}

/// Checks the length, and that all characters are allowed by RFC 3986: no blank, quote, backslash,
/// control or non-ASCII character.
fn bounded(text: &str) -> Result<(), BadLink> {
    if text.len() > LONGEST {
        return Err(BadLink::TooLong);
    }
    only_of(text, |c| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c))
}

/// Refuses characters that RFC 3986 allows but that are special in a shell. No authorization server
/// needs them.
fn refuse_shell_characters(text: &str) -> Result<(), BadLink> {
    only_of(text, |c| !"!$'();".contains(c))
}

fn only_of(text: &str, is_allowed: impl Fn(char) -> bool) -> Result<(), BadLink> {
    match text.chars().find(|c| !is_allowed(*c)) {
        Some(c) => Err(BadLink::Character { character: visible(c.encode_utf8(&mut [0; 4])) }),
        None => Ok(()),
    }
}

/// A text from the network in the form for messages.
pub(super) fn shown(text: &str) -> String {
    clean_line(text, SHOWN).into_owned()
}

#[cfg(test)]
mod tests;
