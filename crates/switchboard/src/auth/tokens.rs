//! Tokens that the user stored for servers at a URL, and the list of all stored tokens.

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

/// How long to wait for another process that changes the same token.
const PATIENCE: Duration = Duration::from_secs(10);

/// A stored token, without its secret text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptToken {
    /// The configured servers at the URL of the token; may be empty.
    pub servers: Vec<ServerName>,
    /// The URL that the token is for. Variables are expanded, and can be secret.
    pub address: String,
    /// The `account` of the entries that the token is for.
    pub account: Option<String>,
    /// How the token was obtained.
    pub kind: TokenKind,
    /// Where the token is stored.
    pub kept: TokenLocation,
    /// The details of a sign-in; `None` for a token that the user stored, and for an unreadable
    /// grant.
    pub grant: Option<Granted>,
}

/// The parts of a grant that are not secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The authorization server that issued the grant.
    pub issuer: String,
    /// The scopes that were granted.
    pub scopes: Vec<String>,
    /// When the token expires, if that is known.
    pub expires: Option<SystemTime>,
    /// Whether the token can be refreshed without the user.
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

/// Where a token is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenLocation {
    /// The keyring of the system.
    Keyring,
    /// A file that only the user can read.
    File(PathBuf),
    /// A file that is encrypted with the user's key.
    EncryptedFile(PathBuf),
}

impl Vault {
    /// Where the secret of an index entry is stored.
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

/// The token that the user stored for a holder, and its identity.
pub(crate) async fn bearer(
    vault: &Vault,
    holder: &Holder,
) -> Result<Option<(Secret, String)>, VaultError> {
    match vault.find(holder, TokenKind::Given).await? {
        // An index entry with another vault account does not belong to a token that the user
        // stored.
        Some(entry) if entry.account == account_of(holder) => {
            let secret = vault.read(&entry).await?;
            Ok(secret.map(|secret| (secret, entry.identity())))
        }
        Some(_) | None => Ok(None),
    }
}

/// The normalized form of a URL, under which tokens are stored.
pub(crate) fn one_spelling(address: String) -> String {
    Url::parse(&address).map(String::from).unwrap_or(address)
}

/// The vault account of a token that the user stored: one for each holder.
fn account_of(holder: &Holder) -> String {
    let mut hash = Sha256::new();
    hash.update("bearer\0");
    hash.update(&holder.address);
    if let Some(account) = &holder.account {
        // The NUL character separates URL and account, because a URL never contains it.
        hash.update("\0");
        hash.update(account);
    }
    hex(&hash.finalize())
}

impl KeptToken {
    /// The URL without user, query and fragment, which may be secret.
    pub fn origin_and_path(&self) -> String {
        let Ok(mut url) = Url::parse(&self.address) else { return String::new() };
        url.set_query(None);
        url.set_fragment(None);
        let _has_none = url.set_username("").and_then(|()| url.set_password(None));
        url.to_string()
    }
}

impl Gateway {
    /// Stores a token for a server at a URL, in place of an earlier one.
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

    /// The stored tokens of one server; of all servers if `server` is `None`.
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

    /// Removes the token that the user stored for a server, or for the URL of a server that is no
    /// longer configured. `None` if no token is stored.
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

    /// The name of the server, and the holder of its tokens.
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
