//! Edits configuration files for the user: chooses the file, and refuses invalid changes.

pub mod error;
mod request;
mod rules;
mod schema_file;
mod setting;
mod standing;
pub(crate) mod switching;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::config::hosts::Host;
use switchboard_core::config::layers::{Config, Server, Tier, Trust};
use switchboard_core::config::snippet;
use switchboard_core::name::ServerName;

use self::error::{EditError, EditRefusal};
pub use self::request::{EditEffect, Edited, Existing, NewServer, Scope, Switch};
pub use self::rules::Rules;
use self::standing::{Standing, standing, unknown};
use self::switching::{EntryContent, MadeFor, flagged, switched_on, without_flag};
use crate::env::Environment;
use crate::load::{LoadError, LoadOptions, Loaded, load, user_file};
use crate::paths::{self, Paths};
use crate::shared_file::{Privacy, SharedFile};
use crate::trust::TrustStore;

/// Edits the configuration files of the user and the project.
#[derive(Clone, Debug)]
pub struct Editor<'a> {
    environment: &'a Environment,
    locations: &'a Paths,
    options: LoadOptions,
}

/// The keys for servers in a configuration file. The first is written, unless the file has only the
/// second.
const SERVER_KEYS: [&str; 2] = ["mcpServers", "mcp-servers"];

