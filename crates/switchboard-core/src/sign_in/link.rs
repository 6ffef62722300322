//! Which addresses of others may be opened in a browser, and which may be sent requests.

use std::fmt;

use url::Url;

use super::address::{Reach, is_loopback};
use crate::render::words::{clean_line, visible};

/// The longest address that is taken.
pub const LONGEST: usize = 8 * 1024;

/// How much of a foreign text a message shows.
const SHOWN: usize = 100;

/// An address that may be opened in a browser.
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

/// An address that an authority names for requests of ours.
pub fn endpoint(text: &str, reach: &Reach) -> Result<Url, BadLink> {
    let url = parse(text, reach)?;
    if url.fragment().is_some() {
        return Err(BadLink::Fragment);
    }
    Ok(url)
}

/// What is wrong with an address of others. The text is bounded, and harmless in a terminal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLink {
    #[error("the address is longer than {} KiB", LONGEST / 1024)]
    TooLong,
    /// As it is shown.
    #[error("the address has a `{character}`, which has no place in one")]
    Character { character: String },
    #[error("`{text}` is not an address")]
    NotAnAddress { text: String },
    #[error("`{scheme}:` is not a way to sign in, only `https:` is")]
    Scheme { scheme: String },
    #[error("`{host}` would be spoken to without encryption")]
    Unencrypted { host: String },
    #[error("the address holds a user name or a password for `{host}`")]
    UserInfo { host: String },
    #[error("`{host}` is an internal or reserved address")]
    Internal { host: String },
    #[error("the address has a fragment")]
    Fragment,
}

/// What others wrote has to be an address as it stands: a reader that mends it, such as ours, and one
/// that does not, such as a browser, would see two.
fn parse(text: &str, reach: &Reach) -> Result<Url, BadLink> {
    bounded(text)?;
    let not_an_address = || BadLink::NotAnAddress { text: shown(text) };
    let url = Url::parse(text).map_err(|_| not_an_address())?;
    admissible(&url, reach)?;
    harmless(text)?;
    // What was escaped in a host is not any more.
    harmless(url.as_str())?;
    is_as_written(text, &url).then_some(url).ok_or_else(not_an_address)
}

/// Whether the host stands where a host stands, in the spelling in which it was read; addresses of
/// version 6 have many.
fn is_as_written(text: &str, url: &Url) -> bool {
    let authority = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.starts_with('[') {
        true => return true,
        false => authority.split(':').next().unwrap_or_default(),
    };
    url.host_str().is_some_and(|read| read.eq_ignore_ascii_case(host))
}

/// What holds for every address that we open or send something to, wherever it comes from.
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
    if url.scheme() == "http" && !is_loopback(&host) {
        return Err(BadLink::Unencrypted { host: shown });
    }
    Ok(())
}

/// Not too long, and only of the characters that RFC 3986 has: no blank, quote, backslash or control
/// character, nothing beyond ASCII.
fn bounded(text: &str) -> Result<(), BadLink> {
    if text.len() > LONGEST {
        return Err(BadLink::TooLong);
    }
    only_of(text, |c| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c))
}

/// Without what RFC 3986 has and a shell reads more into. No authority needs it.
fn harmless(text: &str) -> Result<(), BadLink> {
    only_of(text, |c| !"!$'();".contains(c))
}

fn only_of(text: &str, has_a_place: impl Fn(char) -> bool) -> Result<(), BadLink> {
    match text.chars().find(|c| !has_a_place(*c)) {
        Some(c) => Err(BadLink::Character { character: visible(c.encode_utf8(&mut [0; 4])) }),
        None => Ok(()),
    }
}

fn shown(text: &str) -> String {
    clean_line(text, SHOWN).into_owned()
}

#[cfg(test)]
mod tests;
