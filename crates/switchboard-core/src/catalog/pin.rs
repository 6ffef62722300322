//! Pins: the definitions of a server's tools, prompts and instructions that the user accepted, and
//! which of them changed since.
//!
//! The first listing of a server is its [`Baseline`]. Each definition of a later listing is
//! compared with it. Only the user's approval changes a baseline, so a tool that changes back
//! matches its pin again.

mod diff;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::listing::{Instructions, read_prompt};
use super::sealed::Seal;
use super::{Entry, EntryKind, Prompt, RawListing};
use crate::hidden::Hidden;
use crate::name::ServerName;

pub use diff::Change;

const SEAL: Seal = Seal { magic: "switchboard-pins", version: 2 };

/// The fields of a definition that affect a model or a rule.
const PINNED: [&str; 8] = [
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "arguments",
    "instructions",
];

/// The prefix of the keys of prompts and instructions in a pin file. Tool names contain no control
/// characters, so the key of a tool never begins with it.
const NO_TOOL: &str = "\u{1}";

const INSTRUCTIONS: &str = "\u{1}instructions";

/// A definition with its key, to be pinned or to be compared with its pin.
pub struct PinnedDefinition<'a> {
    /// The key of the definition in the pin file: the name of a tool, or a prefix and a name.
    key: Cow<'a, str>,
    json: Cow<'a, str>,
}

impl Entry {
    pub fn pinned(&self) -> PinnedDefinition<'_> {
        PinnedDefinition { key: self.name.as_str().into(), json: self.definition().into() }
    }
}

impl Prompt {
    pub fn pinned(&self) -> PinnedDefinition<'_> {
        let key = format!("{NO_TOOL}prompt {}", self.name);
        PinnedDefinition { key: key.into(), json: self.definition().into() }
    }
}

impl Instructions {
    pub fn pinned(&self) -> PinnedDefinition<'_> {
        let json = json!({ "instructions": self.original() }).to_string();
        PinnedDefinition { key: INSTRUCTIONS.into(), json: json.into() }
    }
}

/// How a definition compares with its pin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pin {
    /// The definition equals its pin, or is not compared.
    #[default]
    Same,
    Changed,
    /// The baseline has no definition with this name.
    New,
    /// The pin file cannot be parsed.
    Unknown,
}

impl Pin {
    /// The mark in lists for a tool that does not match its pin.
    pub fn mark(self) -> Option<&'static str> {
        match self {
            Pin::Same => None,
            Pin::Changed => Some("changed"),
            Pin::New => Some("new"),
            Pin::Unknown => Some("unverified"),
        }
    }
}

/// How many tools, prompts and instructions of a server do not match their pins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriftCount {
    pub changed: usize,
    pub new: usize,
    pub unknown: usize,
}

impl DriftCount {
    pub fn of(pins: impl Iterator<Item = Pin>) -> DriftCount {
        let mut count = DriftCount::default();
        for pin in pins {
            match pin {
                Pin::Same => {}
                Pin::Changed => count.changed += 1,
                Pin::New => count.new += 1,
                Pin::Unknown => count.unknown += 1,
            }
        }
        count
    }

    pub fn is_none(self) -> bool {
        self == DriftCount::default()
    }
}

/// The accepted definitions of a server, with which its listings are compared.
#[derive(Clone, Debug, Default)]
pub enum Baseline {
    /// The setting `pins` is off, so no definition is compared.
    #[default]
    Off,
    /// No definition was accepted yet for clients with these capabilities. The next listing becomes
    /// the baseline, except for definitions that were accepted for other capabilities.
    Open(Arc<Records>),
    Taken(Arc<BTreeMap<String, Fingerprint>>),
    /// The pin file cannot be parsed.
    Damaged,
}

impl Baseline {
    /// Whether both baselines are known and accept the same definitions.
    pub fn accepts_the_same_as(&self, other: &Baseline) -> bool {
        matches!((self, other), (Baseline::Taken(ours), Baseline::Taken(theirs)) if ours == theirs)
    }

    /// How this tool compares with its pin. Resources change often and are not pinned. Prompts are
    /// compared with [`Baseline::compare`].
    pub(super) fn compare_entry(&self, entry: &Entry) -> Pin {
        match entry.kind {
            EntryKind::Resource { .. } | EntryKind::Prompt => Pin::Same,
            EntryKind::Tool => self.compare(&entry.pinned()),
        }
    }

