//! `cargo xtask docs`: generates the pages of `docs/reference` and the schemas from the tables that
//! the program uses.

mod cli;
mod config;
mod env;
mod errors;
mod hosts;
mod mcp_tool;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

use serde_json::Value;
use switchboard_core::config::schema;
use thiserror::Error;

use crate::command::root;
use crate::printer::{complain, say};

/// Every page, by its name in `docs/reference`.
const PAGES: &[(&str, MakePage)] = &[
    ("cli.md", cli::page),
    ("config.md", config::page),
    ("env.md", env::page),
    ("errors.md", errors::page),
    ("hosts.md", hosts::page),
    ("mcp-tool.md", mcp_tool::page),
];

type MakePage = fn() -> Result<String, DocsError>;

/// Every JSON Schema, by its name in `docs`.
const SCHEMAS: &[(&str, MakeSchema)] =
    &[("mcp.schema.json", schema::file), ("mcp-servers.schema.json", schema::pi_servers)];

type MakeSchema = fn() -> Value;

const NOTICE: &str = "<!-- Made by `cargo xtask docs`: change the source, not this page. -->\n\n";

/// What happens to a stale page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DocsMode {
    Write,
    Check,
}

#[derive(Debug, Error)]
enum DocsError {
    #[error("`{key}` has no row in xtask/src/docs/{table}")]
    NoRow { key: &'static str, table: &'static str },
    #[error("xtask/src/docs/{table} has a row for `{key}`, which does not exist")]
    RowTooMany { key: &'static str, table: &'static str },
    #[error("cannot read or write `{}`: {cause}", path.display())]
    Io { path: PathBuf, cause: io::Error },
}

/// Writes the stale pages, or only reports them.
pub(crate) fn run(mode: DocsMode) -> ExitCode {
    let mut stale = 0;
    let pages = PAGES.iter().map(|(name, page)| {
        let text = page().map(|text| format!("{NOTICE}{text}"));
        (format!("docs/reference/{name}"), text)
    });
    let schemas =
        SCHEMAS.iter().map(|(name, make)| (format!("docs/{name}"), Ok(format!("{:#}\n", make()))));
    let all: Vec<(String, Result<String, DocsError>)> = pages.chain(schemas).collect();
    let total = all.len();
    for (name, text) in all {
        match text.and_then(|text| bring_up_to_date(&name, &text, mode)) {
            Ok(None) => {}
            Ok(Some(difference)) => {
                stale += 1;
                complain(&format!("{name}: {difference}"));
            }
            Err(error) => {
                complain(&format!("error: {error}"));
                return ExitCode::FAILURE;
            }
        }
    }
    match (mode, stale) {
        (_, 0) => say(&format!("docs: {} pages are up to date", total)),
        (DocsMode::Write, _) => say(&format!("docs: {stale} of {} pages written", total)),
        (DocsMode::Check, _) => {
            complain(&format!("error: {stale} pages are stale: run `cargo xtask docs`"));
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes one page if it is stale, and returns the difference.
fn bring_up_to_date(name: &str, wanted: &str, mode: DocsMode) -> Result<Option<String>, DocsError> {
    let path = root().join(name);
    let failed = |cause| DocsError::Io { path: path.clone(), cause };
    let found = match fs::read_to_string(&path) {
        Ok(found) => found,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => String::new(),
        Err(cause) => return Err(failed(cause)),
    };
    let difference = difference(&found, wanted);
    if difference.is_some() && mode == DocsMode::Write {
        fs::create_dir_all(path.parent().unwrap_or(root())).map_err(failed)?;
        fs::write(&path, wanted).map_err(failed)?;
    }
    Ok(difference)
}

/// The number of removed and added lines, and the first difference.
fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let gone = found.lines().filter(|line| !wanted.lines().any(|other| other == *line)).count();
    let new = wanted.lines().filter(|line| !found.lines().any(|other| other == *line)).count();
    let same = found.lines().zip(wanted.lines()).take_while(|(a, b)| a == b).count();
    let line = |text: &str| text.lines().nth(same).unwrap_or("(end of the page)").to_owned();
    Some(format!(
        "{gone} lines removed, {new} added; the first difference is line {}\n  - {}\n  + {}",
        same + 1,
        line(found),
        line(wanted)
    ))
}

/// Checks that a table has a row for each key and none besides.
fn covers(
    table: &'static str,
    rows: &[&'static str],
    keys: &[&'static str],
) -> Result<(), DocsError> {
    if let Some(key) = keys.iter().find(|key| !rows.contains(key)) {
        return Err(DocsError::NoRow { key, table });
    }
    match rows.iter().find(|row| !keys.contains(row)) {
        Some(key) => Err(DocsError::RowTooMany { key, table }),
        None => Ok(()),
    }
}

/// Text that may hold a `|`, as a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generated_page_ends_with_a_newline() {
        for (name, page) in PAGES {
            let text = page().unwrap();
            assert!(text.starts_with("# ") && text.ends_with('\n'), "{name}");
            assert!(!text.ends_with("\n\n") && !text.contains(" \n"), "{name}");
        }
    }

    #[test]
    fn missing_or_extra_documentation_row_is_reported() {
        let check = |rows: &[&'static str], keys: &[&'static str], expected: &str| {
            let seen = covers("t.rs", rows, keys).err().map(|error| error.to_string());
            assert_eq!(seen.unwrap_or_default(), expected);
        };
        check(&["a", "b"], &["b", "a"], "");
        check(&["a"], &["a", "b"], "`b` has no row in xtask/src/docs/t.rs");
        check(&["a", "b"], &["a"], "xtask/src/docs/t.rs has a row for `b`, which does not exist");
    }

    #[test]
    fn difference_of_a_generated_page_is_summarized() {
        let check = |found: &str, wanted: &str, expected: Option<&str>| {
            assert_eq!(difference(found, wanted).as_deref(), expected);
        };
        check("a\nb\n", "a\nb\n", None);
        check(
            "a\nb\n",
            "a\nc\nd\n",
            Some("1 lines removed, 2 added; the first difference is line 2\n  - b\n  + c"),
        );
        check(
            "",
            "a\n",
            Some(
                "0 lines removed, 1 added; the first difference is line 1\n  - (end of the page)\n  + a",
            ),
        );
    }
}
