//! Puts our entry into a host's own file, or our package into Pi, moves the host's servers into
//! ours, and takes all of that back to the byte.

pub mod error;
pub(crate) mod pi;
mod record;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::config::install::moving::{self, Other};
use switchboard_core::config::install::{self, NAME, Presence, Target};
use switchboard_core::config::layers::Tier;

use self::error::InstallError;
use self::record::{Kept, Record, RecordFile};
use crate::edit::error::EditError;
use crate::edit::switching::is_flag;
use crate::edit::{Edited, Editor, Scope, entry_of};
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
    target: Target,
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
    /// What shall be written down; `None` to forget it.
    record: Option<Record>,
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
        if target == Target::Pi {
            return self.install_in_pi();
        }
        let path = self.file_of(target);
        let now = text(&path)?;
        let there = install::presence(target, now.as_deref().unwrap_or_default())
            .map_err(|cause| refused(&path, cause))?;
        if there == Presence::Installed && servers == Servers::Stay {
            return Ok(Plan::nothing(target));
        }
        let old = self.record_file(target).read()?;
        let user_path = match old.as_ref().and_then(|old| old.ours.as_ref()) {
            Some(kept) => kept.path.clone(),
            None => self.user_file()?,
        };
        let user_now = text(&user_path)?;
        // What an earlier time did is taken back first, so that one undo leads to the beginning.
        let (host, user) = match &old {
            None => (now.clone(), user_now.clone()),
            Some(old) => {
                (old.host_before(target, now.clone())?, old.user_before(user_now.clone())?)
            }
        };
        let host_text = host.clone().unwrap_or_default();
        let refused = |cause| refused(&path, cause);
        if install::presence(target, &host_text).map_err(refused)? == Presence::NameTaken {
            return Err(InstallError::NameTaken { path });
        }
        let command = self.command()?;
        let mut after = install::put_in(target, &host_text, &command).map_err(refused)?;
        let mut copies = Copies::default();
        if servers == Servers::Move {
            let others = moving::others(target, &host_text).map_err(refused)?;
            copies = copies_into(user.as_deref().unwrap_or_default(), others)
                .map_err(|cause| self::refused(&user_path, cause))?;
            after = install::switch_off(target, &after, &copies.moved).map_err(refused)?;
        }
        let user_after = copies.text.clone().or_else(|| user.clone());
        let ours = (copies.text.is_some() || user_now != user_after)
            .then(|| Kept::new(&user_path, user, user_after.as_deref()));
        let record = Record {
            host: Kept::new(&path, host, Some(&after)),
            ours,
            moved: copies.moved.clone(),
            copied: copies.entries,
        };
        let files = [
            FileChange { path: user_path, owner: Owner::User, before: user_now, after: user_after },
            FileChange { path, owner: Owner::Host(target), before: now, after: Some(after) },
        ];
        Ok(Plan {
            files: changed(files),
            moved: copies.moved,
            stay: copies.stay,
            record: Some(record),
            ..Plan::nothing(target)
        })
    }

    /// What it takes to have the host as it was.
    pub fn uninstall(&self, target: Target) -> Result<Plan, InstallError> {
        let record = self.record_file(target).read()?;
        if target == Target::Pi && !record.as_ref().is_some_and(pi::is_of_servers) {
            return self.uninstall_from_pi(record);
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
            return Ok(Plan { files: changed([file]), ..Plan::nothing(target) });
        };
        let files = files_before(target, &record)?;
        let host = files.iter().find(|file| file.owner == Owner::Host(target));
        let after = host.and_then(|file| file.after.as_deref()).unwrap_or_default();
        let leaves_ours = install::presence(target, after) == Ok(Presence::Installed);
        let moved = record.moved;
        Ok(Plan { files: changed(files), moved, leaves_ours, ..Plan::nothing(target) })
    }

    /// Writes what was planned: what is needed to take it back, then the files in their order. A
    /// file that somebody changed since stays as it is, and so do those after it.
    pub fn carry_out(&self, plan: &Plan) -> Result<(), InstallError> {
        let record = self.record_file(plan.target);
        if let Some(content) = &plan.record {
            record.write(content)?;
        }
        for file in &plan.files {
            self.write(file)?;
        }
        if plan.record.is_none() {
            record.remove()?;
        }
        Ok(())
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
        let Some(host) = target.host() else { return pi::settings(self.locations) };
        let files = sources::of_host(self.locations, &self.options.project, host);
        let files = files.into_iter().filter(|file| file.tier == Tier::User);
        let mut files: Vec<PathBuf> = files.map(|file| file.path).collect();
        let by_platform = matches!(target, Target::ClaudeDesktop | Target::VsCode);
        let chosen = match files.iter().position(|path| path.exists()) {
            _ if !by_platform => 0,
            Some(found) => found,
            None if cfg!(target_os = "macos") => 1,
            None => 0,
        };
        files.swap_remove(chosen)
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

    fn record_file(&self, target: Target) -> RecordFile {
        RecordFile::at(self.locations.installed_in(target))
    }
}

impl Plan {
    fn nothing(target: Target) -> Plan {
        Plan {
            target,
            files: Vec::new(),
            moved: Vec::new(),
            stay: Vec::new(),
            displaced: Vec::new(),
            leaves_ours: false,
            record: None,
        }
    }
}

/// What it takes to have the files as they were, the host's first: a server that runs twice for a
/// moment is better than one that is lost.
fn files_before(target: Target, record: &Record) -> Result<Vec<FileChange>, InstallError> {
    let path = record.host.path.clone();
    let now = text(&path)?;
    let after = record.host_before(target, now.clone())?;
    let mut files = vec![FileChange { path, owner: Owner::Host(target), before: now, after }];
    if let Some(kept) = &record.ours {
        let now = text(&kept.path)?;
        let after = record.user_before(now.clone())?;
        let path = kept.path.clone();
        files.push(FileChange { path, owner: Owner::User, before: now, after });
    }
    Ok(files)
}

/// What becomes of a host's servers.
#[derive(Default)]
struct Copies {
    /// Our file with the copies; `None` if nothing was to be copied.
    text: Option<String>,
    entries: Map<String, Value>,
    moved: Vec<String>,
    stay: Vec<Staying>,
}

fn copies_into(text: &str, others: Vec<Other>) -> Result<Copies, edit::EditError> {
    let mut copies = Copies::default();
    let mut edits = Vec::new();
    for Other { name, ours } in others {
        let Some(entry) = ours else {
            copies.stay.push(Staying { name, reason: Reason::OnlyInHost });
            continue;
        };
        match entry_of(text, &name)? {
            // It stays as it was switched here.
            (key, Some(Value::Object(flags))) if is_flag(&Value::Object(flags.clone())) => {
                let mut entry = entry;
                entry.extend(flags);
                let entry = Value::Object(entry);
                edits.push(Edit::new([key, &name], Change::Set(entry.clone())));
                copies.entries.insert(name.clone(), entry);
            }
            (_, Some(present)) => {
                let present = present.as_object();
                if !present.is_some_and(|present| moving::same(&name, present, &entry)) {
                    copies.stay.push(Staying { name, reason: Reason::Conflict });
                    continue;
                }
            }
            (key, None) => {
                let entry = Value::Object(entry);
                edits.push(Edit::new([key, &name], Change::Set(entry.clone())));
                copies.entries.insert(name.clone(), entry);
            }
        }
        copies.moved.push(name);
    }
    if !edits.is_empty() {
        copies.text = Some(edit::apply(text, &edits)?);
    }
    Ok(copies)
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
