//! The official suite, installed once: lists the scenarios of a revision, and runs them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{cache, command};
use crate::conformance::Subject;
use crate::conformance::results::Weight;
use crate::packages::{InstallError, install_once, npm_ci};

const SOURCE: &str = "conformance";

/// The time limit of a scenario in milliseconds. All scenarios of a client run at once, on a
/// machine that may be busy.
const TIMEOUT: &str = "90000";

#[derive(Debug, thiserror::Error)]
pub(crate) enum SuiteError {
    #[error("cannot run `{}`", node.display())]
    Run {
        node: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("the suite lists no scenarios for a {subject} at {revision}")]
    NoScenarios { subject: &'static str, revision: String },
}

pub(crate) struct Suite {
    node: PathBuf,
    script: PathBuf,
}

impl Suite {
    /// Installs the suite outside of the target directory, so that several checkouts share it.
    pub(crate) fn install() -> Result<Self, InstallError> {
        let place = cache().join("conformance");
        install_once(SOURCE, &place, &["package-lock.json"], || npm_ci(&place))?;
        let modules = place.join("node_modules");
        let pinned = modules.join(".bin/node");
        Ok(Self {
            // Without a pinned Node for the platform, the machine's own is used.
            node: if pinned.exists() { pinned } else { PathBuf::from("node") },
            script: modules.join("@modelcontextprotocol/conformance/dist/index.js"),
        })
    }

    /// The scenarios of a revision, in the suite's order.
    pub(crate) fn required(
        &self,
        subject: Subject,
        revision: &str,
    ) -> Result<Vec<(String, Weight)>, SuiteError> {
        let mut list = self.command(&["list", "--requirements", revision]);
        let listed = list.output().map_err(|cause| self.unrunnable(cause))?;
        let required = scenarios(&String::from_utf8_lossy(&listed.stdout), subject);
        if required.is_empty() {
            let (subject, revision) = (subject.name(), revision.to_owned());
            return Err(SuiteError::NoScenarios { subject, revision });
        }
        Ok(required)
    }

    /// Tests a server at a URL, or a client: a command that is split at its spaces and gets the URL
    /// of a server as its last argument. The results are in files below `out`, not in the exit
    /// status.
    pub(crate) fn test(&self, role: &[&str], revision: &str, out: &Path) -> Result<(), SuiteError> {
        let mut command = self.command(role);
        command.args(["--requirements", revision, "--timeout", TIMEOUT, "-o"]).arg(out);
        let log = File::create(out.join("log.txt")).map_err(|cause| self.unrunnable(cause))?;
        let errors = log.try_clone().map_err(|cause| self.unrunnable(cause))?;
        command.stdout(log).stderr(errors).status().map_err(|cause| self.unrunnable(cause))?;
        Ok(())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = command(&self.node);
        command.arg(&self.script).args(args).stdin(Stdio::null());
        command
    }

    fn unrunnable(&self, cause: io::Error) -> SuiteError {
        SuiteError::Run { node: self.node.clone(), cause }
    }
}

/// Parses the list of the suite, which has a heading for each role and one for unscored scenarios.
fn scenarios(list: &str, subject: Subject) -> Vec<(String, Weight)> {
    let role = match subject {
        Subject::Server | Subject::Stdio | Subject::Bridged | Subject::Direct => "server",
        Subject::Client => "client",
    };
    let (mut heading, mut required) = ("", Vec::new());
    for line in list.lines() {
        let Some(name) = line.trim_start().strip_prefix("- ") else {
            if !line.starts_with(' ') && !line.is_empty() {
                heading = line;
            }
            continue;
        };
        if heading.starts_with("Run and reported") {
            if let Some(name) = name.strip_suffix(&format!(" [{role}]")) {
                required.push((name.to_owned(), Weight::Unscored));
            }
        } else if heading.to_lowercase().starts_with(role) {
            required.push((name.to_owned(), Weight::Scored));
        }
    }
    required
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
Required for 2025-11-25 (3 scenarios, frozen; run at the 2025-11-25 wire):

Server scenarios (test against a server):
  - server-initialize
  - ping

Client scenarios (test against a client):
  - auth/basic-cimd

Run and reported, but never scored:
  extension (1):
    - auth/dpop [client]
  pending (1):
    - server-sse-polling [server]
";

    #[test]
    fn conformance_scenarios_are_listed_by_subject_and_weight() {
        for (subject, expected) in [
            (
                Subject::Server,
                &[
                    ("server-initialize", Weight::Scored),
                    ("ping", Weight::Scored),
                    ("server-sse-polling", Weight::Unscored),
                ][..],
            ),
            (
                Subject::Client,
                &[("auth/basic-cimd", Weight::Scored), ("auth/dpop", Weight::Unscored)],
            ),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect();
            assert_eq!(scenarios(LIST, subject), expected);
        }
    }
}
