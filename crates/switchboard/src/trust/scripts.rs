//! Which files an approval covers, and what is in them: one answer for the question to the user and
//! for the hash, so that nothing is called covered that is not.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, paths_in, programs_in, runs_code, words_in};
use switchboard_core::config::values::{Template, TemplateMap};

use super::resolver::{self, Candidate, CommandLine, FoundBy};
use crate::env::Environment;
use crate::paths;

/// Beyond this total, files of a definition are compared by size and times instead of content, so
/// that a project cannot keep us busy.
const LARGEST_SCRIPTS: u64 = 32 * 1024 * 1024;

/// Beyond this total, further definitions of a project cannot be approved.
const LARGEST_LOAD: u64 = 512 * 1024 * 1024;

/// The same for a file outside of the project: interpreters are large.
const LARGEST_OUTSIDE: u64 = 4 * 1024 * 1024;

/// So many files of a directory are covered.
const MOST_IN_DIRECTORY: usize = 500;

/// Variables with directories that programs load code from.
const CODE_DIRECTORIES: [&str; 8] = [
    "PYTHONPATH",
    "NODE_PATH",
    "RUBYLIB",
    "PERL5LIB",
    "CLASSPATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "GOPATH",
];

/// Where programs of the system lie, which change with its updates.
const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix", "/System", "/Library"];

/// What a repository has at its root.
const ROOT_MARKS: [&str; 5] = [".git", ".hg", ".jj", ".svn", "_darcs"];

/// What an approval of a definition covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// By where they really lie. A path that ends in `/` stands for all files of a directory.
    pub(crate) files: Vec<FileHash>,
    /// What cannot be followed, for the user to know.
    pub(crate) not_covered: Vec<String>,
}

/// What the definition would run. No variable but `PATH` is read for it.
pub(crate) fn coverage(entry: &ServerEntry, environment: &Environment) -> Coverage {
    Scripts::default().coverage(entry, environment)
}

/// The repository around a directory, or else the directory itself. One that has the user's home in
/// it keeps their settings, and is no project.
pub(crate) fn project_root(directory: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |place: &&Path| home.as_ref().is_none_or(|home| !home.starts_with(place));
    let places = || directory.ancestors().take_while(is_home);
    let marked = |place: &&Path| ROOT_MARKS.iter().any(|mark| place.join(mark).exists());
    // A submodule has a file in the place of the directory: the repository around it counts.
    let whole = |place: &&Path| ROOT_MARKS.iter().any(|mark| place.join(mark).is_dir());
    let found = places().find(whole).or_else(|| places().find(marked));
    found.unwrap_or(directory).to_owned()
}

/// The scripts of many definitions: the content of each file is read once. What counts by its content
/// depends on one definition alone, so that each look at it comes to the same.
pub(crate) struct Scripts {
    /// What all definitions together may have read.
    left: Cell<u64>,
    read: RefCell<HashMap<PathBuf, [u8; 32]>>,
}

/// What one definition may still have read.
struct Budget(Cell<u64>);

impl Default for Scripts {
    fn default() -> Scripts {
        Scripts { left: Cell::new(LARGEST_LOAD), read: RefCell::default() }
    }
}

