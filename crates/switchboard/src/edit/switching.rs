//! The `disabled` flag of a server: setting and removing it.

use serde_json::Value;
use switchboard_core::config::edit::{Change, Edit};
use switchboard_core::name::ServerName;

use super::error::EditRefusal;
use super::{NextText, find, schema_file, with};

/// The content of a server's entry in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryContent {
    /// The entry has only `disabled` or `enabled`; another file may define the server.
    Flag,
    More,
}

impl EntryContent {
    pub(super) fn of(entry: &Value) -> EntryContent {
        if is_flag(entry) { EntryContent::Flag } else { EntryContent::More }
    }
}

/// Whether an entry has only `disabled` or `enabled`.
pub(crate) fn is_flag(entry: &Value) -> bool {
    let is_flag = |key: &String| matches!(key.as_str(), "disabled" | "enabled");
    entry.as_object().is_some_and(|entry| !entry.is_empty() && entry.keys().all(is_flag))
}

/// The program that would create a file that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MadeFor {
    Us,
    /// The file was named on the command line, so another program or the user creates it.
    Others,
}

/// The text with a `disabled` flag for a server.
pub(super) fn flagged(
    text: &str,
    server: &ServerName,
    disabled: bool,
) -> Result<NextText, EditRefusal> {
    let (key, _) = find(text, server)?;
    let flag = Change::Set(disabled.into());
    with(text, &[Edit::new([key, server.as_str(), "disabled"], flag)])
}

/// Removes the fields that disable a server, and the entry if it has no other field.
pub(super) fn switched_on(
    text: &str,
    server: &ServerName,
    file: MadeFor,
) -> Result<NextText, EditRefusal> {
    let (key, Some(Value::Object(entry))) = find(text, server)? else {
        return Ok(Some(text.to_owned()));
    };
    let turns_off = |field: &str| match field {
        "disabled" => entry.get("disabled") == Some(&Value::Bool(true)),
        "enabled" => entry.get("enabled") == Some(&Value::Bool(false)),
        _ => false,
    };
    if !entry.keys().all(|field| turns_off(field)) {
        let flags = entry.keys().filter(|field| turns_off(field));
        let remove = |field| Edit::new([key, server.as_str(), field], Change::Remove);
        return with(text, &flags.map(|field| remove(field.as_str())).collect::<Vec<_>>());
    }
    without_flag(text, server, file)
}

/// Removes an entry that is only a flag, and what was created to hold it: the object of servers, or
/// the file.
pub(super) fn without_flag(
    text: &str,
    server: &ServerName,
    file: MadeFor,
) -> Result<NextText, EditRefusal> {
    let (key, _) = find(text, server)?;
    let made_of = |before: &str| -> Result<bool, EditRefusal> {
        Ok(flagged(before, server, true)?.as_deref() == Some(text))
    };
    if file == MadeFor::Us && (made_of("")? || made_of(&schema_file::start())?) {
        return Ok(None);
    }
    let without_holder = with(text, &[Edit::new([key], Change::Remove)])?.unwrap_or_default();
    if made_of(&without_holder)? {
        return Ok(Some(without_holder));
    }
    with(text, &[Edit::new([key, server.as_str()], Change::Remove)])
}
