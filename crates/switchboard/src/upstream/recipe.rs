//! How to reach a server again and again: the recipe that a dial follows.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::config::expand::{self, Expanded};

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
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<String>,
    pub(crate) inherit: Inherit,
    pub(crate) environment: Environment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// A short list of harmless variables.
    Allowed,
    All,
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
        let mut env: BTreeMap<String, String> = match self.inherit {
            Inherit::Allowed => owned(self.environment.for_servers()),
            Inherit::All => owned(self.environment.all()),
        };
        for (name, value) in &self.env {
            env.insert(name.clone(), self.text(value)?);
        }
        let cwd = match &self.cwd {
            Some(cwd) => self.environment.cwd.join(self.text(cwd)?),
            None => self.environment.cwd.clone(),
        };
        if !cwd.is_dir() {
            return Err(DialError::WorkingDirectory { path: cwd });
        }
        let args = self.args.iter().map(|arg| self.text(arg)).collect::<Result<_, _>>()?;
        Ok(Program { command: self.text(&self.command)?, args, env, cwd })
    }

    fn text(&self, template: &str) -> Result<String, DialError> {
        let lookup = |name: &str| self.environment.variable(name).map(str::to_owned);
        let home = self.environment.home().and_then(|home| home.to_str());
        match expand::expand(template, &lookup, home)? {
            Expanded::Text(text) => Ok(text),
            Expanded::Command(_) => Err(DialError::SecretCommand),
        }
    }
}

fn owned<'a>(variables: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
