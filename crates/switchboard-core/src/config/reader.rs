//! Typed readers for the syntax tree of a file. They report each problem with its position.

use std::collections::HashMap;

use jsonc_parser::ast::{ObjectPropName, Value};
use jsonc_parser::common::Ranged;

use super::diagnostic::{Diagnostic, DiagnosticKind, Level, ROOT, RULES};
use super::layers::{ConfigOrigin, ConfigSource};
use super::server::ServerEntry;

const MAX_PROBLEMS: usize = 200;
pub(super) const MAX_ENTRIES: usize = 10_000;
const MAX_KEY_CHARS: usize = 64;
const CHAR_COUNT_STRIDE: usize = 4_096;

/// An error that was already added to the diagnostics.
#[derive(Debug)]
pub(super) struct Reported;

pub(super) type Read<T> = Result<T, Reported>;

pub(super) struct ConfigReader<'t> {
    text: &'t str,
    source: &'t ConfigSource,
    line_starts: Vec<usize>,
    /// The number of characters before every `STRIDE` bytes, so that the column of a value in a
    /// very long line is found quickly.
    char_counts: Vec<usize>,
    diagnostics: Vec<Diagnostic>,
}

/// A value with the path of its key, shortened for messages.
#[derive(Clone, Copy)]
pub(super) struct KeyedValue<'v> {
    pub(super) key: &'v str,
    pub(super) value: &'v Value<'v>,
}

/// A member of an object: its name and its value.
pub(super) struct Member<'v> {
    pub(super) name: &'v str,
    /// The path of the key, shortened for messages.
    pub(super) key: String,
    /// The byte offset of the member's name.
    pub(super) offset: usize,
    pub(super) value: &'v Value<'v>,
    /// Whether the key is a duplicate although it must be unique.
    pub(super) twice: bool,
}

impl Member<'_> {
    pub(super) fn input(&self) -> KeyedValue<'_> {
        KeyedValue { key: &self.key, value: self.value }
    }
}

