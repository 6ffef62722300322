//! Signing in to a server, and out again.

use std::time::UNIX_EPOCH;

use serde_json::{Value, json};
use switchboard::auth::tokens::Granted;
use switchboard::auth::{Forgotten, SignedIn};
use switchboard::failure::Hint;
use switchboard::render::words::clean_line;

use super::token;
use crate::args::Format;
use crate::args::server::Auth;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::{self, CommandResult};
use crate::sign_in::{self, Desk, Manner, Told};

pub(super) async fn auth(conversation: &Conversation<'_>, options: Auth) -> CommandResult {
    let Auth { server, paste, device, format } = options;
    let server = conversation.session.gateway().usable(&server)?;
    let manner = match (paste, device) {
        (true, _) => Manner::Paste,
        (false, true) => Manner::Device,
        (false, false) => Manner::Browser,
    };
    let signed_in = Desk::new(conversation, &server, Told::AsData(format)).sign_in(manner).await?;
    let printer = conversation.app.printer;
    match format {
        Format { json: true } => printer.json_line(&in_json(&signed_in))?,
        Format { json: false } => {
            printer.note(&sign_in::report(&signed_in, printer));
            printer.note(&report::hint(&Hint::ListTools(server), printer.err));
        }
    }
    Ok(Exit::Done)
}

fn in_json(signed_in: &SignedIn) -> Value {
    let SignedIn { server, grant: Granted { issuer, scopes, expires, renewable }, kept } =
        signed_in;
    let expires = expires.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let mut json = json!({
        "server": server.as_str(),
        "issuer": issuer,
        "scopes": scopes,
        "expiresAt": expires.map(|at| at.as_secs()),
        "renewable": renewable,
    });
    if let Some(kept) = kept {
        token::add_place(&mut json, kept);
    }
    json
}

pub(super) async fn logout(conversation: &Conversation<'_>, server: &str) -> CommandResult {
    let gateway = conversation.session.gateway();
    let server = gateway.usable(server)?;
    let sign_in = gateway.sign_in(&server).await?;
    let shown = clean_line(server.as_str(), 100);
    let stage = async || format!("signing out of {shown}");
    let forgotten = conversation.spinner.during(stage, sign_in.forget()).await?;
    conversation.app.printer.note(&match forgotten {
        Forgotten::NothingKept => format!("not signed in to `{shown}`"),
        Forgotten::Revoked => format!("signed out of `{shown}`; its tokens were revoked"),
        Forgotten::NotRevoked => format!(
            "signed out of `{shown}`; its tokens were removed, but not revoked by the authorization \
             server"
        ),
    });
    Ok(Exit::Done)
}
