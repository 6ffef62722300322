//! Rules about Cargo.toml files: which crate may use which.

use toml::{Table, Value};

use super::{File, Finding, Tree};

const CORE: &str = "switchboard-core";

/// The layers of the workspace from the bottom up. A crate uses only crates of lower layers.
const LAYERS: &[&[&str]] = &[
    &[CORE, "switchboard-wire", "switchboard-reaper"],
    &["switchboard", "switchboard-properties"],
    &["switchboard-server", "switchboard-tui"],
    &["switchboard-cli"],
    &["switchboard-it"],
];

/// The prefixes of crates that do IO, or that read the clock, the environment or randomness.
const OUTSIDE: &[&str] = &[
    "async-std",
    "axum",
    "chrono",
    "dirs",
    "fastrand",
    "getrandom",
    "hyper",
    "keyring",
    "libc",
    "mio",
    "nix",
    "notify",
    "rand",
    "reqwest",
    "rmcp",
    "rustix",
    "smol",
    "tempfile",
    "time",
    "tokio",
    "ureq",
];

/// The core depends on no crate that could do IO.
pub(super) fn core_dependency(file: &File, _: &Tree) -> Vec<Finding> {
    if file.path != "crates/switchboard-core/Cargo.toml" {
        return Vec::new();
    }
    let Ok(manifest) = file.text.parse::<Table>() else {
        return vec![unreadable()];
    };
    let outside = |name: &str| {
        OUTSIDE.iter().any(|family| {
            name.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
    };
    let mut findings = Vec::new();
    for name in dependencies(&manifest).into_iter().filter(|name| outside(name)) {
        let message = format!("the core must not depend on `{name}`: it does no IO");
        findings.push(Finding::error(line_of(file, &name), message));
    }
    findings
}

/// Dependencies between our crates lead to lower layers.
pub(super) fn dependency_direction(file: &File, _: &Tree) -> Vec<Finding> {
    let ours = file.path.starts_with("crates/") && file.path.matches('/').count() == 2;
    if !file.path.ends_with("/Cargo.toml") || !(ours || file.path == "xtask/Cargo.toml") {
        return Vec::new();
    }
    let Ok(manifest) = file.text.parse::<Table>() else {
        return vec![unreadable()];
    };
    let package = manifest.get("package").and_then(|package| package.get("name"));
    let name = package.and_then(Value::as_str).unwrap_or_default();
    let used = dependencies(&manifest).into_iter().filter(|name| name.starts_with("switchboard"));

    let allowed: Vec<&str> = match (name, layer(name)) {
        // The reference pages are made from the core's tables and the command line.
        ("xtask", _) => vec![CORE, "switchboard-cli", "switchboard-properties"],
        (_, Some(layer)) => LAYERS.iter().take(layer).copied().flatten().copied().collect(),
        (_, None) => {
            return vec![Finding::error(1, format!("`{name}` has no layer: give it one in tidy"))];
        }
    };
    used.filter(|dependency| !allowed.contains(&dependency.as_str()))
        .map(|dependency| {
            let message = format!("`{name}` must not depend on `{dependency}`");
            Finding::error(line_of(file, &dependency), message)
        })
        .collect()
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&name))
}

fn unreadable() -> Finding {
    Finding::error(1, "not a TOML file")
}

/// The crates of all dependency tables, including those for tests, builds and single platforms.
fn dependencies(manifest: &Table) -> Vec<String> {
    const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut names = Vec::new();
    for section in [manifest].into_iter().chain(platforms) {
        let tables = TABLES.iter().filter_map(|name| section.get(*name)?.as_table());
        for (key, value) in tables.flatten() {
            let renamed = value.get("package").and_then(Value::as_str);
            names.push(renamed.unwrap_or(key).to_owned());
        }
    }
    names
}

/// The line of the manifest that names the dependency.
fn line_of(file: &File, name: &str) -> usize {
    super::numbered(&file.text)
        .find(|(_, line)| line.starts_with(name) || line.contains(&format!("\"{name}\"")))
        .map_or(1, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use crate::tidy::tests::check;

    #[test]
    fn io_dependency_of_the_core_crate_is_refused() {
        let rule = "core-dependency";
        let path = "crates/switchboard-core/Cargo.toml";
        check(rule, path, "[dependencies]\nserde = \"1\"\ntokio.workspace = true\n", &[3]);
        check(rule, path, "[dev-dependencies]\ntokio-util = \"1\"\n", &[2]);
        check(rule, path, "[dependencies]\nrandom_like = \"1\"\nthiserror = \"2\"\n", &[]);
        check(rule, path, "[dependencies]\nhttp = { package = \"reqwest\" }\n", &[2]);
        check(rule, path, "[target.'cfg(unix)'.dependencies]\nrustix = \"1\"\n", &[2]);
        check(rule, path, "not toml", &[1]);
        check(rule, "crates/switchboard/Cargo.toml", "[dependencies]\ntokio = \"1\"\n", &[]);
    }

    #[test]
    fn upward_dependency_between_workspace_crates_is_refused() {
        let rule = "dependency-direction";
        let uses = |name: &str, dependency: &str| {
            format!("[package]\nname = \"{name}\"\n[dependencies]\n{dependency}.workspace = true\n")
        };
        for (name, dependency, expected) in [
            ("switchboard", "switchboard-core", &[][..]),
            ("switchboard-server", "switchboard-wire", &[]),
            ("switchboard-cli", "switchboard-tui", &[]),
            ("switchboard-it", "switchboard-cli", &[]),
            ("switchboard-core", "switchboard-wire", &[4]),
            ("switchboard-wire", "switchboard-core", &[4]),
            ("switchboard", "switchboard-server", &[4]),
            ("switchboard-server", "switchboard-tui", &[4]),
            ("switchboard-cli", "switchboard-it", &[4]),
        ] {
            let path = format!("crates/{name}/Cargo.toml");
            check(rule, &path, &uses(name, dependency), expected);
        }
        check(rule, "xtask/Cargo.toml", &uses("xtask", "switchboard-core"), &[]);
        check(rule, "xtask/Cargo.toml", &uses("xtask", "switchboard-cli"), &[]);
        check(rule, "xtask/Cargo.toml", &uses("xtask", "switchboard"), &[4]);
        check(rule, "crates/other/Cargo.toml", &uses("switchboard-other", "serde"), &[1]);
        let dev = "[package]\nname = \"switchboard\"\n[dev-dependencies]\nswitchboard-it = {}\n";
        check(rule, "crates/switchboard/Cargo.toml", dev, &[4]);
        check(rule, "Cargo.toml", "[workspace.dependencies]\nswitchboard-it = {}\n", &[]);
    }
}
