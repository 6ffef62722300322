//! The rule that the core does no IO and reads neither clock nor environment.

use super::{File, Finding, Tree, has_word};

/// Paths that do IO or read the clock or the environment, as they are written in full.
const WAYS_OUT: &[&str] = &[
    "tokio",
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "Instant::now",
    "SystemTime::now",
];

/// The modules of `std` with such paths, as `use std::{…}` names them.
const STD_MODULES: &[&str] = &["fs", "env", "net", "process"];

/// The code of `switchboard-core` depends only on its arguments.
pub(super) fn pure_core(file: &File, _: &Tree) -> Vec<Finding> {
    let Some(rust) = &file.rust else {
        return Vec::new();
    };
    if !file.path.starts_with("crates/switchboard-core/src/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.code_lines() {
        for way in WAYS_OUT.iter().filter(|way| has_word(line, way)) {
            findings.push(impure(number, way));
        }
    }
    for (at, _) in rust.code.match_indices("std::{") {
        let number = rust.code[..at].matches('\n').count() + 1;
        for name in group(&rust.code[at + "std::{".len()..]) {
            if STD_MODULES.contains(&name) {
                findings.push(impure(number, &format!("std::{name}")));
            }
        }
    }
    findings
}

fn impure(line: usize, way: &str) -> Finding {
    Finding::error(line, format!("`{way}` in the core: take the value as an argument"))
}

/// The first names of the paths in a `use` group. `rest` is the text after its opening brace.
fn group(rest: &str) -> Vec<&str> {
    let mut depth = 0;
    let mut start = 0;
    let mut paths = Vec::new();
    for (at, c) in rest.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                paths.push(&rest[start..at]);
                start = at + 1;
            }
            '}' => {
                paths.push(&rest[start..at]);
                break;
            }
            _ => {}
        }
    }
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    paths.into_iter().filter_map(|path| path.trim_start().split(|c| !is_name(c)).next()).collect()
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::{CORE_FILE, check};

    #[test]
    fn core_code_that_uses_io_or_time_is_refused() {
        let rule = "pure-core";
        for way in [
            "tokio::spawn(f)",
            "std::fs::read(p)",
            "std::env::var(n)",
            "std::net::TcpStream",
            "std::process::id()",
            "Instant::now()",
            "time::SystemTime::now()",
        ] {
            check(rule, CORE_FILE, &format!("//! Names.\nlet x = {way};\n"), &[2]);
            check(rule, CORE_FILE, &format!("//! {way}\nlet x = \"{way}\";\n"), &[]);
            check(rule, "crates/switchboard/src/env.rs", &format!("let x = {way};\n"), &[]);
        }
        check(
            rule,
            CORE_FILE,
            "//! Names.\nuse std::{collections::{a, fs_like}, fmt, fs};\n",
            &[2],
        );
        check(rule, CORE_FILE, "use std::{\n    env::var,\n    fmt::{self, net},\n};\n", &[1]);
        check(rule, CORE_FILE, "use std::{fmt, time::Instant};\nlet tokio_like = 1;\n", &[]);
    }
}
