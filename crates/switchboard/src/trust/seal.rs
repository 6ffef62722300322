//! Checks, before a start, that the program is what the user approved.

use std::fmt;
use std::path::Path;

use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{TrustHash, trust_hash};
use switchboard_core::config::values::TemplateMap;

use super::place::{Belongs, Project};
use super::resolver::{self, Code, CommandLine, ReachedPaths};
use super::scripts::{Coverage, coverage};
use super::{TrustStore, variables};
use crate::dial::spawn::Program;
use crate::env::Environment;

/// The approval of a project's server, checked again before each start.
#[derive(Clone)]
pub(crate) struct Seal {
    pub(crate) server: String,
    pub(crate) definition: ServerEntry,
    /// The environment; its working directory is the project.
    pub(crate) environment: Environment,
    pub(crate) hash: TrustHash,
    pub(crate) store: TrustStore,
}

/// Why the approval does not cover what would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenSeal {
    #[error("a file of the project that the server runs has changed since it was approved")]
    Changed,
    #[error("the approval of the server was revoked")]
    Revoked,
    #[error(
        "a variable or a command refers to a file of the project that no approval covers; \
         write its path with `${{workspaceFolder}}`"
    )]
    HiddenScript,
}

impl Seal {
    /// Checks that `program`, and the commands for its secrets, are what the user approved.
    pub(crate) fn check(&self, program: &Program, asked: &[Vec<String>]) -> Result<(), BrokenSeal> {
        let coverage = coverage(&self.definition, &self.environment);
        let name = self.environment.cwd.to_string_lossy();
        if trust_hash(&self.server, &self.definition, &name, &coverage.hashes()) != self.hash {
            return Err(BrokenSeal::Changed);
        }
        // While the approvals cannot be parsed, nothing is approved.
        if !self.store.approvals().is_ok_and(|approvals| approvals.cover(&self.hash)) {
            return Err(BrokenSeal::Revoked);
        }
        let Some(project) = Project::around(&self.environment) else {
            return Err(BrokenSeal::Changed);
        };
        if self.is_hidden(program, asked, &project, &coverage) {
            return Err(BrokenSeal::HiddenScript);
        }
        Ok(())
    }

    /// Whether a variable or a command names a file of the project that would run, but that no
    /// approval covers.
    fn is_hidden(
        &self,
        program: &Program,
        asked: &[Vec<String>],
        project: &Project,
        coverage: &Coverage,
    ) -> bool {
        let is_noticed = |path: &Path| !path.starts_with(&project.root) || coverage.notices(path);
        let everything = self.reached(program, asked, &project.root, |_, _| true);
        let hidden_file = everything.files.iter().any(|candidate| {
            let path = candidate.file.canonicalize();
            path.is_ok_and(|path| path.is_file() && !is_noticed(&path))
        });
        // A value without a slash, such as `test`, is no path, even if the project has a directory
        // of that name.
        let is_path = |name: &str, value: &str| variables::is_searched(name) || value.contains('/');
        let places = self.reached(program, asked, &project.root, is_path).directories;
        let hidden_directory = places.iter().any(|place| match project.belongs(place) {
            Belongs::Part(directory) => !is_noticed(&directory),
            Belongs::Own(_) | Belongs::Elsewhere => false,
        });
        let given = self.given(program).filter(|(name, _)| variables::is_searched(name));
        let searched = given.flat_map(|(_, value)| value.split(':'));
        let mut searched = searched.flat_map(|value| variables::in_list(value, &program.cwd));
        let hidden_search = searched.any(|place| match project.belongs(&place) {
            Belongs::Own(directory) | Belongs::Part(directory) => !is_noticed(&directory),
            Belongs::Elsewhere => false,
        });
        hidden_file || hidden_directory || hidden_search
    }

    /// The variables that the definition sets, expanded.
    fn given<'p>(&'p self, program: &'p Program) -> impl Iterator<Item = (&'p str, &'p str)> {
        let names = self.definition.env.iter().flat_map(TemplateMap::names);
        names.filter_map(|name| program.env.get(name).map(|value| (name, value.as_str())))
    }

    /// All paths that the program may load a file from, with all variables expanded.
    fn reached(
        &self,
        program: &Program,
        asked: &[Vec<String>],
        root: &Path,
        counts: impl Fn(&str, &str) -> bool,
    ) -> ReachedPaths {
        let given = self.given(program).filter(|(name, value)| counts(name, value));
        let words = std::iter::once(&program.command).chain(&program.args).map(String::as_str);
        let words = words.chain(given.map(|(_, value)| value));
        let words = words.chain(asked.iter().flatten().map(String::as_str));
        let own = program.env.get("PATH").map(String::as_str).unwrap_or_default();
        let cwd = &program.cwd;
        let line = CommandLine {
            words: words.map(str::to_owned).collect(),
            cwd,
            path: Some(own),
            root,
            code: Code::Absent,
        };
        let mut reached = resolver::candidates(&line);
        let helpers = asked.iter().filter_map(|words| words.first().cloned()).collect();
        let path = self.environment.variable("PATH");
        let helpers = CommandLine { words: helpers, cwd, path, root, code: Code::Absent };
        reached.files.extend(resolver::candidates(&helpers).files);
        reached
    }
}

impl PartialEq for Seal {
    /// Compares only the approved hashes, which cover all other fields.
    fn eq(&self, other: &Seal) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Seal").field(&self.hash).finish()
    }
}

#[cfg(test)]
mod tests;
