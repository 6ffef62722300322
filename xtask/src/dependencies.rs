//! `cargo xtask deny` and `cargo xtask msrv`: licences, sources and the oldest Rust that builds us.

use std::process::ExitCode;
use std::{fs, io};

use serde_json::Value;

use crate::command::{self, CommandError, cache, command, root, succeed, target};
use crate::printer::{exit_code, say};

/// The version of cargo-deny that is installed and run.
const CARGO_DENY: &str = "0.20.2";

/// The checks of cargo-deny by default. The advisory database is on a network that not every
/// machine can reach; `--advisories` adds it.
const OFFLINE_CHECKS: &[&str] = &["bans", "licenses", "sources"];

#[derive(Debug, thiserror::Error)]
enum DependencyError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("cannot remove the build files of cargo-deny")]
    Remove(#[source] io::Error),
    #[error("cannot read the output of `cargo metadata`")]
    Metadata(#[source] serde_json::Error),
    #[error(
        "these packages require a newer Rust than the `rust-version` {ours} of the workspace: {packages}"
    )]
    Newer { ours: String, packages: String },
}

/// Whether cargo-deny also checks for known vulnerabilities.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advisories {
    Skip,
    Check,
}

/// Checks `Cargo.lock` against `deny.toml`, with cargo-deny installed below the cache directory.
pub(crate) fn deny(advisories: Advisories) -> ExitCode {
    exit_code(check_deny(advisories))
}

/// Checks that the workspace builds with its `rust-version`.
pub(crate) fn msrv() -> ExitCode {
    exit_code(check_msrv())
}

fn check_deny(advisories: Advisories) -> Result<(), DependencyError> {
    let place = cache().join("cargo-deny").join(CARGO_DENY);
    let program = place.join("bin/cargo-deny");
    if !program.exists() {
        say(&format!("installing cargo-deny {CARGO_DENY}, about a minute"));
        let build = place.join("build");
        let mut install = command("cargo");
        install.args(["install", "--quiet", "--locked", "--debug", "cargo-deny", "--version"]);
        install.arg(CARGO_DENY).arg("--root").arg(&place).env("CARGO_TARGET_DIR", &build);
        command::run(&mut install)?;
        fs::remove_dir_all(build).map_err(DependencyError::Remove)?;
    }
    let also = (advisories == Advisories::Check).then_some("advisories");
    let checks = OFFLINE_CHECKS.iter().copied().chain(also);
    Ok(succeed(root(), program, ["--locked", "check"].into_iter().chain(checks))?)
}

fn check_msrv() -> Result<(), DependencyError> {
    let metadata =
        command::output(command("cargo").args(["metadata", "--locked", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_slice(&metadata).map_err(DependencyError::Metadata)?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let ours = packages.iter().find(|package| package["name"] == "switchboard");
    let ours = ours.and_then(|package| package["rust_version"].as_str()).unwrap_or_default();
    let newer = newer_than(ours, packages);
    if !newer.is_empty() {
        let packages = newer.join(", ");
        return Err(DependencyError::Newer { ours: ours.to_owned(), packages });
    }
    let installed = command::output(command("cargo").arg("--version"))?;
    if version(&String::from_utf8_lossy(&installed).replace("cargo ", "")) == version(ours) {
        say(&format!("msrv: this toolchain is Rust {ours}, the oldest that is supported"));
        return Ok(());
    }
    let toolchain = format!("+{ours}");
    let build = target().join("msrv");
    let mut check = command("cargo");
    check.args([&toolchain, "check", "--quiet", "--locked", "--workspace", "--all-targets"]);
    Ok(command::run(check.env("CARGO_TARGET_DIR", build))?)
}

/// The packages that declare a newer Rust than `ours`.
fn newer_than(ours: &str, packages: &[Value]) -> Vec<String> {
    let is_newer = |package: &&Value| {
        package["rust_version"].as_str().is_some_and(|needed| version(needed) > version(ours))
    };
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    packages.iter().filter(is_newer).map(name).collect()
}

/// Major and minor version: patch releases add no language features.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.trim().split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn packages_that_need_rust_above_rust_version_are_named() {
        let packages = [
            json!({ "name": "same", "rust_version": "1.95" }),
            json!({ "name": "patch", "rust_version": "1.95.7" }),
            json!({ "name": "older", "rust_version": "1.9.0" }),
            json!({ "name": "unknown", "rust_version": null }),
            json!({ "name": "newer", "rust_version": "1.96.0" }),
            json!({ "name": "next", "rust_version": "2.0" }),
        ];
        assert_eq!(newer_than("1.95", &packages), ["newer", "next"]);
    }
}
