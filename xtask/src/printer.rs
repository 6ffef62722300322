//! The only place in xtask that writes to the terminal.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer command talks to the terminal, and does it here"
)]

/// Writes one line of a result to standard output.
pub(crate) fn say(line: &str) {
    println!("{line}");
}

/// Writes one line about a failure or the progress to standard error.
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
