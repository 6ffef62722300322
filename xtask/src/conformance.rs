//! `cargo xtask conformance`: the official suite against us, as a server and as a client.

mod baseline;
mod results;
mod subject;
mod suite;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::command::{CommandError, ends_without, root, succeed, target};
use crate::packages::InstallError;
use crate::printer::{complain, report, say};
use baseline::{Baseline, BaselineError};
use results::ResultsError;
use subject::{Eras, StartError};
use suite::{Suite, SuiteError};
use table::Cell;

const USAGE: &str =
    "usage: cargo xtask conformance [--server] [--client] [--stdio] [--bridged] [--direct]
                               [--revision 2025-11-25|2026-07-28]";

/// The program under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The gateway, in front of the fixture on HTTP.
    Server,
    /// The gateway, in front of the fixture on standard input and output.
    Stdio,
    /// The gateway, in front of a fixture that supports only the other era.
    Bridged,
    /// The gateway as a client of its servers.
    Client,
    /// The fixture itself: the gateway cannot pass a check that the fixture fails.
    Direct,
}

impl Subject {
    const ALL: [Self; 5] = [Self::Server, Self::Stdio, Self::Bridged, Self::Client, Self::Direct];

    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Stdio => "stdio",
            Self::Bridged => "bridged",
            Self::Client => "client",
            Self::Direct => "direct",
        }
    }

    /// The revisions at which the subject is tested by default.
    fn revisions(self) -> &'static [Revision] {
        match self {
            Self::Server | Self::Client | Self::Bridged => {
                &[Revision::V2025_11_25, Revision::V2026_07_28]
            }
            Self::Stdio | Self::Direct => &[Revision::V2025_11_25],
        }
    }
}

/// A revision of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Revision {
    V2025_11_25,
    V2026_07_28,
}

impl Revision {
    fn parse(word: &str) -> Option<Self> {
        [Self::V2025_11_25, Self::V2026_07_28].into_iter().find(|revision| revision.name() == word)
    }

    fn name(self) -> &'static str {
        match self {
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era that the revision does not belong to.
    fn other_era(self) -> Eras {
        match self {
            Self::V2025_11_25 => Eras::Modern,
            Self::V2026_07_28 => Eras::Legacy,
        }
    }
}

/// The subjects, and the revisions that each is tested at.
#[derive(Debug, PartialEq, Eq)]
struct TestPlan(Vec<(Subject, Revision)>);

impl TestPlan {
    /// By default, the gateway as server and as client, at the default revisions.
    fn parse(words: &[&str]) -> Option<Self> {
        let (mut subjects, mut revision) = (Vec::new(), None);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match *word {
                "--revision" => revision = Some(Revision::parse(words.next()?)?),
                word => {
                    let name = word.strip_prefix("--")?;
                    subjects.push(Subject::ALL.into_iter().find(|known| known.name() == name)?);
                }
            }
        }
        if subjects.is_empty() {
            subjects = vec![Subject::Server, Subject::Client];
        }
        let runs = |subject: Subject| match revision {
            Some(revision) => vec![(subject, revision)],
            None => subject.revisions().iter().map(|revision| (subject, *revision)).collect(),
        };
        Some(Self(subjects.into_iter().flat_map(runs).collect()))
    }
}

