//! Expands the values of a definition without reading environment variables, and finds the
//! variables in which programs search for code.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{paths_in, words_in};
use switchboard_core::config::values::TemplateMap;

use super::place::{Belongs, NamedDirectory, Project, Written};
use super::scripts::{Coverage, OTHER_FILES};
use crate::env::Environment;

/// Variables with directories that programs load code or settings from. If such a variable names
/// the project's own directory, new file names in that directory change the hash.
const SEARCHED: [&str; 24] = [
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "NODE_PATH",
    "RUBYLIB",
    "GEM_PATH",
    "GEM_HOME",
    "PERL5LIB",
    "PERLLIB",
    "LUA_PATH",
    "LUA_CPATH",
    "CLASSPATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GIT_EXEC_PATH",
    "GOPATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_DIRS",
];

pub(super) fn is_searched(name: &str) -> bool {
    SEARCHED.contains(&name)
}

/// Collects descriptions of values that cannot be expanded, for the user.
pub(super) struct Unread<'c>(pub(super) &'c mut Vec<String>);

impl Unread<'_> {
    fn add(&mut self, what: String) {
        let Unread(known) = self;
        if !known.contains(&what) {
            known.push(what);
        }
    }
}

/// The working directory of the server, which relative paths are based on.
pub(super) fn working_directory(
    entry: &ServerEntry,
    project: &Path,
    expanded: &dyn Fn(&str) -> Option<String>,
    unread: &mut Unread<'_>,
) -> PathBuf {
    let Some(cwd) = &entry.cwd else { return project.to_owned() };
    match expanded(cwd.source()) {
        Some(cwd) => project.join(cwd),
        None => {
            unread.add(format!("files in {:?}, whose variables are not read", cwd.source()));
            project.to_owned()
        }
    }
}

/// Whether programs would run in a directory that the project controls: in the project, in a
/// directory around it, or at a relative path.
pub(super) fn runs_in_project(
    entry: &ServerEntry,
    cwd: &Path,
    project: &Project,
    expanded: &dyn Fn(&str) -> Option<String>,
) -> bool {
    let written = entry.cwd.as_ref().and_then(|cwd| expanded(cwd.source()));
    let Some(written) = written.as_deref().map(Written::of) else { return true };
    let Ok(cwd) = cwd.canonicalize() else { return true };
    project.root.starts_with(&cwd) || project.owns(&cwd, written)
}

/// The expanded words of a definition. If a word has a variable that is not read, only the paths in
/// it that can be expanded are returned.
pub(super) fn expanded_words(
    entry: &ServerEntry,
    expanded: &dyn Fn(&str) -> Option<String>,
    unread: &mut Unread<'_>,
) -> Vec<String> {
    let mut words = Vec::new();
    for word in words_in(entry) {
        match expanded(&word) {
            Some(word) => words.push(word),
            None => {
                let parts = paths_in(std::iter::once(word.as_str()));
                words.extend(parts.iter().filter_map(|part| expanded(part)));
                if word.contains('/') {
                    unread.add(format!("{word:?}, whose variables are not read"));
                }
            }
        }
    }
    words
}

/// Reports variables whose values a shell would expand, such as `BASH_ENV`, `ENV` and
/// `PROMPT_COMMAND`.
pub(super) fn name_shell_values(
    entry: &ServerEntry,
    environment: &Environment,
    unread: &mut Unread<'_>,
) {
    let with = with_empty_variables(environment);
    for (name, value) in entry.env.iter().flat_map(TemplateMap::iter) {
        let words = match expand::expand_value(value, &with) {
            Ok(Expanded::Text(text)) => vec![text],
            Ok(Expanded::Command(words)) => words,
            Err(_) => continue,
        };
        if words.iter().any(|word| is_expanded_by_shells(word)) {
            unread.add(format!("files that {name:?} names after a shell expands it"));
        }
    }
}

/// Like `name_shell_values`, for arguments that may or may not be shell code.
pub(super) fn name_shell_args(
    entry: &ServerEntry,
    environment: &Environment,
    unread: &mut Unread<'_>,
) {
    let with = with_empty_variables(environment);
    for arg in entry.args.iter().flatten() {
        let text = expand::expand(arg, &with).unwrap_or_default();
        if text.contains(['$', '`']) {
            unread.add(format!("files that {text:?} names after a shell expands it"));
        }
    }
}

/// The context for expanding values, in which all variables are empty; the real values are checked
/// before a start.
fn with_empty_variables(environment: &Environment) -> Surroundings<'_> {
    Surroundings { variable: &|_| Some(String::new()), ..environment.places() }
}

fn is_expanded_by_shells(text: &str) -> bool {
    let has_paths = text.contains(|c: char| c == '/' || c.is_whitespace());
    let has_pattern = has_paths && text.contains(['*', '?', '[', '{']);
    let mut pieces = text.split(|c: char| c.is_whitespace() || matches!(c, ':' | '=' | ';'));
    text.contains(['$', '`']) || has_pattern || pieces.any(|piece| piece.starts_with('~'))
}

/// The `PATH` on which the server is looked up; `None` if its value is known only when the server
/// starts.
pub(super) fn own_path(entry: &ServerEntry, environment: &Environment) -> Option<String> {
    let ours = environment.variable("PATH").unwrap_or_default();
    let Some(path) = entry.env.as_ref().and_then(|env| env.get("PATH")) else {
        return Some(ours.to_owned());
    };
    let variable = |name: &str| (name == "PATH").then(|| ours.to_owned());
    let with = Surroundings { variable: &variable, ..environment.places() };
    match expand::expand_value(path, &with) {
        Ok(Expanded::Text(path)) => Some(path),
        Ok(Expanded::Command(_)) | Err(_) => None,
    }
}

/// The directories in which programs search for code, as far as they are known.
pub(super) fn searched(
    entry: &ServerEntry,
    expanded: &dyn Fn(&str) -> Option<String>,
    path: Option<&str>,
    cwd: &Path,
) -> Vec<NamedDirectory> {
    let env = entry.env.iter().flat_map(TemplateMap::iter);
    let values = env.filter(|(name, _)| is_searched(name)).flat_map(|(name, value)| {
        let whole = match name {
            "PATH" => path.map(str::to_owned),
            _ => expanded(value.source()),
        };
        match whole {
            Some(whole) => whole.split(':').map(str::to_owned).collect::<Vec<String>>(),
            None => value.source().split(':').filter_map(expanded).collect(),
        }
    });
    values.flat_map(|value| in_list(&value, cwd)).collect()
}

/// The directories of one element of a path list; an empty element is the working directory.
pub(super) fn in_list(value: &str, cwd: &Path) -> Vec<NamedDirectory> {
    NamedDirectory { directory: cwd.to_owned(), written: Written::Relative }.readings(value)
}

/// Hashes the names in the project's own directory, if programs search for code there.
pub(super) fn count_own(searched: &[NamedDirectory], project: &Project, coverage: &mut Coverage) {
    for place in searched {
        let Belongs::Own(directory) = project.belongs(place) else { continue };
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        let mut hash = Sha256::new();
        for name in names {
            hash.update(name.as_encoded_bytes());
            hash.update([0]);
        }
        coverage.leave_out(OTHER_FILES.to_owned());
        // The path has no trailing slash, because files below the directory are not covered.
        coverage.count((directory.to_string_lossy().into_owned(), hash.finalize().into()));
    }
}
