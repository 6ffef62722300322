//! The engine's code for Pi: Switchboard's package in its own directory, Pi's settings that refer
//! to it, and findings about both.

pub(crate) mod findings;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use switchboard_core::config::install::Target;
use switchboard_core::pi::settings::{self as pi, LocalPackage, PACKAGE, Put, Surroundings};

use super::archive::Archive;
use super::error::InstallError;
use super::record::{FileBackup, InstallRecord};
use super::{FileChange, InstallPlan, Installer, Owner, changed, files_before, refused};
use crate::edit::text_of;
use crate::paths::{self, Paths};

/// The file of the package that names the program to start.
pub(crate) const BINARY: &str = "binary.json";

/// The path of the user's settings of Pi.
pub(crate) fn settings(locations: &Paths) -> PathBuf {
    locations.others.pi.join("settings.json")
}

/// The files of Pi that an installation may be in: the settings, or `mcp.json` in earlier versions.
pub(super) fn files(locations: &Paths) -> Vec<PathBuf> {
    vec![settings(locations), locations.others.pi.join("mcp.json")]
}

/// Whether the installation is an entry among Pi's servers, as in earlier versions.
pub(super) fn is_of_servers(record: &InstallRecord) -> bool {
    record.host.path.ends_with("mcp.json")
}

/// What exists at the path of a package, which may be relative to Pi's directory.
pub(crate) fn look(locations: &Paths, source: &str) -> LocalPackage {
    let source = source.trim();
    let source = source.strip_prefix("file://").unwrap_or(source);
    let path = match source.strip_prefix("~/") {
        Some(below) => locations.others.home.join(below),
        None => locations.others.pi.join(source),
    };
    if !path.exists() {
        return LocalPackage::Nothing;
    }
    let manifest = paths::read(&path.join("package.json")).ok().flatten();
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let name = manifest.as_ref().and_then(|manifest| manifest.get("name")?.as_str());
    if name == Some(PACKAGE) { LocalPackage::Ours } else { LocalPackage::Other }
}

/// Runs `work` with the context for parsing Pi's settings.
pub(crate) fn with<T>(locations: &Paths, work: impl FnOnce(Surroundings<'_>) -> T) -> T {
    let directory = locations.pi_package();
    let look = |source: &str| look(locations, source);
    work(Surroundings { directory: &directory.to_string_lossy(), look: &look })
}

impl Installer<'_> {
    /// Plans an installation into Pi: first the package, then the settings that refer to it.
    pub(super) fn install_in_pi(&self, archive: Archive) -> Result<InstallPlan, InstallError> {
        let path = settings(self.locations);
        let now = text_of(&path)?;
        let put_in = |settings: &Option<String>| {
            let text = settings.as_deref().unwrap_or_default();
            with(self.locations, |with| pi::install(text, with))
                .map_err(|cause| refused(&path, cause))
        };
        let mut put = put_in(&now)?;
        let old = archive.record(Target::Pi, &files(self.locations)).cloned();
        let ((servers, ledger), forget, mut record) = match old {
            Some(old) if is_of_servers(&old) => (files_before(&archive, &old)?, Some(old), None),
            old => ((Vec::new(), None), None, old),
        };
        // The earlier installation is undone first, so that one uninstallation restores the
        // original file. Settings that need no change are not rewritten.
        if now.as_ref() != Some(&put.text) {
            let before = match record.filter(|old| old.host.path == path) {
                None => now.clone(),
                Some(old) => with(self.locations, |with| old.settings_before(now.clone(), with))?,
            };
            put = put_in(&before)?;
            let host = FileBackup::new(&path, before, Some(&put.text));
            record = Some(InstallRecord::of_host(Target::Pi, host));
        }
        let Put { text, displaced, in_our_directory } = put;
        let mut files = if in_our_directory { self.package()? } else { Vec::new() };
        files.push(FileChange::new(path, Owner::Host(Target::Pi), now, Some(text)));
        files.extend(servers);
        let files = changed(files);
        let plan = InstallPlan::nothing(archive);
        Ok(InstallPlan { files, displaced, record, forget, ledger, ..plan })
    }

    pub(super) fn uninstall_from_pi(
        &self,
        archive: Archive,
        record: Option<InstallRecord>,
    ) -> Result<InstallPlan, InstallError> {
        let path = record.as_ref().map(|record| record.host.path.clone());
        let path = path.unwrap_or_else(|| settings(self.locations));
        let now = text_of(&path)?;
        let after = match (&record, &now) {
            (Some(record), _) => {
                with(self.locations, |with| record.settings_before(now.clone(), with))?
            }
            (None, None) => None,
            (None, Some(now)) => {
                let without = with(self.locations, |with| pi::uninstall(now, with));
                Some(without.map_err(|cause| refused(&path, cause))?)
            }
        };
        let left = after.as_deref().unwrap_or_default();
        let left = with(self.locations, |with| pi::declared(left, with))
            .map_err(|cause| refused(&path, cause))?
            .ours;
        let directory = self.locations.pi_package();
        let mut files = vec![FileChange::new(path, Owner::Host(Target::Pi), now, after)];
        // The settings of another Pi directory may refer to the package, too.
        let is_used = archive.has_another(record.as_ref(), Target::Pi);
        if !is_used && !left.iter().any(|source| Path::new(source) == directory) {
            files.extend(leftovers(&directory, &[]));
        }
        let leaves_ours = !left.is_empty();
        let plan = InstallPlan::nothing(archive);
        Ok(InstallPlan { files: changed(files), leaves_ours, forget: record, ..plan })
    }

    /// The files of the package; other files in its directory are removed.
    fn package(&self) -> Result<Vec<FileChange>, InstallError> {
        let program = self.environment.program.as_deref().ok_or(InstallError::NoProgram)?;
        // The path on `PATH` is preferred: as a symbolic link, it stays valid when an update moves
        // its target.
        let program = self.on_path(program).unwrap_or_else(|| program.to_path_buf());
        let program = program.to_str().ok_or(InstallError::NoProgram)?;
        let binary = format!("{}\n", json!({ "path": program }));
        let directory = self.locations.pi_package();
        if directory.is_symlink() {
            return Err(InstallError::Linked { path: directory });
        }
        let wanted: Vec<(&str, &str)> =
            self.package.iter().copied().chain([(BINARY, binary.as_str())]).collect();
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let mut files = leftovers(&directory, &names);
        for (name, content) in wanted {
            let path = directory.join(name);
            let before = text_of(&path)?;
            files.push(FileChange::new(path, Owner::Package, before, Some(content.to_owned())));
        }
        Ok(files)
    }
}

/// The removal of the package's files whose names are not in `names`. Symbolic links and files that
/// are not UTF-8 are not part of the package.
fn leftovers(directory: &Path, names: &[&str]) -> Vec<FileChange> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.filter(|_| !directory.is_symlink());
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let files = files.map(|entry| entry.path());
    let others = files.filter(|path| !names.iter().any(|name| path.ends_with(name)));
    let removal = |path: PathBuf| {
        let before = Some(text_of(&path).ok()??);
        Some(FileChange::new(path, Owner::Package, before, None))
    };
    let mut removals: Vec<FileChange> = others.filter_map(removal).collect();
    removals.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    removals
}
