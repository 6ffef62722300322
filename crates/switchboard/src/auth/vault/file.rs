//! Secrets in files: private, checked for integrity, and encrypted if the user set a key.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use switchboard_core::catalog::sealed::Seal;
use zeroize::Zeroizing;

use super::VaultError;
use crate::env::Environment;
use crate::paths::{self, Unread};
use crate::secret::Secret;
use crate::shared_file::SharedFile;

/// The environment variable with the key of secrets in files: 32 bytes in base64.
pub(crate) const KEY_VARIABLE: &str = "SWITCHBOARD_TOKEN_KEY";

const SEAL: Seal = Seal { magic: "switchboard-token", version: 1 };
const NONCE: usize = 24;

/// The secret files in one directory.
pub(super) struct Files {
    directory: PathBuf,
    key: KeyGiven,
}

enum KeyGiven {
    No,
    /// The key that the user set is not 32 bytes in base64.
    Unusable,
    Yes(Zeroizing<[u8; 32]>),
}

/// How a secret is stored in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretForm {
    Plain,
    Encrypted,
}

impl SecretForm {
    fn word(self) -> &'static str {
        match self {
            SecretForm::Plain => "plain",
            SecretForm::Encrypted => "xchacha20poly1305",
        }
    }
}

impl Files {
    pub(super) fn new(directory: PathBuf, environment: &Environment) -> Files {
        let key = match environment.variable(KEY_VARIABLE) {
            None => KeyGiven::No,
            Some(text) => key(text).map_or(KeyGiven::Unusable, KeyGiven::Yes),
        };
        Files { directory, key }
    }

    pub(super) fn path_of(&self, account: &str) -> PathBuf {
        self.directory.join(format!("{account}.token"))
    }

    /// How new secrets are stored: encrypted, if the user set a key.
    pub(super) fn usual_form(&self) -> SecretForm {
        match self.key {
            KeyGiven::No => SecretForm::Plain,
            KeyGiven::Unusable | KeyGiven::Yes(_) => SecretForm::Encrypted,
        }
    }