impl Scripts {
    pub(crate) fn coverage(&self, entry: &ServerEntry, environment: &Environment) -> Coverage {
        let mut coverage = Coverage::default();
        let Ok(place) = environment.cwd.canonicalize() else { return coverage };
        let budget = Budget(Cell::new(LARGEST_SCRIPTS));
        let home = environment.variable("HOME").map(Path::new);
        let root = project_root(&place, home);
        let places = environment.places();
        let expanded = |text: &str| expand::expand(&Template::new(text), &places).ok();
        let not_covered = &mut coverage.not_covered;
        let cwd = working_directory(entry, &place, &expanded, not_covered);
        let words = expanded_words(entry, &expanded, not_covered);
        let path = own_path(entry, environment);
        if path.is_none() {
            coverage.not_covered.push("programs on its `PATH`".to_owned());
        }
        let line = CommandLine { words, cwd: &cwd, path: path.as_deref() };
        let (mut candidates, is_cut) = resolver::candidates(&line);
        if is_cut {
            let most = resolver::MOST_WORDS;
            coverage.not_covered.push(format!("what is named behind the first {most} words"));
        }
        let asked: Vec<String> =
            programs_in(entry).asked.iter().filter_map(|name| expanded(name)).collect();
        let ours = environment.variable("PATH");
        let helpers = CommandLine { words: asked, cwd: &cwd, path: ours };
        candidates.extend(resolver::candidates(&helpers).0);
        for candidate in &candidates {
            let Some(hash) = self.hash(candidate, &root, &budget) else { continue };
            if candidate.by == FoundBy::Runner {
                coverage.not_covered.push(format!("what {:?} starts", hash.0));
            }
            coverage.add(hash);
        }
        for directory in code_directories(entry, &line, &expanded) {
            // In the project's own directory something changes all the time.
            if directory.canonicalize().is_ok_and(|known| known != place && known != root) {
                self.cover_directory(&directory, &root, &budget, &mut coverage);
            }
        }
        if runs_code(entry) {
            coverage.not_covered.push("files that its code names in other ways".to_owned());
        }
        coverage
    }

    /// What a candidate is, if the project decides that, or anything but the system does.
    fn hash(&self, candidate: &Candidate, root: &Path, budget: &Budget) -> Option<FileHash> {
        let Candidate { file, by } = candidate;
        let path = file.canonicalize().ok()?;
        let data = path.metadata().ok().filter(Metadata::is_file)?;
        let named_at = file.parent()?.canonicalize().ok()?.join(file.file_name()?);
        let digest = if path.starts_with(root) {
            self.digest(&path, &data, LARGEST_SCRIPTS, budget)
        } else if named_at.starts_with(root) || *by == FoundBy::Path && is_script(&path, &data) {
            // A link of the project's that leads out of it, or a path that the definition names.
            self.digest(&path, &data, LARGEST_OUTSIDE, budget)
        } else {
            return None;
        };
        Some((path.to_string_lossy().into_owned(), digest))
    }

    fn digest(&self, path: &Path, data: &Metadata, largest: u64, budget: &Budget) -> [u8; 32] {
        let Budget(left) = budget;
        let Some(rest) = left.get().checked_sub(data.len()).filter(|_| data.len() <= largest)
        else {
            return identity(data);
        };
        left.set(rest);
        if let Some(known) = self.read.borrow().get(path) {
            return *known;
        }
        let fits = self.left.get().checked_sub(data.len());
        self.left.set(fits.unwrap_or(0));
        let digest = match fits.map(|_| paths::read(path)) {
            Some(Ok(Some(bytes))) => Sha256::digest(&bytes).into(),
            // What cannot be read can never match an approval.
            Some(Ok(None) | Err(_)) | None => std::array::from_fn(|_| fastrand::u8(..)),
        };
        self.read.borrow_mut().insert(path.to_owned(), digest);
        digest
    }

    /// The scripts in a directory of the project, as one.
    fn cover_directory(
        &self,
        directory: &Path,
        root: &Path,
        budget: &Budget,
        coverage: &mut Coverage,
    ) {
        let Ok(directory) = directory.canonicalize() else { return };
        let Ok(entries) = fs::read_dir(&directory) else { return };
        if !directory.starts_with(root) {
            return;
        }
        let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        files.sort();
        let shown = format!("{}/", directory.display());
        if files.len() > MOST_IN_DIRECTORY {
            coverage.not_covered.push(format!("files in {shown:?}: there are too many"));
            return;
        }
        let mut all = Sha256::new();
        for file in files {
            let Ok(data) = file.metadata() else { continue };
            // Logs and data may change there.
            if !data.is_file() || !is_run(&file, &data) {
                continue;
            }
            let name = file.to_string_lossy();
            all.update((name.len() as u64).to_le_bytes());
            all.update(name.as_bytes());
            all.update(self.digest(&file, &data, LARGEST_SCRIPTS, budget));
        }
        coverage.add((shown, all.finalize().into()));
    }
}

