//! Finds the files and directories that a command line may run. The search is generous on purpose:
//! a word that names no file only costs a lookup, but a missed script could be changed after the
//! approval.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::meant::{self, OwnNames};
use super::place::{NamedDirectory, Written};
use super::runners;
use super::spelling::{self, parts_of};
use crate::dial::lookup;
use crate::paths;

/// The maximum number of words of a command line that are looked up.
pub(super) const MOST_WORDS: usize = 512;

/// The maximum number of other directories that relative words are resolved in.
const MOST_BASES: usize = 12;

/// The maximum depth of files that name files: scripts name interpreters, and argument files name
/// further arguments.
pub(super) const DEEPEST: usize = 8;

/// The maximum number of lookups, which bounds the work that a project can cause.
const MOST_LOOKS: usize = 8_192;

/// The maximum number of options that are searched for a path after their letters.
const MOST_OPTIONS: usize = 256;

/// The maximum number of directory listings for patterns.
const MOST_LISTINGS: usize = 1_024;

/// The maximum length of a shebang line that the kernel reads, without `#!`.
const KERNEL_LINE: usize = 253;

/// The maximum number of bytes that are read from a script or argument file.
const HEAD: u64 = 64 * 1024;

/// The command line of a program, and the directory in which the program starts.
pub(super) struct CommandLine<'a> {
    pub(super) words: Vec<String>,
    pub(super) cwd: &'a Path,
    /// The `PATH` for programs; `None` if its value is known only when the server starts.
    pub(super) path: Option<&'a str>,
    /// The topmost directory in which runners look for their files.
    pub(super) root: &'a Path,
    pub(super) code: Code,
}

/// Whether words may contain shell code, in which patterns are expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    Inline,
    Absent,
}

/// A file that may be run, and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) file: PathBuf,
    pub(super) by: FoundBy,
    pub(super) written: Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// A word is the path of the file.
    Path,
    /// An interpreter may load the file for a word: a module, a manifest, the entry file of a
    /// directory.
    Guess,
    /// The file was found in a directory of `PATH`.
    Search,
    /// A runner reads commands from the file.
    Runner,
}

/// The paths that a command line reaches.
#[derive(Debug, Default)]
pub(super) struct ReachedPaths {
    /// All candidate files, existing or not, inside or outside the project.
    pub(super) files: Vec<Candidate>,
    pub(super) directories: Vec<NamedDirectory>,
    /// Descriptions, for the user, of the words and files that the search did not follow.
    pub(super) not_followed: Vec<String>,
}

pub(super) fn candidates(line: &CommandLine<'_>) -> ReachedPaths {
    let mut search = Search {
        seen: HashSet::new(),
        listings: HashMap::new(),
        own_names: HashMap::new(),
        found: ReachedPaths::default(),
        looks: 0,
        options: 0,
        bases: vec![NamedDirectory { directory: line.cwd.to_owned(), written: Written::Relative }],
        argument_words: argument_words(&line.words),
        line,
    };
    // `PERL5OPT="-Ilib -MFoo"` and `env -S "make -Csub"` contain further options.
    let inner: Vec<String> =
        line.words.iter().flat_map(|word| spelling::inner_words(word)).collect();
    let options: Vec<String> = inner.iter().chain(&line.words).cloned().collect();
    let below = spelling::below_mounts(&options);
    let words = line.words.iter().chain(&inner).chain(&below);
    let mut words = parts_of(words.map(String::as_str));
    search.add_bases(&words);
    // Two rounds are needed: a path after option letters may be a directory in which other paths
    // are found.
    for _ in 0..2 {
        let behind = search.behind_letters(&options);
        // The words after option letters are placed first, so that truncation does not drop them.
        words.retain(|word| !behind.contains(word));
        words.splice(0..0, behind);
        search.add_bases(&words);
    }
    if words.len() > MOST_WORDS {
        search.not_followed(format!("files named after the first {MOST_WORDS} words"));
        words.truncate(MOST_WORDS);
    }
    search.follow(&words, 0);
    if line.code == Code::Inline {
        line.words.iter().for_each(|word| search.match_patterns(word));
    }
    if line.words.iter().any(|word| word.contains("data:") && word.contains(',')) {
        search.not_followed("files that its `data:` URL loads".to_owned());
    }
    search.found
}

