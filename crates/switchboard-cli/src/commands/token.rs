//! Bearer tokens from the user: read without echo, and never printed.

use std::fmt::Write;
use std::io::{self, Read};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use switchboard::auth::tokens::{Granted, KeptToken, TokenKind, TokenLocation};
use switchboard::failure::{Code, Failure, Subject};
use switchboard::render::words::{clean_line, duration, list};
use switchboard::secret::Secret;

use crate::args::Format;
use crate::args::token::Token;
use crate::commands::call::reading;
use crate::conversation::Conversation;
use crate::dialogue::Dialogue;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::{CommandResult, Stop};

const NAME: usize = 100;
const ADDRESS: usize = 500;
const NAMES: usize = 4;

/// The size limit of a token; real tokens are shorter.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// The longest line that a terminal passes to a program; the terminal drops the rest silently.
const MAX_TERMINAL_LINE: usize = 4095;

#[derive(Debug, thiserror::Error)]
enum TokenInputError {
    #[error("the token is empty")]
    Empty,
    #[error("the token is not valid UTF-8, or is larger than 64 KiB")]
    NoToken,
    #[error("the token is too long to be typed: give it on standard input")]
    TooLongToType,
}

impl From<TokenInputError> for Stop {
    fn from(cause: TokenInputError) -> Stop {
        Failure::new(Code::BadRequest, Subject::Request, cause).into()
    }
}

pub(super) async fn run(conversation: &Conversation<'_>, command: Token) -> CommandResult {
    match command {
        Token::Set { server } => set(conversation, &server).await,
        Token::Status { server, format } => status(conversation, server.as_deref(), format).await,
        Token::Remove { server } => remove(conversation, &server).await,
    }
}

async fn set(conversation: &Conversation<'_>, server: &str) -> CommandResult {
    let gateway = conversation.session.gateway();
    // The name is checked before the user types the token.
    let name = gateway.usable(server)?;
    let token = match Dialogue::open(conversation.app.printer) {
        Some(dialogue) => typed(dialogue, name.as_str()).await?,
        None => piped(conversation.app.printer).await?,
    };
    let kept = gateway.set_token(name.as_str(), token).await?;
    let printer = conversation.app.printer;
    let shown = clean_line(name.as_str(), NAME);
    printer.note(&format!("the token of `{shown}` is stored in {}", place(&kept.kept)));
    let entry = conversation.config.servers.get(name.as_str()).map(|server| &server.definition);
    if entry.is_some_and(|entry| entry.bearer_token_store != Some(true)) {
        printer.warn(&format!(
            "it has no effect until the entry of `{shown}` has `\"bearerTokenStore\": true`"
        ));
    }
    Ok(Exit::Done)
}

/// Reads a bearer token that the user types, without echo.
async fn typed(mut dialogue: Dialogue, server: &str) -> Result<Secret, Stop> {
    let server = dialogue.printer.err.name(clean_line(server, NAME)).to_string();
    let token = dialogue.ask_unseen(&format!("Token of {server}:")).await?;
    if token.expose().len() >= MAX_TERMINAL_LINE {
        return Err(TokenInputError::TooLongToType.into());
    }
    given(token)
}

async fn piped(printer: Printer) -> Result<Secret, Stop> {
    // Standard input may be a terminal although the user cannot be asked, so echo is turned off.
    let _unseen = printer.hide_typing().ok();
    let read = reading(|| {
        let mut text = String::new();
        io::stdin().take(MAX_TOKEN_BYTES + 1).read_to_string(&mut text).map(|_| Secret::new(text))
    });
    match read.await {
        Ok(text) if text.expose().len() as u64 <= MAX_TOKEN_BYTES => given(text),
        Ok(_) | Err(_) => Err(TokenInputError::NoToken.into()),
    }
}

fn given(token: Secret) -> Result<Secret, Stop> {
    let token = Secret::new(token.expose().trim());
    if token.expose().is_empty() { Err(TokenInputError::Empty.into()) } else { Ok(token) }
}

