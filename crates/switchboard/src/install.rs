//! Puts our entry into a host's own file, or our package into Pi, moves the host's servers into
//! ours, and takes all of that back to the byte.

mod archive;
pub mod error;
mod ledger;
pub(crate) mod pi;
mod record;

use std::fs;
use std::path::{Path, PathBuf};

use switchboard_core::config::edit;
use switchboard_core::config::install::moving::{self, Other};
use switchboard_core::config::install::{self, NAME, Presence, Target};
use switchboard_core::config::layers::Tier;

use self::archive::Archive;
use self::error::InstallError;
use self::ledger::{Ledger, Moving};
use self::record::{Kept, Record};
use crate::edit::error::EditError;
use crate::edit::{Edited, Editor, Scope};
use crate::env::Environment;
use crate::load::{LoadError, LoadOptions};
use crate::paths::{self, Paths};
use crate::shared_file::{Privacy, SharedFile, UpdateError};
use crate::sources;

/// What installs into hosts and takes it back.
#[derive(Clone, Debug)]
pub struct Installer<'a> {
    environment: &'a Environment,
    locations: &'a Paths,
    options: LoadOptions,
    package: Package<'a>,
}

/// The files of the package that Pi loads, by name.
pub type Package<'a> = &'a [(&'a str, &'a str)];

/// What happens to the servers that a host has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    Stay,
    /// They are copied into our file and switched off in the host.
    Move,
}

/// What would be written. Nothing is until [`Installer::carry_out`].
#[derive(Clone, Debug)]
pub struct Plan {
    /// The files that change, in the order in which they are written.
    pub files: Vec<FileChange>,
    /// The servers that are switched off in the host, or on again.
    pub moved: Vec<String>,
    /// The servers that stay in the host although all were to be moved.
    pub stay: Vec<Staying>,
    /// The packages that go because ours is after the same commands.
    pub displaced: Vec<String>,
    /// Whether the host still has an entry of ours afterwards: one that it had before we came.
    pub leaves_ours: bool,
    /// What was written down when it was planned.
    archive: Archive,
    /// What shall be written down.
    record: Option<Record>,
    /// What shall be written down no more.
    forget: Option<Record>,
    /// The copies in the user's file, if that has or had any.
    ledger: Option<Ledger>,
}

impl Plan {
    /// Whether everything is so already.
    pub fn is_nothing(&self) -> bool {
        self.files.is_empty()
    }
}

/// A file before and after; `None` means that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: PathBuf,
    pub owner: Owner,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Host(Target),
    User,
    /// It is one of the package that Pi loads.
    Package,
}

impl FileChange {
    pub fn edited(&self) -> Edited {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Edited { path: self.path.clone(), before: text(&self.before), after: text(&self.after) }
    }
}

/// A server that was not moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staying {
    pub name: String,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Our own file has another server of that name.
    Conflict,
    /// Only the host can start it.
    OnlyInHost,
}

