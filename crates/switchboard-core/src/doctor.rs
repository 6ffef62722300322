//! Findings about the servers of a configuration, each with its remedies.
//!
//! This module checks the configuration alone; the engine checks the disk and reports with the same
//! types.

pub mod hidden_text;

use std::collections::BTreeMap;

use self::hidden_text::HiddenPlaces;
use crate::catalog::resolve::nearest;
use crate::config::diagnostic::{self, Diagnostic, DiagnosticKind};
use crate::config::expand::{self, ExpandError, Surroundings};
use crate::config::install::Target;
use crate::config::layers::{Config, PendingCause};
use crate::config::server::ServerEntry;
use crate::config::values::Template;
use crate::failure::{Code, Failure, Hint};
use crate::name::{ServerName, look};
use crate::pi::findings::PiFault;
use crate::render::words::list;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something does not work.
    Error,
    /// Something does not work until the user acts, or is less safe than it should be.
    Warning,
    /// Information only.
    Note,
}

impl Level {
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Note => "note",
        }
    }
}

/// One finding.
#[derive(Clone, Debug)]
pub struct Finding {
    /// `None` if it concerns all servers.
    pub server: Option<String>,
    pub fault: Fault,
}

/// Whether the log of a server has content, which may say why the installation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    Empty,
    Written,
}

/// Values of variables, arguments and headers are never part of a message.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    #[error("{}:{}:{}: {}", .0.path.as_deref().unwrap_or_default(), .0.line, .0.column, .0.kind)]
    Config(Diagnostic),
    #[error("its name looks like `{other}`")]
    CollidingNames { other: String },
    #[error("its tool `{tool}` has the prefix of `{other}`, so it is shown as `{shown}`")]
    ForeignPrefix { tool: String, shown: String, other: String },
    /// Their tools cannot be told apart by name.
    #[error("it has tools of the same names as `{other}`, and neither shows a prefix: {}", list(.tools, 3))]
    SharedNames { other: String, tools: Vec<String> },
    #[error("the `{list}` rule `{pattern}` matches no known tool")]
    UnmatchedRule { list: &'static str, pattern: String, nearest: Option<String> },
    #[error("{0}")]
    HiddenText(HiddenPlaces),
    #[error("left out because of hidden characters in names: {}", list(.0, 3))]
    ShadowedNames(Vec<String>),
    #[error("the entry disables it")]
    Disabled,
    #[error("it comes from this project and {cause}")]
    Untrusted { cause: PendingCause },
    #[error("`{field}` needs the environment variable `{name}`, which is not set")]
    MissingVariable { field: String, name: String },
    #[error(
        "{} starts Switchboard without the environment variable `{name}`, which `{path}` does not \
         pass on",
        host.title()
    )]
    NotPassedOn { host: Target, path: String, name: String },
    /// That file could only contain the value as plain text.
    #[error(
        "{} starts Switchboard without the environment variable `{name}`, and `{path}` cannot name \
         one to pass on",
        host.title()
    )]
    NeverPassedOn { host: Target, path: String, name: String },
    #[error("`{field}` cannot be expanded")]
    BadValue {
        field: String,
        #[source]
        cause: ExpandError,
    },
    #[error("there is no program `{command}`")]
    CommandNotFound { command: String, nearest: Vec<String> },
    #[error("there is no `{command}`, which comes with {product}")]
    LauncherMissing { command: String, product: &'static str },
    #[error("`{field}` comes from the program `{command}`, which cannot be run")]
    HelperNotFound { field: String, command: String },
    #[error("`{launcher}` is not needed: `{program}` runs instead of it")]
    Launched { launcher: String, program: String },
    #[error("`{launcher}` installs or locates it at the next start")]
    NotInstalled { launcher: String, log: Log },
    #[error("`{launcher}` starts it and keeps running")]
    Attended { launcher: String },
    #[error("`{path}` cannot be run: it is not executable")]
    NotExecutable { path: String },
    #[error("there is no directory `{path}` to run in")]
    WorkingDirectory { path: String },
    #[error("its cached listing is older than 7 days and is no longer used")]
    ExpiredCache,
    #[error("cannot parse its listing file `{path}`")]
    DamagedCache { path: String },
    #[error("cannot parse its pin file `{path}`")]
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
}

