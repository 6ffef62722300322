//! Tests a rule with text that violates it, and with similar text that does not.

use super::*;

/// Compares the lines that the rule `name` reports in a file with this path and text.
#[track_caller]
pub(super) fn check(name: &str, path: &str, text: &str, expected: &[usize]) {
    check_in(&[], name, path, text, expected);
}

/// The same check, with other files in the tree.
#[track_caller]
pub(super) fn check_in(
    around: &[(&str, &str)],
    name: &str,
    path: &str,
    text: &str,
    expected: &[usize],
) {
    let files = around.iter().copied().chain([(path, text)]);
    let tree = Tree::new(files.map(|(path, text)| (path, Some(text.to_owned()))));
    let file = tree.file(path).expect("the file is in its own tree");
    let (_, rule) = RULES.iter().find(|(rule, _)| *rule == name).expect("the rule has that name");
    let found: Vec<usize> = rule(file, &tree).iter().map(|finding| finding.line).collect();
    assert_eq!(found, expected, "{path}:\n{text}");
}

pub(super) const CORE_FILE: &str = "crates/switchboard-core/src/name.rs";
pub(super) const TEST_FILE: &str = "crates/switchboard-it/tests/it/calls.rs";

#[test]
fn tidy_tree_has_paths_of_binary_files_and_folders() {
    let tree = Tree::new([("docs/img/panel.png", None), ("docs/a.md", Some(String::new()))]);
    let paths: Vec<&str> = tree.paths.iter().map(String::as_str).collect();
    assert_eq!(paths, ["docs", "docs/a.md", "docs/img", "docs/img/panel.png"]);
    assert_eq!(tree.files.len(), 1);
}
