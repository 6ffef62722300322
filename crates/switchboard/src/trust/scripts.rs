//! The files that an approval covers, and their hashes. The approval prompt and the hash use the
//! same list, so that the prompt never claims more than the hash covers.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use sha2::{Digest, Sha256};
use switchboard_core::config::expand;
use switchboard_core::config::server::ServerEntry;
use switchboard_core::config::trust::{FileHash, programs_in, runs_code};
use switchboard_core::config::values::Template;

use super::directory::{Survey, is_socket, never_the_same, unusable};
use super::meant;
use super::place::{self, Belongs, NamedDirectory, Project, Written};
use super::resolver::{self, Candidate, Code, CommandLine, FoundBy, ReachedPaths};
use super::variables::{self, Unread};
use crate::env::Environment;
use crate::paths;

/// If the files of a definition are larger in total, further ones are compared by size and times
/// instead of content, which bounds the work that a project can cause.
const LARGEST_SCRIPTS: u64 = 32 * 1024 * 1024;

/// The maximum total size of the files that are read for all definitions of a project. Definitions
/// whose files exceed it cannot be approved.
const LARGEST_LOAD: u64 = 512 * 1024 * 1024;

/// The maximum number of files in the directories of all definitions of a project. Definitions
/// whose directories exceed it cannot be approved.
const LONGEST_LOAD: usize = 200_000;

/// The maximum size of a file outside the project, such as an interpreter, that is hashed by its
/// content.
const LARGEST_OUTSIDE: u64 = 4 * 1024 * 1024;

/// The maximum number of directories of a definition that are covered.
const MOST_DIRECTORIES: usize = 64;

/// The files and directories that an approval of a definition covers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage {
    /// Canonical paths and hashes. A path that ends in `/` means all files below a directory.
    pub(crate) files: Vec<FileHash>,
    /// Descriptions of what is not covered, for the user.
    pub(crate) not_covered: Vec<String>,
    /// The hashes of parts that the approval does not cover completely, but is also bound to.
    counted: Vec<FileHash>,
}

/// The coverage of one definition. Of the environment variables, only `PATH` affects it.
pub(crate) fn coverage(entry: &ServerEntry, environment: &Environment) -> Coverage {
    Scripts::default().coverage(entry, environment)
}

/// Computes the coverage of many definitions, and reads each file once. The limit on content
/// applies to each definition alone, so that its hash does not depend on other definitions.
pub(crate) struct Scripts {
    /// The remaining bytes that all definitions together may read.
    left: Cell<u64>,
    /// The remaining number of files that the directories of all definitions together may contain.
    unlisted: Cell<usize>,
    read: RefCell<HashMap<PathBuf, [u8; 32]>>,
    surveys: RefCell<HashMap<PathBuf, Rc<Survey>>>,
}

/// The remaining bytes that one definition may read.
pub(super) struct Budget(Cell<u64>);

impl Default for Scripts {
    fn default() -> Scripts {
        Scripts {
            left: Cell::new(LARGEST_LOAD),
            unlisted: Cell::new(LONGEST_LOAD),
            read: RefCell::default(),
            surveys: RefCell::default(),
        }
    }
}

