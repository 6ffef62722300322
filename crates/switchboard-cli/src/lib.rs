//! The command line of Switchboard.
//!
//! [`run`] is the whole program. `args` defines the command line, `commands` has a file for each
//! group of commands, `boot` makes the gateway and stops it, `show` and `report` word the output,
//! and `printer` prints it.

mod args;
mod boot;
mod browser;
mod call_args;
mod commands;
mod completion;
mod conversation;
mod dialogue;
mod diff;
mod exit;
mod extension;
mod host;
mod keyboard;
mod logging;
mod printer;
mod report;
mod server_question;
mod show;
mod sign_in;
mod signals;
mod spinner;
mod style;

use std::ffi::OsString;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::CommandFactory;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use switchboard::Environment;
use switchboard::config::install::Target;
use switchboard::failure::{Code, Failure, Subject};
use tokio::runtime::{Builder, Runtime};

use crate::args::serve::Serve;
use crate::args::{Cli, Color, Command, Format};
use crate::boot::App;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::{CommandResult, Stop};

/// Runs one command line. The first argument is the name of the program.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    disable_core_dumps();
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(answer) = completion::answer(&Environment::of_process(), &args) {
        let printer = Printer::new(ColorChoice::Never);
        let printed = answer.and_then(|answer| printer.bytes(&answer));
        return if printed.is_ok() { Exit::Done } else { Exit::Usage }.into();
    }
    let (globals, command, format) = match Cli::read(&args) {
        Ok(read) => read,
        Err(error) => return usage_error(&error, &args).into(),
    };
    let printer = Printer::new(match globals.color {
        Color::Auto => ColorChoice::Auto,
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    });
    if let Err(failure) = logging::start(globals.verbose, &command) {
        return fail(&failure, format, printer).into();
    }
    let printer = if globals.verbose > 0 { printer.without_redrawing() } else { printer };
    let outcome = App::new(&globals, printer).map_err(Stop::from).and_then(|mut app| {
        if is_started_without_variables(&command) {
            app.environment = app.environment.without_unset();
        }
        let runtime = runtime_of(&command)?;
        let outcome = runtime.block_on(commands::run(&app, command));
        // A blocked read of the terminal must not keep the process.
        runtime.shutdown_background();
        outcome
    });
    conclude(outcome, format, printer).into()
}

/// Whether the host that starts this command sets unset environment variables to empty strings.
fn is_started_without_variables(command: &Command) -> bool {
    let Command::Serve(Serve { host: Some(host), .. }) = command else { return false };
    Target::from_word(host).is_some_and(Target::fills_in_variables)
}

/// Disables core dumps, because memory contains tokens. Child processes inherit the limit, and may
/// raise it for themselves.
fn disable_core_dumps() {
    let maximum = getrlimit(Resource::Core).maximum;
    let _at_worst_as_before = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
}

#[derive(Debug, thiserror::Error)]
#[error("{clause}")]
struct NotUnderstood {
    clause: String,
}

/// Prints the help that was requested, or why the command line is invalid.
fn usage_error(error: &clap::Error, args: &[OsString]) -> Exit {
    let printer = Printer::new(ColorChoice::Auto);
    if !error.use_stderr() || !Cli::wants_json(args) {
        printer.usage(error, args);
        return if error.use_stderr() { Exit::Usage } else { Exit::Done };
    }
    let rendered = error.render().to_string();
    // The text after the first paragraph is usage information for people.
    let clause = rendered.split("\n\n").next().unwrap_or_default();
    let clause = clause.trim_start_matches("error: ").trim().to_owned();
    let failure = Failure::new(Code::BadRequest, Subject::Request, NotUnderstood { clause });
    fail(&failure, Format { json: true }, printer)
}

/// The definition of the whole command line, for the pages that describe it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// The exit status after a failure with this code.
pub fn exit_code(code: Code) -> u8 {
    Exit::from(code).number()
}

/// The runtime for a command: one thread for one client, two for many clients.
fn runtime_of(command: &Command) -> std::io::Result<Runtime> {
    match command {
        Command::Serve(Serve { http: Some(_), .. }) => {
            Builder::new_multi_thread().worker_threads(2).enable_all().build()
        }
        _ => Builder::new_current_thread().enable_all().build(),
    }
}

fn conclude(outcome: CommandResult, format: Format, printer: Printer) -> Exit {
    match outcome {
        Ok(exit) | Err(Stop::Left(exit)) => exit,
        Err(Stop::Failed(failure)) => fail(&failure, format, printer),
        // The reader of the output has closed the pipe, which is no error.
        Err(Stop::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Exit::Done,
        Err(Stop::Output(error)) => {
            printer
                .note(&format!("{} cannot write the output: {error}", printer.err.error("error:")));
            Exit::Usage
        }
    }
}

fn fail(failure: &Failure, format: Format, printer: Printer) -> Exit {
    if format.json {
        let _closed = printer.json(&switchboard::render::json::failure(failure));
    } else {
        printer.note(&report::text(failure, printer.err));
    }
    Exit::from(failure.code)
}
