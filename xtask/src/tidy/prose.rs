//! Rules about text for people: comments and markdown.

use super::{File, Finding, Tree, has_word, numbered};

/// Marks of unfinished work.
const MARKS: &[&str] = &["TODO", "FIXME"];

/// A comment about unfinished work names its issue: the mark, then `(#12)`.
pub(super) fn open_work(file: &File, _: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.comment_lines() {
        for mark in MARKS.iter().filter(|mark| has_word(line, mark)) {
            let named = line.split(mark).skip(1).all(names_an_issue);
            if !named {
                let message = format!("`{mark}` without an issue: write `{mark}(#12)`");
                findings.push(Finding::error(number, message));
            }
        }
    }
    findings
}

fn names_an_issue(rest: &str) -> bool {
    let number = rest.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// A relative link in markdown leads to a file or folder of the repository.
pub(super) fn broken_link(file: &File, tree: &Tree) -> Vec<Finding> {
    if !file.path.ends_with(".md") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut fenced = false;
    for (number, line) in numbered(&file.text) {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for link in links(line) {
            let broken = target(&file.path, &link).is_some_and(|path| !tree.paths.contains(&path));
            if broken {
                findings.push(Finding::error(number, format!("`{link}` leads nowhere")));
            }
        }
    }
    findings
}

/// The targets of the inline links and of the link definition on this line.
fn links(line: &str) -> Vec<String> {
    // Every second part between backticks is code.
    let prose: String = line.split('`').step_by(2).collect();
    let inline = prose.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
    let definition = prose.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
    inline
        .chain(definition.map(|(_, destination)| destination))
        .filter_map(|destination| destination.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

/// The path from the root to which `link` in the file `from` points; `None` if it points outside.
fn target(from: &str, link: &str) -> Option<String> {
    let path = link.split(['#', '?']).next().unwrap_or_default();
    if path.is_empty() || path.contains(':') {
        return None;
    }
    let folder = from.rsplit_once('/').map(|(folder, _)| folder);
    let mut parts: Vec<&str> = match folder {
        Some(folder) if !path.starts_with('/') => folder.split('/').collect(),
        Some(_) | None => Vec::new(),
    };
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::{CORE_FILE, check, check_in};

    #[test]
    fn todo_and_fixme_require_an_issue_number() {
        let rule = "open-work";
        for mark in ["TODO", "FIXME"] {
            check(rule, CORE_FILE, &format!("//! Names.\n// {mark}: later\n"), &[2]);
            check(rule, CORE_FILE, &format!("/* {mark}(ada) */\n"), &[1]);
            check(rule, CORE_FILE, &format!("// {mark}(#12) and {mark}\n"), &[1]);
            check(rule, CORE_FILE, &format!("// {mark}(#12): later\n"), &[]);
            check(rule, CORE_FILE, &format!("let s = \"{mark}\"; // {mark}S\n"), &[]);
        }
    }

    #[test]
    fn broken_relative_link_is_refused() {
        let rule = "broken-link";
        let around = [("STYLE.md", ""), ("docs/guide/start.md", "")];
        check_in(&around, rule, "docs/a.md", "[s](../STYLE.md#names) [g](guide/start.md)\n", &[]);
        check_in(&around, rule, "docs/a.md", "[s](STYLE.md)\nok\n[g](guide/stop.md)\n", &[1, 3]);
        check_in(&around, rule, "docs/a.md", "[folder](./guide/) [root](/STYLE.md)\n", &[]);
        check_in(&around, rule, "docs/a.md", "[s]: ../STYLE.md\n[t]: ../TESTS.md\n", &[2]);
        check_in(&around, rule, "docs/a.md", "[w](https://example.com/x) [here](#names)\n", &[]);
        check_in(&around, rule, "docs/a.md", "`[x](gone)`\n```\n[x](gone)\n```\n[x](gone)\n", &[5]);
        check_in(&around, rule, "docs/a.md", "[issues](../../issues)\n", &[]);
        check_in(&around, rule, CORE_FILE, "//! [x](gone.md)\n", &[]);
    }
}
