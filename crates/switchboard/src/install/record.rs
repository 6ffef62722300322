//! What is needed to take one installation back: the host's files as they were, and what was moved.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use switchboard_core::config::install::{self, Target};
use switchboard_core::pi::settings::{self as pi, Surroundings};

use super::error::InstallError;
use super::refused;

/// One installation: our entry in one file of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    #[serde(with = "by_name")]
    pub(super) target: Target,
    pub(super) host: Kept,
    /// The host's settings, if something was added to them.
    #[serde(default)]
    pub(super) settings: Option<Kept>,
    /// The file of ours that servers were moved to; `None` if none was moved.
    pub(super) user: Option<PathBuf>,
    /// The servers that were switched off in the host.
    pub(super) moved: Vec<String>,
}

/// A file before it was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    /// `None` if there was none.
    pub(super) before: Option<String>,
    /// The hash of what we wrote.
    pub(super) after: Option<String>,
}

impl Kept {
    pub(super) fn new(path: &Path, before: Option<String>, after: Option<&str>) -> Kept {
        Kept { path: path.to_path_buf(), before, after: after.map(hash) }
    }

    /// After the file was changed again by us.
    pub(super) fn then(&self, now: Option<&str>, after: &str) -> Kept {
        match self.untouched(now) {
            Some(_) => Kept { after: Some(hash(after)), ..self.clone() },
            // What others changed would be lost with what we wrote.
            None => self.clone(),
        }
    }

    /// A host's settings without what we added.
    pub(super) fn settings_before(
        &self,
        target: Target,
        now: Option<String>,
    ) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let before = self.before.as_deref().unwrap_or_default();
        let without = install::revoke(target, &now, before);
        without.map(Some).map_err(|cause| refused(&self.path, cause))
    }

    /// The old content, if nobody but us changed the file; what is there has to be looked through
    /// otherwise.
    fn untouched(&self, now: Option<&str>) -> Option<Option<String>> {
        let ours = now.map(hash) == self.after || now == self.before.as_deref();
        ours.then(|| self.before.clone())
    }
}

impl Record {
    /// Of one file, with no server moved.
    pub(super) fn of_host(target: Target, host: Kept) -> Record {
        Record { target, host, settings: None, user: None, moved: Vec::new() }
    }

    /// The host's file without what we did to it.
    pub(super) fn host_before(&self, now: Option<String>) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.host.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let before = self.host.before.as_deref().unwrap_or_default();
        let without = install::take_back(self.target, &now, before)
            .and_then(|text| install::switch_back(self.target, &text, before, &self.moved));
        without.map(Some).map_err(|cause| refused(&self.host.path, cause))
    }

    /// Pi's settings without what we did to them.
    pub(super) fn settings_before(
        &self,
        now: Option<String>,
        with: Surroundings<'_>,
    ) -> Result<Option<String>, InstallError> {
        if let Some(before) = self.host.untouched(now.as_deref()) {
            return Ok(before);
        }
        let Some(now) = now else { return Ok(None) };
        let before = self.host.before.as_deref().unwrap_or_default();
        let without = pi::take_back(&now, before, with);
        without.map(Some).map_err(|cause| refused(&self.host.path, cause))
    }
}

pub(super) fn hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

mod by_name {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchboard_core::config::install::Target;

    pub(super) fn serialize<S: Serializer>(target: &Target, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(target.as_str())
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Target, D::Error> {
        let word = String::deserialize(from)?;
        Target::from_word(&word).ok_or_else(|| D::Error::custom("unknown host"))
    }
}