impl<'a> Editor<'a> {
    /// An editor for the files of this user and project.
    pub fn new(
        environment: &'a Environment,
        locations: &'a Paths,
        options: LoadOptions,
    ) -> Editor<'a> {
        Editor { environment, locations, options }
    }

    /// The file that a scope's servers are written to.
    pub fn file(&self, scope: Scope) -> PathBuf {
        match scope {
            Scope::User => user_file(self.environment, self.locations, &self.options),
            Scope::Project => self.options.project.join(".mcp.json"),
        }
    }

    /// The file for the user's overrides of a project's servers, so that the project's shared files
    /// stay unchanged.
    fn project_overrides(&self) -> PathBuf {
        self.options.project.join(".switchboard/mcp.json")
    }

    /// Adds servers to the file of a scope. If one of them is refused, none is added.
    pub fn add(
        &self,
        scope: Scope,
        servers: &[NewServer],
        existing: Existing,
        effect: EditEffect,
    ) -> Result<Edited, EditError> {
        check(scope, servers)?;
        self.change(&self.file(scope), effect, |text| adding(text, servers, existing))
    }

    /// Creates the user's configuration file, without servers in it.
    pub fn create(&self) -> Result<Edited, EditError> {
        let empty = Edit::new([SERVER_KEYS[0]], Change::Set(Value::Object(Map::new())));
        self.write(&self.file(Scope::User), |text| with(text, std::slice::from_ref(&empty)))
    }

    /// Whether any configuration file names this server.
    pub fn is_taken(&self, server: &ServerName) -> Result<bool, EditError> {
        for path in [self.file(Scope::User), self.file(Scope::Project)] {
            if self.content_of(&path, server)?.is_some() {
                return Ok(true);
            }
        }
        Ok(standing(&self.load()?, server).is_some())
    }

    /// A configuration with only this server, to try it before it is added. The server is treated
    /// as the user's own, because the user typed it.
    pub fn trial(&self, server: &NewServer) -> Result<Config, EditError> {
        let NewServer { name, entry } = server;
        let bad = |cause| EditError::BadDefinition { server: name.clone(), cause };
        let definition = snippet::check(name.as_str(), entry, Tier::User).map_err(bad)?;
        let transport = definition.transport(name.as_str()).map_err(bad)?;
        let server = Server { definition, transport, trust: Trust::UserFile };
        let servers = BTreeMap::from([(name.to_string(), server)]);
        Ok(Config { servers, pending: Vec::new(), ..self.load()?.config })
    }

    /// Appends hosts to the user's imports, except those already listed.
    pub fn add_imports(&self, hosts: &[Host], effect: EditEffect) -> Result<Edited, EditError> {
        let add = |host: &Host| Edit::new(["imports"], Change::AddItem(host.as_str().into()));
        let edits: Vec<Edit> = hosts.iter().map(add).collect();
        self.change(&self.file(Scope::User), effect, |text| with(text, &edits))
    }

    /// Approves project servers that the user has just typed; returns their names. A server whose
    /// definition other files change stays pending.
    pub fn approve_added(&self, servers: &[NewServer]) -> Result<Vec<ServerName>, EditError> {
        let loaded = self.load()?;
        let store = TrustStore::at(self.locations.trust());
        let mut approved = Vec::new();
        for NewServer { name: server, entry } in servers {
            let Ok(typed) = snippet::check(server.as_str(), entry, Tier::Project) else { continue };
            let pending = loaded.config.pending.iter().find(|pending| {
                let mut definition = pending.definition.clone();
                definition.origins.clear();
                pending.name == server.as_str() && definition == typed
            });
            if let Some(pending) = pending {
                store.approve(&pending.hash, &pending.name, &self.options.project)?;
                approved.push(server.clone());
            }
        }
        Ok(approved)
    }

    /// Removes a server from its file; `scope` chooses the file if several define the server. If no
    /// file defines the server any more, its `disabled` flags are removed, too.
    pub fn remove(
        &self,
        server: &ServerName,
        scope: Option<Scope>,
    ) -> Result<Vec<Edited>, EditError> {
        let mut files = Vec::new();
        if scope != Some(Scope::Project) {
            files.push(self.file(Scope::User));
        }
        if scope != Some(Scope::User) {
            files.extend([self.file(Scope::Project), self.project_overrides()]);
        }
        let (mut defined, mut flags) = (None, Vec::new());
        for path in files {
            match self.content_of(&path, server) {
                Ok(Some(EntryContent::Flag)) => flags.push(path),
                Ok(Some(EntryContent::More)) => defined = defined.or(Some(path)),
                Ok(None) => {}
                // The server was found, so an error in a file of lower precedence does not matter.
                Err(_) if defined.is_some() => {}
                Err(error) => return Err(error),
            }
        }
        let mut edited = Vec::new();
        if let Some(path) = &defined {
            // The file may have the server under both `mcpServers` and `mcp-servers`.
            let remove = |key| Edit::new([key, server.as_str()], Change::Remove);
            edited.push(self.write(path, |text| with(text, &SERVER_KEYS.map(remove)))?);
        }
        let loaded = self.load()?;
        match (&defined, standing(&loaded, server)) {
            (Some(_), Some(_)) => return Ok(edited),
            (None, Some(_)) if scope.is_some() && !flags.is_empty() => {}
            (None, Some(Standing { file, .. })) => {
                let path = file.into();
                return Err(EditError::Elsewhere { server: server.clone(), path });
            }
            (None, None) if flags.is_empty() => return Err(unknown(server, &loaded)),
            (Some(_) | None, None) => {}
        }
        for path in flags {
            edited
                .push(self.write(&path, |text| without_flag(text, server, self.made_for(&path)))?);
        }
        Ok(edited)
    }

    /// Enables or disables a server. The flag is written to the user's file; for a project's
    /// server, to the user's overrides of the project.
    pub fn switch(&self, server: &ServerName, switch: Switch) -> Result<Edited, EditError> {
        let loaded = self.load()?;
        let user = self.file(Scope::User);
        let path = match (self.content_of(&user, server)?, standing(&loaded, server)) {
            (Some(EntryContent::More), _) | (Some(EntryContent::Flag), Some(_)) => user,
            (None, Some(Standing { tier: Tier::User, .. })) => user,
            (None, Some(Standing { tier: Tier::Project, .. })) => self.project_overrides(),
            (Some(EntryContent::Flag) | None, None) => return Err(unknown(server, &loaded)),
        };
        let set = |disabled: bool| self.write(&path, |text| flagged(text, server, disabled));
        if switch == Switch::Off {
            return set(true);
        }
        let edited = self.write(&path, |text| switched_on(text, server, self.made_for(&path)))?;
        // If a file of lower precedence still disables the server, this file gets `disabled:
        // false`.
        if standing(&self.load()?, server).is_none_or(|standing| !standing.is_disabled) {
            return Ok(edited);
        }
        let Edited { path, after, .. } = set(false)?;
        Ok(Edited { path, before: edited.before, after })
    }

    fn load(&self) -> Result<Loaded, EditError> {
        Ok(load(self.environment, self.locations, &self.options)?)
    }

    fn content_of(
        &self,
        path: &Path,
        server: &ServerName,
    ) -> Result<Option<EntryContent>, EditError> {
        let found = find(&self.text(path)?, server);
        let (_, entry) = found.map_err(|refusal| refusal.at(path))?;
        Ok(entry.as_ref().map(EntryContent::of))
    }

    fn text(&self, path: &Path) -> Result<String, EditError> {
        Ok(text_of(path)?.unwrap_or_default())
    }

    /// Refuses a missing file that was named on the command line: such a file is not created.
    fn refuse_missing(&self, path: &Path) -> Result<(), EditError> {
        if self.made_for(path) == MadeFor::Others && !path.exists() {
            return Err(LoadError::Missing { path: path.to_path_buf() }.into());
        }
        Ok(())
    }

    fn made_for(&self, path: &Path) -> MadeFor {
        let is_named = self.options.config.is_some() && path == self.file(Scope::User);
        if is_named { MadeFor::Others } else { MadeFor::Us }
    }

    /// Changes a file, or only computes the change, as `effect` says.
    fn change(
        &self,
        path: &Path,
        effect: EditEffect,
        change: impl Fn(&str) -> Result<NextText, EditRefusal>,
    ) -> Result<Edited, EditError> {
        if effect == EditEffect::Written {
            return self.write(path, change);
        }
        self.refuse_missing(path)?;
        let before = self.text(path)?;
        let after = self.changed(path, &before, change)?.unwrap_or_default();
        Ok(Edited { path: path.to_path_buf(), before, after })
    }

    /// The text of a file after an edit. A new user file starts with a reference to its schema.
    fn changed(
        &self,
        path: &Path,
        before: &str,
        change: impl Fn(&str) -> Result<NextText, EditRefusal>,
    ) -> Result<NextText, EditError> {
        let at = |refusal: EditRefusal| refusal.at(path);
        if !before.is_empty() || !self.is_default(path) {
            return change(before).map_err(at);
        }
        let start = schema_file::start();
        match change(&start).map_err(at)? {
            Some(after) if after == start => Ok(Some(String::new())),
            next => Ok(next),
        }
    }

    fn is_default(&self, path: &Path) -> bool {
        self.options.config.is_none() && path == self.locations.user_config()
    }

    /// Changes one file atomically.
    fn write(
        &self,
        path: &Path,
        change: impl Fn(&str) -> Result<NextText, EditRefusal>,
    ) -> Result<Edited, EditError> {
        self.refuse_missing(path)?;
        let privacy = if path.starts_with(&self.options.project) && path != self.file(Scope::User) {
            Privacy::Usual
        } else {
            Privacy::Private
        };
        let failed = |cause| EditError::Io { path: path.to_path_buf(), cause };
        let file = SharedFile::elsewhere(path, &self.locations.locks(), privacy).map_err(failed)?;
        // A repository may contain a symbolic link that leads out of the project.
        let root = self.options.project.canonicalize().map_err(failed)?;
        if privacy == Privacy::Usual && !file.path().starts_with(root) {
            return Err(EditError::LeadsOut { path: path.to_path_buf() });
        }
        let mut next = None;
        let updated = file.update(|before| {
            let before = std::str::from_utf8(before.unwrap_or_default())
                .map_err(|_| EditError::NotText { path: path.to_path_buf() })?;
            let (before, after) = (before.to_owned(), self.changed(path, before, &change)?);
            let changed = after.clone().filter(|after| *after != before);
            next = Some((before, after));
            Ok(changed.map(String::into_bytes))
        });
        let done = match (updated, &next) {
            (Ok(()), Some((before, None))) => file.remove(|now| match now {
                Some(now) if now != before.as_bytes() => {
                    Err(failed(io::ErrorKind::ResourceBusy.into()))
                }
                Some(_) | None => Ok(()),
            }),
            (updated, _) => updated,
        };
        done.map_err(|error| error.or_io(failed))?;
        let (before, after) = next.ok_or_else(|| failed(io::ErrorKind::ResourceBusy.into()))?;
        let is_gone = after.is_none();
        if is_gone && path == self.project_overrides() {
            // The directory was created for the file; it is removed if it is empty.
            let _in_use = path.parent().map(std::fs::remove_dir);
        }
        let after = after.unwrap_or_default();
        match (self.is_default(path), is_gone) {
            (true, true) => schema_file::remove(path),
            (true, false) => schema_file::keep(path, &after, &self.locations.locks()),
            (false, _) => {}
        }
        Ok(Edited { path: path.to_path_buf(), before, after })
    }
}

