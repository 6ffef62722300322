//! Builds a gateway from the global flags, and shuts it down: no server outlives the command.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard::capabilities::CapabilitySet;
use switchboard::config::diagnostic::{Diagnostic, DiagnosticKind, Level};
use switchboard::config::layers::Config;
use switchboard::discover::{Discovery, discover};
use switchboard::edit::Editor;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::install::Installer;
use switchboard::load::{self, LoadOptions, Loaded};
use switchboard::paths::{self, Paths};
use switchboard::render::words::clean_line;
use switchboard::{Environment, Gateway, GatewayBuilder};

use crate::args::Globals;
use crate::call_args::Input;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::extension;
use crate::host::{Consent, Terminal};
use crate::printer::Printer;
use crate::report::{CommandResult, Stop};
use crate::signals::Signals;
use crate::spinner::Spinner;
use crate::style::Palette;

/// The state that every command starts with.
pub(crate) struct App {
    pub(crate) printer: Printer,
    pub(crate) environment: Environment,
    pub(crate) paths: Paths,
    /// The directory in which the command was typed. Files on the command line are relative to it.
    pub(crate) typed_in: PathBuf,
    load_options: LoadOptions,
}

/// How a command may call servers: with which consent, and within which time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) consent: Consent,
    /// The time limit of `--timeout`, which takes precedence over the configuration.
    pub(crate) timeout: Option<Duration>,
}

impl From<Consent> for Terms {
    fn from(consent: Consent) -> Terms {
        Terms { consent, timeout: None }
    }
}

impl Terms {
    /// A gateway that is shut down when the command ends.
    pub(crate) fn gateway(self, builder: GatewayBuilder) -> Gateway {
        let builder = builder.on_demand();
        match self.timeout {
            Some(timeout) => builder.timeout(timeout).build(),
            None => builder.build(),
        }
    }
}

/// Why a path of the global options cannot be used.
#[derive(Debug, thiserror::Error)]
enum GlobalsError {
    #[error("cannot use `{}` as the working directory", path.display())]
    Directory {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot read the pipe `{}`", path.display())]
    Pipe {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot parse `{}`, line {line}, column {column}", path.display())]
    Malformed {
        path: PathBuf,
        line: u32,
        column: u32,
        #[source]
        kind: DiagnosticKind,
    },
}

impl GlobalsError {
    fn with(self, code: Code) -> Failure {
        let (Self::Directory { path, .. } | Self::Pipe { path, .. } | Self::Malformed { path, .. }) =
            &self;
        let subject = Subject::Config { path: path.display().to_string() };
        Failure::new(code, subject, self)
    }
}

impl App {
    pub(crate) fn new(globals: &Globals, printer: Printer) -> Result<App, Failure> {
        let mut environment = Environment::of_process();
        let typed_in = environment.cwd.clone();
        let project = globals.cwd.as_deref().map_or(typed_in.clone(), |cwd| typed_in.join(cwd));
        // The path is made canonical, so that the approvals of a project are found again.
        environment.cwd = project.canonicalize().map_err(|cause| {
            GlobalsError::Directory { path: project, cause }.with(Code::BadRequest)
        })?;
        let config = globals.config.as_deref().map(|path| typed_in.join(path));
        let piped = config.as_deref().and_then(paths::read_pipe).transpose();
        let piped = piped.map_err(|cause| {
            let path = config.clone().unwrap_or_default();
            GlobalsError::Pipe { path, cause }.with(Code::Config)
        })?;
        let load_options =
            LoadOptions { config, piped: piped.map(Arc::from), project: environment.cwd.clone() };
        let paths = Paths::of(&environment);
        Ok(App { printer, environment, paths, typed_in, load_options })
    }

    /// Reads the files and the standard input that a command line names.
    pub(crate) fn input(&self) -> Input {
        Input::new(&self.typed_in, self.environment.home())
    }

    /// Edits the configuration files.
    pub(crate) fn editor(&self) -> Editor<'_> {
        Editor::new(&self.environment, &self.paths, self.load_options())
    }

    /// Edits the files of hosts.
    pub(crate) fn installer(&self) -> Installer<'_> {
        let (environment, paths) = (&self.environment, &self.paths);
        Installer::new(environment, paths, self.load_options(), extension::FILES)
    }

