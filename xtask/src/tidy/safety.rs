//! Rules about the page of threats and faults: each has one row, and the tests that it names exist.

use std::collections::BTreeSet;

use super::{File, Finding, Tree, numbered};

const PAGE: &str = "docs/safety.md";

/// The rows of the page: a letter, and how many there are.
const ROWS: &[(char, u32)] = &[('T', 28), ('F', 35)];

/// Begins the cell of a row without tests, and is followed by the reason.
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

/// Every test that the page names is one test of the repository.
pub(super) fn safety_test(file: &File, tree: &Tree) -> Vec<Finding> {
    if file.path != PAGE {
        return Vec::new();
    }
    let known: Vec<String> = tree.files.iter().flat_map(tests_of).collect();
    let mut findings = Vec::new();
    for Row { line, tests, .. } in rows(&file.text) {
        for name in names_in(tests) {
            let is_meant = |path: &&String| {
                let rest = path.strip_suffix(name);
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
            };
            match known.iter().filter(is_meant).count() {
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

/// A row of a table of the page.
struct Row<'a> {
    line: usize,
    name: &'a str,
    tests: &'a str,
}

/// The rows of all tables with three columns, but for headings and rules.
fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    numbered(text).filter_map(|(line, row)| {
        let cells: Vec<&str> = row.strip_prefix('|')?.strip_suffix('|')?.split('|').collect();
        let [name, _promise, tests] = cells[..] else { return None };
        let (name, tests) = (name.trim(), tests.trim());
        let heads = name == "row" || name.starts_with('-');
        (!heads).then_some(Row { line, name, tests })
    })
}

/// What stands between backticks.
fn names_in(cell: &str) -> Vec<&str> {
    let reason = cell.starts_with(NOT_THERE);
    cell.split('`').skip(1).step_by(2).filter(|_| !reason).collect()
}

/// The paths of the tests of a file, without the crate, as a test runner shows them.
fn tests_of(file: &File) -> Vec<String> {
    let Some(module) = module_of(&file.path) else { return Vec::new() };
    let mut tests = Vec::new();
    let mut inner: Vec<(usize, &str)> = Vec::new();
    let mut marked = false;
    for (_, line) in file.code_lines() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        match Item::of(code) {
            Item::Mark => marked = true,
            Item::Attribute => {}
            Item::Module(name) => inner.push((indent, name)),
            Item::Function(name) if std::mem::take(&mut marked) => {
                let inner = inner.iter().map(|(_, name)| *name);
                let path: Vec<&str> = module.iter().copied().chain(inner).chain([name]).collect();
                tests.push(path.join("::"));
            }
            Item::Function(_) | Item::Other => marked = false,
            Item::End => inner.retain(|(opened, _)| *opened != indent),
        }
    }
    tests
}

/// The modules that a file stands for: those of a library, or of tests in one binary.
fn module_of(path: &str) -> Option<Vec<&str>> {
    let path = path.strip_prefix("crates/")?.strip_suffix(".rs")?;
    let (_, within) = path.split_once('/')?;
    let within = within.strip_prefix("src/").or_else(|| within.strip_prefix("tests/it/"))?;
    let roots = ["lib", "main", "mod"];
    Some(within.split('/').filter(|part| !roots.contains(part)).collect())
}

/// What a line of code begins.
enum Item<'a> {
    /// The attribute that makes a test of a function.
    Mark,
    Attribute,
    Module(&'a str),
    Function(&'a str),
    /// The end of what began at this indentation.
    End,
    Other,
}

impl<'a> Item<'a> {
    fn of(code: &'a str) -> Item<'a> {
        let name = |rest: &'a str| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            &rest[..end]
        };
        if code.starts_with("#[test]") || code.starts_with("#[tokio::test") {
            return Item::Mark;
        }
        if code.is_empty() || code.starts_with("#[") {
            return Item::Attribute;
        }
        if code.starts_with('}') {
            return Item::End;
        }
        if let Some(rest) = code.strip_prefix("mod ").filter(|_| code.ends_with('{')) {
            return Item::Module(name(rest));
        }
        let function = code.strip_prefix("async ").unwrap_or(code).strip_prefix("fn ");
        function.map_or(Item::Other, |rest| Item::Function(name(rest)))
    }
}

#[cfg(test)]
mod tests {
    use super::PAGE;
    use crate::tidy::tests::{CORE_FILE, TEST_FILE, check, check_in};

    /// The whole page, with these cells in the rows of these names.
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
    fn each_threat_and_fault_has_one_row() {
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
    fn documented_test_must_exist_once() {
        let rule = "safety-test";
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
    }
}