    pub(super) fn compare(&self, definition: &PinnedDefinition<'_>) -> Pin {
        match self {
            Baseline::Off | Baseline::Open(_) => Pin::Same,
            Baseline::Damaged => Pin::Unknown,
            Baseline::Taken(accepted) => match accepted.get(&*definition.key) {
                None => Pin::New,
                Some(pinned) if pinned.fits(&definition.json) => Pin::Same,
                Some(_) => Pin::Changed,
            },
        }
    }
}

/// Two hashes of a definition, by which it is compared with its pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// The hash of the definition's bytes. If it is equal, `meaning` is not compared.
    exact: [u8; 32],
    /// The hash of the definition's pinned fields, independent of the order of keys.
    meaning: [u8; 32],
}

impl Fingerprint {
    fn of(definition: &str) -> Fingerprint {
        let exact = Sha256::digest(definition).into();
        Fingerprint { exact, meaning: meaning(definition) }
    }

    fn fits(&self, definition: &str) -> bool {
        let exact: [u8; 32] = Sha256::digest(definition).into();
        exact == self.exact || meaning(definition) == self.meaning
    }
}

fn meaning(definition: &str) -> [u8; 32] {
    let canonical = canonical(&Value::Object(pinned_parts(definition)));
    Sha256::digest(canonical).into()
}

/// The pinned fields of a definition. A text that is not a JSON object becomes a single field.
fn pinned_parts(definition: &str) -> Map<String, Value> {
    let Ok(parsed) = serde_json::from_str::<Map<String, Value>>(definition) else {
        return Map::from_iter([("definition".to_owned(), Value::from(definition))]);
    };
    let pinned =
        |(name, value): &(String, Value)| !value.is_null() && PINNED.contains(&name.as_str());
    parsed.into_iter().filter(pinned).collect()
}

/// The JSON text with sorted keys. Recursion is safe, because the parser limits the depth.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let fields = fields.into_iter().map(|(name, value)| {
                format!("{}:{}", Value::from(name.as_str()), canonical(value))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        scalar => scalar.to_string(),
    }
}

/// The accepted definitions of one server, unchanged, for clients with one set of capabilities.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinRecord {
    tools: BTreeMap<String, Box<RawValue>>,
    fingerprints: BTreeMap<String, String>,
}

impl PinRecord {
    /// A record that accepts all definitions in a listing.
    pub fn of(listing: &RawListing) -> PinRecord {
        let mut record = PinRecord::default();
        for definition in &listing.tools {
            // Definitions that the listing skips are not accepted.
            if let Ok(entry) = Entry::tool(definition)
                && !record.tools.contains_key(entry.name.as_str())
            {
                record.accept(entry.pinned());
            }
        }
        for prompt in listing.prompts.iter().filter_map(|raw| read_prompt(raw)) {
            record.accept(prompt.pinned());
        }
        if let Some(instructions) = listing.instructions.as_deref().map(Instructions::of) {
            record.accept(instructions.pinned());
        }
        record
    }

    /// Accepts this definition in place of the pinned one.
    pub fn accept(&mut self, PinnedDefinition { key, json }: PinnedDefinition<'_>) {
        let Fingerprint { exact, meaning } = Fingerprint::of(&json);
        let Ok(raw) = RawValue::from_string(json.into_owned()) else { return };
        let fingerprint = format!("{}{}", hex(&exact), hex(&meaning));
        self.fingerprints.insert(key.to_string(), fingerprint);
        self.tools.insert(key.into_owned(), raw);
    }

    pub fn baseline(&self) -> Baseline {
        let fingerprints = self.fingerprints.iter().filter_map(|(name, text)| {
            let (exact, meaning) = text.split_at_checked(64)?;
            let fingerprint = Fingerprint { exact: unhex(exact)?, meaning: unhex(meaning)? };
            Some((name.clone(), fingerprint))
        });
        Baseline::Taken(Arc::new(fingerprints.collect()))
    }

    /// The changes of a definition since it was pinned, field by field.
    pub fn changes(&self, definition: &PinnedDefinition<'_>) -> Vec<Change> {
        let old = self.tools.get(&*definition.key);
        let old = old.map(|raw| pinned_parts(raw.get())).unwrap_or_default();
        diff::changes(&Value::Object(old), &Value::Object(pinned_parts(&definition.json)))
    }
}

