//! The results of a run: one table, and a line for each scenario that did not simply pass.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::conformance::baseline::ScenarioVerdict;
use crate::conformance::results::{Scenario, Weight};

/// One subject at one revision.
pub(crate) struct Cell {
    pub(crate) subject: &'static str,
    pub(crate) revision: &'static str,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) verdicts: Vec<ScenarioVerdict>,
    pub(crate) took: Duration,
    /// The directory of the suite's files.
    pub(crate) out: PathBuf,
}

impl Cell {
    pub(crate) fn is_as_expected(&self) -> bool {
        self.verdicts.iter().all(|verdict| matches!(verdict, ScenarioVerdict::Known { .. }))
    }

    /// Passed and total scenarios of this weight.
    fn passed(&self, weight: Weight) -> String {
        let all = || self.scenarios.iter().filter(|scenario| scenario.weight == weight);
        let passed = all().filter(|scenario| scenario.failed.is_empty()).count();
        format!("{passed}/{}", all().count())
    }

    fn checks(&self) -> String {
        let passed: usize = self.scenarios.iter().map(|scenario| scenario.passed).sum();
        let failed: usize = self.scenarios.iter().map(|scenario| scenario.failed.len()).sum();
        format!("{passed}/{}", passed + failed)
    }
}

pub(crate) fn render(cells: &[Cell]) -> String {
    let mut text = row(["subject", "revision", "scored", "unscored", "checks", "seconds"]);
    for cell in cells {
        let (scored, unscored) = (cell.passed(Weight::Scored), cell.passed(Weight::Unscored));
        let seconds = format!("{:.1}", cell.took.as_secs_f64());
        let row = row([cell.subject, cell.revision, &scored, &unscored, &cell.checks(), &seconds]);
        text.push_str(&row);
    }
    for cell in cells {
        for verdict in &cell.verdicts {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{} {}: {}", cell.subject, cell.revision, line_of(verdict));
        }
        if !cell.is_as_expected() {
            let _ =
                write!(text, "\n{} {}: see {}", cell.subject, cell.revision, cell.out.display());
        }
    }
    text
}

fn row(fields: [&str; 6]) -> String {
    let [subject, revision, scored, unscored, checks, seconds] = fields;
    format!("\n{subject:<9}{revision:<12}{scored:>8}{unscored:>10}{checks:>10}{seconds:>9}")
}

fn line_of(verdict: &ScenarioVerdict) -> String {
    match verdict {
        ScenarioVerdict::Known { entry, why } => format!("known: {entry} ({why})"),
        ScenarioVerdict::Failed { scenario, checks } => {
            format!("FAILED: {scenario} ({})", checks.join(", "))
        }
        ScenarioVerdict::Stale { entry } => {
            format!("STALE: {entry} passes or is not run; take it out of the baseline")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(name: &str, weight: Weight, passed: usize, failed: &[&str]) -> Scenario {
        let failed = failed.iter().map(|check| (*check).to_owned()).collect();
        Scenario { name: name.to_owned(), weight, passed, failed }
    }

    #[test]
    fn conformance_table_counts_passes_and_names_unexpected_results() {
        let cell = Cell {
            subject: "server",
            revision: "2025-11-25",
            scenarios: vec![
                scenario("ping", Weight::Scored, 2, &[]),
                scenario("tools-list", Weight::Scored, 1, &["order"]),
                scenario("polling", Weight::Unscored, 0, &["priming", "retry"]),
            ],
            verdicts: vec![
                ScenarioVerdict::Known { entry: "polling".into(), why: "not built".into() },
                ScenarioVerdict::Failed {
                    scenario: "tools-list".into(),
                    checks: vec!["order".into()],
                },
                ScenarioVerdict::Stale { entry: "ping".into() },
            ],
            took: Duration::from_millis(2340),
            out: PathBuf::from("out"),
        };
        assert!(!cell.is_as_expected());
        assert_eq!(
            render(&[cell]),
            "
subject  revision      scored  unscored    checks  seconds
server   2025-11-25       1/2       0/1       3/6      2.3
server 2025-11-25: known: polling (not built)
server 2025-11-25: FAILED: tools-list (order)
server 2025-11-25: STALE: ping passes or is not run; take it out of the baseline
server 2025-11-25: see out"
        );
    }
}
