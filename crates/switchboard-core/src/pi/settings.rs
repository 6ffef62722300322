//! Edits of Pi's settings: adds our package and disables Pi's built-in MCP, and undoes both.

use serde_json::Value as Json;

use crate::config::edit::{self, Change, Edit, EditError};

/// The name of our package on npm and in its `package.json`.
pub const PACKAGE: &str = "pi-switchboard";
/// Another package that registers the same commands, so that Pi cannot load both.
pub const RIVAL: &str = "pi-mcp-adapter";

pub(crate) const PACKAGES: &str = "packages";
pub(crate) const EXTENSIONS: &str = "extensions";
/// The items of `extensions` that disable and enable Pi's built-in MCP.
const OFF: &str = "-builtin:mcp";
const ON: &str = "+builtin:mcp";

/// Which package is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalPackage {
    Ours,
    /// A package with another name.
    Other,
    Nothing,
}

/// The directory of our package, and a function that tells which package is at a path.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub directory: &'a str,
    pub look: &'a dyn Fn(&str) -> LocalPackage,
}

/// Our package, its rivals and the built-in MCP support, as Pi's settings declare them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// The sources of our package, as they are written in the settings.
    pub ours: Vec<String>,
    /// The paths to our package that do not exist.
    pub lost: Vec<String>,
    pub rivals: Vec<String>,
    pub built_in: BuiltIn,
}

/// Whether Pi's built-in MCP is enabled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BuiltIn {
    #[default]
    On,
    Off,
}

/// The changed settings, with the changes to report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    pub text: String,
    /// The packages that were removed because they register the same commands.
    pub displaced: Vec<String>,
    /// Whether Pi loads our package from our directory.
    pub in_our_directory: bool,
}

pub fn declared(text: &str, with: Surroundings<'_>) -> Result<Declared, EditError> {
    let mut declared = Declared { built_in: built_in(text)?, ..Declared::default() };
    for source in list(text, PACKAGES)?.iter().filter_map(source) {
        let kind = match kind(source, with) {
            PackageKind::Ours => &mut declared.ours,
            PackageKind::Lost => &mut declared.lost,
            PackageKind::Rival => &mut declared.rivals,
            PackageKind::Other => continue,
        };
        kind.push(source.to_owned());
    }
    Ok(declared)
}

/// Adds our package, unless the settings already contain it, and disables Pi's built-in MCP.
pub fn install(text: &str, with: Surroundings<'_>) -> Result<Put, EditError> {
    let before = declared(text, with)?;
    let mut edits = Vec::new();
    let present = |source: &String| source == with.directory || !before.lost.contains(source);
    let usable = before.ours.iter().chain(&before.lost).filter(|source| present(source));
    let usable: Vec<&String> = usable.collect();
    let in_our_directory = usable.is_empty() || usable.contains(&&with.directory.to_owned());
    if usable.is_empty() {
        edits.push(Edit::new([PACKAGES], Change::AddItem(with.directory.into())));
    }
    for item in list(text, PACKAGES)? {
        let goes = source(&item).is_some_and(|source| match kind(source, with) {
            PackageKind::Rival => true,
            PackageKind::Lost => source != with.directory,
            PackageKind::Ours | PackageKind::Other => false,
        });
        if goes {
            edits.push(Edit::new([PACKAGES], Change::RemoveItem(item)));
        }
    }
    if before.built_in == BuiltIn::On {
        edits.push(Edit::new([EXTENSIONS], Change::AddItem(OFF.into())));
    }
    if list(text, EXTENSIONS)?.contains(&ON.into()) {
        edits.push(Edit::new([EXTENSIONS], Change::RemoveItem(ON.into())));
    }
    let text = edit::apply(text, &edits)?;
    Ok(Put { text, displaced: before.rivals, in_our_directory })
}

/// Removes our package and enables Pi's built-in MCP, even if the user made these settings.
pub fn uninstall(text: &str, with: Surroundings<'_>) -> Result<String, EditError> {
    let ours = |item: &Json| match source(item).map(|source| kind(source, with)) {
        Some(PackageKind::Ours | PackageKind::Lost) => true,
        Some(PackageKind::Rival | PackageKind::Other) | None => false,
    };
    let gone = list(text, PACKAGES)?.into_iter().filter(ours);
    let mut edits: Vec<Edit> =
        gone.map(|item| Edit::new([PACKAGES], Change::RemoveItem(item))).collect();
    if !edits.is_empty() {
        edits.push(Edit::new([EXTENSIONS], Change::RemoveItem(OFF.into())));
    }
    edit::apply(text, &edits)
}

