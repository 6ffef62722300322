//! The cache file of a server's lists: one for each definition and credential. The file's name is a
//! keyed digest, which reveals neither.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use switchboard_core::catalog::disk::{self, Miss, Refresh};
use switchboard_core::catalog::known_failure::KnownFailure;
use switchboard_core::catalog::{CacheScope, Era, RawListing};
use switchboard_core::config::auth::GrantType;
use switchboard_core::config::expand;
use switchboard_core::config::identity::{self, Certainty, Identity};
use switchboard_core::config::layers::{Server, Trust};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::transport::Transport;
use switchboard_core::name::ServerName;

use crate::auth::tokens;
use crate::auth::vault::{self, Holder, IndexVersion, TokenKind};
use crate::capabilities::{CapabilitySet, Offer};
use crate::env::Environment;
use crate::paths::{self, Paths};
use crate::shared_file::SharedFile;

/// How long a cache file is kept after it was last written.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const KEY_BYTES: usize = 32;

/// File extensions of listings and of known failures.
const LISTING: &str = "listing";
const FAILURE: &str = "failure";

/// Locates the cached lists of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListingFile {
    server: ServerName,
    identity: Identity,
    /// The holder and kind of the token that requests to the server use.
    stored: Option<(Holder, TokenKind)>,
    offer: Offer,
    listings: PathBuf,
    key: PathBuf,
    tokens: PathBuf,
}

/// The path and digest of the cache file for one credential.
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    /// The digest that the file must contain to be valid.
    pub(crate) digest: String,
}

/// The key and file names of the cache, read once for all servers.
#[derive(Default)]
pub(crate) struct CacheIndex {
    key: Option<[u8; KEY_BYTES]>,
    names: HashSet<OsString>,
}

/// The content of a server's cache file.
pub(crate) struct Cached {
    pub(crate) path: PathBuf,
    pub(crate) listing: Result<(RawListing, Refresh), Miss>,
    /// The last known era of the server, even if the listing is expired.
    pub(crate) era: Option<Era>,
}

impl ListingFile {
    pub(crate) fn of(
        name: &ServerName,
        (server, settings): (&Server, &Settings),
        (environment, paths): (&Environment, &Paths),
        offer: Offer,
    ) -> ListingFile {
        let env = server.definition.env_with(settings, |name| environment.variable(name).is_some());
        let env = Some(env).filter(|env| env.names().next().is_some());
        let definition = ServerEntry { env, ..server.definition.clone() };
        let inherited: Vec<(&str, &str)> = environment.all().collect();
        let of_project = matches!(server.trust, Trust::Approved(_));
        let identity = environment.expanding(|with| {
            let (variable, inherited) = (with.variable, inherited.as_slice());
            let values = identity::Values { variable, inherited, of_project };
            identity::identity(&definition, &values)
        });
        ListingFile {
            server: name.clone(),
            identity,
            stored: stored(server, environment),
            offer,
            listings: paths.listings(),
            key: paths.listing_key(),
            tokens: paths.tokens(),
        }
    }

    /// The directory of all cache files.
    pub(crate) fn directory(&self) -> &Path {
        &self.listings
    }

