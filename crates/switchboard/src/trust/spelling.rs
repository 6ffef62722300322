//! Extracts the paths that a word may contain: quoted, escaped, percent-encoded, after an option,
//! or as a pattern.

use std::fs;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use switchboard_core::config::trust::paths_in;
use switchboard_core::config::words;

use super::place::{NamedDirectory, ROOT_MARKS};

/// The maximum length of an option that is searched for a path after its letters.
const LONGEST_OPTION: usize = 256;

/// The maximum depth at which a container's mount point is looked for in a path.
const DEEPEST_MOUNT: usize = 8;

/// The maximum number of files that match one pattern.
const MOST_MATCHES: usize = 256;

/// The words, the paths in them, and their unquoted and decoded forms, without duplicates.
pub(super) fn parts_of<'w>(words: impl Iterator<Item = &'w str>) -> Vec<String> {
    let words: Vec<&str> = words.collect();
    let mut parts = paths_in(words.iter().copied());
    let mut more: Vec<String> = words.iter().flat_map(|word| unquoted(word)).collect();
    let grouped = words.iter().copied().chain(parts.iter().chain(&more).map(String::as_str));
    let modules: Vec<String> = grouped.flat_map(behind_m).map(str::to_owned).collect();
    more.extend(modules);
    // Two rounds are needed: a `data:` URL may contain a `file:` URL that is encoded twice.
    for _ in 0..2 {
        let decoded: Vec<String> =
            parts.iter().chain(&more).filter_map(|part| decoded(part)).collect();
        more.extend(paths_in(decoded.iter().map(String::as_str)));
        let files: Vec<String> =
            parts.iter().chain(&more).filter_map(|part| before_query(part)).collect();
        more.extend(files);
    }
    more.extend(paths_in(more.clone().iter().map(String::as_str)));
    for part in more {
        if !part.is_empty() && !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// The module in a group of short options, as in `python3 -uBmpackage.module`.
fn behind_m(word: &str) -> impl Iterator<Item = &str> {
    let letters = word.strip_prefix('-').filter(|_| word.len() <= LONGEST_OPTION);
    let letters = letters.unwrap_or_default();
    let end = letters.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(letters.len());
    let marks = letters.char_indices().take(end).filter(|(_, letter)| *letter == 'm');
    marks.filter_map(move |(at, _)| letters.get(at + 1..)).filter(|name| !name.is_empty())
}

/// The path of a module URL, as in `./x.mjs?version`, or of a flake, as in `./sub#server`.
fn before_query(part: &str) -> Option<String> {
    let (file, _) = part.split_once(['?', '#'])?;
    (!file.is_empty()).then(|| file.to_owned())
}

/// The words within a word, without quotes and backslashes.
pub(super) fn unquoted(word: &str) -> Vec<String> {
    if !word.contains(['\\', '\'', '"']) {
        return Vec::new();
    }
    // `env -S` treats `\_` as a space.
    let word = word.replace("\\_", " ");
    words::split(&word).unwrap_or_else(|_| {
        let bare = word.replace(['\\', '\'', '"'], "");
        bare.split_whitespace().map(str::to_owned).collect()
    })
}

/// The words within a word, as a shell, `env` or Node would split it.
pub(super) fn inner_words(word: &str) -> Vec<String> {
    let mut words = Vec::new();
    if word.contains(char::is_whitespace) {
        words.extend(word.split_whitespace().map(str::to_owned));
        words.extend(unquoted(word));
        // In `NODE_OPTIONS`, Node removes the backslashes within double quotes.
        let bare = word.replace(['\\', '\'', '"'], "");
        words.extend(bare.split_whitespace().map(str::to_owned));
    }
    // The value of an assignment, such as `-Ilib` in `env PERL5OPT=-Ilib`.
    let value = |word: &str| {
        let value = word.split_once('=')?.1.trim_start_matches(['\'', '"']);
        value.starts_with('-').then(|| value.to_owned())
    };
    let values: Vec<String> =
        words.iter().map(String::as_str).chain([word]).filter_map(value).collect();
    words.extend(values);
    words
}

/// The local paths of files in a container: with `-v .:/w`, `/w/x.js` is `./x.js`.
pub(super) fn below_mounts(words: &[String]) -> Vec<String> {
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['/', ':', ',', '"', '\'']);
    let is_mounted = |place: &str| {
        let marks = [format!(":{place}"), format!("={place}")];
        let mounts = |word: &String, mark: &String| {
            word.match_indices(mark).any(|(at, _)| ends(word.get(at + mark.len()..).unwrap_or("")))
        };
        words.iter().any(|word| marks.iter().any(|mark| mounts(word, mark)))
    };
    let within = |word: &String| -> Vec<String> {
        let slashes = word.match_indices('/').skip(1).take(DEEPEST_MOUNT);
        let mounted = slashes.filter(|(at, _)| word.get(..*at).is_some_and(is_mounted));
        mounted.filter_map(|(at, _)| word.get(at..)).map(|rest| format!(".{rest}")).collect()
    };
    words.iter().filter(|word| word.starts_with('/')).flat_map(within).collect()
}

/// The path of a `file:` URL, or of a percent-encoded word.
fn decoded(part: &str) -> Option<String> {
    let path = part.strip_prefix("file:").unwrap_or(part);
    let path = match path.strip_prefix("//") {
        Some(rest) if path.len() < part.len() => rest.strip_prefix("localhost").unwrap_or(rest),
        Some(_) | None => path,
    };
    let text = percent_decode_str(path).decode_utf8().ok()?;
    (text != part).then(|| text.into_owned())
}

/// The existing paths that an argument may contain: the whole argument, as after `--`, or any text
/// that follows option letters, such as `dir` in `-sCdir`.
pub(super) fn behind_letters<'w>(word: &'w str, bases: &[NamedDirectory]) -> Vec<&'w str> {
    if !word.starts_with('-') || word.len() > LONGEST_OPTION {
        return Vec::new();
    }
    let clustered = if word.starts_with("--") { 0 } else { word.len() };
    let ends = word.char_indices().skip(2).take(clustered).map(|(at, _)| at);
    let suffixes = std::iter::once(0).chain(ends).filter_map(|at| word.get(at..));
    // The source of a mount, such as `./app` in `-v./app:/a`.
    let suffixes = suffixes.flat_map(|suffix| {
        let source = suffix.split_once([':', ',']).map(|(source, _)| source);
        [Some(suffix), source.filter(|source| !source.is_empty())].into_iter().flatten()
    });
    let exists = |suffix: &&str| {
        *suffix != "/"
            && bases
                .iter()
                .flat_map(|base| base.readings(suffix))
                .any(|place| place.directory.symlink_metadata().is_ok())
    };
    suffixes.filter(exists).collect()
}

