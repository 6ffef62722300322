//! The findings of `doctor`, each with its level, code and remedies.
//!
//! This crate checks only the configuration. The engine checks files and processes, and reports its
//! findings with the same types.

pub mod configuration;
pub mod hidden_text;

use std::time::Duration;

use self::hidden_text::HiddenPlaces;
use crate::catalog::resolve::nearest;
use crate::config::diagnostic::{Diagnostic, Level};
use crate::config::expand::ExpandError;
use crate::config::install::Target;
use crate::config::layers::PendingCause;
use crate::failure::{Code, Failure, Hint};
use crate::name::ServerName;
use crate::pi::findings::PiFault;
use crate::render::words::{self, list};

/// A fault or fact that `doctor` found, with the server that it concerns.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The name of the server; `None` if the finding concerns all servers.
    pub server: Option<String>,
    pub fault: Fault,
}

/// Whether a server's log has content, which may explain a failed installation or start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Empty,
    Written,
}

/// A problem or a fact that `doctor` reports. Values of variables, arguments and headers never
/// appear in the message.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    #[error("{}:{}:{}: {}", .0.path.as_deref().unwrap_or_default(), .0.line, .0.column, .0.kind)]
    Config(Diagnostic),
    #[error("the server name looks like `{other}`")]
    CollidingNames { other: String },
    #[error("the tool `{tool}` has the prefix of `{other}`, so it is shown as `{shown}`")]
    ForeignPrefix { tool: String, shown: String, other: String },
    /// The names do not show to which server a tool belongs.
    #[error(
        "the server has tools of the same names as `{other}`, and neither shows a prefix: {}",
        list(.tools, 3)
    )]
    SharedNames { other: String, tools: Vec<String> },
    #[error("the `{list}` rule `{pattern}` matches no known tool")]
    UnmatchedRule { list: &'static str, pattern: String, nearest: Option<String> },
    #[error("{0}")]
    HiddenText(HiddenPlaces),
    #[error("definitions skipped because of hidden characters in their names: {}", list(.0, 3))]
    ShadowedNames(Vec<String>),
    #[error("the entry disables this server")]
    Disabled,
    #[error("the server comes from this project and {cause}")]
    Untrusted { cause: PendingCause },
    #[error("`{field}` needs the environment variable `{name}`, which is not set")]
    MissingVariable { field: String, name: String },
    #[error(
        "{} starts Switchboard without the environment variable `{name}`, which `{path}` does not \
         pass on",
        host.title()
    )]
    NotPassedOn { host: Target, path: String, name: String },
    /// The host's file could contain the variable only with its value, as plain text.
    #[error(
        "{} starts Switchboard without the environment variable `{name}`, and `{path}` cannot name \
         a variable to pass on",
        host.title()
    )]
    NeverPassedOn { host: Target, path: String, name: String },
    #[error("`{field}` cannot be expanded")]
    BadValue {
        field: String,
        #[source]
        cause: ExpandError,
    },
    #[error("the program `{command}` was not found")]
    CommandNotFound { command: String, nearest: Vec<String> },
    #[error("`{command}` is not installed; it comes with {product}")]
    LauncherMissing { command: String, product: &'static str },
    #[error("`{field}` comes from the program `{command}`, which cannot be run")]
    HelperNotFound { field: String, command: String },
    #[error("`{launcher}` is not needed: `{program}` runs instead of it")]
    Launched { launcher: String, program: String },
    #[error("`{launcher}` installs or locates the server at the next start")]
    NotInstalled { launcher: String, log: Log },
    #[error("`{launcher}` starts the server and keeps running")]
    Attended { launcher: String },
    #[error("`{path}` cannot be run: it is not executable")]
    NotExecutable { path: String },
    #[error("the working directory `{path}` does not exist")]
    WorkingDirectory { path: String },
    #[error("the cached listing is older than 7 days and is no longer used")]
    ExpiredCache,
    #[error("cannot parse the listing file `{path}`")]
    DamagedCache { path: String },
    #[error("cannot parse the pin file `{path}`")]
    DamagedPins { path: String },
    #[error("cannot parse the approvals of project servers: {cause}")]
    DamagedTrust { path: String, cause: String },
    #[error("other users can access `{path}` (mode {mode:o})")]
    OpenDirectory { path: String, mode: u32 },
    #[error("`{path}` is not a directory")]
    NoDirectory { path: String },
    #[error(transparent)]
    Pi(#[from] PiFault),
    #[error("connecting failed: {0}")]
    Unusable(Failure),
    #[error("connecting failed {}: {reason}", words::ago(*ago))]
    FailedBefore { ago: Duration, reason: Box<str>, log: Log },
}

impl Finding {
    pub fn of(server: &str, fault: Fault) -> Finding {
        Finding { server: Some(server.to_owned()), fault }
    }

    /// Whether the user should act on the finding.
    pub fn is_fault(&self) -> bool {
        self.fault.level() != Level::Note
    }

    /// The remedies, the most useful one first.
    pub fn hints(&self) -> Vec<Hint> {
        let server = self.server.as_deref().and_then(|name| ServerName::new(name).ok());
        let about = |hint: fn(ServerName) -> Hint| server.clone().map(hint).into_iter().collect();
        match &self.fault {
            Fault::Config(Diagnostic { level: Level::Note, .. }) => Vec::new(),
            Fault::Config(Diagnostic { path, line, .. }) => {
                let path = path.as_deref().unwrap_or_default().to_owned();
                vec![Hint::Edit { path, line: *line }]
            }
            Fault::CollidingNames { .. } => vec![Hint::Rename],
            Fault::ForeignPrefix { .. } | Fault::HiddenText(_) | Fault::ShadowedNames(_) => {
                Vec::new()
            }
            Fault::SharedNames { .. } => vec![Hint::Correct("toolPrefix".to_owned())],
            Fault::UnmatchedRule { nearest, .. } => {
                nearest.iter().map(|nearest| Hint::DidYouMean(vec![nearest.clone()])).collect()
            }
            Fault::Disabled => about(Hint::Enable),
            Fault::Untrusted { .. } => about(Hint::Trust),
            Fault::MissingVariable { name, .. } => vec![Hint::SetVariable(name.clone())],
            Fault::NotPassedOn { host, .. } => vec![Hint::InstallIn(*host)],
            Fault::NeverPassedOn { .. } => Vec::new(),
            Fault::BadValue { field, .. } => vec![Hint::Correct(field.clone())],
            Fault::CommandNotFound { command, nearest } => {
                let close = Some(Hint::DidYouMean(nearest.clone())).filter(|_| !nearest.is_empty());
                close.into_iter().chain([check_command(command)]).collect()
            }
            Fault::HelperNotFound { command, .. } => vec![Hint::CheckCommand(command.clone())],
            Fault::LauncherMissing { product, .. } => vec![Hint::Install(product)],
            Fault::NotExecutable { path } => vec![Hint::MakeExecutable(path.clone())],
            Fault::WorkingDirectory { .. } => vec![Hint::Correct("cwd".to_owned())],
            Fault::NotInstalled { log: Log::Written, .. }
            | Fault::FailedBefore { log: Log::Written, .. } => {
                let hints: [Vec<Hint>; 2] = [about(Hint::Connect), about(Hint::ReadLog)];
                hints.concat()
            }
            Fault::ExpiredCache
            | Fault::DamagedCache { .. }
            | Fault::NotInstalled { log: Log::Empty, .. }
            | Fault::FailedBefore { log: Log::Empty, .. } => about(Hint::Connect),
            Fault::Launched { .. } | Fault::Attended { .. } => Vec::new(),
            Fault::DamagedPins { .. } => about(Hint::Accept),
            Fault::DamagedTrust { path, .. } | Fault::NoDirectory { path } => {
                vec![Hint::MoveAway(path.clone())]
            }
            Fault::OpenDirectory { path, .. } => vec![Hint::MakePrivate(path.clone())],
            Fault::Pi(fault) => fault.hints(),
            Fault::Unusable(failure) if failure.hints.is_empty() => about(Hint::ReadLog),
            Fault::Unusable(failure) => failure.hints.clone(),
        }
    }
}

impl Fault {
    pub fn level(&self) -> Level {
        self.level_and_code().0
    }

    /// The stable code of the finding, for programs.
    pub fn code(&self) -> &'static str {
        self.level_and_code().1
    }

    fn level_and_code(&self) -> (Level, &'static str) {
        match self {
            Fault::Config(diagnostic) => (diagnostic.level, configuration::code(&diagnostic.kind)),
            Fault::CollidingNames { .. } => (Level::Warning, "colliding_names"),
            Fault::ForeignPrefix { .. } => (Level::Warning, "foreign_prefix"),
            Fault::SharedNames { .. } => (Level::Warning, "shared_names"),
            // The rule may be meant for a server of another project.
            Fault::UnmatchedRule { nearest: None, .. } => (Level::Note, "unmatched_rule"),
            Fault::UnmatchedRule { nearest: Some(_), .. } => (Level::Warning, "unmatched_rule"),
            Fault::HiddenText(_) => (Level::Warning, "hidden_text"),
            Fault::ShadowedNames(_) => (Level::Warning, "shadowed_names"),
            Fault::Disabled => (Level::Note, "disabled"),
            Fault::Untrusted { .. } => (Level::Warning, "untrusted"),
            Fault::MissingVariable { .. } => (Level::Error, "missing_variable"),
            Fault::NotPassedOn { .. } => (Level::Warning, "variable_not_passed_on"),
            Fault::NeverPassedOn { .. } => (Level::Note, "variable_not_passed_on"),
            Fault::BadValue { .. } => (Level::Error, "bad_value"),
            Fault::CommandNotFound { .. } => (Level::Error, "command_not_found"),
            Fault::LauncherMissing { .. } => (Level::Error, "launcher_missing"),
            Fault::HelperNotFound { .. } => (Level::Error, "helper_not_found"),
            Fault::Launched { .. } => (Level::Note, "launcher_passed_by"),
            Fault::NotInstalled { .. } => (Level::Note, "launcher_asked"),
            Fault::Attended { .. } => (Level::Note, "launcher_stays"),
            Fault::NotExecutable { .. } => (Level::Error, "not_executable"),
            Fault::WorkingDirectory { .. } => (Level::Error, "no_working_directory"),
            Fault::ExpiredCache => (Level::Note, "expired_cache"),
            Fault::DamagedCache { .. } => (Level::Warning, "damaged_cache"),
            Fault::DamagedPins { .. } => (Level::Error, "damaged_pins"),
            Fault::DamagedTrust { .. } => (Level::Error, "damaged_trust"),
            Fault::OpenDirectory { .. } => (Level::Warning, "open_directory"),
            Fault::NoDirectory { .. } => (Level::Error, Code::Storage.as_str()),
            Fault::Pi(fault) => fault.level_and_code(),
            Fault::Unusable(failure) => (Level::Error, failure.code.as_str()),
            Fault::FailedBefore { .. } => (Level::Warning, "failed_before"),
        }
    }

    /// The total number of items, if the message names only some of them; otherwise `None`.
    pub fn count(&self) -> Option<usize> {
        match self {
            Fault::HiddenText(places) => Some(places.count()),
            Fault::ShadowedNames(names) | Fault::SharedNames { tools: names, .. } => {
                Some(names.len())
            }
            _ => None,
        }
    }
}

