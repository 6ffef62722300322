//! Adds our entry to the text of a host's file, and disables the host's other servers.
//!
//! Bytes that need not change are preserved.

pub mod format;
mod grants;
pub mod moving;
mod toml;

use std::fmt;

use serde_json::{Map, Value as Json};

use self::format::{EntryFormat, Launch, Off, Passing, ServerList};
use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::edit::{self, Change, Edit, EditError};
use super::hosts::Host;
use super::layers::{ConfigSource, Tier};
use super::server::is_gateway;
use super::syntax::{self, HOST_FILE_BYTES, Syntax};
use crate::pi::settings;

/// The name of our entry in every host.
pub const NAME: &str = "switchboard";

/// A host into which our entry, or our package, can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    Host(Host),
    /// Pi gets our package instead of an entry. Pi's servers are in a file of our format.
    Pi,
}

/// Whether a host's file contains our entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Absent,
    Installed,
    /// An entry for another server has the name `switchboard`.
    NameTaken,
}

/// The values that are written into our entry.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    pub command: &'a str,
    /// The names of the environment variables that the servers need.
    pub variables: &'a [String],
    /// The version of the host; `None` if it is unknown.
    pub version: Option<[u32; 2]>,
}

/// The text of a file after our entry was added, with the changes to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub text: String,
    pub added: Vec<Added>,
}

/// A change that `install` makes in addition to the command of our entry, such as a key with its
/// reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    Key {
        key: String,
        why: &'static str,
    },
    /// The names of environment variables that our entry now passes on.
    Variables(Vec<String>),
}

impl Target {
    pub fn all() -> impl Iterator<Item = Target> {
        Host::ALL.into_iter().map(Target::Host).chain([Target::Pi])
    }

    pub fn from_word(word: &str) -> Option<Target> {
        Target::all().find(|target| target.as_str() == word)
    }

