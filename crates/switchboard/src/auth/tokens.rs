//! Tokens that a user gives for servers at a URL, and what is kept of all tokens.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use switchboard_core::config::expand;
use switchboard_core::config::transport::Transport;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use url::Url;

use super::grant::Grant;
use super::vault::{self, Holder, IndexEntry, SecretPlace, Vault, VaultError};
use crate::explain;
use crate::gateway::Gateway;
use crate::secret::{Secret, hex};

pub use super::vault::TokenKind;

/// How long another process may take to change the same token.
const PATIENCE: Duration = Duration::from_secs(10);

/// A token that is kept. Nothing in it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptToken {
    /// The servers that it is for; none if none is configured at its address any more.
    pub servers: Vec<ServerName>,
    /// Its address as it is configured, with its variables filled in: they can be secret.
    pub address: String,
    /// The `account` of the entries that it is for.
    pub account: Option<String>,
    /// How it was obtained.
    pub kind: TokenKind,
    /// Where the token is stored.
    pub kept: TokenLocation,
    /// What is known of a sign-in; `None` of a token that was given, and of what cannot be read.
    pub grant: Option<Granted>,
}

/// What an authorization server granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The authorization server.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// When the token ends, as far as that is known.
    pub expires: Option<SystemTime>,
    /// Whether it is renewed then without the user.
    pub renewable: bool,
}

impl From<&Grant> for Granted {
    fn from(grant: &Grant) -> Granted {
        Granted {
            issuer: grant.issuer.clone(),
            scopes: grant.tokens.scopes.clone(),
            expires: grant.tokens.expires(),
            renewable: grant.tokens.refresh.is_some(),
        }
    }
}

/// Where a token is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenLocation {
    /// The keyring of the system.
    Keyring,
    /// A private file.
    File(PathBuf),
    /// A file that is encrypted with a passphrase.
    EncryptedFile(PathBuf),
}

impl Vault {
    /// Where the secret of an entry is stored.
    pub(crate) fn kept(&self, entry: &IndexEntry) -> TokenLocation {
        match entry.place {
            SecretPlace::Keyring => TokenLocation::Keyring,
            SecretPlace::File => TokenLocation::File(self.path_of(&entry.account)),
            SecretPlace::EncryptedFile => {
                TokenLocation::EncryptedFile(self.path_of(&entry.account))
            }
        }
    }
}

/// The token that the user gave, and its identity.
pub(crate) async fn bearer(
    vault: &Vault,
    holder: &Holder,
) -> Result<Option<(Secret, String)>, VaultError> {
    match vault.find(holder, TokenKind::Given).await? {
        // A line that leads elsewhere is none of ours.
        Some(entry) if entry.account == account_of(holder) => {
            let secret = vault.read(&entry).await?;
            Ok(secret.map(|secret| (secret, entry.identity())))
        }
        Some(_) | None => Ok(None),
    }
}

/// An address as tokens are kept for it, however it was written.
pub(crate) fn one_spelling(address: String) -> String {
    Url::parse(&address).map(String::from).unwrap_or(address)
}

/// What a given token is kept under: one for each holder.
fn account_of(holder: &Holder) -> String {
    let mut hash = Sha256::new();
    hash.update("bearer\0");
    hash.update(&holder.address);
    if let Some(account) = &holder.account {
        // No address has this character.
        hash.update("\0");
        hash.update(account);
    }
    hex(&hash.finalize())
}

impl KeptToken {
    /// The address without what may be secret in it.
    pub fn origin_and_path(&self) -> String {
        let Ok(mut url) = Url::parse(&self.address) else { return String::new() };
        url.set_query(None);
        url.set_fragment(None);
        let _has_none = url.set_username("").and_then(|()| url.set_password(None));
        url.to_string()
    }
}

