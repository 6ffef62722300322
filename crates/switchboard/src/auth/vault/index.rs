//! The index of the vault: which secrets exist for which server, and where. The index is read
//! before any secret.

use serde::{Deserialize, Serialize};

/// The server and account that a secret belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The configured URL, with its variables expanded.
    pub(crate) address: String,
    /// The `account` of the server's entry.
    pub(crate) account: Option<String>,
}

/// One entry of the index: the type, URL, id and place of a secret, without the secret itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct IndexEntry {
    /// The configured URL, with its variables expanded.
    pub(crate) server: String,
    /// The `account` of the entry; index entries of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) account_name: Option<String>,
    pub(crate) kind: TokenKind,
    /// The vault account of the secret, in hexadecimal; part of its file name.
    pub(crate) account: String,
    /// A random id, under which cached listings are stored. Each sign-in gets a new id; a refresh
    /// keeps the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    pub(crate) place: SecretPlace,
    /// Scopes that the server required since the sign-in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) wanted: Vec<String>,
}

/// How a token was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TokenKind {
    /// The authorization server issued the token in a sign-in. The token is stored with the client
    /// registration.
    #[serde(rename = "grant")]
    SignIn,
    /// The user stored the token.
    #[serde(rename = "bearer")]
    Given,
}

/// Where a secret is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SecretPlace {
    Keyring,
    File,
    EncryptedFile,
}

/// A secret that no entry of the index refers to any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Orphan {
    pub(super) account: String,
    pub(super) place: SecretPlace,
}

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    entries: Vec<IndexEntry>,
}

/// The entries of an index file; `None` if it is malformed.
pub(super) fn parse(file: &[u8]) -> Option<Vec<IndexEntry>> {
    let content: Content = serde_json::from_slice(file).ok()?;
    let sound = content.version == VERSION
        && content.entries.iter().all(|entry| is_account(&entry.account));
    sound.then_some(content.entries)
}

pub(super) fn print(entries: Vec<IndexEntry>) -> Vec<u8> {
    let content = Content { version: VERSION, entries };
    let mut file = serde_json::to_vec_pretty(&content).expect("texts and words are JSON");
    file.push(b'\n');
    file
}

/// Whether a text is valid as a file name of the vault.
pub(super) fn is_account(text: &str) -> bool {
    let hexadecimal = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (16..=128).contains(&text.len()) && text.bytes().all(hexadecimal)
}

impl IndexEntry {
    /// Creates an index entry with this identity.
    pub(super) fn new(
        holder: &Holder,
        kind: TokenKind,
        (account, identity): (&str, Option<String>),
        place: SecretPlace,
    ) -> IndexEntry {
        IndexEntry {
            server: holder.address.clone(),
            account_name: holder.account.clone(),
            kind,
            account: account.to_owned(),
            identity,
            place,
            wanted: Vec::new(),
        }
    }

    /// The identity of the sign-in; entries of older versions use their account instead.
    pub(crate) fn identity(&self) -> String {
        self.identity.as_ref().unwrap_or(&self.account).clone()
    }

    pub(crate) fn holder(&self) -> Holder {
        Holder { address: self.server.clone(), account: self.account_name.clone() }
    }

    pub(crate) fn is_held_by(&self, holder: &Holder) -> bool {
        self.server == holder.address && self.account_name == holder.account
    }

    fn is_of(&self, holder: &Holder, kind: TokenKind) -> bool {
        self.is_held_by(holder) && self.kind == kind
    }
}

/// Inserts an index entry in place of an earlier entry with the same holder and type. The scopes
/// that the server required are carried over only if both entries have the same vault account.
pub(super) fn put(entries: &mut Vec<IndexEntry>, mut new: IndexEntry) -> Vec<Orphan> {
    let mut orphans = Vec::new();
    let holder = new.holder();
    // All index entries with the same vault account share one secret.
    for entry in entries.iter_mut().filter(|entry| entry.account == new.account) {
        if entry.is_of(&holder, new.kind) {
            new.wanted = std::mem::take(&mut entry.wanted);
        }
        let orphan = Orphan { account: entry.account.clone(), place: entry.place };
        if (entry.place == SecretPlace::Keyring) != (new.place == SecretPlace::Keyring)
            && !orphans.contains(&orphan)
        {
            orphans.push(orphan);
        }
        entry.place = new.place;
    }
    orphans.extend(take(entries, &holder, new.kind).filter(|old| old.account != new.account));
    entries.push(new);
    orphans
}

/// Removes the entry of a holder and type. Returns the location of its secret, unless another entry
/// shares the secret.
pub(super) fn take(
    entries: &mut Vec<IndexEntry>,
    holder: &Holder,
    kind: TokenKind,
) -> impl Iterator<Item = Orphan> + use<> {
    let position = entries.iter().position(|entry| entry.is_of(holder, kind));
    let taken = position.map(|position| entries.remove(position));
    let shared = taken
        .as_ref()
        .is_some_and(|taken| entries.iter().any(|entry| entry.account == taken.account));
    let orphan = taken.filter(|_| !shared);
    orphan.map(|taken| Orphan { account: taken.account, place: taken.place }).into_iter()
}

