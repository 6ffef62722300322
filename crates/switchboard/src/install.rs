//! Installs Switchboard into hosts: writes its entry into a host's file or its package into Pi, and
//! moves the host's servers. An uninstallation restores the files byte for byte.

mod archive;
pub mod error;
mod ledger;
pub(crate) mod pi;
mod plan;
mod record;
pub(crate) mod surroundings;

use std::fs;
use std::path::{Path, PathBuf};

use switchboard_core::config::edit;
use switchboard_core::config::install::moving::{self, HostServer};
use switchboard_core::config::install::{self, Presence, Setup, Target};

use self::archive::Archive;
use self::error::InstallError;
use self::ledger::{Copy, Ledger, Moving};
use self::record::{FileBackup, InstallRecord};
use crate::edit::error::EditError;
use crate::edit::text_of;
use crate::env::Environment;
use crate::load::LoadOptions;
use crate::paths::{self, Paths};
use crate::shared_file::{Privacy, SharedFile};

pub use self::plan::{FileChange, InstallPlan, Owner, Reason, Servers, Staying};
pub use switchboard_core::config::install::Added;

/// Installs Switchboard into hosts, and uninstalls it.
#[derive(Clone, Debug)]
pub struct Installer<'a> {
    environment: &'a Environment,
    locations: &'a Paths,
    options: LoadOptions,
    package: Package<'a>,
}

/// The files of the package that Pi loads, by name.
pub type Package<'a> = &'a [(&'a str, &'a str)];