    /// Reads the key and file names of the cache.
    pub(crate) fn index(&self) -> CacheIndex {
        let entries = fs::read_dir(&self.listings).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name()).collect();
        CacheIndex { key: read_key(&self.key), names }
    }

    /// The version of the vault's index; `None` if the lists do not depend on a sign-in.
    pub(crate) fn sign_ins(&self) -> Option<Option<IndexVersion>> {
        self.stored.as_ref().map(|_| vault::index_version(&self.tokens))
    }

    /// The identity of the stored sign-in; `None` without one.
    pub(crate) fn stored_identity(&self) -> Option<String> {
        let (holder, kind) = self.stored.as_ref()?;
        vault::identity(&self.tokens, holder, *kind)
    }

    /// The cache file for lists that were requested with this identity.
    pub(crate) fn listed_with(&self, identity: Option<&str>) -> io::Result<Located> {
        let set = Some(self.offer.set_or_usual());
        Ok(self.located(&established_key(&self.key)?, identity, set))
    }

    /// The cache file for the stored sign-in; an error if the cache has no key.
    pub(crate) fn known(&self) -> io::Result<Located> {
        let key = read_key(&self.key).ok_or(io::ErrorKind::NotFound)?;
        let set = Some(self.offer.set_or_usual());
        Ok(self.located(&key, self.stored_identity().as_deref(), set))
    }

    /// The cached lists and known failure for the stored sign-in.
    pub(crate) fn look(
        &self,
        index: &CacheIndex,
        now: u64,
    ) -> (Option<Cached>, Option<KnownFailure>) {
        let Some(key) = &index.key else { return (None, None) };
        let identity = self.stored_identity();
        let there = |path: &Path| path.file_name().is_some_and(|name| index.names.contains(name));
        let Located { path, digest } = self.failure(key, identity.as_deref());
        let failure = there(&path).then(|| paths::read(&path).ok().flatten()).flatten();
        let failure = failure.and_then(|bytes| KnownFailure::decode(&bytes, &digest));
        let listing = self.located(key, identity.as_deref(), Some(self.offer.set_or_usual()));
        let cached = there(&listing.path).then(|| self.read(listing, now)).flatten();
        (cached, failure)
    }

    /// The cached listings for clients with other capabilities.
    pub(crate) fn of_other_clients(&self, now: u64) -> Vec<(CapabilitySet, RawListing)> {
        let index = self.index();
        let Some(key) = &index.key else { return Vec::new() };
        let (identity, own) = (self.stored_identity(), self.offer.set_or_usual());
        let others = CapabilitySet::every().filter(|set| *set != own);
        let read = |set| {
            let located = self.located(key, identity.as_deref(), Some(set));
            if !index.names.contains(located.path.file_name()?) {
                return None;
            }
            let (listing, _) = self.read(located, now)?.listing.ok()?;
            Some((set, listing))
        };
        others.filter_map(read).collect()
    }

    /// The cached lists for the stored sign-in. Reads the index of the cache for this server alone.
    pub(crate) fn cached(&self, now: u64) -> Option<Cached> {
        self.look(&self.index(), now).0
    }

    /// Reads and checks a cache file; `None` if it does not exist.
    fn read(&self, Located { path, digest }: Located, now: u64) -> Option<Cached> {
        let bytes = match paths::read(&path) {
            Ok(bytes) => bytes?,
            Err(_) => return Some(Cached { path, listing: Err(Miss::Damaged), era: None }),
        };
        let listing = disk::decode(&bytes, &digest, now).and_then(|found| {
            // While the credential of the entry is unknown, private lists may belong to another
            // credential.
            let private = found.0.scope == Some(CacheScope::Private);
            match self.identity.certainty {
                Certainty::Unknown if private => Err(Miss::OtherCredential),
                Certainty::Unknown | Certainty::Known => Ok(found),
            }
        });
        let era = match &listing {
            Ok((found, _)) => found.era,
            Err(_) => disk::era(&bytes, &digest),
        };
        Some(Cached { path, listing, era })
    }

    /// Stores why the server failed, for later commands.
    pub(crate) fn remember(&self, failure: &KnownFailure) -> io::Result<()> {
        let key = established_key(&self.key)?;
        let identity = self.stored_identity();
        let Located { path, digest } = self.failure(&key, identity.as_deref());
        let bytes = failure.encode(&digest);
        let kept = SharedFile::ours(path).update(|_| Ok(Some(bytes.clone())));
        kept.map_err(|error| error.or_io(|io| io))
    }

    /// Removes the stored failure of the server.
    pub(crate) fn forget_failure(&self) {
        let Some(key) = read_key(&self.key) else { return };
        let identity = self.stored_identity();
        let failure = self.failure(&key, identity.as_deref());
        if failure.path.exists() {
            let _gone_already = SharedFile::ours(failure.path).remove(|_| Ok::<_, Infallible>(()));
        }
    }

    /// The capabilities that the server is offered, as soon as they are known.
    pub(crate) fn offered(&self) -> Option<CapabilitySet> {
        self.offer.set()
    }

    /// The file with the server's last failure, which does not depend on client capabilities.
    fn failure(&self, key: &[u8; KEY_BYTES], identity: Option<&str>) -> Located {
        let Located { path, digest } = self.located(key, identity, None);
        Located { path: path.with_extension(FAILURE), digest }
    }

    /// The cache file for the lists of clients with these capabilities.
    fn located(
        &self,
        key: &[u8; KEY_BYTES],
        identity: Option<&str>,
        offered: Option<CapabilitySet>,
    ) -> Located {
        let mut digest = Hmac::<Sha256>::new_from_slice(key).expect("any length will do");
        digest.update(&self.identity.hash);
        digest.update(&[u8::from(identity.is_some())]);
        digest.update(identity.unwrap_or_default().as_bytes());
        if let Some(set) = offered {
            digest.update(&[0xff, set.code()]);
        }
        let digest = digest.finalize().into_bytes();
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("{}-{}.{LISTING}", paths::file_stem(&self.server), &digest[..16]);
        Located { path: self.listings.join(name), digest }
    }
}