impl<'a> Installer<'a> {
    pub fn new(
        environment: &'a Environment,
        locations: &'a Paths,
        options: LoadOptions,
        package: Package<'a>,
    ) -> Installer<'a> {
        Installer { environment, locations, options, package }
    }

    /// What it takes to have our entry in a host. Pi's servers stay, for we read its own files.
    pub fn install(&self, target: Target, servers: Servers) -> Result<Plan, InstallError> {
        let archive = Archive::read(self.locations)?;
        if target == Target::Pi {
            return self.install_in_pi(archive);
        }
        let path = self.file_of(target);
        let now = text(&path)?;
        let there = install::presence(target, now.as_deref().unwrap_or_default())
            .map_err(|cause| refused(&path, cause))?;
        if there == Presence::Installed && servers == Servers::Stay {
            return Ok(Plan::nothing(archive));
        }
        let old = archive.record(target, &self.files_of(target));
        // What an earlier time did is taken back first, so that one undo leads to the beginning.
        let host = match old {
            None => now.clone(),
            Some(old) => old.host_before(now.clone())?,
        };
        let host_text = host.clone().unwrap_or_default();
        let refused = |cause| refused(&path, cause);
        if install::presence(target, &host_text).map_err(refused)? == Presence::NameTaken {
            return Err(InstallError::NameTaken { path });
        }
        let command = self.command()?;
        let others = match servers {
            Servers::Move => moving::others(target, &host_text).map_err(refused)?,
            Servers::Stay => Vec::new(),
        };
        let user = self.moved(&archive, old, others)?;
        let after = install::put_in(target, &host_text, &command)
            .and_then(|text| install::switch_off(target, &text, &user.moved))
            .map_err(refused)?;
        let record = Record {
            target,
            host: Kept::new(&path, host, Some(&after)),
            user: Some(user.file.path.clone()).filter(|_| !user.moved.is_empty()),
            moved: user.moved.clone(),
        };
        let owner = Owner::Host(target);
        let host = FileChange { path, owner, before: now, after: Some(after) };
        Ok(Plan {
            files: changed([user.file, host]),
            moved: user.moved,
            stay: user.stay,
            record: Some(record),
            ledger: user.ledger,
            ..Plan::nothing(archive)
        })
    }

    /// What it takes to have the host as it was.
    pub fn uninstall(&self, target: Target) -> Result<Plan, InstallError> {
        let archive = Archive::read(self.locations)?;
        let record = archive.record(target, &self.files_of(target)).cloned();
        if target == Target::Pi && !record.as_ref().is_some_and(pi::is_of_servers) {
            return self.uninstall_from_pi(archive, record);
        }
        let Some(record) = record else {
            let path = self.file_of(target);
            let now = text(&path)?;
            let after = match &now {
                None => None,
                Some(now) => {
                    Some(install::take_out(target, now).map_err(|cause| refused(&path, cause))?)
                }
            };
            let file = FileChange { path, owner: Owner::Host(target), before: now, after };
            return Ok(Plan { files: changed([file]), ..Plan::nothing(archive) });
        };
        let (files, ledger) = files_before(&archive, &record)?;
        let host = files.iter().find(|file| file.owner == Owner::Host(target));
        let after = host.and_then(|file| file.after.as_deref()).unwrap_or_default();
        let leaves_ours = install::presence(target, after) == Ok(Presence::Installed);
        Ok(Plan {
            files: changed(files),
            moved: record.moved.clone(),
            leaves_ours,
            forget: Some(record),
            ledger,
            ..Plan::nothing(archive)
        })
    }

    /// The user's file with what an installation moves there, and without what it moved earlier.
    fn moved(
        &self,
        archive: &Archive,
        old: Option<&Record>,
        others: Vec<Other>,
    ) -> Result<UserFile, InstallError> {
        let path = match old.and_then(|old| old.user.clone()) {
            Some(path) => path,
            None => self.user_file()?,
        };
        let now = text(&path)?;
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
        let (after, ledger) = ledger.write(now.as_deref(), copies).map_err(refused)?;
        let ledger = has_copies.then_some(ledger);
        let file = FileChange { path, owner: Owner::User, before: now, after };
        Ok(UserFile { file, moved, stay, ledger })
    }

    /// Writes what was planned: what is needed to take it back, then the files in their order. If
    /// somebody changed one of them since, nothing is written.
    pub fn carry_out(&self, plan: &Plan) -> Result<(), InstallError> {
        let directory = self.locations.installed();
        let of_directory = |cause| InstallError::Record { path: directory.clone(), cause };
        let _lock = paths::lock(&directory.join("lock")).map_err(of_directory)?;
        if Archive::read(self.locations)? != plan.archive {
            return Err(InstallError::Changed { path: directory });
        }
        for FileChange { path, before, .. } in &plan.files {
            if text(path)? != *before {
                return Err(InstallError::Changed { path: path.clone() });
            }
        }
        plan.archive.renew(self.locations)?;
        if let Some(record) = &plan.record {
            archive::write_record(self.locations, record)?;
        }
        if let Some(ledger) = &plan.ledger {
            archive::write_ledger(self.locations, ledger)?;
        }
        for file in &plan.files {
            self.write(file)?;
        }
        if let Some(ledger) = plan.ledger.as_ref().filter(|ledger| ledger.copies.is_empty()) {
            archive::remove_ledger(self.locations, ledger)?;
            if let (true, Some(folder)) = (ledger.made_directory, ledger.path.parent()) {
                // It stays as long as something is in it.
                let _still_used = fs::remove_dir(folder);
            }
        }
        match &plan.forget {
            Some(record) => archive::remove_record(self.locations, record),
            None => Ok(()),
        }
    }

    fn write(&self, file: &FileChange) -> Result<(), InstallError> {
        let FileChange { path, before, after, .. } = file;
        let failed = |cause| EditError::Io { path: path.clone(), cause };
        let shared = SharedFile::elsewhere(path, &self.locations.locks(), Privacy::Private)
            .map_err(failed)?;
        let expected = before.as_deref().map(str::as_bytes);
        let unchanged = |now: Option<&[u8]>| {
            let same = now == expected;
            if same { Ok(()) } else { Err(InstallError::Changed { path: path.clone() }) }
        };
        let done = match after {
            Some(after) => shared.update(|now| {
                unchanged(now)?;
                Ok(Some(after.clone().into_bytes()))
            }),
            None => shared.remove(unchanged),
        };
        done.map_err(|error| match error {
            UpdateError::Io(cause) => failed(cause).into(),
            UpdateError::Change(error) => error,
        })?;
        if let (Owner::Package, None, Some(folder)) = (file.owner, after, path.parent()) {
            // It goes with the last of its files.
            let _still_used = fs::remove_dir(folder);
        }
        Ok(())
    }

    fn user_file(&self) -> Result<PathBuf, InstallError> {
        let editor = Editor::new(self.environment, self.locations, self.options.clone());
        let path = editor.file(Scope::User);
        if self.options.config.is_some() && !path.exists() {
            return Err(EditError::from(LoadError::Missing { path }).into());
        }
        Ok(path)
    }

    /// The user's file of a host: the first one that is there, of those that differ by platform.
    fn file_of(&self, target: Target) -> PathBuf {
        let mut files = self.files_of(target);
        let by_platform = matches!(target, Target::ClaudeDesktop | Target::VsCode);
        let chosen = match files.iter().position(|path| path.exists()) {
            _ if !by_platform => 0,
            Some(found) => found,
            None if cfg!(target_os = "macos") => 1,
            None => 0,
        };
        files.swap_remove(chosen)
    }

    /// The files of a host in which an installation may be.
    fn files_of(&self, target: Target) -> Vec<PathBuf> {
        let Some(host) = target.host() else { return pi::files(self.locations) };
        let files = sources::of_host(self.locations, &self.options.project, host);
        let files = files.into_iter().filter(|file| file.tier == Tier::User);
        files.map(|file| file.path).collect()
    }

    /// What a host runs: our name if that leads here, else our path.
    fn command(&self) -> Result<String, InstallError> {
        let program = self.environment.program.as_deref().ok_or(InstallError::NoProgram)?;
        if self.on_path(program).is_some() {
            return Ok(NAME.to_owned());
        }
        // Under another name we would not know ourselves again, and start ourselves.
        if program.file_stem().is_none_or(|name| name != NAME) {
            return Err(InstallError::Renamed { program: program.to_path_buf() });
        }
        program.to_str().map(str::to_owned).ok_or(InstallError::NoProgram)
    }

    /// Where our name leads to this program, if it does.
    fn on_path(&self, program: &Path) -> Option<PathBuf> {
        let path = self.environment.variable("PATH").unwrap_or_default();
        let folders = path.split(':').filter(|folder| Path::new(folder).is_absolute());
        let found = folders.map(|folder| Path::new(folder).join(NAME)).find(|path| path.is_file());
        let real = |path: &Path| path.canonicalize().ok();
        found.filter(|found| real(found) == real(program))
    }
}