/// Launchers and interpreters, each with the product to install.
const LAUNCHERS: [(&str, &str); 11] = [
    ("npx", "Node.js"),
    ("npm", "Node.js"),
    ("node", "Node.js"),
    ("pnpm", "pnpm"),
    ("bun", "Bun"),
    ("bunx", "Bun"),
    ("uv", "uv"),
    ("uvx", "uv"),
    ("pipx", "pipx"),
    ("deno", "Deno"),
    ("docker", "Docker"),
];

/// The remedy for a program that was not found. Often `command` contains the whole command line.
pub fn check_command(command: &str) -> Hint {
    match command.trim().split_once(char::is_whitespace) {
        // A path may contain a blank in the name of a directory.
        Some((program, _)) if !program.contains(['/', '\\']) => {
            Hint::SplitCommand(program.to_owned())
        }
        Some(_) | None => Hint::CheckCommand(command.to_owned()),
    }
}

/// The finding about a program that does not exist. It may be a known launcher, or the name may be
/// misspelt.
pub fn not_found(command: &str, on_path: impl Iterator<Item = String>) -> Fault {
    match LAUNCHERS.iter().find(|(launcher, _)| *launcher == command) {
        Some((_, product)) => Fault::LauncherMissing { command: command.to_owned(), product },
        None => {
            let nearest = nearest(command, on_path);
            Fault::CommandNotFound { command: command.to_owned(), nearest }
        }
    }
}

#[cfg(test)]
mod tests;
