//! Problems in a configuration file, with their positions.

use std::fmt;
use std::sync::Arc;

use super::hosts::Host;
use super::layers::ConfigOrigin;
use crate::name::NameError;
use crate::spelled::spelled_enum;

/// The settings and fields that decide which tools may be called.
pub(super) const RULES: &[&str] = &["allow", "deny", "approve", "approveTools", "pins"];

/// The schemes that a `url` may have.
const SCHEMES: &str = "http://, https://, sse://, ws:// or wss://";

/// The key of a problem that concerns the whole file.
pub(super) const ROOT: &str = "(root)";

/// A problem in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub level: Level,
    pub path: Option<Arc<str>>,
    /// The line of the problem, counted from 1.
    pub line: u32,
    /// The column of the problem in characters, counted from 1.
    pub column: u32,
    pub kind: DiagnosticKind,
}

impl Diagnostic {
    pub(super) fn at(origin: &ConfigOrigin, level: Level, kind: DiagnosticKind) -> Diagnostic {
        let ConfigOrigin { path, line, column } = origin.clone();
        Diagnostic { level, path: Some(path), line, column, kind }
    }

    /// The problem of a file that exists but cannot be read.
    pub fn unreadable(path: &str, reason: &str) -> Diagnostic {
        let origin = ConfigOrigin { path: path.into(), line: 1, column: 1 };
        let kind = DiagnosticKind::Unreadable { reason: reason.to_owned() };
        Diagnostic::at(&origin, Level::Error, kind)
    }

    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }

    /// Whether this problem makes the allow and deny rules unknown.
    pub fn hides_rules(&self) -> bool {
        let key = match &self.kind {
            DiagnosticKind::WrongType { key, .. }
            | DiagnosticKind::NotAChoice { key, .. }
            | DiagnosticKind::NotAnAuth { key, .. }
            | DiagnosticKind::OutOfRange { key, .. }
            | DiagnosticKind::GivenTwice { key }
            | DiagnosticKind::TooManyEntries { key, .. } => key,
            // A problem beyond the limit is not listed, and may concern a rule.
            DiagnosticKind::TooManyProblems { .. } => return true,
            // A misspelt rule in a server's entry concerns only that server, whose entry is
            // refused.
            DiagnosticKind::MisspeltRule { rule, .. } => {
                return rule == "mcpServers" || rule.starts_with("settings");
            }
            kind => return kind.invalidates_file(),
        };
        let setting = key.strip_prefix("settings.").unwrap_or_default();
        let setting = setting.split('[').next().unwrap_or_default();
        ["settings", "mcpServers", "mcp-servers"].contains(&key.as_str())
            || RULES.contains(&setting)
            || self.kind.invalidates_file()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}:")?;
        }
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.level.as_str(), self.kind)
    }
}

spelled_enum! {
    /// How serious a problem is.
    pub enum Level {
        /// Part of the configuration does not work.
        Error = "error",
        /// Part of the configuration does not work until the user acts, or is less safe than it
        /// should be.
        Warning = "warning",
        /// Information without a need to act; shown on request.
        Note = "note",
    }
}

