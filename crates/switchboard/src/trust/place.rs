//! Decides whether a path belongs to the project, to the system, or to neither.

use std::path::{Component, Path, PathBuf};

use crate::env::Environment;

/// Directories of system programs, which updates change.
const SYSTEM: [&str; 13] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys",
    "/System", "/Library",
];

/// Directories and files at the root of a repository.
pub(super) const ROOT_MARKS: [&str; 5] = [".git", ".hg", ".jj", ".svn", "_darcs"];

/// The repository around a directory, or the directory itself. A repository that contains the
/// user's home holds dotfiles and is no project.
pub(super) fn project_root(directory: &Path, home: Option<&Path>) -> PathBuf {
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_home = |place: &&Path| home.as_ref().is_none_or(|home| !home.starts_with(place));
    let places = || directory.ancestors().take_while(is_home);
    let marked = |place: &&Path| ROOT_MARKS.iter().any(|mark| place.join(mark).exists());
    // A submodule has a `.git` file, not a directory, so the repository around it takes precedence.
    let whole = |place: &&Path| ROOT_MARKS.iter().any(|mark| place.join(mark).is_dir());
    let found = places().find(whole).or_else(|| places().find(marked));
    found.unwrap_or(directory).to_owned()
}

pub(super) fn is_of_system(path: &Path) -> bool {
    path == Path::new("/") || SYSTEM.iter().any(|place| path.starts_with(place))
}

/// Whether a path was written relative to the server's working directory. A relative path belongs
/// to the project wherever it leads, because the project controls the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Relative,
    Absolute,
}

impl Written {
    pub(super) fn of(word: &str) -> Written {
        if Path::new(word).is_absolute() { Written::Absolute } else { Written::Relative }
    }
}

/// A directory that a definition names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedDirectory {
    pub(super) directory: PathBuf,
    pub(super) written: Written,
}

impl NamedDirectory {
    /// Resolves `word`, a path as written in a definition, against this directory. An absolute path
    /// replaces the directory.
    pub(super) fn join(&self, word: &str) -> NamedDirectory {
        let written = match Written::of(word) {
            Written::Absolute => Written::Absolute,
            Written::Relative => self.written,
        };
        NamedDirectory { directory: self.directory.join(word), written }
    }

    /// The paths of a word as the kernel resolves it, and as programs such as Node do, which
    /// resolve `..` and trailing slashes as text: `missing/../x.js` and `x.js/` are files to them.
    pub(super) fn readings(&self, word: &str) -> Vec<NamedDirectory> {
        let place = self.join(word);
        let is_plain = {
            let text = place.directory.to_string_lossy();
            let ends = text.ends_with('/') || text.ends_with("/.");
            !ends && !place.directory.components().any(|part| part == Component::ParentDir)
        };
        if is_plain {
            return vec![place];
        }
        let directory = resolved_as_text(&place.directory);
        vec![NamedDirectory { directory, written: place.written }, place]
    }
}

/// The path without `.`, `..` and trailing slashes, resolved without looking at the file system.
pub(super) fn resolved_as_text(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => resolved.push(part),
        }
    }
    resolved
}

/// The location of a project.
#[derive(Clone, Debug)]
pub(super) struct Project {
    /// The directory of the definition, with links resolved.
    pub(super) place: PathBuf,
    /// The repository around the directory of the definition.
    pub(super) root: PathBuf,
}

/// The relation of a directory to a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Belongs {
    /// The directory of the definition, or a directory around it. The content of such a directory
    /// changes all the time.
    Own(PathBuf),
    /// Any other directory that the project controls.
    Part(PathBuf),
    Elsewhere,
}

impl Project {
    /// The project of the working directory; `None` if that directory does not exist.
    pub(super) fn around(environment: &Environment) -> Option<Project> {
        let place = environment.cwd.canonicalize().ok()?;
        let root = project_root(&place, environment.variable("HOME").map(Path::new));
        Some(Project { place, root })
    }

    /// Whether the path is below the project's root; it need not exist.
    pub(super) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
    }

    pub(super) fn owns(&self, path: &Path, written: Written) -> bool {
        path.starts_with(&self.root) || written == Written::Relative && !is_of_system(path)
    }

    pub(super) fn belongs(&self, place: &NamedDirectory) -> Belongs {
        let Ok(directory) = place.directory.canonicalize() else { return Belongs::Elsewhere };
        if !self.owns(&directory, place.written) {
            return Belongs::Elsewhere;
        }
        if self.place.starts_with(&directory) {
            return Belongs::Own(directory);
        }
        Belongs::Part(directory)
    }
}