impl Scripts {
    pub(crate) fn coverage(&self, entry: &ServerEntry, environment: &Environment) -> Coverage {
        let mut coverage = Coverage::default();
        let Some(project) = Project::around(environment) else { return coverage };
        let budget = Budget(Cell::new(LARGEST_SCRIPTS));
        let places = environment.places();
        let expanded = |text: &str| expand::expand(&Template::new(text), &places).ok();
        let mut unread = Unread(&mut coverage.not_covered);
        let cwd = variables::working_directory(entry, &project.place, &expanded, &mut unread);
        let words = variables::expanded_words(entry, &expanded, &mut unread);
        variables::name_shell_values(entry, environment, &mut unread);
        let runs_code = runs_code(entry);
        if !runs_code {
            variables::name_shell_args(entry, environment, &mut unread);
        }
        let path = variables::own_path(entry, environment);
        if path.is_none() {
            coverage.leave_out("programs on its `PATH`".to_owned());
        }
        let code = if runs_code { Code::Inline } else { Code::Absent };
        let root = &project.root;
        let line = CommandLine { words, cwd: &cwd, path: path.as_deref(), root, code };
        let ReachedPaths { mut files, mut directories, not_followed } = resolver::candidates(&line);
        not_followed.into_iter().for_each(|what| coverage.leave_out(what));
        let programs = programs_in(entry);
        let asked: Vec<String> =
            programs.commands.iter().filter_map(|name| expanded(name)).collect();
        let ours = environment.variable("PATH");
        let helpers = CommandLine { words: asked, cwd: &cwd, path: ours, root, code };
        files.extend(resolver::candidates(&helpers).files);
        self.cover_files(&files, &project, &budget, &mut coverage);
        if runs_code && entry.cwd.is_some() {
            directories.push(NamedDirectory { directory: cwd.clone(), written: Written::Relative });
        }
        let searched = variables::searched(entry, &expanded, path.as_deref(), &cwd);
        directories.extend(searched.iter().cloned());
        self.cover_directories(&directories, &project, &budget, &mut coverage);
        variables::count_own(&searched, &project, &mut coverage);
        if runs_code {
            coverage.leave_out("files that its code names in other ways".to_owned());
        }
        let starts_program = programs.server.is_some()
            || !programs.commands.is_empty()
            || entry.request_headers_command.is_some();
        let has_paths = coverage.hashes().iter().any(|(path, _)| project.contains(Path::new(path)))
            || files.iter().any(|candidate| project.contains(&candidate.file));
        let runs_inside = variables::runs_in_project(entry, &cwd, &project, &expanded);
        if starts_program && (runs_inside || has_paths) {
            coverage.leave_out_other_files();
        }
        coverage
    }

    fn cover_files(
        &self,
        candidates: &[Candidate],
        project: &Project,
        budget: &Budget,
        coverage: &mut Coverage,
    ) {
        for candidate in candidates {
            match self.look_at(candidate, project, budget) {
                LookedAt::Covered(hash) => {
                    if candidate.by == FoundBy::Runner {
                        coverage.leave_out(format!("programs that {:?} starts", hash.0));
                    }
                    if let Some(place) = hash.0.strip_suffix(meant::VIRTUAL_ENVIRONMENT) {
                        coverage.leave_out(format!("files in {place:?}"));
                    }
                    coverage.add(hash);
                }
                LookedAt::Stream(path) => {
                    coverage.leave_out(unusable(&path));
                    coverage.count((path.to_string_lossy().into_owned(), never_the_same()));
                }
                LookedAt::Nothing => {}
            }
        }
    }

    fn cover_directories(
        &self,
        places: &[NamedDirectory],
        project: &Project,
        budget: &Budget,
        coverage: &mut Coverage,
    ) {
        let mut parts: Vec<PathBuf> = Vec::new();
        for place in places {
            match project.belongs(place) {
                Belongs::Own(_) => coverage.leave_out(OTHER_FILES.to_owned()),
                Belongs::Part(directory) => parts.push(directory),
                Belongs::Elsewhere => {}
            }
        }
        // Removes duplicates, and directories that another listed directory contains.
        parts.sort();
        parts.dedup_by(|below, above| below.starts_with(above));
        if parts.len() > MOST_DIRECTORIES {
            coverage.leave_out(format!("directories after the first {MOST_DIRECTORIES}"));
            parts.truncate(MOST_DIRECTORIES);
        }
        for directory in parts {
            self.cover_directory(&directory, project, budget, coverage);
        }
    }

    /// The hash of a candidate, if the project controls the file, or the definition names a script
    /// outside the system's directories.
    fn look_at(&self, candidate: &Candidate, project: &Project, budget: &Budget) -> LookedAt {
        let Candidate { file, by, written } = candidate;
        let known = || {
            let path = file.canonicalize().ok()?;
            let data = path.metadata().ok().filter(|data| !data.is_dir() && !is_socket(data))?;
            let named_at = file.parent()?.canonicalize().ok()?.join(file.file_name()?);
            Some((path, data, named_at))
        };
        let Some((path, data, named_at)) = known() else { return LookedAt::Nothing };
        let largest = if path.starts_with(&project.root) {
            LARGEST_SCRIPTS
        } else if named_at.starts_with(&project.root)
            || *by == FoundBy::Path && is_script(&path, &data)
            || project.owns(&path, *written)
        {
            // The file is outside the project: a link of the project leads to it, or the definition
            // names its path.
            LARGEST_OUTSIDE
        } else {
            return LookedAt::Nothing;
        };
        if !data.is_file() {
            return LookedAt::Stream(path);
        }
        let digest = self.digest(&path, &data, largest, budget);
        LookedAt::Covered((path.to_string_lossy().into_owned(), digest))
    }

