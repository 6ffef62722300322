//! A short tour on the built-in server: each command line, and its real output.

use serde_json::json;
use switchboard::Gateway;
use switchboard::config::layers::Config;
use switchboard::exact::Args;
use switchboard::request::{CallRequest, Request, SearchRequest};

use crate::args::Format;
use crate::boot::App;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::host::Consent;
use crate::report::{CommandResult, Stop};

pub(super) async fn tour(app: &App) -> CommandResult {
    let gateway = Gateway::builder(app.environment.clone()).demo().build();
    app.converse((gateway, Config::default()), Consent::Ask, async |conversation| {
        let say = |text: &str| app.printer.text(text);
        say("A tour of Switchboard on its built-in server `demo`.\n\nFind a tool by what it does:\n")?;
        conversation.list_unlisted(Some("demo")).await?;
        let search = SearchRequest::words("add");
        show(conversation, "search add", Request::Search(search)).await?;
        say("\nLook at what it takes:\n")?;
        let describe = Request::Describe { tool: "demo_add".to_owned(), server: None };
        show(conversation, "describe demo_add", describe).await?;
        say("\nCall it:\n")?;
        let mut args = Args::of("a", json!(2));
        args.insert("b", json!(40));
        let call = CallRequest::new("demo_add", None, args);
        show(conversation, "call demo_add a=2 b=40", Request::Call(call)).await?;
        say(&next_steps(app))?;
        Ok(Exit::Done)
    })
    .await
}

async fn show(conversation: &Conversation<'_>, line: &str, request: Request) -> Result<(), Stop> {
    let printer = conversation.app.printer;
    printer.text(&printer.out.command(format!("$ switchboard {line}")).to_string())?;
    let reply = conversation.session.handle(request).await?;
    conversation.print(&reply, Format::default())?;
    Ok(())
}

fn next_steps(app: &App) -> String {
    let palette = app.printer.out;
    let command = |words: &str| palette.command(format!("`switchboard {words}`"));
    format!(
        "\n{}\n1. Bring your servers: {} finds those of other hosts and adds your own, and {} lists \
         what they offer.\n2. Let your agent use them: {} for example, or register {} in your host.\n",
        palette.heading("Next"),
        command("setup"),
        command("tools"),
        command("install claude-code"),
        command("serve"),
    )
}
