//! Our own entry in a host's file, and that host's other servers switched off beside it.
//!
//! Texts come in and go out; every byte that need not change stays.

pub mod moving;
pub mod pi;
mod toml;

use std::fmt;

use serde_json::{Map, Value as Json, json};

use super::canonical::{Canon, Canonical};
use super::diagnostic::{Diagnostic, DiagnosticKind};
use super::edit::{self, Change, Edit, EditError};
use super::hosts::Host;
use super::layers::{Source, Tier};
use super::server::is_gateway;
use super::syntax::{self, HOST_FILE_BYTES, Syntax};
use super::values::choice;

/// What our entry is called in every host.
pub const NAME: &str = "switchboard";

choice! {
    /// A host that can be given our entry.
    pub enum Target {
        ClaudeCode = "claude-code",
        Cursor = "cursor",
        VsCode = "vscode",
        Codex = "codex",
        ClaudeDesktop = "claude-desktop",
        Zed = "zed",
        GeminiCli = "gemini-cli",
        Windsurf = "windsurf",
        Pi = "pi",
    }
}

/// How a host is told not to start a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Off {
    /// By a key of its entry.
    Flag(&'static str, bool),
    /// It knows no such key in this file: the entry is taken out.
    TakenOut,
}

/// Whether a host has our entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Absent,
    Installed,
    /// Another server has our name.
    NameTaken,
}

impl Target {
    /// `None` for Pi, whose servers stand in a file of our own form.
    pub fn host(self) -> Option<Host> {
        match self {
            Target::ClaudeCode => Some(Host::ClaudeCode),
            Target::Cursor => Some(Host::Cursor),
            Target::VsCode => Some(Host::VsCode),
            Target::Codex => Some(Host::Codex),
            Target::ClaudeDesktop => Some(Host::ClaudeDesktop),
            Target::Zed => Some(Host::Zed),
            Target::GeminiCli => Some(Host::GeminiCli),
            Target::Windsurf => Some(Host::Windsurf),
            Target::Pi => None,
        }
    }

    /// Its name as its makers write it.
    pub fn title(self) -> &'static str {
        self.host().map_or("Pi", Host::title)
    }

    pub(super) fn syntax(self) -> Syntax {
        self.host().map_or(Syntax::Jsonc, Host::syntax)
    }

    /// The key of the file under which its servers stand.
    pub(super) fn holder(self) -> &'static str {
        match self {
            Target::VsCode => "servers",
            Target::Codex => "mcp_servers",
            Target::Zed => "context_servers",
            Target::ClaudeCode
            | Target::Cursor
            | Target::ClaudeDesktop
            | Target::GeminiCli
            | Target::Windsurf
            | Target::Pi => "mcpServers",
        }
    }

    /// The keys of its files that may be shown.
    pub(super) fn shown(self) -> Vec<&'static str> {
        let settings: &[_] = if self == Target::Pi { &[pi::PACKAGES, pi::EXTENSIONS] } else { &[] };
        settings.iter().copied().chain([self.holder()]).collect()
    }

    fn off(self) -> Off {
        match self {
            Target::Codex | Target::Zed => Off::Flag("enabled", false),
            Target::Windsurf => Off::Flag("disabled", true),
            // Cursor and Gemini CLI keep elsewhere what is switched off.
            Target::ClaudeCode
            | Target::Cursor
            | Target::VsCode
            | Target::ClaudeDesktop
            | Target::GeminiCli
            | Target::Pi => Off::TakenOut,
        }
    }

    /// Our entry in the host's form.
    fn entry(self, command: &str) -> Json {
        match self {
            Target::ClaudeCode | Target::VsCode => {
                json!({ "type": "stdio", "command": command, "args": ["serve"] })
            }
            Target::Zed => json!({ "source": "custom", "command": command, "args": ["serve"] }),
            Target::Cursor
            | Target::Codex
            | Target::ClaudeDesktop
            | Target::GeminiCli
            | Target::Windsurf
            | Target::Pi => json!({ "command": command, "args": ["serve"] }),
        }
    }

    fn apply(self, text: &str, edits: &[Edit]) -> Result<String, EditError> {
        match self.syntax() {
            Syntax::Jsonc => edit::apply(text, edits),
            Syntax::Toml => toml::apply(text, edits),
        }
    }

    fn at(self, name: &str, change: Change) -> Edit {
        Edit::new([self.holder(), name], change)
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

/// The text with our entry in it, which runs `command`. One that is there stays as it is.
pub fn put_in(target: Target, text: &str, command: &str) -> Result<String, EditError> {
    if presence(target, text)? == Presence::Installed {
        return Ok(text.to_owned());
    }
    let mut edits = vec![target.at(NAME, Change::Set(target.entry(command)))];
    if target == Target::GeminiCli && edit::value_at(text, &ALLOWED)?.is_some() {
        edits.push(Edit::new(ALLOWED, Change::AddItem(NAME.into())));
    }
    target.apply(text, &edits)
}

/// The text without our entry.
pub fn take_out(target: Target, text: &str) -> Result<String, EditError> {
    let servers = servers(target, text)?;
    let ours = servers.iter().filter(|(_, entry)| is_ours(entry));
    let mut edits: Vec<Edit> = ours.map(|(name, _)| target.at(name, Change::Remove)).collect();
    if target == Target::GeminiCli && !edits.is_empty() {
        edits.push(Edit::new(ALLOWED, Change::RemoveItem(NAME.into())));
    }
    target.apply(text, &edits)
}

/// The text with these servers switched off.
pub fn switch_off(target: Target, text: &str, names: &[String]) -> Result<String, EditError> {
    let edit = |name: &String| match target.off() {
        Off::Flag(key, value) => Edit::new([target.holder(), name, key], Change::Set(value.into())),
        Off::TakenOut => target.at(name, Change::Remove),
    };
    target.apply(text, &names.iter().map(edit).collect::<Vec<_>>())
}

/// The text with these servers as they were in `before`: switched on, or put back. What somebody
/// wrote in their place, or took away, stays so.
pub fn switch_back(
    target: Target,
    text: &str,
    before: &str,
    names: &[String],
) -> Result<String, EditError> {
    let (now, then) = (servers(target, text)?, servers(target, before)?);
    let mut edits = Vec::new();
    for name in names {
        match (target.off(), now.get(name), then.get(name)) {
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

/// Only the servers that it names are used, if it is there.
const ALLOWED: [&str; 2] = ["mcp", "allowed"];

/// The entries of the file as they stand there.
fn servers(target: Target, text: &str) -> Result<Map<String, Json>, EditError> {
    let mut found = None;
    let source = Source { path: "".into(), tier: Tier::User };
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
    let mut root = match found {
        None => Map::new(),
        Some(Json::Object(root)) => root,
        Some(_) => {
            return Err(EditError::WrongType { key: "(root)".to_owned(), expected: "an object" });
        }
    };
    match root.shift_remove(target.holder()) {
        None => Ok(Map::new()),
        Some(Json::Object(servers)) => Ok(servers),
        Some(_) => {
            Err(EditError::WrongType { key: target.holder().to_owned(), expected: "an object" })
        }
    }
}

/// Whether an entry starts this gateway, in any form of a command that hosts have.
fn is_ours(entry: &Json) -> bool {
    let (command, args) = match entry.get("command") {
        Some(Json::Object(command)) => (command.get("path"), command.get("args")),
        command => (command, entry.get("args")),
    };
    let args = args.and_then(Json::as_array).into_iter().flatten();
    is_gateway(command.and_then(Json::as_str).unwrap_or_default(), args.filter_map(Json::as_str))
}

#[cfg(test)]
mod tests;