/// The new text of a file; `None` removes the file.
type NextText = Option<String>;

/// The text of a file; `None` if it does not exist.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, EditError> {
    let path = || path.to_path_buf();
    let bytes = paths::read(&path()).map_err(|cause| EditError::Io { path: path(), cause })?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| EditError::NotText { path: path() })
}

fn with(text: &str, edits: &[Edit]) -> Result<NextText, EditRefusal> {
    edit::apply(text, edits).map(Some).map_err(EditRefusal::Text)
}

/// Refuses servers that would be invalid in the files of a scope.
fn check(scope: Scope, servers: &[NewServer]) -> Result<(), EditError> {
    let tier = match scope {
        Scope::User => Tier::User,
        Scope::Project => Tier::Project,
    };
    servers.iter().try_for_each(|NewServer { name: server, entry }| {
        let bad = |cause| EditError::BadDefinition { server: server.clone(), cause };
        snippet::check(server.as_str(), entry, tier).map(drop).map_err(bad)
    })
}

fn adding(text: &str, servers: &[NewServer], existing: Existing) -> Result<NextText, EditRefusal> {
    let mut edits = Vec::new();
    for NewServer { name: server, entry } in servers {
        let (key, present) = find(text, server)?;
        if present.is_some() && existing == Existing::Refuse {
            return Err(EditRefusal::Exists(server.clone()));
        }
        let entry = Change::Set(Value::Object(entry.clone()));
        edits.push(Edit::new([key, server.as_str()], entry));
    }
    with(text, &edits)
}

/// The key under which a file has, or would have, a server, and the server's entry in the file.
fn find(text: &str, server: &ServerName) -> Result<(&'static str, Option<Value>), EditRefusal> {
    entry_of(text, server.as_str()).map_err(EditRefusal::Text)
}

/// Like `find`, for a name that need not be a valid server name.
pub(crate) fn entry_of(
    text: &str,
    server: &str,
) -> Result<(&'static str, Option<Value>), edit::EditError> {
    let mut key = None;
    for candidate in SERVER_KEYS {
        let entry = edit::value_at(text, &[candidate, server])?;
        if entry.is_some() {
            return Ok((candidate, entry));
        }
        let holder = edit::value_at(text, &[candidate])?;
        key = key.or(holder.map(|_| candidate));
    }
    Ok((key.unwrap_or(SERVER_KEYS[0]), None))
}