impl Finding {
    pub fn of(server: &str, fault: Fault) -> Finding {
        Finding { server: Some(server.to_owned()), fault }
    }

    /// Whether the user should act.
    pub fn is_fault(&self) -> bool {
        self.fault.level() != Level::Note
    }

    /// The remedies, most useful first.
    pub fn hints(&self) -> Vec<Hint> {
        let server = self.server.as_deref().and_then(|name| ServerName::new(name).ok());
        let about = |hint: fn(ServerName) -> Hint| server.clone().map(hint).into_iter().collect();
        match &self.fault {
            Fault::Config(Diagnostic { level: diagnostic::Level::Note, .. }) => Vec::new(),
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
            Fault::NotInstalled { log: Log::Written, .. } => {
                let hints: [Vec<Hint>; 2] = [about(Hint::Connect), about(Hint::ReadLog)];
                hints.concat()
            }
            Fault::ExpiredCache
            | Fault::DamagedCache { .. }
            | Fault::NotInstalled { log: Log::Empty, .. } => about(Hint::Connect),
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
        match self {
            Fault::Pi(fault) => fault.level(),
            Fault::Config(Diagnostic { level: diagnostic::Level::Warning, .. })
            | Fault::CollidingNames { .. }
            | Fault::ForeignPrefix { .. }
            | Fault::SharedNames { .. }
            | Fault::UnmatchedRule { nearest: Some(_), .. }
            | Fault::HiddenText(_)
            | Fault::ShadowedNames(_)
            | Fault::NotPassedOn { .. }
            | Fault::Untrusted { .. }
            | Fault::DamagedCache { .. }
            | Fault::OpenDirectory { .. } => Level::Warning,
            Fault::Config(Diagnostic { level: diagnostic::Level::Note, .. })
            | Fault::Disabled
            // The rule may be for a server of another project.
            | Fault::UnmatchedRule { nearest: None, .. }
            | Fault::NeverPassedOn { .. }
            | Fault::ExpiredCache
            | Fault::Launched { .. }
            | Fault::NotInstalled { .. }
            | Fault::Attended { .. } => Level::Note,
            Fault::Config(Diagnostic { level: diagnostic::Level::Error, .. })
            | Fault::MissingVariable { .. }
            | Fault::BadValue { .. }
            | Fault::CommandNotFound { .. }
            | Fault::LauncherMissing { .. }
            | Fault::HelperNotFound { .. }
            | Fault::NotExecutable { .. }
            | Fault::WorkingDirectory { .. }
            | Fault::DamagedPins { .. }
            | Fault::DamagedTrust { .. }
            | Fault::NoDirectory { .. }
            | Fault::Unusable(_) => Level::Error,
        }
    }

    /// The total number of items, if the message names only some of them.
    pub fn count(&self) -> Option<usize> {
        match self {
            Fault::HiddenText(places) => Some(places.count()),
            Fault::ShadowedNames(names) | Fault::SharedNames { tools: names, .. } => {
                Some(names.len())
            }
            _ => None,
        }
    }

    /// The stable code for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Fault::Config(diagnostic) => config_code(&diagnostic.kind),
            Fault::CollidingNames { .. } => "colliding_names",
            Fault::ForeignPrefix { .. } => "foreign_prefix",
            Fault::SharedNames { .. } => "shared_names",
            Fault::UnmatchedRule { .. } => "unmatched_rule",
            Fault::HiddenText(_) => "hidden_text",
            Fault::ShadowedNames(_) => "shadowed_names",
            Fault::Disabled => "disabled",
            Fault::Untrusted { .. } => "untrusted",
            Fault::MissingVariable { .. } => "missing_variable",
            Fault::NotPassedOn { .. } | Fault::NeverPassedOn { .. } => "variable_not_passed_on",
            Fault::BadValue { .. } => "bad_value",
            Fault::CommandNotFound { .. } => "command_not_found",
            Fault::LauncherMissing { .. } => "launcher_missing",
            Fault::HelperNotFound { .. } => "helper_not_found",
            Fault::Launched { .. } => "launcher_passed_by",
            Fault::NotInstalled { .. } => "launcher_asked",
            Fault::Attended { .. } => "launcher_stays",
            Fault::NotExecutable { .. } => "not_executable",
            Fault::WorkingDirectory { .. } => "no_working_directory",
            Fault::ExpiredCache => "expired_cache",
            Fault::DamagedCache { .. } => "damaged_cache",
            Fault::DamagedPins { .. } => "damaged_pins",
            Fault::DamagedTrust { .. } => "damaged_trust",
            Fault::OpenDirectory { .. } => "open_directory",
            Fault::NoDirectory { .. } => Code::Storage.as_str(),
            Fault::Pi(fault) => fault.code(),
            Fault::Unusable(failure) => failure.code.as_str(),
        }
    }
}