    pub(super) fn read(&self, account: &str) -> Result<Option<Secret>, VaultError> {
        let path = self.path_of(account);
        let Some(file) = read(&path)? else { return Ok(None) };
        let damaged = || VaultError::Damaged { path: path.clone() };
        let (form, body) = open(&file, account).ok_or_else(damaged)?;
        let bytes = match form {
            SecretForm::Plain => Zeroizing::new(body.to_vec()),
            SecretForm::Encrypted => {
                let (nonce, sealed) = body.split_at_checked(NONCE).ok_or_else(damaged)?;
                let nonce = XNonce::try_from(nonce).map_err(|_| damaged())?;
                let payload = Payload { msg: sealed, aad: account.as_bytes() };
                let opened = self.cipher()?.decrypt(&nonce, payload);
                // The checksum of the file is correct, so the key must be wrong.
                Zeroizing::new(opened.map_err(|_| VaultError::OtherKey { path: path.clone() })?)
            }
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        Ok(Some(Secret::new(text)))
    }

    pub(super) fn write(
        &self,
        account: &str,
        secret: &Secret,
        form: SecretForm,
    ) -> Result<(), VaultError> {
        let path = self.path_of(account);
        let body = match form {
            SecretForm::Plain => Zeroizing::new(secret.expose().as_bytes().to_vec()),
            SecretForm::Encrypted => Zeroizing::new(self.encrypted(account, secret)?),
        };
        let file = Zeroizing::new(SEAL.close(&[account, form.word()], &body));
        // A damaged file is kept under another name: the user may need its content.
        if read(&path)?.is_some_and(|present| open(&present, account).is_none()) {
            let aside = path.with_extension("damaged");
            fs::rename(&path, aside).map_err(|cause| VaultError::io(&path, cause))?;
        }
        let written = SharedFile::guarded(path.clone()).update(|_| Ok(Some(file.to_vec())));
        written.map_err(|error| error.or_io(|cause| VaultError::io(&path, cause)))
    }

    pub(super) fn remove(&self, account: &str) -> Result<(), VaultError> {
        let path = self.path_of(account);
        let removed = SharedFile::guarded(path.clone()).remove(|_| Ok(()));
        removed.map_err(|error| error.or_io(|cause| VaultError::io(&path, cause)))
    }

    fn encrypted(&self, account: &str, secret: &Secret) -> Result<Vec<u8>, VaultError> {
        let mut body = vec![0; NONCE];
        getrandom::fill(&mut body).expect("the operating system provides random bytes");
        let nonce = XNonce::try_from(&body[..]).expect("the buffer has the length of a nonce");
        let payload = Payload { msg: secret.expose().as_bytes(), aad: account.as_bytes() };
        let sealed = self.cipher()?.encrypt(&nonce, payload);
        body.extend(sealed.expect("a token is shorter than the limit of the cipher"));
        Ok(body)
    }

    fn cipher(&self) -> Result<XChaCha20Poly1305, VaultError> {
        match &self.key {
            KeyGiven::No => Err(VaultError::NoKey),
            KeyGiven::Unusable => Err(VaultError::UnusableKey),
            KeyGiven::Yes(key) => Ok(XChaCha20Poly1305::new((&**key).into())),
        }
    }
}

/// Decodes 32 bytes of base64; accepts the canonical encoding only.
fn key(text: &str) -> Option<Zeroizing<[u8; 32]>> {
    let bytes = Zeroizing::new(STANDARD.decode(text).ok()?);
    let key: &[u8; 32] = bytes.as_slice().try_into().ok()?;
    Some(Zeroizing::new(*key))
}

/// The content of a file; `None` if it does not exist. A file that other users can read or write is
/// an error.
pub(super) fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, VaultError> {
    match paths::read_secret(path) {
        Ok(bytes) => Ok(bytes.map(Zeroizing::new)),
        Err(Unread::Exposed) => Err(VaultError::Exposed { path: path.to_path_buf() }),
        Err(Unread::Io(cause)) => Err(VaultError::io(path, cause)),
    }
}

fn open<'a>(file: &'a [u8], account: &str) -> Option<(SecretForm, &'a [u8])> {
    let ([of, form], body) = SEAL.open(file)?;
    let form = [SecretForm::Plain, SecretForm::Encrypted]
        .into_iter()
        .find(|known| known.word() == form)?;
    (of == account).then_some((form, body))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    const ACCOUNT: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";
    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const OTHER_KEY: &str = "//////////////////////////////////////////8=";

    fn files(directory: &Path, key: &str) -> Files {
        Files::new(directory.to_path_buf(), &Environment::made_of([(KEY_VARIABLE, key)], "/"))
    }

    fn text(read: Result<Option<Secret>, VaultError>) -> String {
        match read {
            Ok(Some(secret)) => secret.expose().to_owned(),
            Ok(None) => "(none)".to_owned(),
            Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap().to_owned(),
        }
    }

    #[test]
    fn encrypted_secret_is_readable_only_with_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let at = |key| files(directory.path(), key);
        let secret = Secret::new("canary");
        // Each case: the key at writing, the form of the file, and the results of reading with no
        // key, with this key and with another key.
        let cases = [
            ("", SecretForm::Plain, ["canary", "canary", "canary"]),
            (KEY, SecretForm::Encrypted, ["NoKey", "canary", "OtherKey"]),
        ];
        for (key, form, expected) in cases {
            assert_eq!(at(key).usual_form(), form);
            at(key).write(ACCOUNT, &secret, form).unwrap();
            let read = ["", KEY, OTHER_KEY].map(|key| text(at(key).read(ACCOUNT)));
            assert_eq!(read, expected, "{form:?}");
            let file = fs::read(at(key).path_of(ACCOUNT)).unwrap();
            let in_the_clear = file.windows(6).any(|bytes| bytes == b"canary");
            assert_eq!(in_the_clear, form == SecretForm::Plain);
        }
        assert_eq!(text(at("").read(OTHER)), "(none)");
        assert!(matches!(
            at("").write(ACCOUNT, &secret, SecretForm::Encrypted),
            Err(VaultError::NoKey)
        ));
    }

    #[test]
    fn invalid_token_key_is_refused_without_plaintext_fallback() {
        let directory = tempfile::tempdir().unwrap();
        let unpadded = KEY.trim_end_matches('=');
        // The last base64 character has unused bits that are set.
        let sloppy = KEY.replace("8=", "9=");
        for key in ["secret", unpadded, &sloppy, &format!("{KEY} "), "AAAA"] {
            let files = files(directory.path(), key);
            let form = files.usual_form();
            let refused = files.write(ACCOUNT, &Secret::new("canary"), form);
            assert!(matches!(refused, Err(VaultError::UnusableKey)), "{key}: {refused:?}");
            assert_eq!(text(files.read(ACCOUNT)), "(none)");
        }
    }

    #[test]
    fn token_file_copied_to_another_account_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path(), KEY);
        for form in [SecretForm::Plain, SecretForm::Encrypted] {
            files.write(ACCOUNT, &Secret::new("canary"), form).unwrap();
            fs::copy(files.path_of(ACCOUNT), files.path_of(OTHER)).unwrap();
            assert_eq!(text(files.read(OTHER)), "Damaged", "{form:?}");
        }
    }

    #[test]
    fn damaged_token_file_is_rejected_and_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path(), KEY);
        let path = files.path_of(ACCOUNT);
        files.write(ACCOUNT, &Secret::new("canary"), SecretForm::Encrypted).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(text(files.read(ACCOUNT)), "Damaged", "cut at {at}");
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).unwrap();
            assert_eq!(text(files.read(ACCOUNT)), "Damaged", "flipped at {at}");
        }
        let damaged = fs::read(&path).unwrap();
        files.write(ACCOUNT, &Secret::new("next"), SecretForm::Plain).unwrap();
        assert_eq!(text(files.read(ACCOUNT)), "next");
        assert_eq!(fs::read(path.with_extension("damaged")).unwrap(), damaged);
    }

    #[test]
    fn token_file_accessible_to_other_users_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path(), "");
        let path = files.path_of(ACCOUNT);
        let write = || files.write(ACCOUNT, &Secret::new("canary"), SecretForm::Plain);
        write().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        for mode in [0o640, 0o604, 0o620, 0o666] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert_eq!(text(files.read(ACCOUNT)), "Exposed", "{mode:o}");
            assert!(matches!(write(), Err(VaultError::Exposed { .. })), "{mode:o}");
        }
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(text(files.read(ACCOUNT)), "Exposed");
        assert!(matches!(write(), Err(VaultError::Exposed { .. })));
    }
}
