//! Random text, secrets in memory, and the token of the HTTP face.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::paths::{self, Paths, Unread};
use crate::shared_file::SharedFile;

/// 256 random bits as 43 characters that are valid in a URL and a header.
pub fn unguessable() -> String {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Bytes in hexadecimal, for file names.
pub(crate) fn hex<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> String {
    bytes.into_iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A secret text. It cannot be printed, and it is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text as a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(Zeroizing::new(text.into()))
    }

    /// The plain text of the secret, for the code that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The plain text of the secret, for a caller that wipes it from memory after use.
    pub(crate) fn reveal(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Secret, D::Error> {
        String::deserialize(from).map(Secret::new)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The bearer token that clients of the HTTP face have to send. Each user has one, which stays the
/// same after a restart.
#[derive(Clone)]
pub struct Token(Arc<str>);

/// Why the bearer token cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum TokenError {
    #[error("cannot read or create the token in `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error(
        "the token in `{}` is a symbolic link, or other users can read it; remove the file to get a new one",
        path.display()
    )]
    Exposed { path: PathBuf },
    #[error("`{}` contains no valid token; remove the file to get a new one", path.display())]
    Damaged { path: PathBuf },
}

impl Token {
    /// The user's token, which is created on first use.
    pub fn of(paths: &Paths) -> Result<Token, TokenError> {
        if let Some(token) = Token::existing(paths)? {
            return Ok(token);
        }
        let path = paths.http_token();
        let mut token = None;
        let made = SharedFile::guarded(path.clone()).update(|_| {
            // Another process may have created the token first.
            token = Token::existing(paths)?;
            if token.is_some() {
                return Ok(None);
            }
            let text = unguessable();
            let line = format!("{text}\n").into_bytes();
            token = Some(Token(text.into()));
            Ok(Some(line))
        });
        made.map_err(|error| error.or_io(|cause| TokenError::Io { path: path.clone(), cause }))?;
        token.ok_or(TokenError::Damaged { path })
    }

    /// The user's token; `None` if none has been created.
    pub fn existing(paths: &Paths) -> Result<Option<Token>, TokenError> {
        let path = paths.http_token();
        let bytes = match paths::read_secret(&path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(Unread::Io(cause)) => return Err(TokenError::Io { path, cause }),
            Err(Unread::Exposed) => return Err(TokenError::Exposed { path }),
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        let strong = URL_SAFE_NO_PAD.decode(text.trim()).is_ok_and(|bytes| bytes.len() >= 32);
        if strong { Ok(Some(Token(text.trim().into()))) } else { Err(TokenError::Damaged { path }) }
    }

    /// Whether the client sent this token. The time of the comparison does not reveal the token.
    pub fn is(&self, shown: &[u8]) -> bool {
        // Digests are compared, so that the time does not reveal the token.
        Sha256::digest(self.0.as_bytes()) == Sha256::digest(shown)
    }

    /// The token as plain text, to show to the user.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::env::Environment;

    fn home() -> (tempfile::TempDir, Paths) {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().to_str().unwrap();
        let paths = Paths::of(&Environment::made_of([("SWITCHBOARD_HOME", root)], "/"));
        (home, paths)
    }

    #[test]
    fn http_token_is_created_once_and_private() {
        let (_home, paths) = home();
        assert!(Token::existing(&paths).unwrap().is_none());
        let first = Token::of(&paths).unwrap();
        let again = Token::of(&paths).unwrap();
        assert_eq!(first.expose(), again.expose());
        assert!(first.expose().len() >= 43);
        assert_eq!(fs::metadata(paths.http_token()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(format!("{first:?}"), "Token");
    }

    #[test]
    fn foreign_or_incomplete_http_token_is_refused() {
        let ((_one, one), (_other, other)) = (home(), home());
        let (one, other) = (Token::of(&one).unwrap(), Token::of(&other).unwrap());
        assert!(one.is(one.expose().as_bytes()));
        for wrong in [other.expose(), "", &one.expose()[1..], &format!("{}a", one.expose())] {
            assert!(!one.is(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn http_token_file_shared_with_other_users_is_refused() {
        let (_home, paths) = home();
        let path = paths.http_token();
        Token::of(&paths).unwrap();
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let refused = Token::of(&paths).unwrap_err();
            assert!(matches!(refused, TokenError::Exposed { .. }), "{mode:o}: {refused}");
        }
        let elsewhere = path.with_extension("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(matches!(Token::of(&paths), Err(TokenError::Exposed { .. })));
    }

    #[test]
    fn invalid_token_file_is_neither_used_nor_overwritten() {
        let (_home, paths) = home();
        Token::of(&paths).unwrap();
        for text in ["", "short", "with spaces in between and long enough to be one", "\u{fffd}"] {
            fs::write(paths.http_token(), text).unwrap();
            assert!(matches!(Token::of(&paths), Err(TokenError::Damaged { .. })), "{text}");
            assert_eq!(fs::read_to_string(paths.http_token()).unwrap(), text);
        }
    }
}
