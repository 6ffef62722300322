//! Shows the definition of a pending server to the user for approval: every value as it is written,
//! and finally the command or URL that results.

use std::fmt::Write;

use super::words::{clean_line, visible};
use crate::config::layers::{PendingCause, PendingServer};
use crate::config::server::ServerEntry;
use crate::config::transport::Transport;
use crate::config::trust::reach;
use crate::config::values::{Template, TemplateMap};

/// The definition of a pending server, as shown for approval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingDefinition {
    /// The name of the server on one line, without control characters.
    pub name: String,
    /// The file with the server's entry, with line and column.
    place: String,
    cause: PendingCause,
    fields: Vec<(String, String)>,
}

/// A part of the shown definition that can have a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Name,
    Warning,
    Key,
}

impl PendingDefinition {
    /// Describes a pending server. `of_project` tells whether a file belongs to the project: values
    /// from its files are shown exactly. `covered` are the files that the approval covers.
    /// `not_covered` describes what the approval cannot cover.
    pub fn of(
        pending: &PendingServer,
        of_project: &dyn Fn(&str) -> bool,
        covered: &[&str],
        not_covered: &[String],
    ) -> PendingDefinition {
        let origin = &pending.origin;
        let place = origin.to_string();
        let set = fields(&pending.definition, of_project);
        let (does, keys): (&str, &[&str]) = match &pending.transport {
            Transport::Stdio { .. } => ("starts", &["command", "args"]),
            Transport::CommandLine { .. } => ("starts", &["url"]),
            Transport::Http { .. } | Transport::WebSocket { .. } => ("connects", &["url"]),
            Transport::Socket { .. } => ("connects", &["socket"]),
        };
        let line = set.iter().filter(|(key, _)| keys.contains(&key.as_str()));
        let line: Vec<&str> = line.map(|(_, value)| value.as_str()).collect();
        let line = spelled_out(&line.join(" "));
        let mut fields = vec![("transport".to_owned(), pending.transport.kind().to_owned())];
        fields.extend(set);
        let mut field = |key: &str, value: String| fields.push((key.to_owned(), value));
        let reach = reach(&pending.definition);
        if !reach.variables.is_empty() {
            let names: Vec<String> = reach.variables.iter().map(|name| visible(name)).collect();
            field("reads", names.join(", "));
        }
        for command in reach.commands {
            field("asks", quoted(&command));
        }
        if pending.definition.disabled == Some(false) {
            field("turns on", "this server, which your own configuration turns off".to_owned());
        }
        for file in covered {
            field("runs", format!("{}, as it is now", quoted(file)));
        }
        for what in not_covered {
            field("not covered", visible(what));
        }
        field(does, line);
        PendingDefinition {
            name: clean_line(&pending.name, 100).into_owned(),
            place: clean_line(&place, 1_000).into_owned(),
            cause: pending.cause,
            fields,
        }
    }

    /// Whether the user approved another definition of the server before.
    pub fn changed(&self) -> bool {
        self.cause == PendingCause::Changed
    }

    /// The definition as text for the user. Each part passes through `paint`, which can add a
    /// colour.
    pub fn text(&self, paint: impl Fn(Part, &str) -> String) -> String {
        let name = paint(Part::Name, &spelled_out(&self.name));
        let mut out = format!("{name} from {}\n", self.place);
        if self.changed() {
            let _ = writeln!(out, "  {}", paint(Part::Warning, "changed since you approved it"));
        }
        for (key, value) in &self.fields {
            let _ = writeln!(out, "  {} {value}", paint(Part::Key, &format!("{key:<12}")));
        }
        out
    }
}

/// All fields that are set. The fields that decide what runs or is connected come first, and are
/// shown exactly. All other fields, and fields from the user's own files, may contain secrets and
/// are shown as by `config show`.
fn fields(entry: &ServerEntry, of_project: &dyn Fn(&str) -> bool) -> Vec<(String, String)> {
    let text = |template: &Template| quoted(template.source());
    let map = |map: &TemplateMap| {
        let rows = map.iter().map(|(name, value)| format!("{} = {}", quoted(name), text(value)));
        rows.collect::<Vec<_>>().join(", ")
    };
    let args = entry.args.as_ref().map(|args| args.iter().map(text).collect::<Vec<_>>().join(" "));
    let exact = [
        ("command", entry.command.as_ref().map(text)),
        ("args", args),
        ("cwd", entry.cwd.as_ref().map(text)),
        ("env", entry.env.as_ref().map(map)),
        ("url", entry.url.as_ref().map(text)),
        ("headers", entry.headers.as_ref().map(map)),
    ];
    let is_exact =
        |key: &str| entry.origins.get(key).is_some_and(|origin| of_project(&origin.path));
    let mut masked = entry.show();
    let mut fields = Vec::new();
    for (key, value) in exact {
        let shown = masked.shift_remove(key).map(|json| visible(&json.to_string()));
        let value = value.filter(|_| is_exact(key)).or(shown);
        fields.extend(value.map(|value| (key.to_owned(), value)));
    }
    fields.extend(masked.into_iter().map(|(key, json)| (key, visible(&json.to_string()))));
    fields
}

/// The text in quotes. Invisible and control characters are shown as Rust escapes.
fn quoted(text: &str) -> String {
    visible(&format!("{text:?}"))
}

/// The text; if it is not ASCII, its code points follow, which reveal lookalike letters.
pub fn spelled_out(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let spell = |c: char| match c {
        c if c.is_ascii() => c.to_string(),
        c => c.escape_unicode().to_string(),
    };
    format!("{text} (spelled {})", text.chars().map(spell).collect::<String>())
}
