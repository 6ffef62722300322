//! The copies of hosts' servers in one file of the user, and the file without them.
//!
//! Several installations may need a copy, so the copies belong to the file, not to an installation.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_core::config::edit::{self, Change, Edit, EditError};
use switchboard_core::config::install::moving::{self, HostServer};

use super::record::hash;
use super::{Reason, Staying};
use crate::edit::entry_of;
use crate::edit::switching::is_flag;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ledger {
    pub(super) path: PathBuf,
    /// The text of the user's file without any copy; `None` if the file did not exist.
    base: Option<String>,
    /// Whether an installation created the directory of the file.
    pub(super) made_directory: bool,
    /// Hashes of the file before and after the last write. Any other content is an edit by hand.
    known: Vec<Option<String>>,
    layout: Layout,
    /// The copies of hosts' servers, in the order in which they were added.
    pub(super) copies: Vec<Copy>,
}

/// The entry of a host's server, as it was copied into the user's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Copy {
    pub(super) name: String,
    pub(super) entry: Map<String, Value>,
}

/// How the copies are arranged in the user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Layout {
    /// The copies are appended to `base` in this order, so `base` and the copies determine the
    /// text.
    Appended,
    /// The file was edited by hand between two writes.
    Mixed,
}

/// Which servers of a host are moved, and which stay.
#[derive(Clone, Debug, Default)]
pub(super) struct Moving {
    pub(super) moved: Vec<String>,
    pub(super) stay: Vec<Staying>,
    /// The copies that the user's file contains after the move.
    pub(super) copies: Vec<Copy>,
}

impl Ledger {
    /// The ledger of a file without copies.
    pub(super) fn new(path: &Path, now: Option<String>) -> Ledger {
        let made_directory = !path.parent().is_some_and(Path::is_dir);
        let known = vec![now.as_deref().map(hash)];
        Ledger { made_directory, known, ..Ledger::of(path, now, Vec::new()) }
    }

    /// A ledger with these copies, for a file of which no content is known yet.
    pub(super) fn of(path: &Path, base: Option<String>, copies: Vec<Copy>) -> Ledger {
        let (path, layout) = (path.to_path_buf(), Layout::Appended);
        Ledger { path, base, made_directory: false, known: Vec::new(), layout, copies }
    }

    /// Records the current content of the file as known, so it does not count as an edit by hand.
    pub(super) fn unchanged_since(mut self, now: Option<&str>) -> Ledger {
        self.known.push(now.map(hash));
        self
    }

    /// Adopts edits by hand: a copy that differs from the written one belongs to the user.
    pub(super) fn follow(mut self, now: Option<&str>) -> Result<Ledger, EditError> {
        if self.known.contains(&now.map(hash)) || now == self.base.as_deref() {
            return Ok(self);
        }
        let text = now.unwrap_or_default();
        let mut copies = Vec::new();
        for copy in &self.copies {
            let (_, entry) = entry_of(text, &copy.name)?;
            if entry.as_ref().and_then(Value::as_object) == Some(&copy.entry) {
                copies.push(copy.clone());
            }
        }
        self.base = match now {
            None => None,
            Some(text) => Some(edit::apply(text, &self.removals(text, copies.iter())?)?),
        };
        self.copies = copies;
        self.layout = Layout::Mixed;
        self.known = vec![now.map(hash)];
        Ok(self)
    }

    /// Plans which of a host's servers are copied. `before` are the servers that the same
    /// installation moved earlier; `held` are those that other installations need.
    pub(super) fn plan(
        &self,
        others: Vec<HostServer>,
        before: &[String],
        held: &HashSet<&str>,
    ) -> Result<Moving, EditError> {
        let mut moving = Moving { copies: self.copies.clone(), ..Moving::default() };
        let base = self.base.as_deref().unwrap_or_default();
        for HostServer { name, ours } in others {
            let Some(mut entry) = ours else {
                moving.stay.push(Staying { name, reason: Reason::OnlyInHost });
                continue;
            };
            match entry_of(base, &name)?.1 {
                // The copy gets the user's `disabled` flag for this server.
                Some(Value::Object(flags)) if is_flag(&Value::Object(flags.clone())) => {
                    entry.extend(flags);
                }
                Some(present) => {
                    let present = present.as_object();
                    match present
                        .is_some_and(|present| moving::defines_same(&name, present, &entry))
                    {
                        true => moving.moved.push(name),
                        false => moving.stay.push(Staying { name, reason: Reason::Conflict }),
                    }
                    continue;
                }
                None => {}
            }
            match moving.copies.iter_mut().find(|copy| copy.name == name) {
                Some(copy) if moving::defines_same(&name, &copy.entry, &entry) => {}
                Some(_) if held.contains(&*name) || !before.contains(&name) => {
                    moving.stay.push(Staying { name, reason: Reason::Conflict });
                    continue;
                }
                Some(copy) => copy.entry = entry,
                None => moving.copies.push(Copy { name: name.clone(), entry }),
            }
            moving.moved.push(name);
        }
        let moved = &moving.moved;
        moving.copies.retain(|Copy { name, .. }| {
            moved.contains(name) || held.contains(&**name) || !before.contains(name)
        });
        Ok(moving)
    }

    /// The text of the user's file with these copies, and the new ledger of the file.
    pub(super) fn write(
        &self,
        now: Option<&str>,
        copies: Vec<Copy>,
    ) -> Result<(Option<String>, Ledger), EditError> {
        let text = match self.layout {
            _ if copies.is_empty() => self.base.clone(),
            Layout::Appended => {
                let base = self.base.as_deref().unwrap_or_default();
                Some(edit::apply(base, &additions(base, &copies)?)?)
            }
            Layout::Mixed => {
                let now = now.unwrap_or_default();
                let is_kept = |copy: &&Copy| copies.iter().any(|kept| kept.name == copy.name);
                let gone = self.copies.iter().filter(|copy| !is_kept(copy));
                let mut edits = additions(now, &copies)?;
                edits.extend(self.removals(now, gone)?);
                Some(edit::apply(now, &edits)?)
            }
        };
        let layout = if copies.is_empty() { Layout::Appended } else { self.layout };
        let known = vec![now.map(hash), text.as_deref().map(hash)];
        Ok((text, Ledger { copies, known, layout, ..self.clone() }))
    }

    /// Edits that remove copies from a text. A `disabled` flag that a copy replaced is restored.
    fn removals<'c>(
        &self,
        text: &str,
        copies: impl Iterator<Item = &'c Copy>,
    ) -> Result<Vec<Edit>, EditError> {
        let base = self.base.as_deref().unwrap_or_default();
        let mut edits = Vec::new();
        for Copy { name, .. } in copies {
            let (key, _) = entry_of(text, name)?;
            let old = entry_of(base, name)?.1;
            edits.push(Edit::new([key, name], old.map_or(Change::Remove, Change::Set)));
        }
        Ok(edits)
    }
}

fn additions(text: &str, copies: &[Copy]) -> Result<Vec<Edit>, EditError> {
    let mut edits = Vec::new();
    for Copy { name, entry } in copies {
        let (key, _) = entry_of(text, name)?;
        edits.push(Edit::new([key, name], Change::Set(Value::Object(entry.clone()))));
    }
    Ok(edits)
}
