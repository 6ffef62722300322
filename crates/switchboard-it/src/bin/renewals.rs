//! Runs `switchboard_it::renewals`, many token refreshes of one sign-in, and prints the figures.

use std::io::{self, Write};
use std::process::ExitCode;

use switchboard_it::program::Programs;
use switchboard_it::renewals::{Renewals, renewals};

const USAGE: &str = "usage: renewals PROCESSES EXPIRIES";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<Vec<usize>> = words.iter().map(|word| word.parse().ok()).collect();
    let Some([processes, expiries]) = numbers.as_deref() else {
        // Nothing to do if stderr is closed.
        let _ = writeln!(io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let renewed = runtime.and_then(|runtime| {
        let programs = Programs::beside_this_one()?;
        report(runtime.block_on(renewals(programs, *processes, *expiries)), *processes, *expiries)
    });
    match renewed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "renewals: {error}");
            ExitCode::from(2)
        }
    }
}

/// Prints the figures; returns whether they are as expected.
fn report(renewed: Renewals, processes: usize, expiries: usize) -> io::Result<bool> {
    let Renewals { right, wrong, record, mut times } = renewed;
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).or(times.last()).copied();
    let (p50, p99) = (at(50).unwrap_or_default(), at(99).unwrap_or_default());
    let mut out = io::stdout();
    writeln!(
        out,
        "{processes} processes, {expiries} ends of their token: {} redemptions, {} replays, \
         {} revocations, {} sign-ins; {right} calls right, {} wrong",
        record.redemptions,
        record.replays,
        record.revocations,
        record.sign_ins,
        wrong.len()
    )?;
    writeln!(out, "until everybody had an answer: {p50:.0?} (p50), {p99:.0?} (p99)")?;
    for answer in wrong.iter().take(5) {
        writeln!(out, "wrong: {answer}")?;
    }
    let happened = [record.redemptions, record.replays, record.revocations, record.sign_ins];
    Ok(wrong.is_empty() && happened == [expiries, 0, 0, 1])
}
