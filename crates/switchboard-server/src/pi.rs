//! What the extension of Pi asks on behalf of its user, beside MCP: texts to show, and what the
//! user decides. No tool, no server and no other host reaches any of it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard::connections::Existing;
use switchboard::failure::Failure;
use switchboard::render::{self, pi as words};
use switchboard::reply::Reply;
use switchboard::request::{Matching, PageRequest, Request, SearchRequest, Signatures};
use switchboard::{Caller, Session};
use switchboard_wire::envelope::METHOD_NOT_FOUND;
use switchboard_wire::{Raw, RpcError};

use crate::answer::{Answer, error_for_pi};
use crate::conversation::Conversation;
use crate::params::read;

/// As many tools as a person looks through.
const TOOLS: PageRequest = PageRequest { offset: 0, limit: 500 };

/// Whether a method is one of these.
pub(crate) fn is_asked(method: &str) -> bool {
    method.starts_with("switchboard/")
}

/// The user of one client.
pub(crate) struct Pi {
    session: Arc<Session>,
}

impl Pi {
    pub(crate) fn new(talk: &Conversation) -> Pi {
        Pi { session: Arc::clone(talk.session()) }
    }

    /// Answers a request; what goes wrong is said in words for the user.
    pub(crate) async fn answer(
        &self,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<Answer, RpcError> {
        let nothing = Raw::from_json("{}".to_owned());
        let params = Some(params.unwrap_or(&nothing));
        match method {
            "switchboard/status" => {
                read::<Nothing>(params)?;
                Ok(Answer::json(status(&self.session).to_string()))
            }
            "switchboard/tools" => self.tools(&read(params)?),
            "switchboard/search" => self.search(caller, read(params)?).await,
            "switchboard/connect" => Ok(text(&self.connect(read(params)?).await?)),
            "switchboard/disconnect" => {
                let One { server } = read(params)?;
                let server = self.session.connection(&server).map_err(said)?;
                let request = Request::Disconnect { server: server.to_string() };
                self.session.handle_as(request, caller).await.map_err(said)?;
                Ok(text(&words::disconnected(&server)))
            }
            _ => Err(RpcError::new(METHOD_NOT_FOUND, "this method is not offered")),
        }
    }

    /// From what is known; connects nothing.
    fn tools(&self, of: &OneOrAll) -> Result<Answer, RpcError> {
        let server = match &of.server {
            None => None,
            Some(server) => Some(self.session.connection(server).map_err(said)?),
        };
        let page = self.session.catalog().page(server.as_ref(), TOOLS);
        Ok(text(&words::tools(&page)))
    }

    async fn search(&self, caller: Caller, Query { query }: Query) -> Result<Answer, RpcError> {
        let request = SearchRequest {
            query,
            matching: Matching::Words,
            server: None,
            signatures: Signatures::Shown,
            page: PageRequest::default(),
        };
        match self.session.handle_as(Request::Search(request), caller).await.map_err(said)? {
            Reply::Found(page) => Ok(text(&words::found(&page))),
            other => Ok(text(&render::text::reply(&other))),
        }
    }

    async fn connect(&self, Connect { server, again }: Connect) -> Result<String, RpcError> {
        let existing = if again { Existing::Close } else { Existing::Stay };
        if let Some(server) = server {
            let server = self.session.connection(&server).map_err(said)?;
            let tools = self.session.reconnect(server.as_str(), existing).await.map_err(said)?;
            return Ok(words::connected(&server, Ok(tools)));
        }
        let outcomes = self.session.reconnect_all(existing).await;
        if outcomes.is_empty() {
            return Ok(words::nothing_to_connect().to_owned());
        }
        let line = |(server, outcome): &(_, Result<usize, Failure>)| {
            words::connected(server, outcome.as_ref().copied())
        };
        Ok(outcomes.iter().map(line).collect::<Vec<_>>().join("\n"))
    }
}

#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
struct One {
    server: String,
}

#[derive(Deserialize)]
struct OneOrAll {
    #[serde(default)]
    server: Option<String>,
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Deserialize)]
struct Connect {
    #[serde(default)]
    server: Option<String>,
    /// The connection that there is goes first.
    #[serde(default)]
    again: bool,
}

/// What `status --json` prints, and what the extension shows of it.
fn status(session: &Session) -> Value {
    let (overview, settings) = (session.overview(), session.gateway().settings());
    let mut status = render::json::status(&overview);
    status["text"] = json!(words::status(&overview));
    status["disabled"] = json!(words::disabled(&overview));
    status["pending"] = json!(words::pending(&overview));
    status["settings"] = json!({
        "footer": settings.footer.as_str(),
        "icon": settings.status_icon,
        "startupNotice": settings.startup_notice,
        "rendering": settings.result_rendering.as_str(),
        "lines": settings.shown_lines(),
    });
    status
}

fn text(text: &str) -> Answer {
    Answer::json(json!({ "text": text }).to_string())
}

fn said(failure: Failure) -> RpcError {
    error_for_pi(&failure)
}