impl<'t> ConfigReader<'t> {
    pub(super) fn new(text: &'t str, source: &'t ConfigSource) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0).chain(breaks.map(|(at, _)| at + 1)).collect();
        let mut char_counts = vec![0];
        for stride in text.as_bytes().chunks(CHAR_COUNT_STRIDE) {
            let before = char_counts.last().copied().unwrap_or_default();
            char_counts.push(before + char_starts(stride));
        }
        Self { text, source, line_starts, char_counts, diagnostics: Vec::new() }
    }

    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }

    /// The number of problems reported so far.
    pub(super) fn problems(&self) -> usize {
        self.diagnostics.len()
    }

    /// The first error that was reported after the first `problems` problems.
    pub(super) fn error_after(&self, problems: usize) -> Option<&Diagnostic> {
        self.diagnostics.iter().skip(problems).find(|problem| problem.is_error())
    }

    /// The error about a key that occurs twice.
    pub(super) fn given_twice(&self, key: &str) -> Option<&Diagnostic> {
        let is_this = |problem: &&Diagnostic| match &problem.kind {
            DiagnosticKind::GivenTwice { key: twice } => twice == key,
            _ => false,
        };
        self.diagnostics.iter().find(is_this)
    }

    pub(super) fn source(&self) -> &'t ConfigSource {
        self.source
    }

    pub(super) fn origin(&self, offset: usize) -> ConfigOrigin {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        let start = self.line_starts.get(line - 1).copied().unwrap_or_default();
        let chars = self.chars_before(offset);
        let column = chars.saturating_sub(self.chars_before(start)) + 1;
        let number = |count| u32::try_from(count).unwrap_or(u32::MAX);
        ConfigOrigin { path: self.source.path.clone(), line: number(line), column: number(column) }
    }

    pub(super) fn error(&mut self, offset: usize, kind: DiagnosticKind) -> Reported {
        self.report(Level::Error, offset, kind);
        Reported
    }

    pub(super) fn warn(&mut self, offset: usize, kind: DiagnosticKind) {
        self.report(Level::Warning, offset, kind);
    }

    /// Reports that a key of another program has no effect here.
    pub(super) fn ignored_key(&mut self, member: &Member<'_>) {
        let kind = DiagnosticKind::NoEffect { key: member.key.clone() };
        self.report(Level::Note, member.offset, kind);
    }

    /// Warns of an unknown key, and suggests the nearest known one.
    pub(super) fn unknown_key(&mut self, member: &Member<'_>, known: &[&'static str]) {
        if self.diagnostics.len() > MAX_PROBLEMS {
            return;
        }
        let folded = member.name.to_lowercase();
        let nearest = known
            .iter()
            .filter(|_| folded.len() <= MAX_KEY_CHARS)
            .map(|known| (strsim::jaro_winkler(&folded, &known.to_lowercase()), *known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known);
        let key = member.key.clone();
        self.warn(member.offset, DiagnosticKind::UnknownKey { key, nearest });
    }

    /// The members of an object. Of duplicate names, the last takes precedence.
    pub(super) fn members<'v>(&mut self, input: KeyedValue<'v>) -> Read<Vec<Member<'v>>> {
        let Value::Object(object) = input.value else {
            return Err(self.wrong_type(input, "an object"));
        };
        if object.properties.len() > MAX_ENTRIES {
            return Err(self.too_many_entries(input));
        }
        let mut members: Vec<Member<'v>> = Vec::with_capacity(object.properties.len());
        let mut seen = HashMap::new();
        for property in &object.properties {
            let offset = match &property.name {
                ObjectPropName::String(literal) => literal.start(),
                ObjectPropName::Word(word) => word.start(),
            };
            let name = property.name.as_str();
            let (value, twice) = (&property.value, false);
            let member = Member { name, key: join(input.key, name), offset, value, twice };
            match seen.insert(name, members.len()) {
                Some(earlier) => {
                    let path = member.key.clone();
                    let twice = must_be_unique(input.key, name);
                    match twice {
                        true => drop(self.error(offset, DiagnosticKind::GivenTwice { key: path })),
                        false => self.warn(offset, DiagnosticKind::DuplicateKey { key: path }),
                    }
                    seen.insert(name, earlier);
                    if let Some(slot) = members.get_mut(earlier) {
                        *slot = Member { twice, ..member };
                    }
                }
                None => members.push(member),
            }
        }
        Ok(members)
    }

    pub(super) fn wrong_type(&mut self, input: KeyedValue<'_>, expected: &'static str) -> Reported {
        let found = match input.value {
            Value::StringLit(_) => "a string",
            Value::NumberLit(_) => "a number",
            Value::BooleanLit(_) => "a boolean",
            Value::NullKeyword(_) => "null",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        let key = shown(input.key);
        self.error(input.value.start(), DiagnosticKind::WrongType { key, expected, found })
    }

    pub(super) fn too_many_entries(&mut self, input: KeyedValue<'_>) -> Reported {
        let kind = DiagnosticKind::TooManyEntries { key: shown(input.key), limit: MAX_ENTRIES };
        self.error(input.value.start(), kind)
    }

    pub(super) fn out_of_range(
        &mut self,
        input: KeyedValue<'_>,
        expected: &'static str,
    ) -> Reported {
        let key = input.key.to_owned();
        self.error(input.value.start(), DiagnosticKind::OutOfRange { key, expected })
    }

    fn report(&mut self, level: Level, offset: usize, kind: DiagnosticKind) {
        // The last problem is always an error, so that warnings beyond the limit cannot hide an
        // error.
        let (level, kind) = match self.diagnostics.len() {
            0..MAX_PROBLEMS => (level, kind),
            MAX_PROBLEMS => (Level::Error, DiagnosticKind::TooManyProblems { limit: MAX_PROBLEMS }),
            _ => return,
        };
        self.diagnostics.push(Diagnostic::at(&self.origin(offset), level, kind));
    }

    fn chars_before(&self, offset: usize) -> usize {
        let counted = offset / CHAR_COUNT_STRIDE;
        let tail = self.text.as_bytes().get(counted * CHAR_COUNT_STRIDE..offset);
        let before = self.char_counts.get(counted).copied().unwrap_or_default();
        before + char_starts(tail.unwrap_or_default())
    }
}

fn shown(key: &str) -> String {
    if key.is_empty() { ROOT.to_owned() } else { key.to_owned() }
}

/// Whether the key decides what is started or called. A duplicate of such a key is an error.
fn must_be_unique(parent: &str, name: &str) -> bool {
    let servers = ["mcpServers", "mcp-servers"];
    match parent {
        "" => name == "settings" || servers.contains(&name),
        "settings" => RULES.contains(&name),
        parent if servers.contains(&parent) => true,
        parent => {
            let of_server = servers.iter().any(|servers| parent.starts_with(servers));
            of_server && (name == "enabled" || ServerEntry::KEYS.contains(&name))
        }
    }
}

fn char_starts(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// The path `parent.name`, shortened and without control characters.
pub(super) fn join(parent: &str, name: &str) -> String {
    let clean = |c: char| {
        if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }
    };
    let name = name.chars().map(clean);
    let dot = if parent.is_empty() { "" } else { "." };
    let mut key = format!("{parent}{dot}");
    key.extend(name.clone().take(MAX_KEY_CHARS));
    if name.count() > MAX_KEY_CHARS {
        key.push('…');
    }
    key
}