fn config_code(kind: &DiagnosticKind) -> &'static str {
    match kind {
        DiagnosticKind::Syntax { .. } | DiagnosticKind::Empty => "config_syntax",
        DiagnosticKind::Unreadable { .. } | DiagnosticKind::FileTooLarge { .. } => {
            "config_unreadable"
        }
        DiagnosticKind::UnknownKey { .. } | DiagnosticKind::MisspeltRule { .. } => "unknown_key",
        DiagnosticKind::NoEffect { .. } | DiagnosticKind::Unused { .. } => "no_effect",
        DiagnosticKind::DuplicateKey { .. } | DiagnosticKind::GivenTwice { .. } => "duplicate_key",
        DiagnosticKind::ForbiddenInProject { .. } => "forbidden_key",
        DiagnosticKind::NoEndpoint { .. } => "no_endpoint",
        DiagnosticKind::SeveralEndpoints { .. } => "several_endpoints",
        DiagnosticKind::InvalidProtocol { .. } => "unsupported_scheme",
        DiagnosticKind::BadName { .. } => "bad_name",
        DiagnosticKind::InvalidMcpConfig { problem } => config_code(problem),
        DiagnosticKind::OnlyInHost { .. } => "only_in_host",
        DiagnosticKind::LentToOtherArguments { .. } => "other_arguments",
        DiagnosticKind::TooManyProblems { .. }
        | DiagnosticKind::TooManyEntries { .. }
        | DiagnosticKind::WrongType { .. }
        | DiagnosticKind::NotAChoice { .. }
        | DiagnosticKind::NotAnAuth { .. }
        | DiagnosticKind::OutOfRange { .. }
        | DiagnosticKind::MissingKey { .. }
        | DiagnosticKind::Gateway { .. }
        | DiagnosticKind::OpenQuote { .. }
        | DiagnosticKind::BadId { .. }
        | DiagnosticKind::DuplicateId { .. }
        | DiagnosticKind::FileOfVariables { .. }
        | DiagnosticKind::TooMuchToApprove { .. }
        | DiagnosticKind::TypeMismatch { .. } => "bad_value",
    }
}

/// The findings about the configuration alone: its errors, names, pending and disabled servers, and
/// unset variables. Nothing of a pending server is expanded.
pub fn examine(config: &Config, with: &Surroundings<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = config.diagnostics.iter().map(of_diagnostic).collect();
    findings.extend(names(config));
    for pending in &config.pending {
        let fault = match pending.definition.is_disabled() {
            true => Fault::Disabled,
            false => Fault::Untrusted { cause: pending.cause },
        };
        findings.push(Finding::of(&pending.name, fault));
    }
    for (name, server) in &config.servers {
        if server.definition.is_disabled() {
            findings.push(Finding::of(name, Fault::Disabled));
            continue;
        }
        let faults = values(&server.definition, with).into_iter();
        findings.extend(faults.map(|fault| Finding::of(name, fault)));
    }
    findings
}

