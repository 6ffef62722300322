//! `cargo xtask tidy`: the project's rules that no compiler checks. Each rule is a function with a
//! test.

mod manifest;
mod map;
mod names;
mod prose;
mod purity;
mod safety;
mod source;
mod test_names;
mod text;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::process::ExitCode;

use crate::command::{command, root};
use crate::printer::{complain, say};
use source::Source;
pub(crate) use test_names::tests_of;

/// Every rule, with the name under which its findings appear.
const RULES: &[(&str, Rule)] = &[
    ("opening-sentence", text::opening_sentence),
    ("file-length", text::file_length),
    ("whitespace", text::whitespace),
    ("machine-path", text::machine_path),
    ("open-work", prose::open_work),
    ("broken-link", prose::broken_link),
    ("module-name", names::module_name),
    ("ignored-test", names::ignored_test),
    ("sleeping-test", names::sleeping_test),
    ("unlisted-test", names::unlisted_test),
    ("printing", names::printing),
    ("pure-core", purity::pure_core),
    ("core-dependency", manifest::core_dependency),
    ("dependency-direction", manifest::dependency_direction),
    ("safety-row", safety::safety_row),
    ("named-test", safety::named_test),
    ("mapped-module", map::mapped_module),
    ("plain-words", words::plain_words),
    ("test-name-length", words::test_name_length),
];

/// Checks one file. The tree contains all other files.
type Rule = fn(&File, &Tree) -> Vec<Finding>;

/// Checks the whole tree, prints the findings, and fails on any error.
pub(crate) fn run() -> ExitCode {
    let tree = match Tree::read() {
        Ok(tree) => tree,
        Err(cause) => {
            complain(&format!("error: cannot read the repository\n  caused by: {cause}"));
            return ExitCode::FAILURE;
        }
    };
    let mut errors = 0;
    for file in &tree.files {
        for (rule, look) in RULES {
            for finding in look(file, &tree) {
                say(&format!("{}:{}: {finding} [{rule}]", file.path, finding.line));
                errors += usize::from(finding.level == Level::Error);
            }
        }
    }
    if errors > 0 {
        complain(&format!("error: tidy found {errors} errors"));
        return ExitCode::FAILURE;
    }
    say(&format!("tidy: {} rules hold in {} files", RULES.len(), tree.files.len()));
    ExitCode::SUCCESS
}

/// A violation of a rule, or a warning, at a line of a file.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    level: Level,
    /// The number of the line, from 1.
    line: usize,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Warning,
    Error,
}

impl Finding {
    fn error(line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Error, line, message: message.into() }
    }

    fn warning(line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Warning => "warning",
            Level::Error => "error",
        };
        write!(f, "{level}: {}", self.message)
    }
}

/// A text file of the repository.
pub(crate) struct File {
    /// The path from the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The code and the comments of the file; `None` unless it is Rust code of this project.
    rust: Option<Source>,
}

impl File {
    fn new(path: &str, text: &str) -> Self {
        let ours = path.starts_with("crates/") || path.starts_with("xtask/");
        let rust = (ours && path.ends_with(".rs")).then(|| Source::split(text));
        Self { path: path.to_owned(), text: text.to_owned(), rust }
    }

    /// The lines of code, without comments and without the contents of literals.
    fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(self.rust.as_ref().map_or("", |rust| &rust.code))
    }

    /// The lines of comment, without the code between them.
    pub(crate) fn comment_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        numbered(self.rust.as_ref().map_or("", |rust| &rust.comments))
    }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// Whether `line` contains `needle` as a whole word or path, not as a part of a longer name.
fn has_word(line: &str, needle: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(needle).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + needle.len()..].chars().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// All files that git tracks or would track.
pub(crate) struct Tree {
    pub(crate) files: Vec<File>,
    /// All paths, including those of binary files and of directories.
    paths: BTreeSet<String>,
    by_path: BTreeMap<String, usize>,
}

impl Tree {
    pub(crate) fn read() -> io::Result<Self> {
        let listed = command("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()?;
        if !listed.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&listed.stderr).into_owned()));
        }
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let paths: BTreeSet<&str> = listed.split('\0').filter(|path| !path.is_empty()).collect();
        let mut found = Vec::new();
        for path in paths {
            match std::fs::read(root().join(path)) {
                Ok(bytes) => found.push((path, String::from_utf8(bytes).ok())),
                // The file was deleted, and the index still has it.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Err(cause) => return Err(cause),
            }
        }
        Ok(Self::new(found))
    }

    /// A tree of these files; a file without text is binary.
    pub(crate) fn new<'a>(found: impl IntoIterator<Item = (&'a str, Option<String>)>) -> Self {
        let mut tree = Self { files: Vec::new(), paths: BTreeSet::new(), by_path: BTreeMap::new() };
        for (path, text) in found {
            let folders = path.match_indices('/').map(|(at, _)| path[..at].to_owned());
            tree.paths.extend(folders.chain([path.to_owned()]));
            if let Some(text) = text {
                tree.by_path.insert(path.to_owned(), tree.files.len());
                tree.files.push(File::new(path, &text));
            }
        }
        tree
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.by_path.get(path).and_then(|index| self.files.get(*index))
    }
}

#[cfg(test)]
mod tests;
