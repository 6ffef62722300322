//! How to reach a server again and again: the recipe that a dial follows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::values::{Template, TemplateMap};

use super::DialError;
use crate::dial::in_process::InProcess;
use crate::dial::spawn::Program;
use crate::env::Environment;

/// Everything that a dial needs to know about one server.
#[derive(Debug)]
pub(crate) struct Recipe {
    pub(crate) transport: Transport,
    pub(crate) start_timeout: Duration,
    pub(crate) request_timeout: Duration,
    pub(crate) max_frame_bytes: usize,
    pub(crate) max_pages: usize,
    pub(crate) max_tools: usize,
    pub(crate) log: PathBuf,
}

pub(crate) enum Transport {
    Program(Box<ProgramRecipe>),
    InProcess(Arc<dyn InProcess>),
    /// A transport that this version does not speak.
    Unsupported(&'static str),
}

/// A program as the configuration writes it: expanded only when it is started.
pub(crate) struct ProgramRecipe {
    pub(crate) words: Words,
    pub(crate) env: TemplateMap,
    pub(crate) cwd: Option<Template>,
    /// Whether it gets the whole environment instead of a short list of harmless variables.
    pub(crate) inherit_env: bool,
    pub(crate) environment: Environment,
}

/// A command and its arguments.
pub(crate) enum Words {
    Templates {
        command: Template,
        args: Vec<Template>,
    },
    /// A command line, in which nothing is expanded.
    Literal(Vec<String>),
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Program(_) => "Program",
            Transport::InProcess(_) => "InProcess",
            Transport::Unsupported(_) => "Unsupported",
        })
    }
}

impl ProgramRecipe {
    /// The program with every variable filled in.
    pub(crate) fn program(&self) -> Result<Program, DialError> {
        let variable = |name: &str| self.environment.variable(name).map(str::to_owned);
        let home = self.environment.home().and_then(|home| home.to_str());
        let with = Surroundings { variable: &variable, home };
        let mut env: BTreeMap<String, String> = if self.inherit_env {
            owned(self.environment.all())
        } else {
            owned(self.environment.for_servers())
        };
        for (name, value) in self.env.iter() {
            match expand::expand_value(value, &with)? {
                Expanded::Text(text) => env.insert(name.to_owned(), text),
                Expanded::Command(_) => return Err(DialError::SecretCommand),
            };
        }
        let cwd = match &self.cwd {
            Some(cwd) => self.environment.cwd.join(expand::expand(cwd, &with)?),
            None => self.environment.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(DialError::WorkingDirectory { path: cwd });
        }
        let (command, args) = match &self.words {
            Words::Templates { command, args } => {
                let args = args.iter().map(|arg| expand::expand(arg, &with));
                (expand::expand(command, &with)?, args.collect::<Result<Vec<String>, _>>()?)
            }
            Words::Literal(words) => match words.split_first() {
                Some((command, args)) => (command.clone(), args.to_vec()),
                None => (String::new(), Vec::new()),
            },
        };
        Ok(Program { command, args, env, cwd })
    }
}

fn owned<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
