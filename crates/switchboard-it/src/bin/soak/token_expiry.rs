//! The scenario `token-expiry`: many processes share one sign-in whose token expires repeatedly.

use std::io::{self, Write};

use switchboard_it::program::Programs;
use switchboard_it::soak::token_expiry::{ExpiryFigures, expire_tokens};
use tokio::runtime::Runtime;

use crate::usage;

pub(crate) fn run(runtime: &Runtime, numbers: &[usize]) -> io::Result<bool> {
    let &[processes, expiries] = numbers else { return Err(usage()) };
    let figures = expire_tokens(Programs::beside_this_one()?, processes, expiries);
    report(runtime.block_on(figures), processes, expiries)
}

/// Prints the figures; returns whether they are as expected.
fn report(figures: ExpiryFigures, processes: usize, expiries: usize) -> io::Result<bool> {
    let ExpiryFigures { right, wrong, record, mut times } = figures;
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
    writeln!(out, "until all processes had an answer: {p50:.0?} (p50), {p99:.0?} (p99)")?;
    for answer in wrong.iter().take(5) {
        writeln!(out, "wrong: {answer}")?;
    }
    let happened = [record.redemptions, record.replays, record.revocations, record.sign_ins];
    Ok(wrong.is_empty() && happened == [expiries, 0, 0, 1])
}
