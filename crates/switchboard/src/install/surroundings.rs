//! The environment of an installation: the files of hosts, the path of Switchboard, the host's
//! version, and the variables that servers need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use switchboard_core::config::hosts::Host;
use switchboard_core::config::install::{ALWAYS_PASSED_ON, NAME, Target};
use switchboard_core::config::layers::{Config, Tier, Trust};
use switchboard_core::config::snippet;
use switchboard_core::config::trust::reach;

use super::Installer;
use super::error::InstallError;
use super::ledger::Copy;
use super::pi;
use crate::edit::error::EditError;
use crate::env::{Environment, OWN_VARIABLES};
use crate::load::{LoadError, load, user_file};
use crate::paths;
use crate::sources;

impl Installer<'_> {
    pub(super) fn user_file(&self) -> Result<PathBuf, InstallError> {
        let path = user_file(self.environment, self.locations, &self.options);
        if self.options.config.is_some() && !path.exists() {
            return Err(EditError::from(LoadError::Missing { path }).into());
        }
        Ok(path)
    }

    /// The user's file of a host. If the host has several possible paths, the first that exists,
    /// else the platform's default.
    pub(super) fn file_of(&self, target: Target) -> PathBuf {
        let mut files = self.files_of(target);
        let choice = match target {
            Target::Host(Host::ClaudeDesktop | Host::VsCode | Host::Roo) => {
                Some(usize::from(cfg!(target_os = "macos")))
            }
            Target::Host(Host::OpenCode | Host::Amp) => Some(0),
            Target::Host(_) | Target::Pi => None,
        };
        let found = choice.and_then(|_| files.iter().position(|path| path.exists()));
        files.swap_remove(found.or(choice).unwrap_or(0))
    }

    /// The files of a host that an installation may be in.
    pub(super) fn files_of(&self, target: Target) -> Vec<PathBuf> {
        let Some(host) = target.host() else { return pi::files(self.locations) };
        let files = sources::of_host(self.locations, &self.options.project, host);
        let files = files.into_iter().filter(|file| file.tier == Tier::User);
        files.map(|file| file.path).collect()
    }

    /// The command for a host: `switchboard` if `PATH` finds this program by that name, otherwise
    /// its path.
    pub fn command(&self) -> Result<String, InstallError> {
        let program = self.environment.program.as_deref().ok_or(InstallError::NoProgram)?;
        if self.on_path(program).is_some() {
            return Ok(NAME.to_owned());
        }
        // Switchboard recognizes its own entry by this name. Under another name, it would import
        // the entry and start itself.
        if program.file_stem().is_none_or(|name| name != NAME) {
            return Err(InstallError::Renamed { program: program.to_path_buf() });
        }
        program.to_str().map(str::to_owned).ok_or(InstallError::NoProgram)
    }

    /// The path at which `PATH` finds this program by its usual name.
    pub(super) fn on_path(&self, program: &Path) -> Option<PathBuf> {
        let real = |path: &Path| path.canonicalize().ok();
        self.find(NAME).filter(|found| real(found) == real(program))
    }

    /// The first file of this name in the absolute directories of `PATH`.
    fn find(&self, name: &str) -> Option<PathBuf> {
        let path = self.environment.variable("PATH").unwrap_or_default();
        let folders = path.split(':').filter(|folder| Path::new(folder).is_absolute());
        folders.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
    }

    /// The settings file of a host, if an installation changes it.
    pub(super) fn settings_of(&self, target: Target) -> Option<PathBuf> {
        let claude = || self.locations.others.claude.join("settings.json");
        target.has_settings().then(claude)
    }

    /// The variables that a host has to pass on: those that the servers of the user and the new
    /// copies name, and those that locate Switchboard's own files.
    pub(super) fn variables(
        &self,
        target: Target,
        copies: &[Copy],
    ) -> Result<Vec<String>, InstallError> {
        if !target.can_name_variables() {
            return Ok(Vec::new());
        }
        let loaded = load(self.environment, self.locations, &self.options)
            .map_err(|error| InstallError::from(EditError::from(error)))?;
        let mut names = needed(&loaded.config, self.environment);
        for Copy { name, entry } in copies {
            let copied = snippet::check(name, entry, Tier::User).ok();
            names.extend(copied.into_iter().flat_map(|entry| reach(&entry).variables));
        }
        Ok(names.into_iter().filter(|name| !ALWAYS_PASSED_ON.contains(&name.as_str())).collect())
    }

    /// The host's version, if the format of its file depends on it. The version is read from the
    /// path of the installed program or from its package, without running the program.
    pub(super) fn version_of(&self, target: Target) -> Option<[u32; 2]> {
        let program = match target {
            Target::Host(Host::Codex) => "codex",
            Target::Host(_) | Target::Pi => return None,
        };
        let found = self.find(program)?.canonicalize().ok()?;
        let of_package = |folder: &Path| {
            let bytes = paths::read(&folder.join("package.json")).ok()??;
            let manifest: Value = serde_json::from_slice(&bytes).ok()?;
            let name = manifest.get("name")?.as_str()?;
            if !name.starts_with("@openai/codex") {
                return None;
            }
            version(manifest.get("version")?.as_str()?)
        };
        let is_ours = |folder: &Path| folder.to_string_lossy().contains(program);
        let of_folder =
            |folder: &Path| version(folder.file_name()?.to_str()?).filter(|_| is_ours(folder));
        let folders = found.ancestors().skip(1).take(DEEPEST_PACKAGE);
        folders.into_iter().find_map(|folder| of_folder(folder).or_else(|| of_package(folder)))
    }
}

/// The maximum number of directories between a program and the root of its package.
const DEEPEST_PACKAGE: usize = 5;

/// The major and minor number of a version with three numbers.
fn version(text: &str) -> Option<[u32; 2]> {
    let release = text.split(['-', '+']).next()?;
    let numbers: Vec<u32> = release.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    match *numbers {
        [major, minor, _] => Some([major, minor]),
        _ => None,
    }
}

/// The variables that the user's servers name, and Switchboard's own variables that are set.
pub(crate) fn needed(config: &Config, environment: &Environment) -> BTreeSet<String> {
    let users = config.servers.values().filter(|server| server.trust == Trust::UserFile);
    let named = users.flat_map(|server| reach(&server.definition).variables);
    let own = OWN_VARIABLES.iter().filter(|name| environment.variable(name).is_some());
    named.chain(own.map(|name| (*name).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codex_version_without_three_numbers_is_unknown() {
        assert_eq!(version("0.166.0"), Some([0, 166]));
        assert_eq!(version("0.166.0-linux-x64"), Some([0, 166]));
        for other in ["", "codex", "1.2", "1.2.3.4", "v1.2.3", "1.x.0"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
