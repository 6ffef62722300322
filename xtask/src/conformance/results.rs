//! The result of each scenario, read from the files that the suite writes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The suite's file about one scenario.
const CHECKS: &str = "checks.json";

/// The name of the failed check of a scenario without any checks.
const NOTHING: &str = "nothing-was-checked";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    #[error("cannot use `{}`", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{}` is malformed", path.display())]
    Malformed {
        path: PathBuf,
        #[source]
        cause: serde_json::Error,
    },
}

/// Whether a scenario counts for conformance with a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Scored,
    Unscored,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) weight: Weight,
    pub(crate) passed: usize,
    /// Checks that failed or were warned about, each once.
    pub(crate) failed: Vec<String>,
}

#[derive(Debug, Clone, serde::Deserialize)]
struct Check {
    id: String,
    status: Status,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Status {
    Success,
    Failure,
    Warning,
    Info,
    Skipped,
}

/// Reads the results in `out` of the `required` scenarios.
pub(crate) fn read(
    out: &Path,
    required: Vec<(String, Weight)>,
) -> Result<Vec<Scenario>, ResultsError> {
    let mut found = HashMap::new();
    collect(out, out, &mut found)?;
    let scenarios = required.into_iter().map(|(name, weight)| {
        let checks = found.remove(&name).unwrap_or_default();
        summed_up(name, weight, &checks)
    });
    Ok(scenarios.collect())
}

fn collect(
    out: &Path,
    folder: &Path,
    found: &mut HashMap<String, Vec<Check>>,
) -> Result<(), ResultsError> {
    let unreadable = |cause| ResultsError::Unreadable { path: folder.to_owned(), cause };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.is_dir() {
            collect(out, &path, found)?;
        } else if path.file_name().is_some_and(|name| name == CHECKS) {
            let text = fs::read(&path).map_err(unreadable)?;
            let checks = serde_json::from_slice(&text)
                .map_err(|cause| ResultsError::Malformed { path: path.clone(), cause })?;
            let folder = folder.strip_prefix(out).unwrap_or(folder).to_string_lossy();
            found.insert(scenario(&folder).to_owned(), checks);
        }
    }
    Ok(())
}

/// The scenario in the name of a results folder, such as `NAME-2026-01-02T03-04-05-678Z`, or
/// `server-NAME-…` if a server was tested.
fn scenario(folder: &str) -> &str {
    let stamp = "-2026-01-02T03-04-05-678Z".len();
    let name = folder.get(..folder.len().saturating_sub(stamp)).unwrap_or(folder);
    name.strip_prefix("server-").unwrap_or(name)
}

fn summed_up(name: String, weight: Weight, checks: &[Check]) -> Scenario {
    let passed = checks.iter().filter(|check| check.status == Status::Success).count();
    let mut failed: Vec<String> = Vec::new();
    for check in checks {
        let fails = matches!(check.status, Status::Failure | Status::Warning);
        if fails && !failed.contains(&check.id) {
            failed.push(check.id.clone());
        }
    }
    if passed == 0 && failed.is_empty() {
        failed.push(NOTHING.to_owned());
    }
    Scenario { name, weight, passed, failed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_result_folder_name_gives_the_scenario() {
        for (folder, expected) in [
            ("server-ping-2026-11-15T09-30-00-123Z", "ping"),
            ("server-server-initialize-2026-11-15T09-30-00-123Z", "server-initialize"),
            ("auth/basic-cimd-2026-11-15T09-30-00-123Z", "auth/basic-cimd"),
            ("short", ""),
        ] {
            assert_eq!(scenario(folder), expected);
        }
    }

    #[test]
    fn warning_or_scenario_without_checks_is_a_failure() {
        for (statuses, passed, failed) in [
            (&["SUCCESS", "INFO", "SKIPPED"][..], 1, &[][..]),
            (&["SUCCESS", "WARNING"], 1, &["check"]),
            (&["FAILURE", "FAILURE"], 0, &["check"]),
            (&["INFO"], 0, &[NOTHING]),
            (&[], 0, &[NOTHING]),
        ] {
            let check = |status: &&str| {
                serde_json::from_value(serde_json::json!({ "id": "check", "status": status }))
                    .unwrap()
            };
            let checks: Vec<Check> = statuses.iter().map(check).collect();
            let scenario = summed_up("ping".into(), Weight::Scored, &checks);
            assert_eq!(
                (scenario.passed, scenario.failed.as_slice()),
                (
                    passed,
                    failed.iter().map(|check| (*check).to_owned()).collect::<Vec<_>>().as_slice()
                )
            );
        }
    }
}