    pub fn as_str(self) -> &'static str {
        self.host().map_or("pi", Host::as_str)
    }

    pub fn host(self) -> Option<Host> {
        match self {
            Target::Host(host) => Some(host),
            Target::Pi => None,
        }
    }

    /// The official spelling of the host's name.
    pub fn title(self) -> &'static str {
        self.host().map_or("Pi", Host::title)
    }

    pub(super) fn syntax(self) -> Syntax {
        self.host().map_or(Syntax::Jsonc, Host::syntax)
    }

    fn format(self) -> &'static EntryFormat {
        self.host().map_or(const { &EntryFormat::USUAL }, Host::format)
    }

    /// The key that holds the servers in the host's file.
    pub(super) fn holder(self) -> &'static str {
        self.format().holder
    }

    /// The keys of the host's files whose values a diff may show.
    pub(super) fn shown(self) -> Vec<&'static str> {
        let settings: &[_] =
            if self == Target::Pi { &[settings::PACKAGES, settings::EXTENSIONS] } else { &[] };
        settings.iter().copied().chain([self.holder()]).collect()
    }

    /// Whether the host passes to servers only a few environment variables and those that its file
    /// names.
    pub fn filters_variables(self) -> bool {
        self.format().passing != Passing::Everything
    }

    /// Whether the host's file can contain names of environment variables to pass on.
    pub fn can_name_variables(self) -> bool {
        matches!(self.format().passing, Passing::Listed(_) | Passing::Named { .. })
    }

    /// Whether the host passes an unset variable on to servers, as an empty string or as a literal
    /// reference.
    pub fn fills_in_variables(self) -> bool {
        matches!(self.format().passing, Passing::Named { .. })
    }

    /// Whether permissions for our tools are in a second file of the host, its settings.
    pub fn has_settings(self) -> bool {
        !self.format().settings.is_empty()
    }

    fn args(self) -> [&'static str; 3] {
        ["serve", "--host", self.as_str()]
    }

    fn apply(self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        match (self.syntax(), self.format().listing) {
            (Syntax::Jsonc, _) => edit::apply(text, edits),
            (Syntax::Toml, ServerList::ByName) => toml::apply(text, edits, None),
            (Syntax::Toml, ServerList::Array) => toml::apply(text, edits, Some(self.holder())),
        }
    }

    fn at(self, name: &str, change: Change) -> Edit {
        Edit::new([self.holder(), name], change)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

pub fn presence(target: Target, text: &str) -> Result<Presence, EditError> {
    let servers = servers(target, text)?;
    Ok(if servers.values().any(is_ours) {
        Presence::Installed
    } else if servers.contains_key(NAME) {
        Presence::NameTaken
    } else {
        Presence::Absent
    })
}

/// Adds our entry to the text. An existing entry of ours is kept, and gets the keys that it lacks.
pub fn install(target: Target, text: &str, setup: &Setup<'_>) -> Result<Put, EditError> {
    let root = root(target, text)?;
    let servers = servers_in(target, &root)?;
    let mut ours = servers.iter().filter(|(_, entry)| is_ours(entry)).peekable();
    let (mut edits, mut added) = (Vec::new(), Vec::new());
    if ours.peek().is_none() {
        let format = target.format();
        let entry = format.entry(setup.command, &target.args(), setup.variables);
        edits.push(target.at(NAME, Change::Set(entry)));
        added.extend(format.then.iter().map(|extra| Added::key(&[extra.key], extra.why)));
        if target.can_name_variables() && !setup.variables.is_empty() {
            added.push(Added::Variables(setup.variables.to_vec()));
        }
    }
    for (name, entry) in ours {
        renew(target, (name, entry), setup, (&mut edits, &mut added));
    }
    for (grant, edit) in grants::additions(&root, target.format().grants, setup.version) {
        added.push(Added::key(grant.at, grant.why));
        edits.push(edit);
    }
    Ok(Put { text: target.apply(text, &edits)?, added })
}

/// Adds the keys that our entry lacks because an older version wrote it.
fn renew(
    target: Target,
    (name, entry): (&str, &Json),
    setup: &Setup<'_>,
    (edits, added): (&mut Vec<Edit>, &mut Vec<Added>),
) {
    let at = |path: &[&str], change| {
        let path = [target.holder(), name].into_iter().chain(path.iter().copied());
        Edit { at: path.map(str::to_owned).collect(), change }
    };
    let (_, args) = command_line(entry);
    if !args.iter().any(|arg| ["--host", "--http", "--transparent"].contains(arg)) {
        let path: &[&str] = match (entry.get("command"), target.format().launch) {
            (Some(Json::Array(_)), _) => &["command"],
            (Some(Json::Object(_)), _) => &["command", "args"],
            (None, Launch::Nested(key)) => &[key, "args"],
            (Some(_) | None, _) => &["args"],
        };
        let words = ["--host", target.as_str()];
        edits.extend(words.map(|word| at(path, Change::AddItem(word.into()))));
    }
    for extra in target.format().then.iter().filter(|extra| entry.get(extra.key).is_none()) {
        edits.push(at(&[extra.key], Change::Set(extra.value.json())));
        added.push(Added::key(&[extra.key], extra.why));
    }
    let passed = passed_on(target, entry);
    let missing = setup.variables.iter().filter(|variable| !passed.contains(&variable.as_str()));
    let missing: Vec<String> = missing.cloned().collect();
    for variable in &missing {
        match target.format().passing {
            Passing::Listed(key) => {
                edits.push(at(&[key], Change::AddItem(variable.as_str().into())))
            }
            Passing::Named { key, .. } => {
                let value = target.format().passing.value(variable).unwrap_or_default();
                edits.push(at(&[key, variable], Change::Set(value.into())));
            }
            Passing::Everything | Passing::Literals => {}
        }
    }
    if target.can_name_variables() && !missing.is_empty() {
        added.push(Added::Variables(missing));
    }
}

/// Removes our entry with its permissions; without our entry, the text is unchanged.
pub fn uninstall(target: Target, text: &str) -> Result<String, EditError> {
    match presence(target, text)? {
        Presence::Installed => undo(target, text, ""),
        Presence::Absent | Presence::NameTaken => Ok(text.to_owned()),
    }
}

/// Undoes an installation: removes our entry, and the permissions for our tools that the text
/// `before` did not have.
pub fn undo(target: Target, text: &str, before: &str) -> Result<String, EditError> {
    let root = root(target, text)?;
    let servers = servers_in(target, &root)?;
    let ours = servers.iter().filter(|(_, entry)| is_ours(entry));
    let mut edits: Vec<Edit> = ours.map(|(name, _)| target.at(name, Change::Remove)).collect();
    let before = self::root(target, before)?;
    edits.extend(grants::removals(&root, &before, target.format().grants));
    target.apply(text, &edits)
}

/// Adds the permissions for our tools to the text of the host's settings.
pub fn grant(target: Target, settings: &str) -> Result<Put, EditError> {
    let root = root(target, settings)?;
    let additions = grants::additions(&root, target.format().settings, None);
    let (added, edits): (Vec<Added>, Vec<Edit>) =
        additions.into_iter().map(|(grant, edit)| (Added::key(grant.at, grant.why), edit)).unzip();
    Ok(Put { text: target.apply(settings, &edits)?, added })
}

/// Removes the permissions for our tools from the settings, except those that the text `before`
/// had.
pub fn revoke(target: Target, settings: &str, before: &str) -> Result<String, EditError> {
    let (now, before) = (root(target, settings)?, root(target, before)?);
    target.apply(settings, &grants::removals(&now, &before, target.format().settings))
}

/// Which of `variables` our entry does not pass on; empty if there is no entry.
pub fn variables_not_passed_on(
    target: Target,
    text: &str,
    variables: &[String],
) -> Result<Vec<String>, EditError> {
    let servers = servers(target, text)?;
    let Some(entry) = servers.values().find(|entry| is_ours(entry)) else { return Ok(Vec::new()) };
    let passed = passed_on(target, entry);
    let missing = variables.iter().filter(|name| !passed.contains(&name.as_str()));
    Ok(missing.filter(|_| target.filters_variables()).cloned().collect())
}

/// The environment variables that every host passes to its servers.
pub const ALWAYS_PASSED_ON: [&str; 7] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"];

/// The environment variables that an entry names, and those that every host passes on.
fn passed_on(target: Target, entry: &Json) -> Vec<&str> {
    let names = match target.format().passing {
        Passing::Listed(key) => Some(key),
        Passing::Named { .. } | Passing::Everything | Passing::Literals => None,
    };
    let listed = names.and_then(|key| entry.get(key)?.as_array()).into_iter().flatten();
    let listed = listed.filter_map(|name| name.get("name").unwrap_or(name).as_str());
    let set = entry.get("env").and_then(Json::as_object).into_iter().flatten();
    listed.chain(set.map(|(name, _)| name.as_str())).chain(ALWAYS_PASSED_ON).collect()
}

impl Added {
    fn key(at: &[&str], why: &'static str) -> Added {
        Added::Key { key: at.join("."), why }
    }
}

/// Disables the servers with these names in the host's file.
pub fn disable_servers(target: Target, text: &str, names: &[String]) -> Result<String, EditError> {
    let edit = |name: &String| match target.format().off {
        Off::Flag(key, value) => Edit::new([target.holder(), name, key], Change::Set(value.into())),
        Off::TakenOut => target.at(name, Change::Remove),
    };
    target.apply(text, &names.iter().map(edit).collect::<Vec<_>>())
}

/// Enables these servers again, or adds their entries from `before` again. Changes that were made
/// to these servers in the meantime are preserved.
pub fn restore_servers(
    target: Target,
    text: &str,
    before: &str,
    names: &[String],
) -> Result<String, EditError> {
    let (now, then) = (servers(target, text)?, servers(target, before)?);
    let mut edits = Vec::new();
    for name in names {
        match (target.format().off, now.get(name), then.get(name)) {
            (Off::TakenOut, None, Some(entry)) => {
                edits.push(target.at(name, Change::Set(entry.clone())));
            }
            (Off::Flag(key, value), Some(entry), Some(old))
                if entry.get(key) == Some(&value.into()) =>
            {
                let change = old.get(key).map_or(Change::Remove, |old| Change::Set(old.clone()));
                edits.push(Edit::new([target.holder(), name, key], change));
            }
            (Off::TakenOut | Off::Flag(..), _, _) => {}
        }
    }
    target.apply(text, &edits)
}

/// The entries of the servers in the host's file, not converted to our format.
fn servers(target: Target, text: &str) -> Result<Map<String, Json>, EditError> {
    servers_in(target, &root(target, text)?)
}

fn servers_in(target: Target, root: &Json) -> Result<Map<String, Json>, EditError> {
    let wrong = |expected| EditError::WrongType { key: target.holder().to_owned(), expected };
    match (root.get(target.holder()), target.format().listing) {
        (None, _) => Ok(Map::new()),
        (Some(Json::Object(servers)), ServerList::ByName) => Ok(servers.clone()),
        (Some(Json::Array(servers)), ServerList::Array) => {
            let named = servers
                .iter()
                .filter_map(|entry| Some((entry.get("name")?.as_str()?.to_owned(), entry.clone())));
            Ok(named.collect())
        }
        (Some(_), ServerList::ByName) => Err(wrong("an object")),
        (Some(_), ServerList::Array) => Err(wrong("an array of tables")),
    }
}

/// The root object of the host's file.
fn root(target: Target, text: &str) -> Result<Json, EditError> {
    let mut found = None;
    let source = ConfigSource { path: "".into(), tier: Tier::User };
    let problems = syntax::read((text, target.syntax()), &source, HOST_FILE_BYTES, |_, root| {
        found = Some(edit::json(root));
    });
    if let Some(Diagnostic { line, column, kind, .. }) = problems.into_iter().next() {
        let clause = match kind {
            DiagnosticKind::Syntax { clause } => clause,
            other => other.to_string(),
        };
        return Err(EditError::Syntax { line: line as usize, column: column as usize, clause });
    }
    match found {
        None => Ok(Json::Object(Map::new())),
        Some(root @ Json::Object(_)) => Ok(root),
        Some(_) => Err(EditError::WrongType { key: "(root)".to_owned(), expected: "an object" }),
    }
}

/// Whether an entry starts this gateway, in any format that a host has for commands.
fn is_ours(entry: &Json) -> bool {
    let (command, args) = command_line(entry);
    is_gateway(command, args.into_iter())
}

fn command_line(entry: &Json) -> (&str, Vec<&str>) {
    let entry = entry.get("transport").filter(|inner| inner.is_object()).unwrap_or(entry);
    let (command, args) = match entry.get("command") {
        Some(Json::Object(command)) => (command.get("path"), command.get("args")),
        Some(line @ Json::Array(_)) => (line.get(0), Some(line)),
        command => (command, entry.get("args")),
    };
    let args = args.and_then(Json::as_array).into_iter().flatten();
    (command.and_then(Json::as_str).unwrap_or_default(), args.filter_map(Json::as_str).collect())
}

#[cfg(test)]
mod tests;
