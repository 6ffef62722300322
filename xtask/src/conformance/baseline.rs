//! The known failures, and how a run differs from them: unlisted failures and stale entries are
//! errors.

use std::collections::BTreeMap;
use std::{fs, io};

use crate::command::root;
use crate::conformance::results::Scenario;

const FILE: &str = "conformance/baseline.toml";

#[derive(Debug, thiserror::Error)]
pub(crate) enum BaselineError {
    #[error("cannot read `{FILE}`")]
    Unreadable(#[from] io::Error),
    #[error("`{FILE}` is malformed")]
    Malformed(#[from] toml::de::Error),
}

/// The reason of each known failure, by subject, revision, and `SCENARIO` or `SCENARIO:CHECK`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Baseline(BTreeMap<String, BTreeMap<String, BTreeMap<String, String>>>);

/// A result other than a plain pass.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ScenarioVerdict {
    /// The scenario fails, and the baseline gives the reason.
    Known { entry: String, why: String },
    /// The scenario fails, and the baseline does not list it.
    Failed { scenario: String, checks: Vec<String> },
    /// The baseline lists the scenario as failing, but it does not fail.
    Stale { entry: String },
}

impl Baseline {
    pub(crate) fn read() -> Result<Self, BaselineError> {
        Ok(toml::from_str(&fs::read_to_string(root().join(FILE))?)?)
    }

    pub(crate) fn judge(
        &self,
        subject: &str,
        revision: &str,
        scenarios: &[Scenario],
    ) -> Vec<ScenarioVerdict> {
        let none = BTreeMap::new();
        let known = self.0.get(subject).and_then(|known| known.get(revision)).unwrap_or(&none);
        let mut verdicts = Vec::new();
        for (entry, why) in known {
            let (name, check) = match entry.split_once(':') {
                Some((name, check)) => (name, Some(check)),
                None => (&**entry, None),
            };
            let fails = scenarios.iter().any(|scenario| {
                let failing = check.map_or(!scenario.failed.is_empty(), |check| {
                    scenario.failed.iter().any(|failed| failed == check)
                });
                scenario.name == name && failing
            });
            verdicts.push(match fails {
                true => ScenarioVerdict::Known { entry: entry.clone(), why: why.clone() },
                false => ScenarioVerdict::Stale { entry: entry.clone() },
            });
        }
        for scenario in scenarios.iter().filter(|scenario| !known.contains_key(&scenario.name)) {
            let name = &scenario.name;
            let listed = |check: &&String| !known.contains_key(&format!("{name}:{check}"));
            let checks: Vec<String> = scenario.failed.iter().filter(listed).cloned().collect();
            if !checks.is_empty() {
                verdicts.push(ScenarioVerdict::Failed { scenario: name.clone(), checks });
            }
        }
        verdicts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::results::Weight;

    fn check(known: &[&str], failed: &[&str], expected: &[ScenarioVerdict]) {
        let failed = failed.iter().map(|check| (*check).to_owned()).collect();
        let scenario = Scenario { name: "ping".into(), weight: Weight::Scored, passed: 1, failed };
        let why = |entry: &&str| ((*entry).to_owned(), "because".to_owned());
        let known = BTreeMap::from_iter(known.iter().map(why));
        let baseline = Baseline(BTreeMap::from([(
            "server".to_owned(),
            BTreeMap::from([("2025-11-25".to_owned(), known)]),
        )]));
        assert_eq!(baseline.judge("server", "2025-11-25", &[scenario]), expected);
    }

    fn known(entry: &str) -> ScenarioVerdict {
        ScenarioVerdict::Known { entry: entry.to_owned(), why: "because".to_owned() }
    }

    fn stale(entry: &str) -> ScenarioVerdict {
        ScenarioVerdict::Stale { entry: entry.to_owned() }
    }

    fn failed(check: &str) -> ScenarioVerdict {
        ScenarioVerdict::Failed { scenario: "ping".to_owned(), checks: vec![check.to_owned()] }
    }

    #[test]
    fn unlisted_failure_and_stale_baseline_entry_are_reported() {
        check(&[], &[], &[]);
        check(&[], &["empty"], &[failed("empty")]);
        check(&["ping"], &["empty", "late"], &[known("ping")]);
        check(&["ping"], &[], &[stale("ping")]);
        check(&["pong"], &[], &[stale("pong")]);
    }

    #[test]
    fn baseline_entry_of_a_check_excuses_only_that_check() {
        check(&["ping:empty"], &["empty"], &[known("ping:empty")]);
        check(&["ping:empty"], &["empty", "late"], &[known("ping:empty"), failed("late")]);
        check(&["ping:empty"], &["late"], &[stale("ping:empty"), failed("late")]);
        check(&["ping:empty"], &[], &[stale("ping:empty")]);
    }
}
