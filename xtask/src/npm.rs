//! `cargo xtask npm`: the extension for Pi, and the program for this platform, as npm packages.

use std::env::consts::{ARCH, OS};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use serde_json::{Value, json};

use crate::command::{root, succeed, target};
use crate::packages::InstallError;
use crate::printer::exit_code;

const EXTENSION: &str = "extensions/pi";

pub(crate) fn run() -> ExitCode {
    exit_code(pack())
}

/// Writes two archives below the target directory.
fn pack() -> Result<(), InstallError> {
    succeed(root(), "cargo", ["build", "--quiet", "--release", "--package", "switchboard-cli"])?;
    let place = target().join("npm");
    let program = place.join("program");
    let prepared = prepare(&program, &target().join("release/switchboard"));
    prepared.map_err(|cause| InstallError::Prepare { path: program.clone(), cause })?;
    for package in [root().join(EXTENSION), program] {
        let words = ["pack", "--loglevel=error"].map(AsRef::as_ref);
        succeed(&place, "npm", words.into_iter().chain([package.as_os_str()]))?;
    }
    Ok(())
}

fn prepare(place: &Path, program: &Path) -> io::Result<()> {
    fs::create_dir_all(place.join("bin"))?;
    fs::copy(program, place.join("bin/switchboard"))?;
    let extension = fs::read(root().join(EXTENSION).join("package.json"))?;
    let manifest = manifest(&serde_json::from_slice(&extension)?, OS, ARCH);
    fs::write(place.join("package.json"), manifest.to_string())
}

/// The npm manifest of the program for one platform. Its version is that of the extension.
fn manifest(extension: &Value, os: &str, arch: &str) -> Value {
    let os = if os == "macos" { "darwin" } else { os };
    let cpu = match arch {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "name": format!("@pi-switchboard/{os}-{cpu}"),
        "version": extension["version"],
        "description": "The program `switchboard` for one platform",
        "license": extension["license"],
        "os": [os],
        "cpu": [cpu],
        "files": ["bin"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_and_platform_packages_have_the_workspace_version() {
        let extension = fs::read(root().join(EXTENSION).join("package.json")).unwrap();
        let extension: Value = serde_json::from_slice(&extension).unwrap();
        let workspace: toml::Table =
            fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
        let version = workspace["workspace"]["package"]["version"].as_str();
        assert_eq!(extension["version"].as_str(), version);
        let wanted = &extension["optionalDependencies"];
        for (os, arch) in
            [("linux", "x86_64"), ("linux", "aarch64"), ("macos", "x86_64"), ("macos", "aarch64")]
        {
            let program = manifest(&extension, os, arch);
            assert_eq!(wanted[program["name"].as_str().unwrap()].as_str(), version, "{program}");
        }
    }
}