/// Words that may name argument files: those with `@`, or all words for programs that read such
/// files.
fn argument_words(words: &[String]) -> Vec<String> {
    let reads_files = words.iter().any(|word| {
        let name = Path::new(word).file_name().and_then(|name| name.to_str());
        matches!(name, Some("xargs" | "parallel")) || word.starts_with("--env-file")
    });
    words.iter().filter(|word| reads_files || word.contains('@')).cloned().collect()
}

struct Search<'l> {
    /// The paths that were added, as texts, because `x.js` and `x.js/` are equal as paths.
    seen: HashSet<OsString>,
    /// The names of the files in each directory that was listed.
    listings: HashMap<PathBuf, Vec<String>>,
    /// The names that each package manifest defines for files of the package.
    own_names: HashMap<PathBuf, OwnNames>,
    found: ReachedPaths,
    looks: usize,
    options: usize,
    /// The base directories for relative words. Any word may name one, as in `env -C sub`, `cd sub
    /// && …`, `uv --directory sub`.
    bases: Vec<NamedDirectory>,
    /// Words that may name argument files.
    argument_words: Vec<String>,
    line: &'l CommandLine<'l>,
}

impl Search<'_> {
    fn not_followed(&mut self, what: String) {
        if !self.found.not_followed.contains(&what) {
            self.found.not_followed.push(what);
        }
    }

    fn behind_letters(&mut self, words: &[String]) -> Vec<String> {
        let mut behind = Vec::new();
        for word in words.iter().filter(|word| word.starts_with('-')) {
            self.options += 1;
            if self.options > MOST_OPTIONS {
                self.not_followed(format!("files named in options after the first {MOST_OPTIONS}"));
                break;
            }
            if word == "--run" || word.starts_with("--run=") {
                behind.push(runners::NODE_RUN.to_owned());
            }
            let parts = spelling::behind_letters(word, &self.bases);
            behind.extend(parts.into_iter().map(str::to_owned));
        }
        behind
    }

    /// Adds directories as bases, including directories relative to other bases, as in `env -C a
    /// env -C b`.
    fn add_bases(&mut self, words: &[String]) {
        for word in words {
            for base in self.bases.clone() {
                for place in base.readings(word) {
                    let fits = self.bases.len() <= MOST_BASES && !self.bases.contains(&place);
                    let is_other = !matches!(word.as_str(), "." | "/");
                    if fits && is_other && place.directory.is_dir() {
                        self.bases.push(place);
                    }
                }
            }
        }
    }

    fn follow(&mut self, words: &[String], depth: usize) {
        let mut more = Vec::new();
        for word in words {
            self.looks += self.bases.len();
            if self.looks > MOST_LOOKS {
                self.not_followed("files named in further words and argument files".to_owned());
                return;
            }
            for base in self.bases.clone() {
                more.extend(self.look_up(word, &base));
            }
            if let Some(path) = self.line.path.filter(|_| !word.contains('/')) {
                let folders = path.split(':').map(Written::of);
                let files = lookup::candidates(word, path, self.line.cwd);
                for (file, written) in files.into_iter().zip(folders) {
                    more.extend(self.add(file, FoundBy::Search, written));
                }
            }
        }
        if more.len() > MOST_WORDS {
            self.not_followed(format!("files named in argument files after {MOST_WORDS} words"));
            more.truncate(MOST_WORDS);
        }
        if more.is_empty() {
            return;
        }
        if depth == DEEPEST {
            self.not_followed(format!("files named more than {DEEPEST} files deep"));
            return;
        }
        self.follow(&more, depth + 1);
    }

    /// Adds the files that a word may name. Returns the words in these files that may name further
    /// files.
    fn look_up(&mut self, word: &str, base: &NamedDirectory) -> Vec<String> {
        let mut more = Vec::new();
        for NamedDirectory { directory: path, written } in base.readings(word) {
            if path.is_dir() {
                self.add_directory(path.clone(), written);
            }
            let by = if path.is_file() { FoundBy::Path } else { FoundBy::Guess };
            if let Some(file) = meant::by_virtual_environment(&path) {
                more.extend(self.add(file, FoundBy::Guess, written));
            }
            for file in meant::by_path(path) {
                more.extend(self.add(file, by, written));
            }
        }
        let written = base.join(word).written;
        let base = &base.directory;
        if let Some(module) = meant::by_module(word, base) {
            let beside = module.stems.iter().flat_map(|stem| self.beside(stem)).collect::<Vec<_>>();
            let files: Vec<PathBuf> = module.files.into_iter().chain(beside).collect();
            if files.iter().any(|file| file.is_file()) && module.package.is_dir() {
                self.add_directory(module.package, written);
            }
            for file in files {
                more.extend(self.add(file, FoundBy::Guess, written));
            }
        }
        let reads = runners::files_of(word);
        for place in self.upwards(base) {
            for file in
                meant::by_launcher(word, &place).into_iter().chain(meant::by_package(word, &place))
            {
                more.extend(self.add(file, FoundBy::Guess, written));
            }
            for file in self.by_runner(&reads, &place).into_iter().chain(self.by_name(word, &place))
            {
                more.extend(self.add(file, FoundBy::Runner, written));
            }
        }
        more
    }

    /// The files that a runner reads from this directory.
    fn by_runner(&mut self, reads: &[&str], place: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for name in reads {
            let path = place.join(name);
            let pattern = path.file_name().and_then(|name| name.to_str());
            let Some((start, end)) = pattern.and_then(|name| name.split_once('*')) else {
                files.push(path);
                continue;
            };
            let directory = path.parent().unwrap_or(place).to_owned();
            let names = self.names_in(&directory).iter();
            let fits = names.filter(|name| name.starts_with(start) && name.ends_with(end));
            files.extend(fits.map(|name| directory.join(name)));
        }
        files
    }

    /// The package manifest, if it maps this name to files of the package.
    fn by_name(&mut self, word: &str, place: &Path) -> Option<PathBuf> {
        let manifest = place.join("package.json");
        let names =
            self.own_names.entry(manifest.clone()).or_insert_with(|| OwnNames::of(&manifest));
        names.contain(word).then_some(manifest)
    }

    fn names_in(&mut self, directory: &Path) -> &[String] {
        self.listings.entry(directory.to_owned()).or_insert_with(|| names_in(directory))
    }

    /// The directory `base`, and its parents up to the root of the project.
    fn upwards(&self, base: &Path) -> Vec<PathBuf> {
        let Ok(base) = base.canonicalize() else { return vec![base.to_owned()] };
        let above = base.ancestors().skip(1).take_while(|place| place.starts_with(self.line.root));
        std::iter::once(&*base).chain(above).map(Path::to_owned).collect()
    }

    /// Extension modules and compiled code, which Python prefers to the source of a module.
    fn beside(&mut self, stem: &Path) -> Vec<PathBuf> {
        const ENDINGS: [&str; 4] = [".so", ".pyc", ".pyd", ".dylib"];
        let (Some(directory), Some(name)) = (stem.parent(), stem.file_name()) else {
            return Vec::new();
        };
        let start = format!("{}.", name.to_string_lossy());
        let mut files = Vec::new();
        for place in [directory.to_owned(), directory.join("__pycache__")] {
            let fits = self.names_in(&place).iter().filter(|name| {
                name.starts_with(&start) && ENDINGS.iter().any(|ending| name.ends_with(ending))
            });
            files.extend(fits.map(|name| place.join(name)));
        }
        files
    }

    /// Adds the files that a shell would expand a pattern to.
    fn match_patterns(&mut self, code: &str) {
        let mut patterns = spelling::patterns_in(code);
        let within = spelling::unquoted(code);
        patterns.extend(within.iter().flat_map(|word| spelling::patterns_in(word)));
        let mut listings = MOST_LISTINGS;
        for pattern in patterns {
            for base in self.bases.clone() {
                let written = base.join(&pattern).written;
                let (paths, is_whole) = spelling::matches(&base.directory, &pattern, &mut listings);
                if !is_whole {
                    self.not_followed(format!("some of the files that {pattern:?} matches"));
                }
                for path in paths {
                    // Directories that `*` alone matches are not added, because that pattern
                    // matches every directory of a project.
                    if path.is_dir() && pattern.trim_start_matches("./") != "*" {
                        self.add_directory(path, written);
                    } else {
                        self.add(path, FoundBy::Path, written);
                    }
                }
            }
        }
    }

    fn add_directory(&mut self, directory: PathBuf, written: Written) {
        let place = NamedDirectory { directory, written };
        if !self.found.directories.contains(&place) {
            self.found.directories.push(place);
        }
    }

    /// Adds a candidate; returns the words of its shebang line or argument file.
    fn add(&mut self, file: PathBuf, by: FoundBy, written: Written) -> Vec<String> {
        if !self.seen.insert(file.clone().into_os_string()) {
            return Vec::new();
        }
        // A program found on `PATH` is no argument file.
        let is_arguments = by != FoundBy::Search && self.is_arguments(&file);
        let text = further_text(&file, is_arguments);
        if let Some(FurtherText { is_whole: false, .. }) = text {
            self.not_followed(format!("files named in the first line of {file:?}"));
        }
        self.found.files.push(Candidate { file, by, written });
        let Some(FurtherText { text, by_kernel, .. }) = text else { return Vec::new() };
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.extend(by_kernel);
        words.extend(spelling::unquoted(&text));
        if is_arguments {
            self.argument_words.extend(words.iter().filter(|word| word.contains('@')).cloned());
        }
        let behind = self.behind_letters(&words);
        parts_of(words.iter().chain(&behind).map(String::as_str))
    }

    /// Whether a word of the command line refers to this file as an argument file, such as `@file`.
    fn is_arguments(&self, file: &Path) -> bool {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { return false };
        self.argument_words.iter().any(|word| word.contains(name))
    }
}

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// The text of a shebang line, such as `#!/usr/bin/env -S tool --flag`, or of an argument file.
struct FurtherText {
    text: String,
    /// The interpreter and its argument as the kernel parses them: separated by spaces and tabs,
    /// with at most one argument.
    by_kernel: Vec<String>,
    /// Whether the text is an unchanged copy of the bytes.
    is_whole: bool,
}