/// The holder and kind of the vault secret with which requests to a server are made.
fn stored(server: &Server, environment: &Environment) -> Option<(Holder, TokenKind)> {
    let definition = &server.definition;
    let url = match &server.transport {
        Transport::Http { url, .. } | Transport::WebSocket { url } => url,
        Transport::Stdio { .. } | Transport::CommandLine { .. } | Transport::Socket { .. } => {
            return None;
        }
    };
    let kind = match definition.sign_in() {
        // Tokens of the client credentials grant are not stored.
        Some(options) if options.grant_type == GrantType::ClientCredentials => return None,
        Some(_) => TokenKind::SignIn,
        None if definition.bearer_token_store == Some(true) => TokenKind::Given,
        None => return None,
    };
    let address = environment.expanding(|with| expand::expand_url(url, with)).ok()?;
    let address = tokens::one_spelling(address);
    Some((Holder { address, account: definition.account.clone() }, kind))
}

fn read_key(path: &Path) -> Option<[u8; KEY_BYTES]> {
    paths::read_private(path).ok()??.try_into().ok()
}

/// Reads the key, or creates it if it is missing or damaged.
fn established_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    if let Some(key) = read_key(path) {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    let made = SharedFile::guarded(path.to_owned()).update(|present| {
        // Another process may have created the key first.
        match present.and_then(|present| present.try_into().ok()) {
            Some(theirs) => {
                key = theirs;
                Ok(None)
            }
            None => Ok(Some(key.to_vec())),
        }
    });
    made.map_err(|error| error.or_io(|io| io))?;
    Ok(key)
}

/// Removes temporary files that killed processes left behind, and files of definitions and
/// credentials that are no longer used.
pub(crate) fn sweep(directory: &Path) -> io::Result<()> {
    SharedFile::sweep_directory(directory)?;
    let Ok(entries) = fs::read_dir(directory) else { return Ok(()) };
    for entry in entries.flatten() {
        let path = entry.path();
        if ![LISTING, FAILURE].iter().any(|known| path.extension() == Some(known.as_ref())) {
            continue;
        }
        let age = entry.metadata().and_then(|data| data.modified()).ok();
        let age = age.and_then(|written| written.elapsed().ok());
        if age.is_some_and(|age| age > UNUSED) {
            let removed = SharedFile::ours(path.clone()).remove(|_| Ok::<_, Infallible>(()));
            if removed.is_ok() {
                // The lock file is removed, too: it is created again with the cache file.
                let _gone = fs::remove_file(path.with_extension("lock"));
            }
        }
    }
    Ok(())
}
