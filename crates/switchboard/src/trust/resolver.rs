//! Which files a command line may run, wherever its words lead. Generous on purpose: a word that
//! names no file costs a look, a script that is not found could be swapped.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use switchboard_core::config::trust::paths_in;

use super::meant;
use crate::dial::lookup;
use crate::paths;

/// More words than this are not followed.
pub(super) const MOST_WORDS: usize = 512;

/// Directories besides the working one in which words are looked up.
const MOST_BASES: usize = 8;

/// Scripts name interpreters, and files of arguments more arguments; this deep.
const DEEPEST: usize = 3;

/// So much of a script or of a file of arguments is looked at.
const HEAD: u64 = 64 * 1024;

/// What is started, and from where.
pub(super) struct CommandLine<'a> {
    pub(super) words: Vec<String>,
    pub(super) cwd: &'a Path,
    /// Where programs are looked for; `None` if only a start would tell.
    pub(super) path: Option<&'a str>,
}

/// A file that may be run, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    pub(super) by: FoundBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// A word is its path.
    Path,
    /// It may be meant by a word: a module, a manifest, the start of a directory.
    Guess,
    /// It lies on `PATH`.
    Search,
    /// A runner takes its commands from it.
    Runner,
}

/// Every candidate, whether it exists or not, inside or outside of a project. The second value says
/// that there were too many words.
pub(super) fn candidates(line: &CommandLine<'_>) -> (Vec<Candidate>, bool) {
    let mut search = Search { seen: HashSet::new(), found: Vec::new(), bases: Vec::new(), line };
    search.bases.push(line.cwd.to_owned());
    let words = parts_of(line.words.iter().map(String::as_str));
    let is_cut = words.len() > MOST_WORDS;
    let words: Vec<String> = words.into_iter().take(MOST_WORDS).collect();
    search.add_bases(&words);
    search.follow(&words, 0);
    (search.found, is_cut)
}

struct Search<'l> {
    seen: HashSet<PathBuf>,
    found: Vec<Candidate>,
    /// `env -C sub`, `cd sub && …`, `uv --directory sub`: any word may be where others count from.
    bases: Vec<PathBuf>,
    line: &'l CommandLine<'l>,
}

impl Search<'_> {
    fn add_bases(&mut self, words: &[String]) {
        for word in words {
            let place = self.line.cwd.join(word);
            let fits = self.bases.len() <= MOST_BASES && !self.bases.contains(&place);
            if fits && !matches!(word.as_str(), "." | "/" | "..") && place.is_dir() {
                self.bases.push(place);
            }
        }
    }

    fn follow(&mut self, words: &[String], depth: usize) {
        let mut more = Vec::new();
        for word in words {
            for base in self.bases.clone() {
                let path = base.join(word);
                let by = if path.is_file() { FoundBy::Path } else { FoundBy::Guess };
                for file in meant::by_path(path) {
                    more.extend(self.add(file, by));
                }
                let guesses = meant::by_module(word, &base);
                for file in guesses.into_iter().chain(meant::by_launcher(word, &base)) {
                    more.extend(self.add(file, FoundBy::Guess));
                }
                for file in meant::by_runner(word, &base) {
                    more.extend(self.add(file, FoundBy::Runner));
                }
            }
            if let Some(path) = self.line.path.filter(|_| !word.contains('/')) {
                for file in lookup::candidates(word, path, self.line.cwd) {
                    more.extend(self.add(file, FoundBy::Search));
                }
            }
        }
        more.truncate(MOST_WORDS);
        if depth < DEEPEST && !more.is_empty() {
            self.follow(&more, depth + 1);
        }
    }

    /// Adds a candidate; the words that its first line, or a file of arguments, goes on with.
    fn add(&mut self, file: PathBuf, by: FoundBy) -> Vec<String> {
        if !self.seen.insert(file.clone()) {
            return Vec::new();
        }
        let words = further_words(&file, self.is_arguments(&file));
        self.found.push(Candidate { file, by });
        words
    }

    /// Whether a word names it as `@file`.
    fn is_arguments(&self, file: &Path) -> bool {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
        let marked = |word: &String| word.contains('@') && word.contains(name);
        self.line.words.iter().any(marked)
    }
}

/// `#!/usr/bin/env -S tool --flag`, or all that a file of arguments holds.
fn further_words(file: &Path, is_arguments: bool) -> Vec<String> {
    let Ok(Some(opened)) = paths::open_regular(file) else { return Vec::new() };
    let mut head = Vec::new();
    if opened.take(HEAD).read_to_end(&mut head).is_err() {
        return Vec::new();
    }
    let text = if is_arguments {
        String::from_utf8_lossy(&head)
    } else {
        let Some(line) = head.strip_prefix(b"#!") else { return Vec::new() };
        String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or_default())
    };
    parts_of(text.split_whitespace())
}

/// The words, what they hold, and what they are once decoded, each once.
fn parts_of<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let mut parts = paths_in(words);
    let decoded: Vec<String> = parts.iter().filter_map(|part| decoded(part)).collect();
    for part in decoded {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// The path of a `file:` URL, or of a word with percent signs.
fn decoded(part: &str) -> Option<String> {
    let path = part.strip_prefix("file:").unwrap_or(part);
    let path = match path.strip_prefix("//") {
        Some(rest) if path.len() < part.len() => rest.strip_prefix("localhost").unwrap_or(rest),
        Some(_) | None => path,
    };
    let text = percent_decode_str(path).decode_utf8().ok()?;
    (text != part).then(|| text.into_owned())
}