impl Gateway {
    /// Keeps a token for a server at a URL, in place of the one that was given before.
    pub async fn set_token(&self, server: &str, token: Secret) -> Result<KeptToken, Failure> {
        let (name, holder) = self.holder_of(server)?;
        let sendable =
            |token: &Secret| token.expose().bytes().all(|byte| matches!(byte, 0x21..0x7f));
        if token.expose().is_empty() || !sendable(&token) {
            return Err(explain::unusable_token(&name));
        }
        let vault = self.vault();
        let account = account_of(&holder);
        let kept = async {
            let _held = vault.lock(&account, PATIENCE).await?;
            let under = (account.as_str(), Some(vault::new_identity()));
            vault.keep(&holder, TokenKind::Given, under, token).await
        };
        let entry = kept.await.map_err(explain::vault)?;
        Ok(self.kept_token(&vault, &entry))
    }

    /// The tokens that are kept: for one server, or all.
    pub async fn tokens(&self, server: Option<&str>) -> Result<Vec<KeptToken>, Failure> {
        let only = server.map(|server| self.holder_of(server)).transpose()?;
        let vault = self.vault();
        let entries = vault.all().await.map_err(explain::vault)?;
        let wanted = entries
            .iter()
            .filter(|entry| only.as_ref().is_none_or(|(_, holder)| entry.is_held_by(holder)));
        let mut tokens = Vec::new();
        for entry in wanted {
            let mut token = self.kept_token(&vault, entry);
            if entry.kind == TokenKind::SignIn {
                let kept = vault.read(entry).await.ok().flatten();
                let grant = kept.and_then(|kept| Grant::of_kept(&kept).ok());
                token.grant = grant.as_ref().map(Granted::from);
            }
            tokens.push(token);
        }
        Ok(tokens)
    }

    /// Forgets the token that was given for a server, or for the address of one that is no longer
    /// configured. `None` if there is none.
    pub async fn remove_token(&self, server: &str) -> Result<Option<KeptToken>, Failure> {
        let vault = self.vault();
        let holder = match self.holder_of(server) {
            Ok((_, holder)) => holder,
            Err(failure) => {
                let entries = vault.all().await.map_err(explain::vault)?;
                let given =
                    |entry: &&IndexEntry| entry.server == server && entry.kind == TokenKind::Given;
                match entries.iter().find(given) {
                    Some(entry) => entry.holder(),
                    None => return Err(failure),
                }
            }
        };
        let forgotten = async {
            let _held = vault.lock(&account_of(&holder), PATIENCE).await?;
            let entry = vault.find(&holder, TokenKind::Given).await?;
            if let Some(entry) = &entry {
                vault.forget(entry).await?;
            }
            Ok(entry)
        };
        let entry = forgotten.await.map_err(explain::vault)?;
        Ok(entry.map(|entry| self.kept_token(&vault, &entry)))
    }

    fn kept_token(&self, vault: &Vault, entry: &IndexEntry) -> KeptToken {
        let catalog = self.catalog();
        let servers = catalog.shelves().map(|(server, _)| server);
        let at_its_address = |server: &&ServerName| {
            self.holder_of(server.as_str()).is_ok_and(|(_, holder)| entry.is_held_by(&holder))
        };
        KeptToken {
            servers: servers.filter(at_its_address).cloned().collect(),
            address: entry.server.clone(),
            account: entry.account_name.clone(),
            kind: entry.kind,
            kept: vault.kept(entry),
            grant: None,
        }
    }

    /// The server that is meant, and what its tokens are kept for.
    fn holder_of(&self, server: &str) -> Result<(ServerName, Holder), Failure> {
        let name = self.usable(server)?;
        let facts = self.facts(&name);
        let url = match facts.transport {
            Some(Transport::Http { url, .. } | Transport::WebSocket { url }) => url,
            Some(
                Transport::Stdio { .. } | Transport::CommandLine { .. } | Transport::Socket { .. },
            )
            | None => return Err(explain::no_address(&name)),
        };
        let expanded = self.environment().expanding(|with| expand::expand_url(&url, with));
        let address = expanded.map_err(|error| explain::unfilled_url(error, &name))?;
        Ok((name, Holder { address: one_spelling(address), account: facts.account }))
    }
}