impl<'a> Installer<'a> {
    /// An installer for the hosts of this user and project.
    pub fn new(
        environment: &'a Environment,
        locations: &'a Paths,
        options: LoadOptions,
        package: Package<'a>,
    ) -> Installer<'a> {
        Installer { environment, locations, options, package }
    }

    /// Plans an installation. Pi's servers are not moved, because Switchboard reads Pi's files.
    pub fn install(&self, target: Target, servers: Servers) -> Result<InstallPlan, InstallError> {
        let archive = Archive::read(self.locations)?;
        if target == Target::Pi {
            return self.install_in_pi(archive);
        }
        // A host may read several files; the one with an earlier installation takes precedence.
        let recorded = archive.record(target, &self.files_of(target));
        let recorded = recorded.map(|old| old.host.path.clone()).filter(|path| path.exists());
        let path = recorded.unwrap_or_else(|| self.file_of(target));
        let now = text_of(&path)?;
        let refused = |cause| refused(&path, cause);
        let there = install::presence(target, now.as_deref().unwrap_or_default());
        let is_there = there.map_err(refused)? == Presence::Installed;
        let old = archive.record(target, std::slice::from_ref(&path));
        // The earlier installation is undone first, so that one uninstallation restores the
        // original file.
        let host = match old {
            Some(old) if !is_there || servers == Servers::Move => old.host_before(now.clone())?,
            Some(_) | None => now.clone(),
        };
        let host_text = host.clone().unwrap_or_default();
        if install::presence(target, &host_text).map_err(refused)? == Presence::NameTaken {
            return Err(InstallError::NameTaken { path });
        }
        let user = match servers {
            Servers::Stay if is_there => self.unmoved(&archive, old)?,
            Servers::Stay => self.moved(&archive, old, Vec::new())?,
            Servers::Move => {
                let others = moving::other_servers(target, &host_text).map_err(refused)?;
                self.moved(&archive, old, others)?
            }
        };
        let (command, variables) = (self.command()?, self.variables(target, &user.copies)?);
        let version = self.version_of(target);
        let setup = Setup { command: &command, variables: &variables, version };
        let put = install::install(target, &host_text, &setup).map_err(refused)?;
        let after = install::disable_servers(target, &put.text, &user.moved).map_err(refused)?;
        let settings = self.granted(target, old)?;
        let host = match old {
            Some(old) if is_there && servers == Servers::Stay => {
                old.host.then(now.as_deref(), &after)
            }
            Some(_) | None => FileBackup::new(&path, host, Some(&after)),
        };
        let record = InstallRecord {
            target,
            host,
            settings: settings.as_ref().map(|settings| settings.backup.clone()),
            user: Some(user.file.path.clone()).filter(|_| !user.moved.is_empty()),
            moved: user.moved.clone(),
        };
        let host = FileChange::new(path, Owner::Host(target), now, Some(after));
        let granted = settings.as_ref().map(|settings| settings.added.clone());
        let files = [Some(user.file), settings.map(|settings| settings.file), Some(host)];
        Ok(InstallPlan {
            files: changed(files.into_iter().flatten()),
            moved: if is_there && servers == Servers::Stay { Vec::new() } else { user.moved },
            stay: user.stay,
            added: put.added.into_iter().chain(granted.into_iter().flatten()).collect(),
            record: Some(record),
            ledger: user.ledger,
            ..InstallPlan::nothing(archive)
        })
    }

    /// Plans an uninstallation, which restores the host's files.
    pub fn uninstall(&self, target: Target) -> Result<InstallPlan, InstallError> {
        let archive = Archive::read(self.locations)?;
        let record = archive.record(target, &self.files_of(target)).cloned();
        if target == Target::Pi && !record.as_ref().is_some_and(pi::is_of_servers) {
            return self.uninstall_from_pi(archive, record);
        }
        let Some(record) = record else {
            let files = self.files_without_us(target)?;
            return Ok(InstallPlan { files: changed(files), ..InstallPlan::nothing(archive) });
        };
        let (files, ledger) = files_before(&archive, &record)?;
        let host = files.iter().find(|file| file.owner == Owner::Host(target));
        let after = host.and_then(|file| file.after.as_deref()).unwrap_or_default();
        let leaves_ours = install::presence(target, after) == Ok(Presence::Installed);
        Ok(InstallPlan {
            files: changed(files),
            moved: record.moved.clone(),
            leaves_ours,
            forget: Some(record),
            ledger,
            ..InstallPlan::nothing(archive)
        })
    }

    /// The host's files without Switchboard's entry and permissions, for an uninstallation without
    /// a record.
    fn files_without_us(&self, target: Target) -> Result<Vec<FileChange>, InstallError> {
        let path = self.file_of(target);
        let Some(now) = text_of(&path)? else { return Ok(Vec::new()) };
        let after = install::uninstall(target, &now).map_err(|cause| refused(&path, cause))?;
        let mut files = Vec::new();
        if let Some(settings) = self.settings_of(target).filter(|_| after != now)
            && let Some(now) = text_of(&settings)?
        {
            let after = install::revoke(target, &now, "");
            let after = after.map_err(|cause| refused(&settings, cause))?;
            let owner = Owner::Settings(target);
            files.push(FileChange::new(settings, owner, Some(now), Some(after)));
        }
        files.insert(0, FileChange::new(path, Owner::Host(target), Some(now), Some(after)));
        Ok(files)
    }

    /// The host's settings, with the permissions for Switchboard's tools.
    fn granted(
        &self,
        target: Target,
        old: Option<&InstallRecord>,
    ) -> Result<Option<Settings>, InstallError> {
        let Some(path) = self.settings_of(target) else { return Ok(None) };
        let now = text_of(&path)?;
        let before = match old.and_then(|old| old.settings.as_ref()) {
            Some(kept) if kept.path == path => kept.settings_before(target, now.clone())?,
            Some(_) | None => now.clone(),
        };
        let put = install::grant(target, before.as_deref().unwrap_or_default())
            .map_err(|cause| refused(&path, cause))?;
        if put.added.is_empty() {
            return Ok(None);
        }
        let added = if now.as_ref() == Some(&put.text) { Vec::new() } else { put.added };
        let backup = FileBackup::new(&path, before, Some(&put.text));
        let file = FileChange::new(path, Owner::Settings(target), now, Some(put.text));
        Ok(Some(Settings { file, backup, added }))
    }

    /// The content of the user's file, or of the file to which an earlier installation moved
    /// servers.
    fn user_text(
        &self,
        old: Option<&InstallRecord>,
    ) -> Result<(PathBuf, Option<String>), InstallError> {
        let earlier = old.and_then(|old| old.user.clone());
        let path = earlier.map_or_else(|| self.user_file(), Ok)?;
        let now = text_of(&path)?;
        Ok((path, now))
    }

    /// The unchanged user's file, for an installation that moves no servers.
    fn unmoved(
        &self,
        archive: &Archive,
        old: Option<&InstallRecord>,
    ) -> Result<UserFile, InstallError> {
        let (path, now) = self.user_text(old)?;
        let copies = archive.ledger(&path).map_or(Vec::new(), |ledger| ledger.copies.clone());
        let moved = old.map_or(Vec::new(), |old| old.moved.clone());
        let file = FileChange::new(path, Owner::User, now.clone(), now);
        Ok(UserFile { file, moved, stay: Vec::new(), copies, ledger: None })
    }

    /// The user's file with the servers that an installation moves. Servers that the same
    /// installation moved earlier are removed if it no longer moves them.
    fn moved(
        &self,
        archive: &Archive,
        old: Option<&InstallRecord>,
        others: Vec<HostServer>,
    ) -> Result<UserFile, InstallError> {
        let (path, now) = self.user_text(old)?;
        let refused = |cause| refused(&path, cause);
        let kept = archive.ledger(&path);
        let ledger = match kept {
            Some(ledger) => ledger.clone().follow(now.as_deref()).map_err(refused)?,
            None => Ledger::new(&path, now.clone()),
        };
        let before = old.map_or(&[][..], |old| &old.moved);
        let held = archive.held(&path, old);
        let Moving { moved, stay, copies } = ledger.plan(others, before, &held).map_err(refused)?;
        let has_copies = kept.is_some() || !copies.is_empty();
        let written = ledger.write(now.as_deref(), copies.clone());
        let (after, ledger) = written.map_err(refused)?;
        let ledger = has_copies.then_some(ledger);
        let file = FileChange::new(path, Owner::User, now, after);
        Ok(UserFile { file, moved, stay, copies, ledger })
    }

    /// Carries out a plan: writes the record for the uninstallation, then the files in order. If
    /// one of the files changed after planning, nothing is written.
    pub fn carry_out(&self, plan: &InstallPlan) -> Result<(), InstallError> {
        let directory = self.locations.installed();
        let of_directory = |cause| InstallError::Record { path: directory.clone(), cause };
        let _lock = paths::lock(&directory.join("lock")).map_err(of_directory)?;
        if Archive::read(self.locations)? != plan.archive {
            return Err(InstallError::Changed { path: directory });
        }
        for FileChange { path, before, .. } in &plan.files {
            if text_of(path)? != *before {
                return Err(InstallError::Changed { path: path.clone() });
            }
        }
        plan.archive.renew(self.locations)?;
        if let Some(record) = &plan.record {
            archive::write(&archive::record_file(&directory, record), record)?;
        }
        if let Some(ledger) = &plan.ledger {
            archive::write(&archive::ledger_file(&directory, ledger), ledger)?;
        }
        for file in &plan.files {
            self.write(file)?;
        }
        if let Some(ledger) = plan.ledger.as_ref().filter(|ledger| ledger.copies.is_empty()) {
            archive::remove(&archive::ledger_file(&directory, ledger))?;
            if let (true, Some(folder)) = (ledger.made_directory, ledger.path.parent()) {
                // An error is ignored: removing the directory fails if it is not empty.
                let _still_used = fs::remove_dir(folder);
            }
        }
        match &plan.forget {
            Some(record) => archive::remove(&archive::record_file(&directory, record)),
            None => Ok(()),
        }
    }

    fn write(&self, file: &FileChange) -> Result<(), InstallError> {
        let FileChange { path, before, after, .. } = file;
        let failed = |cause| EditError::Io { path: path.clone(), cause };
        let shared = SharedFile::elsewhere(path, &self.locations.locks(), Privacy::Private)
            .map_err(failed)?;
        let expected = before.as_deref().map(str::as_bytes);
        let unchanged = |now: Option<&[u8]>| match now == expected {
            true => Ok(()),
            false => Err(InstallError::Changed { path: path.clone() }),
        };
        let done = match after {
            Some(after) => shared.update(|now| {
                unchanged(now)?;
                Ok(Some(after.clone().into_bytes()))
            }),
            None => shared.remove(unchanged),
        };
        done.map_err(|error| error.or_io(|cause| failed(cause).into()))?;
        if let (Owner::Package, None, Some(folder)) = (file.owner, after, path.parent()) {
            // The directory is removed if this was its last file.
            let _still_used = fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// The files of a host that have a recorded installation.
pub(crate) fn files_with_us(locations: &Paths, target: Target) -> Vec<PathBuf> {
    let archive = Archive::read(locations).unwrap_or_default();
    archive.files(target).collect()
}

/// The user's file with a host's servers, and which of them are moved.
struct UserFile {
    file: FileChange,
    moved: Vec<String>,
    stay: Vec<Staying>,
    /// All copies of hosts' servers that the user's file contains.
    copies: Vec<Copy>,
    ledger: Option<Ledger>,
}

/// A host's settings with the permissions for Switchboard's tools, and a backup.
struct Settings {
    file: FileChange,
    backup: FileBackup,
    added: Vec<Added>,
}

/// The files as they were before the installation. The host's file comes first: a server that runs
/// twice for a moment is better than a lost one. Copies that another installation needs stay in the
/// user's file.
fn files_before(
    archive: &Archive,
    record: &InstallRecord,
) -> Result<(Vec<FileChange>, Option<Ledger>), InstallError> {
    let path = record.host.path.clone();
    let now = text_of(&path)?;
    let after = record.host_before(now.clone())?;
    let mut files = vec![FileChange::new(path, Owner::Host(record.target), now, after)];
    if let Some(kept) = &record.settings {
        let (path, owner) = (kept.path.clone(), Owner::Settings(record.target));
        let now = text_of(&path)?;
        let after = kept.settings_before(record.target, now.clone())?;
        files.push(FileChange::new(path, owner, now, after));
    }
    let ledger = record.user.as_deref().and_then(|user| archive.ledger(user));
    let (Some(user), Some(ledger)) = (record.user.clone(), ledger) else {
        return Ok((files, None));
    };
    let now = text_of(&user)?;
    let refused = |cause| refused(&user, cause);
    let ledger = ledger.clone().follow(now.as_deref()).map_err(refused)?;
    let held = archive.held(&user, Some(record));
    let left = ledger.plan(Vec::new(), &record.moved, &held).map_err(refused)?;
    let (after, ledger) = ledger.write(now.as_deref(), left.copies).map_err(refused)?;
    files.push(FileChange::new(user, Owner::User, now, after));
    Ok((files, Some(ledger)))
}

fn changed(files: impl IntoIterator<Item = FileChange>) -> Vec<FileChange> {
    files.into_iter().filter(|file| file.before != file.after).collect()
}

fn refused(path: &Path, cause: edit::EditError) -> InstallError {
    EditError::Refused { path: path.to_path_buf(), cause }.into()
}
