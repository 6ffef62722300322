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

/// The exit code of a command, whose error is reported.
pub(crate) fn exit_code<E: std::error::Error>(outcome: Result<(), E>) -> std::process::ExitCode {
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            std::process::ExitCode::FAILURE
        }
    }
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
