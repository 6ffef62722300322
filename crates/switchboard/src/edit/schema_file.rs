//! The JSON Schema beside the user's file, for completion and checks in editors.

use std::path::Path;
use std::{fs, io};

use serde_json::Value;
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::config::schema;

use crate::paths;
use crate::shared_file::{Privacy, SharedFile};

const NAME: &str = "mcp.schema.json";
const KEY: &str = "$schema";
const REFERENCE: &str = "./mcp.schema.json";

/// The initial text of a new configuration file.
pub(super) fn start() -> String {
    let reference = Edit::new([KEY], Change::Set(REFERENCE.into()));
    edit::apply("", &[reference]).unwrap_or_default()
}

/// Writes the schema of this version beside a file that refers to it.
pub(super) fn keep(file: &Path, text: &str, locks: &Path) {
    let reference = edit::value_at(text, &[KEY]).ok().flatten();
    if reference.as_ref().and_then(Value::as_str) != Some(REFERENCE) {
        return;
    }
    let (path, schema) = (file.with_file_name(NAME), text_of_schema());
    if is(&path, &schema) || is_of_another_program(&path) {
        return;
    }
    // An error is only logged: the configuration is written, and only editors use the schema.
    if let Err(error) = write(&path, &schema, locks) {
        tracing::warn!(file = NAME, %error, "cannot write the schema of the configuration");
    }
}

/// Removes the schema together with the configuration file, unless it was edited.
pub(super) fn remove(file: &Path) {
    let path = file.with_file_name(NAME);
    if is(&path, &text_of_schema()) {
        let _gone_already = fs::remove_file(path);
    }
}

fn text_of_schema() -> Vec<u8> {
    format!("{:#}\n", schema::file()).into_bytes()
}

fn is(path: &Path, schema: &[u8]) -> bool {
    matches!(paths::read(path), Ok(Some(there)) if there == schema)
}

/// Whether the path is not Switchboard's schema, but a link, or a schema with another title.
fn is_of_another_program(path: &Path) -> bool {
    let Ok(found) = path.symlink_metadata() else { return false };
    let title = |text: &[u8]| {
        let schema = serde_json::from_slice::<Value>(text).ok()?;
        Some(schema.get("title")?.clone())
    };
    let ours = title(&text_of_schema());
    let theirs = paths::read(path).ok().flatten().and_then(|text| title(&text));
    !found.is_file() || theirs != ours
}

fn write(path: &Path, schema: &[u8], locks: &Path) -> io::Result<()> {
    let file = SharedFile::elsewhere(path, locks, Privacy::Private)?;
    file.update(|_| Ok(Some(schema.to_vec()))).map_err(|error| error.or_io(|error| error))
}