/// Undoes our changes to the settings `before`. Other changes since then are preserved.
pub fn undo(text: &str, before: &str, with: Surroundings<'_>) -> Result<String, EditError> {
    let after = install(before, with)?.text;
    let mut edits = Vec::new();
    for key in [PACKAGES, EXTENSIONS] {
        let (then, done, now) = (list(before, key)?, list(&after, key)?, list(text, key)?);
        let ours = |item: &&Json| !then.contains(item) && now.contains(item);
        let displaced = |item: &&Json| !done.contains(item) && !now.contains(item);
        let added: Vec<&Json> = done.iter().filter(ours).collect();
        let missing: Vec<&Json> = then.iter().filter(displaced).collect();
        let put_back = |item: &&Json| Edit::new([key], Change::AddItem((*item).clone()));
        let take_away = |item: &&Json| Edit::new([key], Change::RemoveItem((*item).clone()));
        edits.extend(missing.iter().map(put_back));
        edits.extend(added.iter().map(take_away));
        // A list that we created is removed with its last item.
        let empty = missing.is_empty() && added.len() == now.len();
        if empty && edit::value_at(before, &[key])?.is_none() {
            edits.push(Edit::new([key], Change::Remove));
        }
    }
    edit::apply(text, &edits)
}

enum PackageKind {
    Ours,
    /// A path for our package that does not exist.
    Lost,
    Rival,
    Other,
}

fn kind(source: &str, with: Surroundings<'_>) -> PackageKind {
    const REMOTE: [&str; 6] = ["npm:", "git:", "github:", "http:", "https:", "ssh:"];
    let name = name(source);
    let is_local = !REMOTE.iter().any(|scheme| source.starts_with(scheme));
    let found = if is_local { (with.look)(source) } else { LocalPackage::Other };
    match found {
        LocalPackage::Ours => PackageKind::Ours,
        LocalPackage::Nothing if name == PACKAGE => PackageKind::Lost,
        LocalPackage::Other if name == PACKAGE && !is_local => PackageKind::Ours,
        LocalPackage::Nothing | LocalPackage::Other if name == RIVAL => PackageKind::Rival,
        LocalPackage::Nothing | LocalPackage::Other => PackageKind::Other,
    }
}

/// The name of a package in its source: the last part, without the version.
fn name(source: &str) -> &str {
    let end = source.trim().trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    let name = end.split(['@', '#']).next().unwrap_or_default();
    name.strip_suffix(".git").unwrap_or(name)
}

/// The source of a package, which is a string or an object with `source`.
fn source(item: &Json) -> Option<&str> {
    item.as_str().or_else(|| item.get("source")?.as_str())
}

/// Whether Pi enables its built-in MCP. As in Pi, `-` takes precedence over `+`, and `+` over a
/// pattern after `!`.
fn built_in(text: &str) -> Result<BuiltIn, EditError> {
    let items = list(text, EXTENSIONS)?;
    let has = |word: &str| items.iter().any(|item| item == word);
    let excluded = has("!builtin:mcp") || has("!builtin:*");
    Ok(if has(OFF) || (excluded && !has(ON)) { BuiltIn::Off } else { BuiltIn::On })
}

/// The items of the list `key`; empty if the key is not set.
fn list(text: &str, key: &str) -> Result<Vec<Json>, EditError> {
    let wrong = |key: &str, expected| EditError::WrongType { key: key.to_owned(), expected };
    match edit::value_at(text, &[])? {
        None | Some(Json::Object(_)) => {}
        Some(_) => return Err(wrong("(root)", "an object")),
    }
    match edit::value_at(text, &[key])? {
        None => Ok(Vec::new()),
        Some(Json::Array(items)) => Ok(items),
        Some(_) => Err(wrong(key, "an array")),
    }
}

#[cfg(test)]
mod tests;
