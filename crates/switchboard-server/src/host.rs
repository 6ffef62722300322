//! The user behind an MCP client, asked by elicitation where the client offers it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use switchboard::approval::{Answer, Question};
use switchboard::catalog::Kind;
use switchboard::host::{Asked, CannotAsk, Host};
use switchboard::render::text::about_pin;
use switchboard::render::words::{bytes, clean_block, clean_line};
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, Raw};

/// How long a person may think.
const THINKING: Duration = Duration::from_secs(10 * 60);

/// How much of a call's arguments is shown.
const SHOWN_ARGUMENTS: usize = 2_000;

/// Asks through one client.
#[derive(Clone)]
pub(crate) struct ClientHost {
    peer: Peer,
    /// Set by `initialize`, if the client can ask its user.
    can_ask: Arc<OnceLock<bool>>,
}

impl ClientHost {
    pub(crate) fn new(peer: Peer) -> ClientHost {
        ClientHost { peer, can_ask: Arc::default() }
    }

    /// Takes note of what the client said it can do.
    pub(crate) fn learn(&self, params: Option<&Raw>) {
        #[derive(Deserialize)]
        struct Hello {
            #[serde(default)]
            capabilities: Capabilities,
        }
        #[derive(Default, Deserialize)]
        struct Capabilities {
            #[serde(default)]
            elicitation: Option<serde_json::Value>,
        }
        let hello = params.and_then(|params| params.parse::<Hello>().ok());
        let _learnt_once =
            self.can_ask.set(hello.is_some_and(|hello| hello.capabilities.elicitation.is_some()));
    }

    async fn ask(&self, question: &Question) -> Result<Answer, CannotAsk> {
        if self.can_ask.get() != Some(&true) {
            return Err(CannotAsk::NobodyThere);
        }
        let params = elicitation(question);
        let patience = Patience { timeout: Some(THINKING), progress: None };
        let answer = self.peer.request("elicitation/create", |_| params, patience).await;
        answer.map_err(|_| CannotAsk::NobodyThere).map(|answer| read(&answer))
    }
}

impl Host for ClientHost {
    fn approve<'a>(&'a self, question: &'a Question) -> Asked<'a, Result<Answer, CannotAsk>> {
        Box::pin(self.ask(question))
    }
}

fn elicitation(question: &Question) -> String {
    let target = question.target();
    let arguments = serde_json::to_string_pretty(question.args()).unwrap_or_default();
    let mut message = format!(
        "Allow the tool `{}` of the server `{}` to run?",
        clean_line(target.entry.name.as_str(), 200),
        clean_line(target.server.as_str(), 200),
    );
    if let Kind::Resource { uri } = &target.entry.kind {
        message.push_str(&format!("\n\nIt reads {}", clean_line(uri, SHOWN_ARGUMENTS)));
    }
    let shown = clean_block(&arguments, SHOWN_ARGUMENTS);
    message.push_str(&format!("\n\nArguments:\n{shown}"));
    if arguments.len() > SHOWN_ARGUMENTS {
        message.push_str(&format!("\n({}, not all are shown)", bytes(arguments.len())));
    }
    if let Some(about) = about_pin(target.pin) {
        message.push_str(&format!("\n\nAttention: {about}."));
    }
    json!({
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "enum": ["once", "session", "server", "no"],
                    "enumNames": [
                        "Allow once",
                        "Allow this tool for the session",
                        "Allow this server for the session",
                        "Deny",
                    ],
                },
            },
            "required": ["decision"],
        },
    })
    .to_string()
}

/// Anything but a clear yes is a no. What holds beyond the session is not offered: a client may
/// answer for its user.
fn read(answer: &Raw) -> Answer {
    #[derive(Deserialize)]
    struct Elicited {
        action: String,
        #[serde(default)]
        content: serde_json::Value,
    }
    match answer.parse::<Elicited>() {
        Ok(Elicited { action, content }) if action == "accept" => {
            match content["decision"].as_str() {
                Some("once") => Answer::Once,
                Some("session") => Answer::Tool,
                Some("server") => Answer::Server,
                Some(_) | None => Answer::No,
            }
        }
        Ok(_) | Err(_) => Answer::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_choice_of_the_form_is_a_yes() {
        let check = |answer: &str, expected| {
            assert_eq!(read(&Raw::from_json(answer.to_owned())), expected, "{answer}");
        };
        let accept = |decision: &str| {
            json!({ "action": "accept", "content": { "decision": decision } }).to_string()
        };
        check(&accept("once"), Answer::Once);
        check(&accept("session"), Answer::Tool);
        check(&accept("server"), Answer::Server);
        check(&accept("no"), Answer::No);
        check(&accept("always"), Answer::No);
        check(r#"{"action":"accept","content":{}}"#, Answer::No);
        check(r#"{"action":"accept"}"#, Answer::No);
        check(r#"{"action":"decline","content":{"decision":"once"}}"#, Answer::No);
        check(r#"{"action":"cancel"}"#, Answer::No);
        check("[]", Answer::No);
    }
}