fn of_diagnostic(diagnostic: &Diagnostic) -> Finding {
    let server = match &diagnostic.kind {
        DiagnosticKind::NoEndpoint { server }
        | DiagnosticKind::Unused { server, .. }
        | DiagnosticKind::LentToOtherArguments { server, .. }
        | DiagnosticKind::Gateway { server }
        | DiagnosticKind::SeveralEndpoints { server }
        | DiagnosticKind::InvalidProtocol { server }
        | DiagnosticKind::OpenQuote { server }
        | DiagnosticKind::TooMuchToApprove { server, .. }
        | DiagnosticKind::TypeMismatch { server, .. } => Some(server.clone()),
        DiagnosticKind::Syntax { .. }
        | DiagnosticKind::Unreadable { .. }
        | DiagnosticKind::FileTooLarge { .. }
        | DiagnosticKind::TooManyProblems { .. }
        | DiagnosticKind::TooManyEntries { .. }
        | DiagnosticKind::WrongType { .. }
        | DiagnosticKind::NotAChoice { .. }
        | DiagnosticKind::NotAnAuth { .. }
        | DiagnosticKind::OutOfRange { .. }
        | DiagnosticKind::MissingKey { .. }
        | DiagnosticKind::UnknownKey { .. }
        | DiagnosticKind::DuplicateKey { .. }
        | DiagnosticKind::GivenTwice { .. }
        | DiagnosticKind::MisspeltRule { .. }
        | DiagnosticKind::Empty
        | DiagnosticKind::NoEffect { .. }
        | DiagnosticKind::BadName { .. }
        | DiagnosticKind::BadId { .. }
        | DiagnosticKind::DuplicateId { .. }
        | DiagnosticKind::InvalidMcpConfig { .. }
        | DiagnosticKind::OnlyInHost { .. }
        | DiagnosticKind::FileOfVariables { .. }
        | DiagnosticKind::ForbiddenInProject { .. } => None,
    };
    Finding { server, fault: Fault::Config(diagnostic.clone()) }
}

fn names(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let pending = config.pending.iter().map(|pending| pending.name.as_str());
    for name in config.servers.keys().map(String::as_str).chain(pending) {
        let other = *seen.entry(look(name)).or_insert(name);
        if other != name {
            let other = other.to_owned();
            findings.push(Finding::of(name, Fault::CollidingNames { other }));
        }
    }
    findings
}

/// Reports each variable once, with the first field that needs it.
fn values(entry: &ServerEntry, with: &Surroundings<'_>) -> Vec<Fault> {
    let plain = [("command", &entry.command), ("cwd", &entry.cwd)];
    let plain = plain.into_iter().filter_map(|(field, value)| Some((field, value.as_ref()?)));
    let args = entry.args.iter().flatten().map(|arg| ("args", arg));
    let mut outcomes: Vec<(String, Result<(), ExpandError>)> = plain
        .chain(args)
        .map(|(field, value)| (field.to_owned(), expand::expand(value, with).map(drop)))
        .collect();
    let url =
        entry.url.iter().map(|url| ("url".to_owned(), expand::expand_url(url, with).map(drop)));
    outcomes.extend(url);
    let secret =
        |field: String, value: &Template| (field, expand::expand_value(value, with).map(drop));
    let env = entry.env.iter().flat_map(|map| map.iter());
    outcomes.extend(env.map(|(name, value)| secret(format!("env.{name}"), value)));
    let headers = entry.headers.iter().flat_map(|map| map.iter());
    outcomes.extend(headers.map(|(name, value)| secret(format!("headers.{name}"), value)));
    outcomes.extend(entry.bearer_token.iter().map(|value| secret("bearerToken".into(), value)));
    if let Some(name) = &entry.bearer_token_env
        && (with.variable)(name).is_none()
    {
        let missing = ExpandError::MissingVariable { name: name.clone() };
        outcomes.push(("bearerTokenEnv".to_owned(), Err(missing)));
    }
    let mut named = Vec::new();
    let mut faults = Vec::new();
    for (field, outcome) in outcomes {
        match outcome {
            Ok(()) => {}
            Err(ExpandError::MissingVariable { name }) => {
                if !named.contains(&name) {
                    named.push(name.clone());
                    faults.push(Fault::MissingVariable { field, name });
                }
            }
            Err(cause) => faults.push(Fault::BadValue { field, cause }),
        }
    }
    faults
}

/// Launchers, each with the product that contains it.
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

/// The remedy for a program that was not found. A whole command line in `command` is a common
/// mistake.
pub fn check_command(command: &str) -> Hint {
    match command.trim().split_once(char::is_whitespace) {
        // A directory in a path may contain a blank.
        Some((program, _)) if !program.contains(['/', '\\']) => {
            Hint::SplitCommand(program.to_owned())
        }
        Some(_) | None => Hint::CheckCommand(command.to_owned()),
    }
}

/// A program that was not found: a known launcher, or perhaps a misspelt name.
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
