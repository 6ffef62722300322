//! `cargo xtask pi`: the real Pi, pinned, with our extension and the program as built here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use crate::command::{ends_without, root, succeed, target};
use crate::packages::{InstallError, RUNTIMES, install_once, node, npm_ci};
use crate::printer::exit_code;

const SOURCE: &str = "crates/switchboard-it/pi";
const EXTENSION: &str = "extensions/pi";

/// The number of sessions that are started and ended in each way.
#[derive(Clone, Copy)]
pub(crate) enum Sessions {
    Few,
    Many,
}

impl Sessions {
    fn number(self) -> &'static str {
        match self {
            Self::Few => "2",
            Self::Many => "10",
        }
    }
}

/// Runs the test files whose names contain one of `names`, or all.
pub(crate) fn run(sessions: Sessions, names: &[&str]) -> ExitCode {
    with_pi(|place| drive(place, sessions, names))
}

/// Measures the cost of our extension in Pi, of Pi's own MCP support, and of the packages `others`.
pub(crate) fn bench(others: &[&str]) -> ExitCode {
    with_pi(|place| measure(place, others))
}

fn with_pi(work: impl FnOnce(&Path) -> Result<(), InstallError>) -> ExitCode {
    if let Some(end) = ends_without("pi", &RUNTIMES) {
        return end;
    }
    exit_code(install().and_then(|place| work(&place)))
}

fn measure(place: &Path, others: &[&str]) -> Result<(), InstallError> {
    succeed(root(), "cargo", ["build", "--quiet", "--release", "--package", "switchboard-cli"])?;
    let mut args =
        vec![place.join("bench.mjs"), target().join("release/switchboard"), root().join(EXTENSION)];
    args.extend(others.iter().map(PathBuf::from));
    Ok(succeed(root(), node(place), args)?)
}

/// Installs Pi and its servers below the target directory, once.
fn install() -> Result<PathBuf, InstallError> {
    let place = target().join("pi");
    install_once(SOURCE, &place, &["package-lock.json", "unpack.mjs"], || {
        npm_ci(&place)?;
        succeed(&place, "node", ["unpack.mjs"])
    })?;
    Ok(place)
}

fn drive(place: &Path, sessions: Sessions, names: &[&str]) -> Result<(), InstallError> {
    let source = root().join(SOURCE);
    let tests = tests(&source, names)
        .map_err(|cause| InstallError::Prepare { path: source.clone(), cause })?;
    succeed(root(), "cargo", ["build", "--quiet", "--package", "switchboard-cli"])?;
    let mut args = vec![
        place.join("run.mjs"),
        target().join("debug/switchboard"),
        root().join(EXTENSION),
        sessions.number().into(),
    ];
    args.extend(tests.iter().map(|test| place.join(test)));
    Ok(succeed(root(), node(place), args)?)
}

/// The names of the test files, sorted.
fn tests(source: &Path, names: &[&str]) -> io::Result<Vec<String>> {
    let mut tests = Vec::new();
    for entry in fs::read_dir(source)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let wanted = names.is_empty() || names.iter().any(|name| file.contains(name));
        if wanted && file.ends_with(".test.mjs") {
            tests.push(file);
        }
    }
    tests.sort();
    Ok(tests)
}
