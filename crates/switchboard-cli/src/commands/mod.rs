//! What each command does.

mod browse;
mod call;
mod config;
mod connect;
mod demo;
mod logs;
mod serve;
mod trust;

use clap::CommandFactory;

use crate::args::{Cli, Command};
use crate::boot::App;
use crate::exit::Exit;
use crate::host::Consent;
use crate::report::Outcome;

pub(crate) async fn run(app: &App, command: Command) -> Outcome {
    match command {
        Command::Serve => serve::serve(app).await,
        Command::Demo => demo::tour(app).await,
        Command::Trust { servers } => trust::trust(app, &servers).await,
        Command::Untrust { servers } => trust::untrust(app, &servers),
        Command::Config { command } => config::run(app, &command),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "switchboard", &mut script);
            app.printer.text(&String::from_utf8_lossy(&script))?;
            Ok(Exit::Done)
        }
        Command::Call(call) => call::call(app, call).await,
        command @ (Command::Status { .. }
        | Command::Tools { .. }
        | Command::Search(_)
        | Command::Describe { .. }
        | Command::Instructions { .. }
        | Command::Resources { .. }
        | Command::Read { .. }
        | Command::Prompts { .. }
        | Command::Prompt { .. }
        | Command::Connect { .. }
        | Command::Disconnect { .. }
        | Command::Reconnect { .. }
        | Command::Logs { .. }) => {
            app.with_session(Consent::Ask, async |talk| converse(talk, command).await).await
        }
    }
}

/// The commands that need no more than a conversation.
async fn converse(talk: &crate::conversation::Conversation<'_>, command: Command) -> Outcome {
    match command {
        Command::Status { format } => browse::status(talk, format).await,
        Command::Tools { server, format } => browse::tools(talk, server.as_deref(), format).await,
        Command::Search(search) => browse::search(talk, search).await,
        Command::Describe { tool, server, format } => {
            browse::describe(talk, (&tool, server.as_deref()), format).await
        }
        Command::Instructions { server, format } => {
            browse::instructions(talk, server, format).await
        }
        Command::Resources { server, format } => browse::resources(talk, server, format).await,
        Command::Prompts { server, format } => browse::prompts(talk, server, format).await,
        Command::Read { uri, server, format } => call::read(talk, uri, server, format).await,
        Command::Prompt { name, arguments, server, format } => {
            call::prompt(talk, (name, server), &arguments, format).await
        }
        Command::Connect { server, format } => connect::connect(talk, &server, format).await,
        Command::Reconnect { server, format } => {
            connect::reconnect(talk, server.as_deref(), format).await
        }
        Command::Disconnect { server, .. } => connect::disconnect(talk, server.as_deref()),
        Command::Logs { server, follow, lines } => {
            let wish = logs::Wish { lines, follow };
            logs::logs(talk, server.as_deref(), wish).await
        }
        Command::Serve
        | Command::Demo
        | Command::Trust { .. }
        | Command::Untrust { .. }
        | Command::Config { .. }
        | Command::Completions { .. }
        | Command::Call(_) => unreachable!("`run` answers these itself"),
    }
}