/// The parts of code that a shell would expand to file names.
pub(super) fn patterns_in(code: &str) -> Vec<String> {
    let ends = |c: char| c.is_whitespace() || "'\"`;|&()<>=".contains(c);
    let pieces = code.split(ends).filter(|piece| piece.contains(['*', '?', '[', '{', '~', '$']));
    let mut patterns: Vec<String> = pieces.map(pattern).collect();
    patterns.retain(|pattern| !pattern.is_empty());
    patterns
}

/// A simplified pattern that matches at least the same names: all special syntax becomes `*`.
fn pattern(piece: &str) -> String {
    let here = piece.replace("${PWD}", ".").replace("$PWD", ".").replace("~+", ".");
    let mut out = String::new();
    let mut within: Option<char> = None;
    for c in here.chars() {
        match (within, c) {
            (Some(end), c) if c == end => within = None,
            (Some(_), _) | (None, '\\') => {}
            (None, '[') => {
                out.push('*');
                within = Some(']');
            }
            (None, '{') => {
                out.push('*');
                within = Some('}');
            }
            (None, '?') => out.push('*'),
            (None, c) => out.push(c),
        }
    }
    out
}

/// The paths that match a pattern, and whether the list is complete. At most `listings` directories
/// are read.
pub(super) fn matches(base: &Path, pattern: &str, listings: &mut usize) -> (Vec<PathBuf>, bool) {
    let mut found =
        vec![if pattern.starts_with('/') { PathBuf::from("/") } else { base.to_owned() }];
    let mut is_whole = true;
    for part in pattern.split('/').filter(|part| !part.is_empty()) {
        if !part.contains('*') {
            found.iter_mut().for_each(|path| path.push(part));
            found.retain(|path| path.exists());
            continue;
        }
        let mut next = Vec::new();
        for directory in &found {
            let Some(left) = listings.checked_sub(1) else { return (Vec::new(), false) };
            *listings = left;
            let names = fs::read_dir(directory).into_iter().flatten().flatten();
            let names = names.filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                fits(&name, part) && !ROOT_MARKS.contains(&&*name)
            });
            next.extend(names.map(|entry| entry.path()));
        }
        next.sort();
        is_whole &= next.len() <= MOST_MATCHES;
        next.truncate(MOST_MATCHES);
        found = next;
    }
    (found, is_whole)
}

fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return name == pattern };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return left.ends_with(rest) };
    for part in middle.split('*').filter(|part| !part.is_empty()) {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}
