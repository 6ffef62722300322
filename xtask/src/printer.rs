//! The only place in xtask that writes to the terminal.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the terminal, and does it here"
)]

/// Writes one line of result.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Writes one line about what went wrong or is going on.
pub(crate) fn complain(line: &str) {
    eprintln!("{line}");
}