#[derive(Debug, thiserror::Error)]
enum ConformanceError {
    #[error("cannot install the conformance suite")]
    Install(#[from] InstallError),
    #[error("cannot build the test subject")]
    Build(#[from] CommandError),
    #[error("cannot run the suite")]
    Suite(#[from] SuiteError),
    #[error("cannot start the test subject")]
    Start(#[from] StartError),
    #[error("cannot read the results of the conformance suite")]
    Results(#[from] ResultsError),
    #[error("cannot read the baseline of expected failures")]
    Baseline(#[from] BaselineError),
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(plan) = TestPlan::parse(words) else {
        complain(USAGE);
        return ExitCode::from(2);
    };
    if let Some(end) = ends_without("conformance", &["npm"]) {
        return end;
    }
    let cells = match carry_out(&plan) {
        Ok(cells) => cells,
        Err(error) => {
            report(&error);
            return ExitCode::FAILURE;
        }
    };
    say(&table::render(&cells));
    if cells.iter().all(Cell::is_as_expected) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn carry_out(plan: &TestPlan) -> Result<Vec<Cell>, ConformanceError> {
    let baseline = Baseline::read()?;
    let suite = Suite::install()?;
    let mut cells = Vec::new();
    for &(subject, revision) in &plan.0 {
        let other_era = revision.other_era();
        let (name, revision) = (subject.name(), revision.name());
        build(subject)?;
        complain(&format!("── {name} at {revision}"));
        let out = fresh_results(&format!("{name}-{revision}"))?;
        let started = Instant::now();
        match subject {
            Subject::Direct => {
                let fixture = subject::Fixture::start(Eras::Both)?;
                suite.test(&["server", "--url", &fixture.url], revision, &out)?;
            }
            Subject::Server | Subject::Bridged => {
                let bridged = subject == Subject::Bridged;
                let eras = if bridged { other_era } else { Eras::Both };
                let fixture = subject::Fixture::start(eras)?;
                let gateway = subject::Gateway::start(&fixture.entry(), &out)?;
                suite.test(&["server", "--url", gateway.url()], revision, &out)?;
            }
            Subject::Stdio => {
                let gateway = subject::Gateway::start(&subject::fixture_on_stdio(), &out)?;
                suite.test(&["server", "--url", gateway.url()], revision, &out)?;
            }
            Subject::Client => {
                suite.test(&["client", "--command", &subject::client()], revision, &out)?;
            }
        }
        let took = started.elapsed();
        let required = suite.required(subject, revision)?;
        let scenarios = results::read(&out, required)?;
        let verdicts = baseline.judge(name, revision, &scenarios);
        cells.push(Cell { subject: name, revision, scenarios, verdicts, took, out });
    }
    Ok(cells)
}

/// An empty directory for the files that the suite writes in this run.
fn fresh_results(name: &str) -> Result<PathBuf, ResultsError> {
    let out = target().join("conformance").join(name);
    let failed = |cause| ResultsError::Unreadable { path: out.clone(), cause };
    if out.exists() {
        fs::remove_dir_all(&out).map_err(failed)?;
    }
    fs::create_dir_all(&out).map_err(failed)?;
    Ok(out)
}

fn build(subject: Subject) -> Result<(), CommandError> {
    let fixture: &[&str] = &["-p", "switchboard-it", "--bin", "conformance-server"];
    let relay: &[&str] = &["--bin", "conformance-relay"];
    let program: &[&str] = &["-p", "switchboard-cli", "--bin", "switchboard"];
    let client: &[&str] = &["-p", "switchboard-it", "--bin", "conformance-client"];
    let packages = match subject {
        Subject::Direct => fixture.to_vec(),
        Subject::Server | Subject::Stdio | Subject::Bridged => [fixture, relay, program].concat(),
        Subject::Client => client.to_vec(),
    };
    succeed(root(), "cargo", ["build", "--quiet"].into_iter().chain(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_without_subject_tests_server_and_client() {
        let [server, client, stdio, direct] =
            [Subject::Server, Subject::Client, Subject::Stdio, Subject::Direct];
        let (old, new) = (Revision::V2025_11_25, Revision::V2026_07_28);
        for (line, expected) in [
            ("", Some(vec![(server, old), (server, new), (client, old), (client, new)])),
            ("--direct", Some(vec![(direct, old)])),
            ("--stdio --server", Some(vec![(stdio, old), (server, old), (server, new)])),
            ("--client --revision 2026-07-28 --server", Some(vec![(client, new), (server, new)])),
            ("--revision", None),
            ("--revision 2024-11-05", None),
            ("server", None),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(TestPlan::parse(&words), expected.map(TestPlan), "{line}");
        }
    }
}
