//! Rules about the pages of threats, faults and invariants: each threat and fault has one row, and
//! the tests that the pages name exist.

use std::collections::BTreeSet;

use super::test_names::tests_of;
use super::{File, Finding, Tree, numbered};

const PAGE: &str = "docs/safety.md";

/// The pages whose last column names tests.
const PAGES_WITH_TESTS: &[&str] = &[PAGE, "docs/invariants.md"];

/// The letters of the rows of the page, and the number of rows for each letter.
const ROWS: &[(char, u32)] = &[('T', 28), ('F', 35)];

/// The beginning of a cell without tests; the reason follows it.
const NOT_THERE: &str = "not there: ";

/// Each threat and each fault has one row, with tests or a reason why there are none.
pub(super) fn safety_row(file: &File, _: &Tree) -> Vec<Finding> {
    if file.path != PAGE {
        return Vec::new();
    }
    let mut missing: BTreeSet<String> = ROWS
        .iter()
        .flat_map(|(letter, last)| (1..=*last).map(move |number| format!("{letter}{number}")))
        .collect();
    let mut findings = Vec::new();
    for Row { line, name, tests } in rows(&file.text) {
        if !missing.remove(name) {
            findings.push(Finding::error(line, format!("`{name}` is unknown, or has a row above")));
        }
        let reason = tests.strip_prefix(NOT_THERE).is_some_and(|reason| !reason.trim().is_empty());
        if names_in(tests).is_empty() && !reason {
            let message = format!("`{name}` has no test: name one, or write `{NOT_THERE}REASON`");
            findings.push(Finding::error(line, message));
        }
    }
    findings.extend(missing.iter().map(|name| Finding::error(1, format!("no row for `{name}`"))));
    findings
}

/// A test that a page names is exactly one test of the repository, and a file of tests that it
/// names exists.
pub(super) fn named_test(file: &File, tree: &Tree) -> Vec<Finding> {
    if !PAGES_WITH_TESTS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let known: Vec<_> = tree.files.iter().flat_map(tests_of).collect();
    let mut findings = Vec::new();
    for Row { line, tests, .. } in rows(&file.text) {
        for name in names_in(tests) {
            if name.ends_with(".rs") {
                if !tree.paths.contains(&format!("crates/switchboard-it/{name}")) {
                    findings.push(Finding::error(line, format!("no file of tests is `{name}`")));
                }
                continue;
            }
            let named = known.iter().filter(|test| {
                let rest = test.path.strip_suffix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
            });
            match named.count() {
                1 => {}
                0 => findings.push(Finding::error(line, format!("no test is named `{name}`"))),
                count => {
                    let message = format!("`{name}` names {count} tests: write its module, too");
                    findings.push(Finding::error(line, message));
                }
            }
        }
    }
    findings
}

/// A row of a table on the page.
struct Row<'a> {
    line: usize,
    name: &'a str,
    tests: &'a str,
}

/// The rows of all tables with three columns, without their headings and separator lines.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    numbered(text).filter_map(|(line, row)| {
        let cells: Vec<&str> = row.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
        let [name, _promise, tests] = cells[..] else { return None };
        let (name, tests) = (name.trim(), tests.trim());
        let heads = ["row", "invariant"].contains(&name) || name.starts_with('-');
        (!heads).then_some(Row { line, name, tests })
    })
}

/// The texts between backticks.
fn names_in(cell: &str) -> Vec<&str> {
    let reason = cell.starts_with(NOT_THERE);
    cell.split('`').skip(1).step_by(2).filter(|_| !reason).collect()
}

#[cfg(test)]
mod tests {
    use super::PAGE;
    use crate::tidy::tests::{CORE_FILE, TEST_FILE, check, check_in};

    /// The whole page, with these cells in the rows with these names.
    fn page(changed: &[(&str, &str)]) -> String {
        let mut text = "# Safety\n\n| row | promise | tests |\n|---|---|---|\n".to_owned();
        let names = (1..=28).map(|n| format!("T{n}")).chain((1..=35).map(|n| format!("F{n}")));
        for name in names {
            let cell = changed.iter().find(|(row, _)| *row == name).map(|(_, cell)| *cell);
            text.push_str(&format!("| {name} | Calls `end`. | {} |\n", cell.unwrap_or("`a`")));
        }
        text
    }

    #[test]
    fn safety_document_has_one_row_per_threat_and_fault() {
        let rule = "safety-row";
        check(rule, PAGE, &page(&[]), &[]);
        check(rule, PAGE, &page(&[("T2", "")]), &[6]);
        check(rule, PAGE, &page(&[("T2", "not there")]), &[6]);
        check(rule, PAGE, &page(&[("T2", "not there: ")]), &[6]);
        check(rule, PAGE, &page(&[("T2", "not there: no `socket` exists")]), &[]);
        check(rule, PAGE, &page(&[]).replace("| F35 |", "| F34 |"), &[67, 1]);
        check(rule, PAGE, &page(&[]).replace("| T1 |", "| T29 |"), &[5, 1]);
        check(rule, "docs/other.md", "| T2 | a | b |\n", &[]);
    }

    #[test]
    fn test_named_in_safety_document_must_exist_once() {
        let rule = "named-test";
        let core = "#[test]\nfn a() {}\nfn helper() {}\nmod tests {\n    #[tokio::test(x)]\n    \
                    async fn both() {\n    }\n}\nproptest! {\n    #[test]\n    fn any() {}\n}\n";
        let it = "#[tokio::test]\n#[cfg(unix)]\nasync fn both() {}\n// #[test]\n// fn gone() {}\n";
        let around = [(CORE_FILE, core), (TEST_FILE, it)];
        let check = |cell: &str, expected: &[usize]| {
            check_in(&around, rule, PAGE, &page(&[("T2", cell)]), expected);
        };
        check("`a`, `any`", &[]);
        check("`name::a` and `name::any`", &[]);
        check("`helper`", &[6]);
        check("`gone`", &[6]);
        check("`nothing`, `none`", &[6, 6]);
        check("`both`", &[6]);
        check("`calls::both`, `name::tests::both`", &[]);
        check("`name::both`", &[6]);
        check("`th`", &[6]);
        check("not there: `nothing` exists", &[]);
        check("`tests/it/calls.rs`", &[]);
        check("`tests/it/gone.rs`", &[6]);
        let invariants = "| invariant | by | tests |\n|---|---|---|\n| A | `b` | `a`, `gone` |\n";
        check_in(&around, rule, "docs/invariants.md", invariants, &[3]);
    }
}
