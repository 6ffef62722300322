//! The keychain of macOS.

use security_framework::base::Error;
use security_framework::passwords::{
    PasswordOptions, delete_generic_password, generic_password, set_generic_password,
};

use super::{KeyringError, SERVICE};
use crate::env::Environment;
use crate::secret::Secret;

/// The status `errSecItemNotFound`.
const NOT_FOUND: i32 = -25300;
/// The statuses `errSecInteractionNotAllowed` and `errSecAuthFailed`.
const LOCKED: [i32; 2] = [-25308, -25293];

pub(super) struct Keychain;

impl Keychain {
    #[expect(clippy::unnecessary_wraps, reason = "other systems may have no keyring")]
    pub(super) fn at_hand(_environment: &Environment) -> Option<Keychain> {
        Some(Keychain)
    }

    pub(super) fn read(&self, account: &str) -> Result<Option<Secret>, KeyringError> {
        let found = generic_password(PasswordOptions::new_generic_password(SERVICE, account));
        let Some(bytes) = unless_missing(found)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|_| KeyringError::Refused)?;
        Ok(Some(Secret::new(text)))
    }

    pub(super) fn write(&self, account: &str, secret: &Secret) -> Result<(), KeyringError> {
        let bytes = secret.expose().as_bytes();
        set_generic_password(SERVICE, account, bytes).map_err(classify)
    }

    pub(super) fn remove(&self, account: &str) -> Result<(), KeyringError> {
        unless_missing(delete_generic_password(SERVICE, account)).map(|_| ())
    }
}

fn unless_missing<T>(outcome: Result<T, Error>) -> Result<Option<T>, KeyringError> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(classify(error)),
    }
}

fn classify(error: Error) -> KeyringError {
    if LOCKED.contains(&error.code()) { KeyringError::Locked } else { KeyringError::Refused }
}