    /// Reads the configuration without printing warnings.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        load::load(&self.environment, &self.paths, &self.load_options).map_err(not_loaded)
    }

    /// Reads the configurations of other hosts.
    pub(crate) fn discover(&self) -> Result<Discovery, Failure> {
        discover(&self.environment, &self.paths, &self.load_options).map_err(not_loaded)
    }

    pub(crate) fn load_options(&self) -> LoadOptions {
        self.load_options.clone()
    }

    /// Reads the configuration, and prints its problems on standard error.
    pub(crate) fn load_and_warn(&self) -> Result<Loaded, Failure> {
        let loaded = self.load()?;
        self.warn_about(&loaded);
        Ok(loaded)
    }

    fn warn_about(&self, loaded: &Loaded) {
        let problems = loaded.config.diagnostics.iter().filter(|found| found.level != Level::Note);
        for diagnostic in problems {
            self.printer.note(&diagnostic_line(diagnostic, self.printer.err));
        }
        if let Some(problem) = &loaded.trust_problem {
            self.printer.warn(&clean_line(&problem.to_string(), 500));
        }
    }

    /// Reads the configuration with warnings. A file of `--config` that cannot be parsed is an error.
    pub(crate) fn load_strictly(&self) -> Result<Loaded, Failure> {
        let loaded = self.load()?;
        if let Some(path) = &self.load_options.config
            && let Some(diagnostic) = malformed(&loaded.config, path)
        {
            let Diagnostic { line, column, kind, .. } = diagnostic.clone();
            let error = GlobalsError::Malformed { path: path.clone(), line, column, kind };
            return Err(error.with(Code::Config));
        }
        self.warn_about(&loaded);
        Ok(loaded)
    }

    /// A gateway with the configured servers, or with the demo server if nothing is configured.
    pub(crate) fn gateway(&self, config: Config) -> GatewayBuilder {
        self.gateway_of(config).demo_if_empty()
    }

    /// A gateway with the servers of this configuration only. The offered capabilities depend only
    /// on the terminal, so that one command can call the tools that another command listed.
    pub(crate) fn gateway_of(&self, config: Config) -> GatewayBuilder {
        let gateway = Gateway::builder(self.environment.clone()).config(config);
        gateway.capabilities(capabilities(self.printer))
    }

    /// Runs `command` in a session. Servers start on demand, and all are stopped when the command
    /// ends, also if it fails or is interrupted.
    pub(crate) async fn with_session(
        &self,
        terms: Terms,
        command: impl AsyncFnOnce(&Conversation<'_>) -> CommandResult,
    ) -> CommandResult {
        let config = self.load_strictly()?.config;
        let is_malformed = malformed(&config, &self.paths.user_config()).is_some();
        let gateway = terms.gateway(self.gateway(config.clone()));
        let outcome = self.converse((gateway, config), terms.consent, command).await;
        if is_malformed { without_the_users_file(outcome) } else { outcome }
    }

    /// Runs `command` in a session on this gateway. All servers are stopped when the command ends,
    /// also if it fails or is interrupted.
    pub(crate) async fn converse(
        &self,
        (gateway, config): (Gateway, Config),
        consent: Consent,
        command: impl AsyncFnOnce(&Conversation<'_>) -> CommandResult,
    ) -> CommandResult {
        let mut signals = Signals::listen();
        let spinner = Spinner::new(self.printer);
        let host = Terminal::new(self.printer, spinner.clone(), consent);
        let conversation = Conversation::new(self, gateway.printing_session(host), config, spinner);
        let outcome = tokio::select! {
            outcome = command(&conversation) => outcome,
            () = signals.stop() => Ok(Exit::Interrupted),
        };
        drop(conversation);
        tokio::select! {
            () = gateway.shutdown() => outcome,
            () = signals.stop() => Ok(Exit::Interrupted),
        }
    }
}

/// The error that prevents parsing of the file at `path`; `None` if the file can be parsed.
fn malformed<'c>(config: &'c Config, path: &Path) -> Option<&'c Diagnostic> {
    config.diagnostics.iter().find(|found| {
        found.kind.invalidates_file() && found.path.as_deref().map(Path::new) == Some(path)
    })
}

/// The outcome of a command while the user's file cannot be parsed. Servers may be missing, so
/// success becomes an error, and misleading hints are replaced.
fn without_the_users_file(outcome: CommandResult) -> CommandResult {
    match outcome {
        Ok(Exit::Done) => Ok(Exit::Usage),
        Err(Stop::Failed(mut failure)) if failure.code.is_unknown_name() => {
            failure.hints = vec![Hint::CheckConfig];
            Err(Stop::Failed(failure))
        }
        outcome => outcome,
    }
}

/// The client capabilities that a command offers to servers: those of a terminal if the user can be
/// asked, otherwise none.
pub(crate) fn capabilities(printer: Printer) -> CapabilitySet {
    if printer.can_ask() { CapabilitySet::TERMINAL } else { CapabilitySet::NONE }
}

fn not_loaded(error: load::LoadError) -> Failure {
    let load::LoadError::Missing { path } = &error;
    let subject = Subject::Config { path: path.display().to_string() };
    Failure::new(Code::Config, subject, error).hint(Hint::ListFiles)
}

/// A problem of the configuration as text: `error: path:line:column: what is wrong`.
pub(crate) fn diagnostic_line(diagnostic: &Diagnostic, palette: Palette) -> String {
    let level = match diagnostic.level {
        Level::Error => palette.error("error:"),
        Level::Warning => palette.warning("warning:"),
        Level::Note => palette.aside("note:"),
    };
    let path = clean_line(diagnostic.path.as_deref().unwrap_or_default(), 500);
    let place = format!("{path}:{}:{}", diagnostic.line, diagnostic.column);
    let problem = diagnostic.kind.to_string();
    format!("{level} {}: {}", palette.name(place), clean_line(&problem, 1_000))
}
