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
        Command::Doctor(wish) => doctor::doctor(app, wish).await,
        Command::Demo => demo::tour(app).await,
        Command::Trust { servers, yes: _ } => trust::trust(app, &servers).await,
        Command::Untrust { servers } => trust::untrust(app, &servers),
        Command::Install(wish) => install::install(app, wish).await,
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
        Command::Server(talk) => {
            let (approved, timeout) = match &talk {
                ServerCommand::Call(call) => (call.yes, call.timeout),
                ServerCommand::Inspect(wish) => (wish.yes, None),
                _ => (false, None),
            };
            let consent = if approved { Consent::Given } else { Consent::Ask };
            let terms = Terms { consent, timeout };
            match talk.ad_hoc().map(ad_hoc::wanted).transpose()? {
                Some(wanted) => {
                    ad_hoc::with(app, terms, &wanted, async |on| run_in(on, talk).await).await
                }
                None => app.with_session(terms, async |on| run_in(on, talk).await).await,
            }
        }
    }
}

/// The command that starts this program from any directory.
fn program(app: &App) -> String {
    match std::env::args().next() {
        Some(path) if path.contains('/') => app.typed_in.join(path).display().to_string(),
        Some(name) => name,
        None => "switchboard".to_owned(),
    }
}

async fn run_in(on: &Conversation<'_>, talk: ServerCommand) -> CommandResult {
    match talk {
        ServerCommand::Status(wish) => status::status(on, wish).await,
        ServerCommand::Inspect(wish) => inspect::inspect(on, wish).await,
        ServerCommand::Tools { server, format, .. } => {
            browse::tools(on, server.as_deref(), format).await
        }
        ServerCommand::Search(search) => browse::search(on, search).await,
        ServerCommand::Describe { tool, server, format, .. } => {
            browse::describe(on, &tool, server.as_deref(), format).await
        }
        ServerCommand::Instructions { server, format } => {
            browse::instructions(on, server, format).await
        }
        ServerCommand::Call(call) => call::call(on, call).await,
        ServerCommand::Auth(wish) => auth::auth(on, wish).await,
        ServerCommand::Logout { server } => auth::logout(on, &server).await,
        ServerCommand::Resources { server, format, .. } => {
            browse::rows(on, server, |server| Request::Resources { server }, format).await
        }
        ServerCommand::Read { uri, server, printed, .. } => {
            call::read(on, (uri, server), &printed).await
        }
        ServerCommand::Prompts { server, format, .. } => {
            browse::rows(on, server, |server| Request::Prompts { server }, format).await
        }
        ServerCommand::Prompt { name, arguments, server, printed, .. } => {
            call::prompt(on, (name, server), arguments, &printed).await
        }
        ServerCommand::Disconnect { server, .. } => connect::disconnect(on, server.as_deref()),
        ServerCommand::Reconnect { server, format } => {
            connect::reconnect(on, server.as_deref(), format).await
        }
        ServerCommand::Pins { command: Some(Pins::Accept { server, tools }), .. } => {
            pins::accept(on, &server, &tools).await
        }
        ServerCommand::Pins { command: None, server, format } => {
            pins::show(on, server.as_deref(), format).await
        }
        ServerCommand::Token { command } => token::run(on, command).await,
        ServerCommand::Logs(wish) => logs::logs(on, &wish).await,
    }
}
