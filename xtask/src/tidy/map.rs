//! The rule about the map of the code: every module of a crate is on it.

use super::{File, Finding, Tree, has_word};

const MAP: &str = "ARCHITECTURE.md";

/// The roots of the crates whose modules are on the map.
const ROOTS: &[&str] = &[
    "crates/switchboard-core/src/lib.rs",
    "crates/switchboard-wire/src/lib.rs",
    "crates/switchboard-reaper/src/lib.rs",
    "crates/switchboard/src/lib.rs",
    "crates/switchboard-server/src/lib.rs",
    "crates/switchboard-cli/src/lib.rs",
];

/// The map names every module that the root of a crate declares.
pub(super) fn mapped_module(file: &File, tree: &Tree) -> Vec<Finding> {
    if !ROOTS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    // Every second part between backticks is code.
    let map = tree.file(MAP).map_or("", |map| &map.text);
    let names: Vec<&str> = map.split('`').skip(1).step_by(2).collect();
    let mut findings = Vec::new();
    for (number, line) in file.code_lines() {
        let module = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod "));
        let Some((_, module)) = module.filter(|(before, _)| before.is_empty() || is_public(before))
        else {
            continue;
        };
        if !names.iter().any(|name| has_word(name, module)) {
            let message = format!("`{module}` is not on the map in {MAP}: say what it is for");
            findings.push(Finding::error(number, message));
        }
    }
    findings
}

fn is_public(before: &str) -> bool {
    before.trim_end().starts_with("pub") && !before.contains(';')
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::{CORE_FILE, check_in};

    #[test]
    fn module_missing_from_the_architecture_map_is_reported() {
        let rule = "mapped-module";
        let root = "crates/switchboard-core/src/lib.rs";
        let around = [("ARCHITECTURE.md", "| `name`, `sign_in` | names |\nconfig\n")];
        check_in(&around, rule, root, "mod name;\npub mod sign_in;\n", &[]);
        check_in(&around, rule, root, "mod name;\npub(crate) mod config;\nmod sign;\n", &[2, 3]);
        check_in(&around, rule, root, "// mod gone;\nuse a::b;\n", &[]);
        check_in(&around, rule, CORE_FILE, "mod config;\n", &[]);
    }
}