async fn status(
    conversation: &Conversation<'_>,
    server: Option<&str>,
    format: Format,
) -> CommandResult {
    let tokens = conversation.session.gateway().tokens(server).await?;
    let printer = conversation.app.printer;
    if format.json {
        let tokens: Vec<Value> = tokens.iter().map(in_json).collect();
        printer.json(&json!({ "tokens": tokens }))?;
        return Ok(Exit::Done);
    }
    let mut out = String::new();
    for token in &tokens {
        let names: Vec<_> =
            token.servers.iter().map(|name| clean_line(name.as_str(), NAME)).collect();
        let whose = match names.is_empty() {
            true => "(no server)".to_owned(),
            false => list(&names, NAMES),
        };
        let address = clean_line(&token.origin_and_path(), ADDRESS).into_owned();
        let (kind, place) = (kind(token.kind), place(&token.kept));
        let whose = printer.out.name(whose);
        let address = printer.out.aside(address);
        let account = token.account.as_ref().map(|name| format!(" (account {name})"));
        let account = account.unwrap_or_default();
        let _ = writeln!(out, "{whose} {address}{account}: {kind}, in {place}");
        if let Some(granted) = &token.grant {
            let _ = writeln!(out, "  {}", in_words(granted));
        }
    }
    printer.text(&out)?;
    if tokens.is_empty() {
        printer.note("no token is stored");
    }
    Ok(Exit::Done)
}

async fn remove(conversation: &Conversation<'_>, server: &str) -> CommandResult {
    let removed = conversation.session.gateway().remove_token(server).await?;
    let shown = clean_line(server, ADDRESS);
    conversation.app.printer.note(&match removed {
        Some(_) => format!("the token of `{shown}` was removed"),
        None => format!("no token is stored for `{shown}`"),
    });
    Ok(Exit::Done)
}

fn in_json(token: &KeptToken) -> Value {
    let mut json = json!({
        "servers": token.servers.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
        "url": token.origin_and_path(),
        "kind": kind(token.kind),
    });
    if let Some(account) = &token.account {
        json["account"] = json!(account);
    }
    add_place(&mut json, &token.kept);
    if let Some(granted) = &token.grant {
        let expires = granted.expires.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        json["issuer"] = json!(granted.issuer);
        json["scopes"] = json!(granted.scopes);
        json["expiresAt"] = json!(expires.map(|at| at.as_secs()));
        json["renewable"] = json!(granted.renewable);
    }
    json
}

/// Adds the place where a token is stored to `json`.
pub(super) fn add_place(json: &mut Value, kept: &TokenLocation) {
    let (kept, path) = match kept {
        TokenLocation::Keyring => ("keyring", None),
        TokenLocation::File(path) => ("file", Some(path)),
        TokenLocation::EncryptedFile(path) => ("encrypted-file", Some(path)),
    };
    json["kept"] = json!(kept);
    if let Some(path) = path {
        json["path"] = json!(path.to_string_lossy());
    }
}

/// The issuer, scopes and lifetime of a token as text.
pub(super) fn in_words(granted: &Granted) -> String {
    let mut words = format!("by {}", clean_line(&granted.issuer, ADDRESS));
    if !granted.scopes.is_empty() {
        let _ = write!(words, ", for {}", clean_line(&granted.scopes.join(" "), ADDRESS));
    }
    let left = granted.expires.map(|expires| expires.duration_since(SystemTime::now()).ok());
    let _ = match (left, granted.renewable) {
        (None, _) => write!(words, ", until the server refuses it"),
        (Some(Some(left)), true) => write!(words, ", refreshed in {}", duration(left)),
        (Some(Some(left)), false) => write!(words, ", for another {}", duration(left)),
        (Some(None), true) => write!(words, ", refreshed at the next use"),
        (Some(None), false) => write!(words, ", expired"),
    };
    words
}

fn kind(kind: TokenKind) -> &'static str {
    match kind {
        TokenKind::SignIn => "sign-in",
        TokenKind::Given => "token",
    }
}

fn place(kept: &TokenLocation) -> String {
    let shown = |path: &std::path::Path| clean_line(&path.to_string_lossy(), ADDRESS).into_owned();
    match kept {
        TokenLocation::Keyring => "the keyring".to_owned(),
        TokenLocation::File(path) => format!("`{}`, not encrypted", shown(path)),
        TokenLocation::EncryptedFile(path) => format!("`{}`, encrypted", shown(path)),
    }
}
