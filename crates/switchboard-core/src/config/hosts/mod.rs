//! Files of other hosts, read into the same entries as ours.
//!
//! Each host has a module that knows where its servers stand and what its keys mean; what only the
//! host itself needs is passed over without a word.

mod claude_code;
mod claude_desktop;
mod codex;
mod cursor;
mod draft;
mod gemini_cli;
mod opencode;
mod variables;
mod vscode;
mod windsurf;
mod zed;

use std::collections::HashSet;
use std::fmt;

use jsonc_parser::ast::Value;

use super::canonical::{Canon, Canonical};
use super::diagnostic::DiagnosticKind;
use super::layers::{Origin, Source, Tier};
use super::parse::{ParsedFile, ParsedServer, has_room};
use super::reader::Reader;
use super::syntax::{self, HOST_FILE_BYTES, OWN_FILE_BYTES, Syntax};
use super::values::choice;
use crate::name::ServerName;
use draft::{Draft, Meaning};
use variables::Dialect;

choice! {
    /// A program whose configuration can be read, too.
    pub enum Host {
        ClaudeCode = "claude-code",
        ClaudeDesktop = "claude-desktop",
        Cursor = "cursor",
        VsCode = "vscode",
        Codex = "codex",
        OpenCode = "opencode",
        Windsurf = "windsurf",
        Zed = "zed",
        GeminiCli = "gemini-cli",
    }
}

impl Host {
    pub const ALL: [Host; 9] = [
        Host::ClaudeCode,
        Host::ClaudeDesktop,
        Host::Cursor,
        Host::VsCode,
        Host::Codex,
        Host::OpenCode,
        Host::Windsurf,
        Host::Zed,
        Host::GeminiCli,
    ];

    /// Its name as its makers write it.
    pub fn title(self) -> &'static str {
        match self {
            Host::ClaudeCode => "Claude Code",
            Host::ClaudeDesktop => "Claude Desktop",
            Host::Cursor => "Cursor",
            Host::VsCode => "VS Code",
            Host::Codex => "Codex",
            Host::OpenCode => "OpenCode",
            Host::Windsurf => "Windsurf",
            Host::Zed => "Zed",
            Host::GeminiCli => "Gemini CLI",
        }
    }

    pub(super) fn syntax(self) -> Syntax {
        match self {
            Host::Codex => Syntax::Toml,
            Host::ClaudeCode
            | Host::ClaudeDesktop
            | Host::Cursor
            | Host::VsCode
            | Host::OpenCode
            | Host::Windsurf
            | Host::Zed
            | Host::GeminiCli => Syntax::Jsonc,
        }
    }
}

/// Reads one file of a host, as it holds in the directory `project`. Our own entry in it is passed
/// over: a gateway that starts itself would never end.
pub fn parse(host: Host, text: &str, source: &Source, project: &str) -> ParsedFile {
    let limit = match source.tier {
        Tier::User => HOST_FILE_BYTES,
        Tier::Project => OWN_FILE_BYTES,
    };
    let mut servers = Vec::new();
    let diagnostics = syntax::read((text, host.syntax()), source, limit, |reader, root| {
        let mut file = HostFile { host, project, reader, servers: Vec::new() };
        match host {
            Host::ClaudeCode => claude_code::read(&mut file, root),
            Host::ClaudeDesktop => claude_desktop::read(&mut file, root),
            Host::Cursor => cursor::read(&mut file, root),
            Host::VsCode => vscode::read(&mut file, root),
            Host::Codex => codex::read(&mut file, root),
            Host::OpenCode => opencode::read(&mut file, root),
            Host::Windsurf => windsurf::read(&mut file, root),
            Host::Zed => zed::read(&mut file, root),
            Host::GeminiCli => gemini_cli::read(&mut file, root),
        }
        servers = file.servers;
    });
    ParsedFile { servers, host: Some(host), diagnostics, ..ParsedFile::default() }
}

/// A host's file while it is read.
struct HostFile<'r, 't> {
    host: Host,
    /// The absolute path of the directory that we work in.
    project: &'r str,
    reader: &'r mut Reader<'t>,
    servers: Vec<ParsedServer>,
}

impl HostFile<'_, '_> {
    /// Reads the servers under `key` of `root`, if it is there. A name that was read before stays.
    fn servers(
        &mut self,
        root: &Value<'_>,
        key: &'static str,
        dialect: Dialect,
        meaning: fn(&str) -> Meaning,
    ) {
        let Some(property) = root.as_object().and_then(|root| root.get(key)) else {
            return;
        };
        let Ok(members) = self.reader.members(key, &property.value) else {
            return;
        };
        for member in members {
            if self.servers.iter().any(|server| server.name == member.name) {
                continue;
            }
            if !has_room(&self.servers, self.reader, (key, member.offset)) {
                return;
            }
            if let Err(problem) = ServerName::new(member.name) {
                let key = member.key.clone();
                self.reader.error(member.offset, DiagnosticKind::BadName { key, problem });
                continue;
            }
            let draft = Draft::read(self, &member, dialect, meaning);
            let Some(entry) = draft.and_then(Draft::finish) else { continue };
            let origin = self.reader.origin(member.offset);
            self.servers.push(ParsedServer { name: member.name.to_owned(), entry, origin });
        }
    }

    /// Marks the servers that are off as disabled, because of what stands at `origin`.
    fn disable(&mut self, origin: &Origin, is_off: impl Fn(&str) -> bool) {
        for server in self.servers.iter_mut().filter(|server| is_off(&server.name)) {
            if !server.entry.is_disabled() {
                server.entry.disabled = Some(true);
                server.entry.origins.insert("disabled", origin.clone());
            }
        }
    }
}

/// The texts of an array under `key`, and where it stands; anything else is not there.
fn names<'v>(object: &'v Value<'_>, key: &str) -> Option<(usize, HashSet<&'v str>)> {
    let property = object.as_object()?.get(key)?;
    let elements = property.value.as_array()?.elements.iter();
    let names = elements.filter_map(|name| Some(&*name.as_string_lit()?.value)).collect();
    Some((property.range.start, names))
}
