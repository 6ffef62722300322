//! One module for each group of commands, and the dispatch to them.

mod ad_hoc;
mod add;
mod auth;
mod browse;
mod call;
mod config;
mod config_edit;
mod connect;
mod demo;
mod doctor;
mod edit;
mod import;
mod inspect;
mod install;
mod logs;
mod output;
mod pins;
mod saving;
mod serve;
mod setup;
mod status;
mod token;
mod trust;

use switchboard::request::Request;

use crate::args::Command;
use crate::args::server::{Pins, ServerCommand};
use crate::boot::{App, Terms};
use crate::completion;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::host::Consent;
use crate::report::CommandResult;

/// Runs one command.
pub(crate) async fn run(app: &App, command: Command) -> CommandResult {
    match command {
        Command::Serve(how) => serve::serve(app, &how).await,
        Command::Doctor(options) => doctor::doctor(app, options).await,
        Command::Demo => demo::tour(app).await,
        Command::Trust { servers, yes: _ } => trust::trust(app, &servers).await,
        Command::Untrust { servers } => trust::untrust(app, &servers),
        Command::Install(options) => install::install(app, options).await,
        Command::Uninstall { host, yes } => install::uninstall(app, &host, yes).await,
        Command::Edit(edit) => edit::run(app, edit).await,
        Command::Setup => setup::setup(app).await,
        Command::Connect { server: None, format } if format.json => Err(setup::no_name().into()),
        Command::Connect { server: None, .. } => setup::connect_new(app).await,
        Command::Connect { server: Some(server), format } => {
            app.with_session(Consent::Ask.into(), async |conversation| {
                connect::connect(conversation, &server, format).await
            })
            .await
        }
        Command::Config { command } => config::run(app, &command),
        Command::Completions { shell } => {
            app.printer.bytes(&completion::script(shell, &program(app))?)?;
            Ok(Exit::Done)
        }
        Command::Server(command) => {
            let (approved, timeout) = match &command {
                ServerCommand::Call(call) => (call.yes, call.timeout),
                ServerCommand::Inspect(options) => (options.yes, None),
                _ => (false, None),
            };
            let consent = if approved { Consent::Given } else { Consent::Ask };
            let terms = Terms { consent, timeout };
            let wanted = command.ad_hoc().map(ad_hoc::wanted).transpose()?;
            let run = async |conversation: &Conversation<'_>| run_in(conversation, command).await;
            match wanted {
                Some(wanted) => ad_hoc::with(app, terms, &wanted, run).await,
                None => app.with_session(terms, run).await,
            }
        }
    }
}

/// The command that starts this program from any directory: its name, or its path.
fn program(app: &App) -> String {
    match std::env::args().next() {
        Some(path) if path.contains('/') => app.typed_in.join(path).display().to_string(),
        Some(name) => name,
        None => "switchboard".to_owned(),
    }
}

async fn run_in(conversation: &Conversation<'_>, command: ServerCommand) -> CommandResult {
    match command {
        ServerCommand::Status(options) => status::status(conversation, options).await,
        ServerCommand::Inspect(options) => inspect::inspect(conversation, options).await,
        ServerCommand::Tools { server, format, .. } => {
            browse::tools(conversation, server.as_deref(), format).await
        }
        ServerCommand::Search(search) => browse::search(conversation, search).await,
        ServerCommand::Describe { tool, server, format, .. } => {
            browse::describe(conversation, &tool, server.as_deref(), format).await
        }
        ServerCommand::Instructions { server, format } => {
            browse::instructions(conversation, server, format).await
        }
        ServerCommand::Call(call) => call::call(conversation, call).await,
        ServerCommand::Auth(options) => auth::auth(conversation, options).await,
        ServerCommand::Logout { server } => auth::logout(conversation, &server).await,
        ServerCommand::Resources { server, format, .. } => {
            browse::rows(conversation, server, |server| Request::Resources { server }, format).await
        }
        ServerCommand::Read { uri, server, printed, .. } => {
            call::read(conversation, (uri, server), &printed).await
        }
        ServerCommand::Prompts { server, format, .. } => {
            browse::rows(conversation, server, |server| Request::Prompts { server }, format).await
        }
        ServerCommand::Prompt { name, arguments, server, printed, .. } => {
            call::prompt(conversation, (name, server), arguments, &printed).await
        }
        ServerCommand::Disconnect { server, .. } => {
            connect::disconnect(conversation, server.as_deref())
        }
        ServerCommand::Reconnect { server, format } => {
            connect::reconnect(conversation, server.as_deref(), format).await
        }
        ServerCommand::Pins { command: Some(Pins::Accept { server, tools }), .. } => {
            pins::accept(conversation, &server, &tools).await
        }
        ServerCommand::Pins { command: None, server, format } => {
            pins::show(conversation, server.as_deref(), format).await
        }
        ServerCommand::Token { command } => token::run(conversation, command).await,
        ServerCommand::Logs(options) => logs::logs(conversation, &options).await,
    }
}
