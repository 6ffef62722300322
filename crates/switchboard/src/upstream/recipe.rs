//! The recipe of a server: everything that a dial uses.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::catalog::Era;
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::secrecy;
use switchboard_core::config::values::{Template, TemplateMap};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{DialError, DialStage};
use crate::dial::http::RemoteRecipe;
use crate::dial::in_process::InProcess;
use crate::dial::launch::{Launching, Ready};
use crate::dial::secret;
use crate::dial::socket::SocketRecipe;
use crate::dial::spawn::{Confinement, Program, Spawner};
use crate::directory::ListingPlan;
use crate::env::Environment;
use crate::host::Topic;
use crate::trust::Seal;

/// Everything that a dial needs to know about one server. Equal recipes share a connection.
#[derive(Debug, PartialEq)]
pub(crate) struct Recipe {
    pub(crate) transport: Transport,
    /// The era to try first; `None` uses the era of the stored listing.
    pub(crate) era: Option<Era>,
    pub(crate) start_timeout: Duration,
    /// How long a caller waits for an installation; `None` waits for its end.
    pub(crate) install_patience: Option<Duration>,
    pub(crate) request_timeout: Duration,
    pub(crate) max_frame_bytes: usize,
    pub(crate) max_pages: usize,
    pub(crate) max_tools: usize,
    /// The log file of the server's standard error; `None` for ad hoc servers, for which no file is
    /// written.
    pub(crate) log: Option<PathBuf>,
    /// The server-to-client requests that the configuration permits.
    pub(crate) askable: Vec<Topic>,
    /// How the server's lists are filtered and stored.
    pub(crate) plan: Arc<ListingPlan>,
    /// Whether the server's messages are logged regardless of the log level.
    pub(crate) debug: bool,
}

#[derive(PartialEq)]
pub(crate) enum Transport {
    Program(Box<ProgramRecipe>),
    InProcess(Arc<dyn InProcess>),
    Remote(Box<RemoteRecipe>),
    Socket(Box<SocketRecipe>),
}

/// A program as configured; variables are expanded when it starts.
#[derive(PartialEq)]
pub(crate) struct ProgramRecipe {
    pub(crate) words: CommandWords,
    pub(crate) env: TemplateMap,
    pub(crate) cwd: Option<Template>,
    /// Whether the program inherits the whole environment instead of a short list of uncritical
    /// variables.
    pub(crate) inherit_env: bool,
    pub(crate) confinement: Confinement,
    pub(crate) environment: Environment,
    /// The user's approval, if the server belongs to a project.
    pub(crate) seal: Option<Seal>,
    pub(crate) launching: Launching,
}

/// The command of a server and its arguments.
#[derive(PartialEq, Eq)]
pub(crate) enum CommandWords {
    Templates {
        command: Template,
        args: Vec<Template>,
    },
    /// A command line without variable expansion.
    Literal(Vec<String>),
}

impl Transport {
    /// The endpoint as configured, without secrets.
    pub(crate) fn shown(&self) -> String {
        match self {
            Transport::Program(program) => match &program.words {
                CommandWords::Templates { command, args } => secrecy::command_line(
                    std::iter::once(command).chain(args).map(Template::source),
                ),
                CommandWords::Literal(words) => {
                    secrecy::command_line(words.iter().map(String::as_str))
                }
            },
            Transport::InProcess(_) => "built in".to_owned(),
            Transport::Remote(remote) => secrecy::address(remote.url.source()),
            Transport::Socket(socket) => socket.path.source().to_owned(),
        }
    }

    /// Whether messages go over HTTP, with headers.
    pub(super) fn has_headers(&self) -> bool {
        matches!(self, Transport::Remote(remote) if remote.has_headers())
    }
}

/// An in-process server equals only itself.
impl PartialEq for dyn InProcess {
    fn eq(&self, other: &dyn InProcess) -> bool {
        std::ptr::addr_eq(self, other)
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Program(_) => "Program",
            Transport::InProcess(_) => "InProcess",
            Transport::Remote(_) => "Remote",
            Transport::Socket(_) => "Socket",
        })
    }
}

impl ProgramRecipe {
    /// The program to start, without its launcher where possible. Fails if the program is no longer
    /// the approved one.
    pub(crate) async fn ready(
        &self,
        spawner: &Arc<dyn Spawner>,
        stage: &watch::Sender<DialStage>,
    ) -> Result<Ready, DialError> {
        let (program, secret_commands) = self.program(spawner).await?;
        let ready = self.launching.resolve(spawner, stage, program.clone()).await?;
        // The approval is checked again: a secret may change which file runs, and files may have
        // changed while the secrets were read.
        self.check_seal(&program, &secret_commands).await?;
        Ok(ready)
    }