impl Coverage {
    fn add(&mut self, hash: FileHash) {
        if self.files.iter().all(|(known, _)| *known != hash.0) {
            self.files.push(hash);
        }
    }
}

/// Where the server would run, which relative names are relative to.
fn working_directory(
    entry: &ServerEntry,
    project: &Path,
    expanded: &dyn Fn(&str) -> Option<String>,
    not_covered: &mut Vec<String>,
) -> PathBuf {
    let Some(cwd) = &entry.cwd else { return project.to_owned() };
    match expanded(cwd.source()) {
        Some(cwd) => project.join(cwd),
        None => {
            let unread = format!("files in {:?}, whose variables are not read", cwd.source());
            not_covered.push(unread);
            project.to_owned()
        }
    }
}

/// The words of a definition, or the parts of those that have an unread variable.
fn expanded_words(
    entry: &ServerEntry,
    expanded: &dyn Fn(&str) -> Option<String>,
    not_covered: &mut Vec<String>,
) -> Vec<String> {
    let mut words = Vec::new();
    for word in words_in(entry) {
        match expanded(&word) {
            Some(word) => words.push(word),
            None => {
                let parts = paths_in(std::iter::once(word.as_str()));
                words.extend(parts.iter().filter_map(|part| expanded(part)));
                if word.contains('/') {
                    not_covered.push(format!("{word:?}, whose variables are not read"));
                }
            }
        }
    }
    words
}

/// Changes whenever the file does, but says nothing about its content.
fn identity(data: &Metadata) -> [u8; 32] {
    let mut hash = Sha256::new();
    let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    let numbers = [data.ino(), data.len()].map(u64::cast_signed);
    numbers.into_iter().chain(times).for_each(|number| hash.update(number.to_le_bytes()));
    hash.finalize().into()
}

/// Whether it is run rather than read, and is not the system's own.
fn is_script(path: &Path, data: &Metadata) -> bool {
    is_run(path, data) && !SYSTEM.iter().any(|place| path.starts_with(place))
}

fn is_run(path: &Path, data: &Metadata) -> bool {
    const ENDINGS: [&str; 14] = [
        "js", "mjs", "cjs", "ts", "mts", "cts", "py", "rb", "pl", "php", "sh", "bash", "lua", "jar",
    ];
    let ending = path.extension().and_then(|ending| ending.to_str());
    data.mode() & 0o111 != 0 || ending.is_some_and(|end| ENDINGS.contains(&end))
}

/// Directories that code is loaded from, and with code on the command line those that it names.
fn code_directories(
    entry: &ServerEntry,
    line: &CommandLine<'_>,
    expanded: &dyn Fn(&str) -> Option<String>,
) -> Vec<PathBuf> {
    let env = entry.env.iter().flat_map(TemplateMap::iter);
    let loaded = env.filter(|(name, _)| CODE_DIRECTORIES.contains(name));
    let loaded = loaded.filter_map(|(_, value)| expanded(value.source()));
    let mut named: Vec<String> =
        loaded.flat_map(|value| value.split(':').map(str::to_owned).collect::<Vec<_>>()).collect();
    if runs_code(entry) {
        named.extend(paths_in(line.words.iter().map(String::as_str)));
        named.extend(entry.cwd.as_ref().map(|_| ".".to_owned()));
    }
    let places = named.iter().filter(|name| !name.is_empty()).map(|name| line.cwd.join(name));
    places.filter(|place| place.is_dir()).collect()
}

/// The `PATH` that the server itself is looked for on; `None` if only a start would tell.
fn own_path(entry: &ServerEntry, environment: &Environment) -> Option<String> {
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

#[cfg(test)]
mod tests;