impl Plan {
    fn nothing(archive: Archive) -> Plan {
        Plan {
            files: Vec::new(),
            moved: Vec::new(),
            stay: Vec::new(),
            displaced: Vec::new(),
            leaves_ours: false,
            archive,
            record: None,
            forget: None,
            ledger: None,
        }
    }
}

/// The user's file, and what becomes of a host's servers.
struct UserFile {
    file: FileChange,
    moved: Vec<String>,
    stay: Vec<Staying>,
    ledger: Option<Ledger>,
}

/// What it takes to have the files as they were, the host's first: a server that runs twice for a
/// moment is better than one that is lost. Copies that another installation needs stay.
fn files_before(
    archive: &Archive,
    record: &Record,
) -> Result<(Vec<FileChange>, Option<Ledger>), InstallError> {
    let path = record.host.path.clone();
    let now = text(&path)?;
    let after = record.host_before(now.clone())?;
    let owner = Owner::Host(record.target);
    let mut files = vec![FileChange { path, owner, before: now, after }];
    let ledger = record.user.as_deref().and_then(|user| archive.ledger(user));
    let (Some(user), Some(ledger)) = (record.user.clone(), ledger) else {
        return Ok((files, None));
    };
    let now = text(&user)?;
    let refused = |cause| refused(&user, cause);
    let ledger = ledger.clone().follow(now.as_deref()).map_err(refused)?;
    let held = archive.held(&user, Some(record));
    let left = ledger.plan(Vec::new(), &record.moved, &held).map_err(refused)?;
    let (after, ledger) = ledger.write(now.as_deref(), left.copies).map_err(refused)?;
    files.push(FileChange { path: user, owner: Owner::User, before: now, after });
    Ok((files, Some(ledger)))
}

fn changed(files: impl IntoIterator<Item = FileChange>) -> Vec<FileChange> {
    files.into_iter().filter(|file| file.before != file.after).collect()
}

fn text(path: &Path) -> Result<Option<String>, InstallError> {
    let bytes =
        paths::read(path).map_err(|cause| EditError::Io { path: path.to_path_buf(), cause })?;
    let text = bytes.map(String::from_utf8).transpose();
    Ok(text.map_err(|_| EditError::NotText { path: path.to_path_buf() })?)
}

fn refused(path: &Path, cause: edit::EditError) -> InstallError {
    EditError::Refused { path: path.to_path_buf(), cause }.into()
}
