//! A directory as one line of an approval: a hash of all files in it, or the reason why it is not
//! covered.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::place::{self, Project};
use super::scripts::{Budget, Coverage, Scripts, identity};

/// The limits of files, bytes and depth of a directory that is hashed by its content. Beyond them,
/// it is hashed by its listing.
const MOST_FILES: usize = 2_000;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
const DEEPEST: usize = 16;

/// The maximum number of entries that are listed below one directory, which bounds the work that a
/// project can cause.
const LONGEST_LISTING: usize = 20_000;

/// Directories of package managers. Such directories are too large to read, so only the names
/// directly in them are hashed.
const INSTALLED: [&str; 3] = ["node_modules", ".venv", "venv"];

/// A list of all files and directories below one directory.
#[derive(Debug)]
pub(super) struct Survey {
    /// The entries by path, in a stable order; links within the project are resolved.
    entries: Vec<(PathBuf, SurveyEntry)>,
    size: Size,
}

#[derive(Debug, PartialEq, Eq)]
enum Size {
    Readable,
    TooLarge,
}

#[derive(Debug)]
enum SurveyEntry {
    File(Metadata),
    Directory,
    /// A symbolic link whose target is not read.
    Link(PathBuf),
    /// A symbolic link to a file: the text of the link, its target and the target's metadata.
    FileLink(PathBuf, PathBuf, Metadata),
    /// A socket, which cannot be executed.
    Socket,
    /// A pipe or a device, whose content can differ with each read.
    Stream,
    /// A directory whose content is not hashed, such as `.git` or `node_modules`.
    LeftOut,
    Unreadable,
}

impl Survey {
    pub(super) fn of(directory: &Path, project: &Project) -> Survey {
        let mut walk = Walk {
            directory,
            project,
            entries: Vec::new(),
            visited: HashSet::new(),
            files: 0,
            bytes: 0,
        };
        let is_whole = walk.visit(directory, 0);
        let fits = is_whole && walk.files <= MOST_FILES && walk.bytes <= MOST_BYTES;
        let size = if fits { Size::Readable } else { Size::TooLarge };
        Survey { entries: walk.entries, size }
    }

    pub(super) fn length(&self) -> usize {
        self.entries.len()
    }
}

struct Walk<'w> {
    directory: &'w Path,
    project: &'w Project,
    entries: Vec<(PathBuf, SurveyEntry)>,
    visited: HashSet<PathBuf>,
    files: usize,
    bytes: u64,
}

impl Walk<'_> {
    /// Adds all entries below a directory; returns whether the walk was complete.
    fn visit(&mut self, directory: &Path, depth: usize) -> bool {
        if !self.visited.insert(directory.to_owned()) {
            return true;
        }
        if depth > DEEPEST {
            return false;
        }
        let Ok(names) = fs::read_dir(directory) else {
            self.entries.push((directory.to_owned(), SurveyEntry::Unreadable));
            return true;
        };
        let mut paths: Vec<PathBuf> = names.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        let mut is_whole = true;
        for path in paths {
            if self.entries.len() >= LONGEST_LISTING {
                return false;
            }
            is_whole &= self.add(path, depth);
        }
        is_whole
    }

    fn add(&mut self, path: PathBuf, depth: usize) -> bool {
        let Ok(data) = path.symlink_metadata() else {
            self.entries.push((path, SurveyEntry::Unreadable));
            return true;
        };
        if data.is_symlink() {
            return self.add_link(path, depth);
        }
        if data.is_dir() {
            return self.add_directory(path, depth);
        }
        let entry = if data.is_file() {
            self.count(&data);
            SurveyEntry::File(data)
        } else if is_socket(&data) {
            SurveyEntry::Socket
        } else {
            SurveyEntry::Stream
        };
        self.entries.push((path, entry));
        true
    }

    fn add_directory(&mut self, path: PathBuf, depth: usize) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if INSTALLED.contains(&name) {
            let names = fs::read_dir(&path).into_iter().flatten().flatten();
            let mut below: Vec<PathBuf> = names.map(|entry| entry.path()).collect();
            below.sort();
            below.truncate(LONGEST_LISTING);
            self.entries.push((path, SurveyEntry::LeftOut));
            self.entries.extend(below.into_iter().map(|path| (path, SurveyEntry::Directory)));
            return true;
        }
        if place::ROOT_MARKS.contains(&name) {
            // The content is left out: each commit changes the content of a directory such as
            // `.git`.
            self.entries.push((path, SurveyEntry::LeftOut));
            return true;
        }
        self.entries.push((path.clone(), SurveyEntry::Directory));
        self.visit(&path, depth + 1)
    }

    fn add_link(&mut self, path: PathBuf, depth: usize) -> bool {
        let text = fs::read_link(&path).unwrap_or_default();
        let target = path.canonicalize().ok().filter(|target| !place::is_of_system(target));
        let known = target.and_then(|target| target.metadata().ok().map(|data| (target, data)));
        let Some((target, data)) = known else {
            self.entries.push((path, SurveyEntry::Link(text)));
            return true;
        };
        if data.is_file() {
            self.count(&data);
            self.entries.push((path, SurveyEntry::FileLink(text, target, data)));
            return true;
        }
        let is_stream = !data.is_dir() && !is_socket(&data) && !target.starts_with("/dev");
        let entry = if is_stream { SurveyEntry::Stream } else { SurveyEntry::Link(text) };
        self.entries.push((path, entry));
        if !data.is_dir() {
            return true;
        }
        // A link to a directory around this one is not followed: some file in it changes all the
        // time.
        let is_around =
            self.directory.starts_with(&target) || self.project.place.starts_with(&target);
        if is_around || !target.starts_with(&self.project.root) {
            self.entries.push((target, SurveyEntry::LeftOut));
            return true;
        }
        self.visit(&target, depth + 1)
    }

    fn count(&mut self, data: &Metadata) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(data.len());
    }
}

