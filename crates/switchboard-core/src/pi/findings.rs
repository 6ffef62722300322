//! Findings about Pi: which of its files Switchboard reads, and whether our package is installed.

use crate::config::diagnostic::Level;
use crate::config::edit::EditError;
use crate::config::hosts::Host;
use crate::config::install::Target;
use crate::failure::Hint;
use crate::pi::settings::{PACKAGE, RIVAL};
use crate::render::words::{list, plural};

#[derive(Clone, Debug, thiserror::Error)]
pub enum PiFault {
    #[error("Switchboard reads Pi's `{path}`: {}{}", plural(*servers, "server"), imported(imports))]
    FileRead { path: String, servers: usize, imports: Vec<Host> },
    /// `pi-mcp-adapter` passed the whole environment on to servers.
    #[error(
        "{} of `{path}` {} only the environment variables in `env`, and a few such as `PATH`; \
        `inheritEnv: true` in an entry passes on all variables",
        plural(*servers, "server"),
        if *servers == 1 { "gets" } else { "get" }
    )]
    NarrowEnvironment { path: String, servers: usize },
    #[error("Pi's `{path}` is invalid")]
    Settings {
        path: String,
        #[source]
        cause: EditError,
    },
    /// Pi cannot load two packages that register the same command.
    #[error("Pi's `{path}` lists `{RIVAL}` beside `{PACKAGE}`: both register the command `/mcp`")]
    Both { path: String },
    #[error("Pi's `{path}` lists `{RIVAL}`, but not `{PACKAGE}`")]
    OnlyOther { path: String },
    #[error("`{path}` leaves Pi's built-in MCP support enabled beside `{PACKAGE}`")]
    BuiltInOn { path: String },
    #[error(
        "Pi's `{path}` loads `{PACKAGE}` from `{directory}`, but that directory does not exist"
    )]
    NoPackage { path: String, directory: String },
    #[error("`{PACKAGE}` in Pi starts `{program}`, which is not an executable file")]
    NoProgram { program: String },
    #[error("Switchboard uses the sign-in tokens that `{RIVAL}` stored for the server")]
    OlderTokens,
}

impl PiFault {
    pub(crate) fn level_and_code(&self) -> (Level, &'static str) {
        match self {
            PiFault::FileRead { .. } => (Level::Note, "pi_file"),
            PiFault::NarrowEnvironment { .. } => (Level::Note, "narrow_environment"),
            PiFault::Settings { .. } => (Level::Warning, "pi_settings"),
            PiFault::Both { .. } => (Level::Warning, "pi_other_package"),
            PiFault::OnlyOther { .. } => (Level::Note, "pi_other_package"),
            PiFault::BuiltInOn { .. } => (Level::Warning, "pi_built_in"),
            PiFault::NoPackage { .. } => (Level::Error, "pi_package"),
            PiFault::NoProgram { .. } => (Level::Error, "pi_program"),
            PiFault::OlderTokens => (Level::Note, "older_tokens"),
        }
    }

    pub(crate) fn hints(&self) -> Vec<Hint> {
        match self {
            PiFault::Settings { path, cause: EditError::Syntax { line, .. } } => {
                let line = u32::try_from(*line).unwrap_or(u32::MAX);
                vec![Hint::Edit { path: path.clone(), line }]
            }
            PiFault::Both { .. }
            | PiFault::OnlyOther { .. }
            | PiFault::BuiltInOn { .. }
            | PiFault::NoPackage { .. }
            | PiFault::NoProgram { .. } => vec![Hint::InstallIn(Target::Pi)],
            PiFault::FileRead { .. }
            | PiFault::NarrowEnvironment { .. }
            | PiFault::Settings { cause: EditError::WrongType { .. }, .. }
            | PiFault::OlderTokens => Vec::new(),
        }
    }
}

fn imported(hosts: &[Host]) -> String {
    if hosts.is_empty() {
        return String::new();
    }
    let titles: Vec<&str> = hosts.iter().map(|host| host.title()).collect();
    format!(", and those of {}", list(&titles, Host::ALL.len()))
}