/// The index entry for a holder and a type of token; `None` if there is none.
pub(super) fn find<'a>(
    entries: &'a mut [IndexEntry],
    holder: &Holder,
    kind: TokenKind,
) -> Option<&'a mut IndexEntry> {
    entries.iter_mut().find(|entry| entry.is_of(holder, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(server: &str, kind: TokenKind, account: char, place: SecretPlace) -> IndexEntry {
        let account = account.to_string().repeat(16);
        let (address, name) = match server.split_once('#') {
            Some((server, name)) => (server.to_owned(), Some(name.to_owned())),
            None => (server.to_owned(), None),
        };
        IndexEntry::new(&Holder { address, account: name }, kind, (&account, None), place)
    }

    fn orphan(account: char, place: SecretPlace) -> Orphan {
        Orphan { account: account.to_string().repeat(16), place }
    }

    fn put_all(lines: &[IndexEntry]) -> (Vec<IndexEntry>, Vec<Orphan>) {
        let mut entries = Vec::new();
        let orphans = lines.iter().flat_map(|line| put(&mut entries, line.clone())).collect();
        (entries, orphans)
    }

    #[test]
    fn written_token_index_is_parsed_and_damaged_one_rejected() {
        let mut entry =
            line("https://a.example/mcp", TokenKind::SignIn, 'a', SecretPlace::EncryptedFile);
        entry.wanted = vec!["read".to_owned()];
        let file = print(vec![entry.clone()]);
        assert_eq!(parse(&file), Some(vec![entry]));
        for end in 0..file.len() - 1 {
            assert_eq!(parse(&file[..end]), None, "cut at {end}");
        }
        let file = String::from_utf8(file).unwrap();
        let cases = [
            ("\"version\": 1", "\"version\": 2"),
            ("aaaaaaaaaaaaaaaa", "../../../../mcp.json"),
            ("aaaaaaaaaaaaaaaa", "aaaa"),
            ("\"kind\"", "\"kinds\""),
            ("encrypted-file", "elsewhere"),
        ];
        for (old, new) in cases {
            assert_eq!(parse(file.replace(old, new).as_bytes()), None, "{new}");
        }
    }

    #[test]
    fn replacing_an_index_entry_orphans_its_unshared_secret() {
        use SecretPlace::{EncryptedFile, File, Keyring};
        use TokenKind::{Given, SignIn};
        let cases: [(&[IndexEntry], usize, &[Orphan]); 7] = [
            // Two accounts at one address.
            (&[line("x#work", SignIn, 'a', File), line("x#home", SignIn, 'b', File)], 2, &[]),
            (&[line("x", SignIn, 'a', File), line("x#home", SignIn, 'b', File)], 2, &[]),
            // The same holder, type and account again, in another place.
            (&[line("x", SignIn, 'a', File), line("x", SignIn, 'a', EncryptedFile)], 1, &[]),
            // Another type of token for the same server.
            (&[line("x", SignIn, 'a', File), line("x", Given, 'b', File)], 2, &[]),
            // The same holder and type with a new account.
            (
                &[line("x", SignIn, 'a', Keyring), line("x", SignIn, 'b', File)],
                1,
                &[orphan('a', Keyring)],
            ),
            // The same account in another storage place.
            (
                &[line("x", SignIn, 'a', Keyring), line("x", SignIn, 'a', File)],
                1,
                &[orphan('a', Keyring)],
            ),
            // An account that another server uses as well.
            (
                &[
                    line("x", SignIn, 'a', File),
                    line("y", SignIn, 'a', File),
                    line("x", SignIn, 'b', File),
                ],
                2,
                &[],
            ),
        ];
        for (lines, count, orphans) in cases {
            let (entries, found) = put_all(lines);
            assert_eq!((entries.len(), &found[..]), (count, orphans), "{lines:?}");
        }
    }

    #[test]
    fn account_has_one_storage_place_for_all_servers() {
        let lines = [
            line("x", TokenKind::SignIn, 'a', SecretPlace::Keyring),
            line("y", TokenKind::SignIn, 'a', SecretPlace::File),
        ];
        let (entries, orphans) = put_all(&lines);
        assert!(entries.iter().all(|entry| entry.place == SecretPlace::File));
        assert_eq!(orphans, [orphan('a', SecretPlace::Keyring)]);
    }

    #[test]
    fn required_scopes_are_dropped_for_a_new_account() {
        let mut entries = vec![line("x", TokenKind::SignIn, 'a', SecretPlace::File)];
        entries[0].wanted = vec!["write".to_owned()];
        put(&mut entries, line("x", TokenKind::SignIn, 'a', SecretPlace::File));
        assert_eq!(entries[0].wanted, ["write"]);
        put(&mut entries, line("x", TokenKind::SignIn, 'b', SecretPlace::File));
        assert_eq!(entries[0].wanted, [""; 0]);
    }
}