impl Scripts {
    /// Adds a directory to the coverage, with a hash of all its content. Above the limits, the hash
    /// is of names, sizes and times instead.
    pub(super) fn cover_directory(
        &self,
        directory: &Path,
        project: &Project,
        budget: &Budget,
        coverage: &mut Coverage,
    ) {
        let shown = format!("{}/", directory.display());
        let Some(survey) = self.survey(directory, project) else {
            coverage.leave_out(format!("files in {shown:?}: too many files"));
            coverage.count((shown, never_the_same()));
            return;
        };
        let mut all = Sha256::new();
        for (path, entry) in &survey.entries {
            let name = path.as_os_str().as_bytes();
            all.update((name.len() as u64).to_le_bytes());
            all.update(name);
            all.update(match survey.size {
                Size::Readable => self.content(entry, path, budget),
                Size::TooLarge => listed(entry),
            });
            match entry {
                SurveyEntry::LeftOut => {
                    coverage.leave_out(format!("files in \"{}/\"", path.display()))
                }
                SurveyEntry::Unreadable => {
                    coverage.leave_out(format!("{path:?}, which cannot be read"))
                }
                SurveyEntry::Stream => coverage.leave_out(unusable(path)),
                SurveyEntry::File(_)
                | SurveyEntry::Directory
                | SurveyEntry::Link(_)
                | SurveyEntry::FileLink(..)
                | SurveyEntry::Socket => {}
            }
        }
        let digest = all.finalize().into();
        match survey.size {
            Size::Readable => coverage.add((shown, digest)),
            Size::TooLarge => {
                coverage.leave_out(format!("files in {shown:?}: too many files"));
                coverage.count((shown, digest));
            }
        }
    }

    /// A hash of one entry with the content of its file.
    fn content(&self, entry: &SurveyEntry, path: &Path, budget: &Budget) -> [u8; 32] {
        let (kind, text, file): (&str, Option<&PathBuf>, Option<(&Path, &Metadata)>) = match entry {
            SurveyEntry::File(data) => ("file", None, Some((path, data))),
            SurveyEntry::FileLink(text, target, data) => ("link", Some(text), Some((target, data))),
            SurveyEntry::Link(text) => ("link", Some(text), None),
            SurveyEntry::Directory => ("directory", None, None),
            SurveyEntry::Socket => ("socket", None, None),
            SurveyEntry::LeftOut => ("left out", None, None),
            SurveyEntry::Stream => return never_the_same(),
            SurveyEntry::Unreadable => ("unreadable", None, None),
        };
        let mut hash = Sha256::new();
        hash.update(kind);
        hash.update([0]);
        if let Some(text) = text {
            hash.update(text.as_os_str().as_bytes());
        }
        if let Some((path, data)) = file {
            hash.update([0, u8::from(data.mode() & 0o111 != 0)]);
            hash.update(self.digest_within(path, data, budget));
        }
        hash.finalize().into()
    }
}

/// The line in the approval prompt for a pipe or a device in place of a file.
pub(super) fn unusable(path: &Path) -> String {
    format!("{path:?}, which is no regular file: the server does not start")
}

/// A random hash, which never matches an approval.
pub(super) fn never_the_same() -> [u8; 32] {
    std::array::from_fn(|_| fastrand::u8(..))
}

pub(super) fn is_socket(data: &Metadata) -> bool {
    data.file_type().is_socket()
}

/// A hash of one entry without the content of its file, by size and times.
fn listed(entry: &SurveyEntry) -> [u8; 32] {
    let bytes = match entry {
        SurveyEntry::File(data) => identity(data).to_vec(),
        SurveyEntry::FileLink(text, _, data) => {
            [text.as_os_str().as_bytes(), &identity(data)].concat()
        }
        SurveyEntry::Link(text) => text.as_os_str().as_bytes().to_vec(),
        SurveyEntry::Directory => vec![1],
        SurveyEntry::Socket => vec![2],
        SurveyEntry::Stream => vec![3],
        SurveyEntry::LeftOut => vec![4],
        SurveyEntry::Unreadable => vec![5],
    };
    Sha256::digest(&bytes).into()
}
