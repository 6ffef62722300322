//! Rules about the text of a file on disk.

use super::{File, Finding, Tree, numbered};

const WARN_ABOVE: usize = 400;
const FAIL_ABOVE: usize = 450;
const TESTS_FAIL_ABOVE: usize = 600;

/// The files that may be longer, each with the reason.
const LONG_FILES: &[(&str, &str)] = &[];

/// The extensions of files that people write; data files keep their original bytes.
const WRITTEN: &[&str] = &[".rs", ".toml", ".md", ".ts", ".mjs", ".yaml", ".yml", ".sh", ".ci/run"];

/// The top-level directories of personal files, whose paths exist only on one machine.
const PRIVATE_FOLDERS: &[&str] = &["home", "root", "work", "Users"];

/// A Rust file begins with a sentence that names what it decides or owns.
pub(super) fn opening_sentence(file: &File, _: &Tree) -> Vec<Finding> {
    let opening = file.text.lines().next().unwrap_or_default();
    let says = opening.strip_prefix("//!").is_some_and(|sentence| !sentence.trim().is_empty());
    if file.rust.is_none() || says {
        return Vec::new();
    }
    vec![Finding::error(1, "open the file with a `//!` sentence: what does it decide or own?")]
}

/// A file is short enough to be read at once.
pub(super) fn file_length(file: &File, _: &Tree) -> Vec<Finding> {
    let lines = file.text.lines().count();
    let excepted = LONG_FILES.iter().any(|(path, _reason)| *path == file.path);
    if file.rust.is_none() || excepted || lines <= WARN_ABOVE {
        return Vec::new();
    }
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let most = if is_test { TESTS_FAIL_ABOVE } else { FAIL_ABOVE };
    let message = format!("{lines} lines: split it by what changes together");
    if lines > most {
        vec![Finding::error(lines, format!("{message} (at most {most})"))]
    } else {
        vec![Finding::warning(lines, message)]
    }
}

/// There are no blanks at the end of a line, no tabs in Rust, and a newline at the end.
pub(super) fn whitespace(file: &File, _: &Tree) -> Vec<Finding> {
    if !WRITTEN.iter().any(|ending| file.path.ends_with(ending)) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in numbered(&file.text) {
        if line.ends_with(char::is_whitespace) {
            findings.push(Finding::error(number, "blanks at the end of the line"));
        }
        if file.rust.is_some() && line.contains('\t') {
            findings.push(Finding::error(number, "tab: indent with spaces, write `\\t` in text"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        let last = file.text.lines().count();
        findings.push(Finding::error(last, "no newline at the end of the file"));
    }
    findings
}

/// There is no path that exists only on one machine.
pub(super) fn machine_path(file: &File, _: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in numbered(&file.text) {
        if PRIVATE_FOLDERS.iter().any(|folder| leads_into(line, folder)) {
            findings.push(Finding::error(number, "a path of one machine: write a relative one"));
        }
    }
    findings
}

/// Whether the line contains an absolute path to a file in the top-level directory `folder`.
fn leads_into(line: &str, folder: &str) -> bool {
    let folder = format!("/{folder}/");
    line.match_indices(&folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + folder.len()..].chars().next();
        let goes_on = |c: char| c.is_alphanumeric() || "_-.~})>*]".contains(c);
        !before.is_some_and(goes_on) && after.is_some_and(char::is_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::file_length;
    use crate::tidy::tests::{CORE_FILE, TEST_FILE, check};
    use crate::tidy::{File, Level, Tree};

    #[test]
    fn rust_file_without_opening_module_comment_is_refused() {
        let rule = "opening-sentence";
        check(rule, CORE_FILE, "//! Names.\n", &[]);
        check(rule, CORE_FILE, "use std::fmt;\n//! Names.\n", &[1]);
        check(rule, CORE_FILE, "//!\n//! Names.\n", &[1]);
        check(rule, CORE_FILE, "", &[1]);
        check(rule, "bench/src/main.rs", "fn main() {}\n", &[]);
        check(rule, "README.md", "# Switchboard\n", &[]);
    }

    #[test]
    fn file_over_400_lines_warns_and_over_limit_fails() {
        let levels_at = |path: &str, lines: usize| {
            let file = File::new(path, &"x\n".repeat(lines));
            let findings = file_length(&file, &Tree::new([]));
            findings.iter().map(|finding| finding.level).collect::<Vec<_>>()
        };
        for (path, most) in [(CORE_FILE, 450), (TEST_FILE, 600)] {
            assert_eq!(levels_at(path, 400), []);
            assert_eq!(levels_at(path, 401), [Level::Warning]);
            assert_eq!(levels_at(path, most), [Level::Warning]);
            assert_eq!(levels_at(path, most + 1), [Level::Error]);
        }
        check("file-length", "CHANGELOG.md", &"x\n".repeat(601), &[]);
    }

    #[test]
    fn trailing_white_space_is_refused() {
        let rule = "whitespace";
        check(rule, "README.md", "one\ntwo \n\nfour\t\n", &[2, 4]);
        check(rule, "README.md", "a\tb\n", &[]);
        check(rule, CORE_FILE, "\tfn f() {}\n", &[1]);
        check(rule, CORE_FILE, "one\ntwo", &[2]);
        check(rule, ".ci/run", "one", &[1]);
        check(rule, "crates/switchboard-core/testdata/tools.json", "{} ", &[]);
        check(rule, "empty.md", "", &[]);
    }

    #[test]
    fn machine_specific_path_is_refused_in_any_file() {
        let rule = "machine-path";
        for folder in ["home", "root", "work", "Users"] {
            check(rule, "docs/a.md", &format!("ok\nrun \"/{folder}/ada/tool\"\n"), &[2]);
            check(rule, CORE_FILE, &format!("// /{folder}/x\n"), &[1]);
            check(rule, "docs/a.md", &format!("src/{folder}/x and $HOME/{folder}/x\n"), &[]);
            check(rule, "docs/a.md", &format!("everything under `/{folder}/`\n"), &[]);
        }
    }
}