    /// The program with all variables expanded and all secrets read, and the commands that returned
    /// the secrets.
    async fn program(
        &self,
        spawner: &Arc<dyn Spawner>,
    ) -> Result<(Program, Vec<Vec<String>>), DialError> {
        let (mut program, commands) = self.environment.expanding(|with| self.fill(with))?;
        let secret_commands: Vec<Vec<String>> =
            commands.iter().map(|command| command.words.clone()).collect();
        self.check_seal(&program, &secret_commands).await?;
        if !program.cwd.is_dir() {
            return Err(DialError::WorkingDirectory { path: program.cwd });
        }
        let mut reading = JoinSet::new();
        for SecretCommand { name, helper, words } in commands {
            let secret_source = secret_program(&self.environment, words, &program.cwd);
            let secret = secret::ask(Arc::clone(spawner), secret_source);
            reading.spawn(async move { (name, helper, secret.await) });
        }
        while let Some(answered) = reading.join_next().await {
            let (name, helper, secret) = answered.map_err(|_| DialError::Unchecked)?;
            match secret {
                Ok(secret) => program.env.insert(name, secret.reveal()),
                Err(cause) => return Err(DialError::Secret { name, helper, cause }),
            };
        }
        Ok((program, secret_commands))
    }

    /// The program to start, without its secrets; `None` if a value cannot be expanded.
    pub(crate) fn draft(&self) -> Option<Program> {
        Some(self.environment.expanding(|with| self.fill(with)).ok()?.0)
    }

    async fn check_seal(
        &self,
        program: &Program,
        secret_commands: &[Vec<String>],
    ) -> Result<(), DialError> {
        let Some(seal) = self.seal.clone() else { return Ok(()) };
        let (program, secret_commands) = (program.clone(), secret_commands.to_vec());
        let checking = tokio::task::spawn_blocking(move || seal.check(&program, &secret_commands));
        Ok(checking.await.map_err(|_| DialError::Unchecked)??)
    }

    /// The program to start, and the commands that return its secrets.
    fn fill(&self, with: &Surroundings<'_>) -> Result<(Program, Vec<SecretCommand>), DialError> {
        let mut env: BTreeMap<String, String> = if self.inherit_env {
            owned(self.environment.all())
        } else {
            owned(self.environment.for_servers())
        };
        let mut commands = Vec::new();
        for (name, value) in self.env.iter() {
            match expand::expand_value(value, with)? {
                Expanded::Text(text) => drop(env.insert(name.to_owned(), text)),
                Expanded::Command(words) => {
                    let helper = value.program().unwrap_or_default();
                    commands.push(SecretCommand { name: name.to_owned(), helper, words });
                }
            }
        }
        if self.seal.is_some() {
            // Compiled code beside a module would change the approved directory, so Python must not
            // write any.
            env.entry("PYTHONDONTWRITEBYTECODE".to_owned()).or_insert_with(|| "1".to_owned());
        }
        let cwd = match &self.cwd {
            Some(cwd) => self.environment.cwd.join(expand::expand(cwd, with)?),
            None => self.environment.cwd.clone(),
        };
        let (command, args) = match &self.words {
            CommandWords::Templates { command, args } => {
                let args = args.iter().map(|arg| expand::expand(arg, with));
                (expand::expand(command, with)?, args.collect::<Result<Vec<String>, _>>()?)
            }
            CommandWords::Literal(words) => split(words.clone()),
        };
        let confinement = self.confinement;
        Ok((Program { command, args, env, cwd, confinement }, commands))
    }
}

/// A program that prints a secret, with the same environment variables as a server. The program is
/// not confined, because a password manager may be setuid or setgid.
pub(crate) fn secret_program(environment: &Environment, words: Vec<String>, cwd: &Path) -> Program {
    let (command, args) = split(words);
    Program {
        command,
        args,
        env: owned(environment.for_servers()),
        cwd: cwd.to_owned(),
        confinement: Confinement::Off,
    }
}

/// A command that prints the value of an environment variable.
struct SecretCommand {
    /// The name of the environment variable.
    name: String,
    /// The program as configured, for messages.
    helper: String,
    words: Vec<String>,
}

/// Splits the words into the command and its arguments.
fn split(mut words: Vec<String>) -> (String, Vec<String>) {
    let args = words.split_off(words.len().min(1));
    (words.pop().unwrap_or_default(), args)
}

fn owned<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