/// A kind of problem in a configuration file. Keys are shortened paths such as
/// `mcpServers.github.env.TOKEN`. Values are never shown, except where only a fixed list of words
/// is allowed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiagnosticKind {
    #[error("{clause}")]
    Syntax { clause: String },
    #[error("the file cannot be read: {reason}")]
    Unreadable { reason: String },
    #[error("the file is larger than {limit} bytes")]
    FileTooLarge { limit: usize },
    #[error("more than {limit} problems; further ones are not shown")]
    TooManyProblems { limit: usize },
    #[error("{} has more than {limit} entries", shown_key(key))]
    TooManyEntries { key: String, limit: usize },
    #[error("{} must be {expected}, found {found}", shown_key(key))]
    WrongType { key: String, expected: &'static str, found: &'static str },
    #[error("`{key}` must be one of {}, found `{found}`", list(choices))]
    NotAChoice { key: String, choices: &'static [&'static str], found: String },
    /// The found value is not shown, because it may be a token in the wrong place.
    #[error("`{key}` must be one of {}", list(choices))]
    NotAnAuth { key: String, choices: &'static [&'static str] },
    #[error("`{key}` must be {expected}")]
    OutOfRange { key: String, expected: &'static str },
    #[error("`{key}` is missing")]
    MissingKey { key: String },
    #[error("unknown key `{key}`{}", suggestion(*nearest))]
    UnknownKey { key: String, nearest: Option<&'static str> },
    /// The key belongs to another program that reads the same file.
    #[error("`{key}` has no effect in Switchboard")]
    NoEffect { key: String },
    #[error("`{key}` of server `{server}` has no effect beside `{endpoint}`")]
    Unused { server: String, key: &'static str, endpoint: &'static str },
    #[error("`{key}` is given twice, the last one takes precedence")]
    DuplicateKey { key: String },
    /// A duplicate of a key that must be unique. Neither of the two values is used.
    #[error("`{key}` is given twice")]
    GivenTwice { key: String },
    /// A key that is probably a misspelt rule. It is an error and not a warning, because the rule
    /// would be ignored.
    #[error("unknown key `{key}`, did you mean `{rule}`?")]
    MisspeltRule { key: String, rule: String },
    #[error("the file is empty; write `{{}}` to configure nothing")]
    Empty,
    /// A key that only user files may set: a repository must not extend the trust that it has.
    #[error("`{key}` is not allowed in a project file")]
    ForbiddenInProject { key: String },
    #[error("`{key}` cannot be the name of a server: {problem}")]
    BadName { key: String, problem: NameError },
    #[error("{key}.id: must contain only alphanumeric characters, underscores and hyphens")]
    BadId { key: String },
    #[error("{key}: duplicate id '{id}'")]
    DuplicateId { key: String, id: String },
    /// A problem of `.pi/mcp-servers.json`, in the words that users of that format know.
    #[error("Invalid MCP config: {problem}")]
    InvalidMcpConfig { problem: Box<DiagnosticKind> },
    #[error("`{key}` uses `{variable}`, which only {} can expand: this server is ignored", host.title())]
    OnlyInHost { key: String, variable: String, host: Host },
    #[error(
        "`{key}` is unsupported: this server starts without the variables in the file that it names"
    )]
    FileOfVariables { key: String },
    #[error("server `{server}` needs one of `command`, `url` and `socket`")]
    NoEndpoint { server: String },
    /// The entry inherits a field that was set for other arguments. A token for one package must
    /// not be sent unnoticed to another package.
    #[error(
        "server `{server}` inherits its `{field}` from {path}:{line}, where it has other arguments: set `{field}` here too"
    )]
    InheritedDespiteOtherArguments {
        server: String,
        field: &'static str,
        path: Arc<str>,
        line: u32,
    },
    #[error("server `{server}` starts this gateway itself")]
    Gateway { server: String },
    #[error("server `{server}` must have only one of `command`, `url` and `socket`")]
    SeveralEndpoints { server: String },
    #[error("the `url` of server `{server}` must begin with {SCHEMES}")]
    InvalidProtocol { server: String },
    #[error("the `url` of server `{server}` is a command line with an open quote")]
    OpenQuote { server: String },
    /// The definition is too large for the user to review.
    #[error("server `{server}` cannot be approved: it has {what}")]
    TooMuchToApprove { server: String, what: &'static str },
    #[error("the `type` of server `{server}` does not match its `{endpoint}`")]
    TypeMismatch { server: String, endpoint: &'static str },
}

impl DiagnosticKind {
    /// Whether the whole file is ignored because of this problem.
    pub fn invalidates_file(&self) -> bool {
        match self {
            DiagnosticKind::Syntax { .. }
            | DiagnosticKind::Unreadable { .. }
            | DiagnosticKind::FileTooLarge { .. }
            | DiagnosticKind::Empty => true,
            DiagnosticKind::WrongType { key, .. } | DiagnosticKind::TooManyEntries { key, .. } => {
                key == ROOT
            }
            _ => false,
        }
    }
}

fn shown_key(key: &str) -> String {
    if key == ROOT { "the file".to_owned() } else { format!("`{key}`") }
}

fn list(choices: &[&str]) -> String {
    choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!(", did you mean `{nearest}`?")).unwrap_or_default()
}
