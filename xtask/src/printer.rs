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

/// Writes an error with all its causes.
pub(crate) fn report(error: &dyn std::error::Error) {
    complain(&format!("error: {error}"));
    let mut cause = error.source();
    while let Some(error) = cause {
        complain(&format!("  caused by: {error}"));
        cause = error.source();
    }
}
