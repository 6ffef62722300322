//! Parses configuration files of other hosts into the same entries as ours.
//!
//! Each host has one row in the table, which tells how its file differs from those of other hosts.
//! Keys that concern only the host are ignored without a diagnostic.

mod draft;
mod table;
mod variables;

use std::fmt;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::canonical::{Canon, Canonical};
use super::diagnostic::DiagnosticKind;
use super::install::format::{EntryFormat, ServerList};
use super::layers::{ConfigSource, Tier};
use super::parse::{ParsedFile, ParsedServer, has_room};
use super::reader::{ConfigReader, KeyedValue, Member, Read, join};
use super::syntax::{self, HOST_FILE_BYTES, OWN_FILE_BYTES, Syntax};
use super::values::choice;
use crate::name::ServerName;
use draft::Draft;

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
    /// The official spelling of the host's name.
    pub fn title(self) -> &'static str {
        self.row().title
    }

    pub(super) fn syntax(self) -> Syntax {
        self.row().syntax
    }

    pub(super) fn format(self) -> &'static EntryFormat {
        &self.row().install
    }
}

/// Parses one file of a host for the directory `project`. Our own entry in it is ignored, because a
/// gateway that starts itself would recurse without end.
pub fn parse(host: Host, text: &str, source: &ConfigSource, project: &str) -> ParsedFile {
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

/// The state while one host's file is parsed.
struct HostFile<'r, 't> {
    host: Host,
    /// The absolute path of the project directory.
    project: &'r str,
    reader: &'r mut ConfigReader<'t>,
    servers: Vec<ParsedServer>,
    left_out: Vec<String>,
}

impl HostFile<'_, '_> {
    /// Reads the servers in the object `key` of `root`, if it exists. Of duplicate names, the first
    /// is used.
    fn servers(&mut self, root: &Value<'_>, key: &'static str) {
        let Some(property) = root.as_object().and_then(|root| root.get(key)) else {
            return;
        };
        let input = KeyedValue { key, value: &property.value };
        let members = match self.host.format().listing {
            ServerList::ByName => self.reader.members(input),
            ServerList::Array => self.named_elements(input),
        };
        for member in members.into_iter().flatten() {
            if !self.server((key, &member)) {
                return;
            }
        }
    }

    /// The elements of an array that have a `name`, as members with that name.
    fn named_elements<'v>(&mut self, input: KeyedValue<'v>) -> Read<Vec<Member<'v>>> {
        let Value::Array(array) = input.value else {
            return Err(self.reader.wrong_type(input, "an array of tables"));
        };
        let named = |value: &'v Value<'v>| {
            let name = value.as_object()?.get_string("name")?.value.as_ref();
            let (offset, twice) = (value.range().start, false);
            Some(Member { name, key: join(input.key, name), offset, value, twice })
        };
        Ok(array.elements.iter().filter_map(named).collect())
    }

    /// Reads one server; `false` if the limit of servers is reached.
    fn server(&mut self, (key, member): (&'static str, &Member<'_>)) -> bool {
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
        let draft = Draft::read(self, member);
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

    /// Disables the servers for whose names `is_off` is true. The list at `offset` of the file is
    /// recorded as the place where `disabled` was set.
    fn disable(&mut self, offset: usize, is_off: impl Fn(&str) -> bool) {
        for server in self.servers.iter_mut().filter(|server| is_off(&server.name)) {
            if !server.entry.is_disabled() {
                server.entry.disabled = Some(true);
                server.entry.origins.insert("disabled", self.reader.origin(offset));
            }
        }
    }
}