    pub(super) fn digest_within(&self, path: &Path, data: &Metadata, budget: &Budget) -> [u8; 32] {
        self.digest(path, data, LARGEST_SCRIPTS, budget)
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
            Some(Ok(None) | Err(_)) | None => never_the_same(),
        };
        self.read.borrow_mut().insert(path.to_owned(), digest);
        digest
    }

    /// The survey of a directory; `None` if all definitions together have reached the limit on
    /// files.
    pub(super) fn survey(&self, directory: &Path, project: &Project) -> Option<Rc<Survey>> {
        if let Some(known) = self.surveys.borrow().get(directory) {
            return Some(Rc::clone(known));
        }
        if self.unlisted.get() == 0 {
            return None;
        }
        let survey = Rc::new(Survey::of(directory, project));
        self.unlisted.set(self.unlisted.get().saturating_sub(survey.length()));
        self.surveys.borrow_mut().insert(directory.to_owned(), Rc::clone(&survey));
        Some(survey)
    }
}

/// The description of what an approval does not cover if programs run in a project, because no list
/// of the files that they load is complete. The same description is used for directories that
/// change too often to hash.
pub(super) const OTHER_FILES: &str =
    "other files of the project that its programs load by themselves";

enum LookedAt {
    Covered(FileHash),
    /// A pipe or a device, which has no stable content.
    Stream(PathBuf),
    Nothing,
}

impl Coverage {
    pub(super) fn add(&mut self, hash: FileHash) {
        add_once(&mut self.files, hash);
    }

    pub(super) fn count(&mut self, hash: FileHash) {
        add_once(&mut self.counted, hash);
    }

    pub(super) fn leave_out(&mut self, what: String) {
        if !self.not_covered.contains(&what) {
            self.not_covered.push(what);
        }
    }

    /// Adds [`OTHER_FILES`] once, after all more precise descriptions.
    fn leave_out_other_files(&mut self) {
        self.not_covered.retain(|what| what != OTHER_FILES);
        self.leave_out(OTHER_FILES.to_owned());
    }

    /// All hashes that an approval is bound to.
    pub(crate) fn hashes(&self) -> Vec<FileHash> {
        self.files.iter().chain(&self.counted).cloned().collect()
    }

    /// Whether a change of this file or directory changes a hash that the approval is bound to.
    pub(super) fn notices(&self, path: &Path) -> bool {
        let mut known = self.files.iter().chain(&self.counted);
        known.any(|(name, _)| {
            Path::new(name) == path || name.ends_with('/') && path.starts_with(name)
        })
    }
}

fn add_once(hashes: &mut Vec<FileHash>, hash: FileHash) {
    if hashes.iter().all(|(known, _)| *known != hash.0) {
        hashes.push(hash);
    }
}

/// A hash that changes whenever the file is written, computed without reading it.
pub(super) fn identity(data: &Metadata) -> [u8; 32] {
    let mut hash = Sha256::new();
    let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    let numbers = [data.ino(), data.len()].map(u64::cast_signed);
    numbers.into_iter().chain(times).for_each(|number| hash.update(number.to_le_bytes()));
    hash.finalize().into()
}

/// Whether the file is executable or a script, and not in a system directory.
fn is_script(path: &Path, data: &Metadata) -> bool {
    const ENDINGS: [&str; 14] = [
        "js", "mjs", "cjs", "ts", "mts", "cts", "py", "rb", "pl", "php", "sh", "bash", "lua", "jar",
    ];
    let ending = path.extension().and_then(|ending| ending.to_str());
    let is_run = data.mode() & 0o111 != 0 || ending.is_some_and(|end| ENDINGS.contains(&end));
    is_run && !place::is_of_system(path)
}

#[cfg(test)]
mod tests;
