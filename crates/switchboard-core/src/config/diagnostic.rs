//! What is wrong in a configuration file, and where.

use std::fmt;
use std::sync::Arc;

use super::hosts::Host;
use crate::name::NameError;

/// The settings that decide what is called.
pub(super) const RULES: &[&str] = &["allow", "deny", "approve", "approveTools", "pins"];

/// The schemes that a `url` can have.
const SCHEMES: &str = "http://, https://, sse://, ws:// or wss://";

/// What stands in the place of a key for the whole file.
pub(super) const ROOT: &str = "(root)";

/// One problem of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub level: Level,
    pub path: Option<Arc<str>>,
    /// Counted from 1.
    pub line: u32,
    /// Counted from 1, in characters.
    pub column: u32,
    pub kind: DiagnosticKind,
}

impl Diagnostic {
    /// A file that is there but cannot be read.
    pub fn unreadable(path: &str, reason: &str) -> Diagnostic {
        Diagnostic {
            level: Level::Error,
            path: Some(path.into()),
            line: 1,
            column: 1,
            kind: DiagnosticKind::Unreadable { reason: reason.to_owned() },
        }
    }

    pub fn is_error(&self) -> bool {
        self.level == Level::Error
    }

    /// Whether it leaves open what the user allows and denies.
    pub fn hides_rules(&self) -> bool {
        let key = match &self.kind {
            DiagnosticKind::WrongType { key, .. }
            | DiagnosticKind::NotAChoice { key, .. }
            | DiagnosticKind::NotAnAuth { key, .. }
            | DiagnosticKind::OutOfRange { key, .. }
            | DiagnosticKind::GivenTwice { key }
            | DiagnosticKind::TooManyEntries { key, .. } => key,
            // Among those that are not shown may be one about a rule.
            DiagnosticKind::TooManyProblems { .. } => return true,
            // In the entry of a server it costs that server alone.
            DiagnosticKind::MisspeltRule { rule, .. } => {
                return rule == "mcpServers" || rule.starts_with("settings");
            }
            kind => return kind.spoils_the_file(),
        };
        let setting = key.strip_prefix("settings.").unwrap_or_default();
        let setting = setting.split('[').next().unwrap_or_default();
        ["settings", "mcpServers", "mcp-servers"].contains(&key.as_str())
            || RULES.contains(&setting)
            || self.kind.spoils_the_file()
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}:")?;
        }
        write!(f, "{}:{}: {}: {}", self.line, self.column, self.level, self.kind)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Error,
    Warning,
    /// Good to know for who asks.
    Note,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        })
    }
}

/// Keys are clipped paths such as `mcpServers.github.env.TOKEN`; values are never shown, except the
/// words of a closed list of choices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiagnosticKind {
    #[error("{clause}")]
    Syntax { clause: String },
    #[error("the file cannot be read: {reason}")]
    Unreadable { reason: String },
    #[error("the file is larger than {limit} bytes")]
    FileTooLarge { limit: usize },
    #[error("more than {limit} problems, the others are not shown")]
    TooManyProblems { limit: usize },
    #[error("{} has more than {limit} entries", Key(key))]
    TooManyEntries { key: String, limit: usize },
    #[error("{} must be {expected}, found {found}", Key(key))]
    WrongType { key: String, expected: &'static str, found: Found },
    #[error("`{key}` must be one of {}, found `{found}`", Choices(choices))]
    NotAChoice { key: String, choices: &'static [&'static str], found: String },
    /// Without what was found, which may be a token in the wrong place.
    #[error("`{key}` must be one of {}", Choices(choices))]
    NotAnAuth { key: String, choices: &'static [&'static str] },
    #[error("`{key}` must be {expected}")]
    OutOfRange { key: String, expected: &'static str },
    #[error("`{key}` is missing")]
    MissingKey { key: String },
    #[error("unknown key `{key}`{}", Nearest(nearest))]
    UnknownKey { key: String, nearest: Option<&'static str> },
    /// Another program that reads the file knows it.
    #[error("`{key}` has no effect here")]
    NoEffect { key: String },
    #[error("`{key}` of server `{server}` has no effect beside `{endpoint}`")]
    Unused { server: String, key: &'static str, endpoint: &'static str },
    #[error("`{key}` is given twice, the last one counts")]
    DuplicateKey { key: String },
    /// Neither of them is taken for what the user meant.
    #[error("`{key}` is given twice")]
    GivenTwice { key: String },
    /// A rule that is not read must not go unnoticed.
    #[error("unknown key `{key}`, where `{rule}` may be meant")]
    MisspeltRule { key: String, rule: String },
    #[error("the file is empty; write `{{}}` to configure nothing")]
    Empty,
    /// A repository must not decide how far it is trusted.
    #[error("`{key}` is not allowed in a project file")]
    ForbiddenInProject { key: String },
    #[error("`{key}` cannot be the name of a server: {problem}")]
    BadName { key: String, problem: NameError },
    #[error("{key}.id: must contain only alphanumeric characters, underscores and hyphens")]
    BadId { key: String },
    #[error("{key}: duplicate id '{id}'")]
    DuplicateId { key: String, id: String },
    /// A problem of a list of servers, in the words of that form.
    #[error("Invalid MCP config: {problem}")]
    InvalidMcpConfig { problem: Box<DiagnosticKind> },
    #[error("`{key}` asks for `{variable}`, which only {} can fill in: this server is left out", host.title())]
    OnlyInHost { key: String, variable: String, host: Host },
    #[error("`{key}` is not read: this server starts without its variables")]
    FileOfVariables { key: String },
    #[error("server `{server}` needs one of `command`, `url` and `socket`")]
    NoEndpoint { server: String },
    /// A token for one package must not go to another one unseen.
    #[error(
        "server `{server}` takes its `{field}` from {path}:{line}, where it has other arguments: give it one of its own here"
    )]
    LentToOtherArguments { server: String, field: &'static str, path: Arc<str>, line: u32 },
    #[error("server `{server}` would be this gateway itself")]
    Gateway { server: String },
    #[error("server `{server}` must have only one of `command`, `url` and `socket`")]
    SeveralEndpoints { server: String },
    #[error("the `url` of server `{server}` must begin with {SCHEMES}")]
    InvalidProtocol { server: String },
    #[error("the `url` of server `{server}` is a command line with an open quote")]
    OpenQuote { server: String },
    /// A question that nobody can answer is not asked.
    #[error("server `{server}` cannot be approved: it has {what}")]
    TooMuchToApprove { server: String, what: &'static str },
    #[error("the `type` of server `{server}` does not go with its `{endpoint}`")]
    TypeMismatch { server: String, endpoint: &'static str },
}

impl DiagnosticKind {
    /// Whether nothing of the file counts.
    pub fn spoils_the_file(&self) -> bool {
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

/// The JSON type that stood where another was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    String,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Found::String => "a string",
            Found::Number => "a number",
            Found::Boolean => "a boolean",
            Found::Null => "null",
            Found::Array => "an array",
            Found::Object => "an object",
        })
    }
}

struct Key<'a>(&'a str);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ROOT => f.write_str("the file"),
            key => write!(f, "`{key}`"),
        }
    }
}

struct Choices<'a>(&'a [&'static str]);

impl fmt::Display for Choices<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, choice) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}`{choice}`")?;
        }
        Ok(())
    }
}

struct Nearest<'a>(&'a Option<&'static str>);

impl fmt::Display for Nearest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nearest) => write!(f, ", did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}
