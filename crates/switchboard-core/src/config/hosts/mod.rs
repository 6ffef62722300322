//! Configuration files of other hosts, parsed into the same entries as ours.
//!
//! Each host has a module that knows where its servers are and what its keys mean. Keys that only
//! the host needs are ignored without a diagnostic.

mod amp;
mod claude_code;
mod claude_desktop;
mod cline;
mod codex;
mod copilot_cli;
mod crush;
mod cursor;
mod draft;
mod gemini_cli;
mod kiro;
mod opencode;
mod qwen_code;
mod roo;
mod variables;
mod vibe;
mod vscode;
mod windsurf;
mod zed;

use std::collections::HashSet;
use std::fmt;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::canonical::{Canon, Canonical};
use super::diagnostic::DiagnosticKind;
use super::install::form::Form;
use super::layers::{Origin, Source, Tier};
use super::parse::{ParsedFile, ParsedServer, has_room};
use super::reader::{Member, Reader, join};
use super::syntax::{self, HOST_FILE_BYTES, OWN_FILE_BYTES, Syntax};
use super::values::choice;
use crate::name::ServerName;
use draft::{Draft, Meaning};
use variables::Dialect;

choice! {
    /// A host whose configuration can be imported.
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
        CopilotCli = "copilot-cli",
        QwenCode = "qwen-code",
        Cline = "cline",
        Vibe = "vibe",
        Kiro = "kiro",
        Amp = "amp",
        Crush = "crush",
        Roo = "roo",
    }
}

impl Host {
    pub const ALL: [Host; 17] = [
        Host::ClaudeCode,
        Host::ClaudeDesktop,
        Host::Cursor,
        Host::VsCode,
        Host::Codex,
        Host::OpenCode,
        Host::Windsurf,
        Host::Zed,
        Host::GeminiCli,
        Host::CopilotCli,
        Host::QwenCode,
        Host::Cline,
        Host::Vibe,
        Host::Kiro,
        Host::Amp,
        Host::Crush,
        Host::Roo,
    ];

    /// The official spelling of its name.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    pub(super) fn syntax(self) -> Syntax {
        self.row().syntax
    }

    pub(super) fn form(self) -> &'static Form {
        &self.row().install
    }

    fn row(self) -> &'static Row {
        match self {
            Host::ClaudeCode => &claude_code::ROW,
            Host::ClaudeDesktop => &claude_desktop::ROW,
            Host::Cursor => &cursor::ROW,
            Host::VsCode => &vscode::ROW,
            Host::Codex => &codex::ROW,
            Host::OpenCode => &opencode::ROW,
            Host::Windsurf => &windsurf::ROW,
            Host::Zed => &zed::ROW,
            Host::GeminiCli => &gemini_cli::ROW,
            Host::CopilotCli => &copilot_cli::ROW,
            Host::QwenCode => &qwen_code::ROW,
            Host::Cline => &cline::ROW,
            Host::Vibe => &vibe::ROW,
            Host::Kiro => &kiro::ROW,
            Host::Amp => &amp::ROW,
            Host::Crush => &crush::ROW,
            Host::Roo => &roo::ROW,
        }
    }
}

/// The properties of a host's file.
struct Row {
    title: &'static str,
    syntax: Syntax,
    read: fn(&mut HostFile<'_, '_>, &Value<'_>),
    install: Form,
}

/// Reads one file of a host, as it applies in the directory `project`. Our own entry in it is
/// ignored: a gateway that starts itself would recurse without end.
pub fn parse(host: Host, text: &str, source: &Source, project: &str) -> ParsedFile {
    let limit = match source.tier {
        Tier::User => HOST_FILE_BYTES,
        Tier::Project => OWN_FILE_BYTES,
    };
    let (mut servers, mut left_out) = (Vec::new(), Vec::new());
    let diagnostics = syntax::read((text, host.syntax()), source, limit, |reader, root| {
        let mut file =
            HostFile { host, project, reader, servers: Vec::new(), left_out: Vec::new() };
        (host.row().read)(&mut file, root);
        (servers, left_out) = (file.servers, file.left_out);
    });
    ParsedFile { servers, left_out, host: Some(host), diagnostics, ..ParsedFile::default() }
}

/// The state of parsing one host's file.
struct HostFile<'r, 't> {
    host: Host,
    /// The absolute path of the project directory.
    project: &'r str,
    reader: &'r mut Reader<'t>,
    servers: Vec<ParsedServer>,
    left_out: Vec<String>,
}

impl HostFile<'_, '_> {
    /// Reads the servers under `key` of `root`, if it exists. Of duplicate names, the first stays.
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
            if !self.server((key, &member), dialect, meaning) {
                return;
            }
        }
    }

    /// Reads the servers of an array of objects, each with a `name`.
    fn listed(
        &mut self,
        root: &Value<'_>,
        key: &'static str,
        dialect: Dialect,
        meaning: fn(&str) -> Meaning,
    ) {
        let Some(property) = root.as_object().and_then(|root| root.get(key)) else {
            return;
        };
        let Value::Array(array) = &property.value else {
            self.reader.wrong_type(key, &property.value, "an array of tables");
            return;
        };
        for value in &array.elements {
            let name = value.as_object().and_then(|entry| entry.get_string("name"));
            let Some(name) = name.map(|name| name.value.as_ref()) else { continue };
            let (offset, twice) = (value.range().start, false);
            let member = Member { name, key: join(key, name), offset, value, twice };
            if !self.server((key, &member), dialect, meaning) {
                return;
            }
        }
    }

    /// Reads one server; false if the limit is reached.
    fn server(
        &mut self,
        (key, member): (&'static str, &Member<'_>),
        dialect: Dialect,
        meaning: fn(&str) -> Meaning,
    ) -> bool {
        if self.servers.iter().any(|server| server.name == member.name) {
            return true;
        }
        if !has_room(&self.servers, self.reader, (key, member.offset)) {
            return false;
        }
        if let Err(problem) = ServerName::new(member.name) {
            let key = member.key.clone();
            self.reader.error(member.offset, DiagnosticKind::BadName { key, problem });
            return true;
        }
        let draft = Draft::read(self, member, dialect, meaning);
        let name = member.name.to_owned();
        match draft.and_then(Draft::finish) {
            Some(entry) => {
                let origin = self.reader.origin(member.offset);
                self.servers.push(ParsedServer { name, entry, origin });
            }
            None => self.left_out.push(name),
        }
        true
    }

    /// Disables the servers for which `is_off` is true, and records `origin` as the reason.
    fn disable(&mut self, origin: &Origin, is_off: impl Fn(&str) -> bool) {
        for server in self.servers.iter_mut().filter(|server| is_off(&server.name)) {
            if !server.entry.is_disabled() {
                server.entry.disabled = Some(true);
                server.entry.origins.insert("disabled", origin.clone());
            }
        }
    }
}

/// The strings of an array under `key`, and its offset; `None` if there is no array.
fn names<'v>(object: &'v Value<'_>, key: &str) -> Option<(usize, HashSet<&'v str>)> {
    let property = object.as_object()?.get(key)?;
    let elements = property.value.as_array()?.elements.iter();
    let names = elements.filter_map(|name| Some(&*name.as_string_lit()?.value)).collect();
    Some((property.range.start, names))
}
