//! Rules about names that are not allowed in code, or not at this place.

use super::{File, Finding, Tree, has_word};

/// Names of modules that could contain anything.
const EMPTY_NAMES: &[&str] = &["utils", "helpers", "common", "types", "manager"];

/// The only files that may print.
const PRINTERS: &[&str] = &["crates/switchboard-cli/src/printer.rs", "xtask/src/printer.rs"];

/// The name of a module says what it owns.
pub(super) fn module_name(file: &File, _: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in file.code_lines() {
        if let Some(name) = EMPTY_NAMES.iter().find(|name| has_word(line, &format!("mod {name}"))) {
            let message = format!("`mod {name}` says nothing: name it after what it owns");
            findings.push(Finding::error(number, message));
        }
    }
    findings
}

/// Every test runs.
pub(super) fn ignored_test(file: &File, _: &Tree) -> Vec<Finding> {
    let ignored = file.code_lines().filter(|(_, line)| line.contains("#[ignore"));
    ignored
        .map(|(number, _)| Finding::error(number, "an ignored test: make it run or delete it"))
        .collect()
}

/// A test waits for a signal or advances a paused clock; it does not sleep.
pub(super) fn sleeping_test(file: &File, _: &Tree) -> Vec<Finding> {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let sleeps = |line: &str| has_word(line, "thread::sleep") || has_word(line, "time::sleep");
    file.code_lines()
        .filter(|(_, line)| is_test && sleeps(line))
        .map(|(number, _)| Finding::error(number, "a test sleeps: use a signal or a paused clock"))
        .collect()
}

/// A file in `tests/it/` has a `mod` line; without it, its tests never run.
pub(super) fn unlisted_test(file: &File, tree: &Tree) -> Vec<Finding> {
    let Some((folder, name)) = file.path.rsplit_once('/') else {
        return Vec::new();
    };
    let Some(module) = name.strip_suffix(".rs") else {
        return Vec::new();
    };
    if !folder.ends_with("/tests/it") || module == "main" {
        return Vec::new();
    }
    let main = format!("{folder}/main.rs");
    let line = format!("mod {module};");
    let listed =
        tree.file(&main).is_some_and(|main| main.code_lines().any(|(_, code)| code.trim() == line));
    if listed {
        return Vec::new();
    }
    vec![Finding::error(1, format!("never runs: add `{line}` to {main}"))]
}

/// One file of each program prints; all others return values.
pub(super) fn printing(file: &File, _: &Tree) -> Vec<Finding> {
    // A build script prints on its standard output, because Cargo reads it.
    let is_build_script = file.path.ends_with("/build.rs");
    if is_build_script || PRINTERS.contains(&file.path.as_str()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    for (number, line) in file.code_lines() {
        for call in ["print!", "println!", "eprint!", "eprintln!"] {
            if has_word(line, call) {
                findings.push(Finding::error(number, format!("`{call}` outside of a printer")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::{CORE_FILE, TEST_FILE, check, check_in};

    #[test]
    fn vague_module_names_are_refused() {
        let rule = "module-name";
        for name in ["utils", "helpers", "common", "types", "manager"] {
            check(rule, CORE_FILE, &format!("//! Names.\nmod {name};\n"), &[2]);
            check(rule, CORE_FILE, &format!("pub(crate) mod {name} {{\n"), &[1]);
            check(rule, CORE_FILE, &format!("mod {name}_of_servers;\n// mod {name};\n"), &[]);
        }
    }

    #[test]
    fn ignore_attribute_on_a_test_is_refused() {
        let rule = "ignored-test";
        check(rule, CORE_FILE, "#[test]\n#[ignore]\nfn f() {}\n", &[2]);
        check(rule, CORE_FILE, "#[ignore = \"slow\"]\n", &[1]);
        check(rule, CORE_FILE, "// no #[ignore]\nlet s = \"#[ignore]\";\n", &[]);
    }

    #[test]
    fn sleep_call_in_a_test_is_refused() {
        let rule = "sleeping-test";
        check(rule, TEST_FILE, "ok();\nstd::thread::sleep(second);\n", &[2]);
        check(rule, TEST_FILE, "use tokio::time::sleep;\n", &[1]);
        check(
            rule,
            "crates/switchboard/src/upstream/tests.rs",
            "time::sleep(second).await;\n",
            &[1],
        );
        check(rule, TEST_FILE, "time::sleep_until(deadline).await; // thread::sleep\n", &[]);
        check(
            rule,
            "crates/switchboard/src/upstream/actor.rs",
            "time::sleep(second).await;\n",
            &[],
        );
    }

    #[test]
    fn unlisted_integration_test_file_is_refused() {
        let rule = "unlisted-test";
        let main = "crates/switchboard-it/tests/it/main.rs";
        check_in(&[(main, "//! All.\nmod calls;\n")], rule, TEST_FILE, "", &[]);
        check_in(&[(main, "//! All.\n// mod calls;\n")], rule, TEST_FILE, "", &[1]);
        check_in(&[(main, "//! All.\nmod oauth_calls;\n")], rule, TEST_FILE, "", &[1]);
        check_in(&[], rule, TEST_FILE, "", &[1]);
        check(rule, main, "", &[]);
        check(rule, "crates/switchboard-it/src/harness.rs", "", &[]);
    }

    #[test]
    fn printing_outside_a_printer_is_refused() {
        let rule = "printing";
        for name in ["print", "println", "eprint", "eprintln"] {
            check(rule, CORE_FILE, &format!("fn f() {{\n    {name}!(\"x\");\n"), &[2]);
            check(rule, "crates/switchboard-cli/src/printer.rs", &format!("{name}!();\n"), &[]);
            check(rule, CORE_FILE, &format!("// {name}!()\nif {name} != x {{}}\n"), &[]);
        }
        check(rule, "crates/switchboard-cli/src/report.rs", "println!();\n", &[1]);
        check(rule, "xtask/src/printer.rs", "println!();\n", &[]);
        check(rule, "crates/switchboard-core/build.rs", "println!();\n", &[]);
    }
}