fn further_text(file: &Path, is_arguments: bool) -> Option<FurtherText> {
    let opened = paths::open_regular(file).ok()??;
    let mut head = Vec::new();
    opened.take(HEAD).read_to_end(&mut head).ok()?;
    if is_arguments && !head.contains(&0) {
        let text = String::from_utf8_lossy(&head).into_owned();
        return Some(FurtherText { text, by_kernel: Vec::new(), is_whole: true });
    }
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line).into_owned();
    let mut by_kernel = words_of_kernel(line);
    // The kernel truncates a shebang line that is longer.
    by_kernel.extend(line.get(..KERNEL_LINE).into_iter().flat_map(words_of_kernel));
    Some(FurtherText { text, by_kernel, is_whole: std::str::from_utf8(line).is_ok() })
}

/// The words that the kernel runs for a shebang line, without `#!`.
fn words_of_kernel(line: &[u8]) -> Vec<String> {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    // The kernel ignores the rest of a shebang line after a NUL byte.
    let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let line = line.get(start..).unwrap_or_default();
    let end = line.iter().position(blank).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    let [interpreter, argument] =
        [interpreter, argument].map(|word| String::from_utf8_lossy(word).into_owned());
    let argument = argument.trim_matches([' ', '\t']).to_owned();
    [interpreter, argument].into_iter().filter(|word| !word.is_empty()).collect()
}