/// The content of a server's pin file. A server may list other tools to a client with other
/// capabilities, so each set of capabilities has its own record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    sets: BTreeMap<u8, PinRecord>,
    /// Whether the records replace a damaged file. A set of capabilities without a record then
    /// accepts no definition, because the lost file may have had one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    closed: bool,
}

impl Records {
    /// The content of the pin file that replaces a damaged one.
    pub fn after_damage() -> Records {
        Records { closed: true, ..Records::default() }
    }

    /// The baseline for listings of clients with the capabilities `set`.
    pub fn baseline(&self, set: u8) -> Baseline {
        match self.sets.get(&set) {
            Some(record) => record.baseline(),
            None if self.closed => PinRecord::default().baseline(),
            None => Baseline::Open(Arc::new(self.clone())),
        }
    }

    pub fn of_set(&self, set: u8) -> Option<&PinRecord> {
        self.sets.get(&set)
    }

    /// The record of this set of capabilities, to be changed. A missing record is created empty.
    pub fn of_set_mut(&mut self, set: u8) -> &mut PinRecord {
        self.sets.entry(set).or_default()
    }

    /// The sets of capabilities that have a record.
    pub fn sets(&self) -> impl Iterator<Item = u8> + '_ {
        self.sets.keys().copied()
    }

    /// Records the first listing for clients with these capabilities. A definition that was
    /// accepted for other capabilities keeps its pin: otherwise a server could change a tool
    /// unnoticed for these clients.
    pub fn take_first(&mut self, set: u8, listing: &RawListing) -> &PinRecord {
        if self.closed {
            return self.of_set_mut(set);
        }
        let mut first = PinRecord::of(listing);
        for (key, fingerprint) in &mut first.fingerprints {
            let mut accepted = self
                .sets
                .values()
                .filter_map(|other| Some((other.fingerprints.get(key)?, other.tools.get(key)?)));
            let Some((old_fingerprint, old)) = accepted.next() else { continue };
            let listed = meaning_of(fingerprint);
            let is_known = meaning_of(old_fingerprint) == listed
                || accepted.any(|(other, _)| meaning_of(other) == listed);
            if !is_known {
                fingerprint.clone_from(old_fingerprint);
                first.tools.insert(key.clone(), old.clone());
            }
        }
        self.sets.entry(set).or_insert(first)
    }

    /// The content of a pin file with these records and this key.
    pub fn encode(&self, key: &str) -> Vec<u8> {
        SEAL.close(&[key], &serde_json::to_vec(self).unwrap_or_default())
    }

    /// Parses a pin file; `None` if it is damaged or has another key.
    pub fn decode(file: &[u8], key: &str) -> Option<Records> {
        let ([owner], body) = SEAL.open(file)?;
        if owner != key {
            return None;
        }
        let records: Records = serde_json::from_slice(body).ok()?;
        let is_whole = |record: &PinRecord| record.tools.keys().eq(record.fingerprints.keys());
        records.sets.values().all(is_whole).then_some(records)
    }
}

/// The `meaning` hash of a fingerprint, as a pin file stores it.
fn meaning_of(fingerprint: &str) -> Option<&str> {
    Some(fingerprint.split_at_checked(64)?.1)
}

/// The key of a pin file: the server's name and definition, and its project if a project defines
/// it. Two servers or two projects never share a key.
pub fn key(server: &ServerName, project: Option<&str>, definition: &str) -> String {
    let mut hash = Sha256::new();
    for part in [project.map_or("user", |_| "project"), project.unwrap_or(""), server.as_str()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(definition);
    hex(&hash.finalize())
}

/// A tool, prompt or instructions that do not match their pin or have hidden text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    pub shown: String,
    /// The original name of the tool or prompt; empty for instructions.
    pub tool: String,
    pub of: Pinned,
    pub pin: Pin,
    /// The changes since the definition was pinned: limited in size, and safe to display.
    pub changes: Vec<Change>,
    pub hidden: Option<Hidden>,
    /// The capabilities of the clients to which the server lists the definition. Empty if this
    /// client is one of them.
    pub listed_to: Vec<String>,
}

/// What a pinned definition is: a tool, a prompt or instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinned {
    Tool,
    Prompt,
    Instructions,
}

/// The definitions of one server that do not match their pins or have hidden text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerPins {
    pub server: ServerName,
    pub drifts: Vec<Drift>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    (text.len() == 64).then_some(bytes)
}

#[cfg(test)]
mod tests;
