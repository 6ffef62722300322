//! Requests that only the Pi extension sends, in addition to MCP: they return texts for the user
//! and carry decisions of the user. Tools, servers and other hosts cannot send them.

mod notices;
mod prompts;
mod status;

use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::json;
use switchboard::connections::Existing;
use switchboard::failure::Failure;
use switchboard::pi::text as words;
use switchboard::render;
use switchboard::reply::Reply;
use switchboard::request::{PageRequest, Request, SearchRequest};
use switchboard::trust::{DefinitionReview, PendingApproval};
use switchboard::{Caller, Session};
use switchboard_wire::{Peer, Raw, RpcError};
use tokio::task::JoinSet;

use crate::answer::{McpResult, protocol_code};
use crate::conversation::Conversation;
use crate::host::ClientHost;
use crate::lock::lock;
use crate::params::{read, unsupported_method};

/// The prefix of the methods that only the Pi extension sends.
pub(crate) const PI_METHODS: &str = "switchboard/";

/// All tools of a server on one page, with more entries than a user reads.
const TOOLS: PageRequest = PageRequest { offset: 0, limit: 500 };

/// The requests of one client with the Pi extension.
pub(crate) struct Pi {
    session: Arc<Session>,
    host: ClientHost,
    /// The definitions of pending servers that the user was shown.
    reader: DefinitionReview,
    client: Peer,
    /// A warning that the Pi extension shows at the start.
    warning: Option<String>,
    /// The running tasks with their names. They end when the client disconnects. The lock is held
    /// briefly.
    beside: Mutex<(Vec<&'static str>, JoinSet<()>)>,
}

impl Pi {
    pub(crate) fn new(talk: &Conversation, client: &Peer) -> Pi {
        let gateway = talk.session.gateway();
        Pi {
            session: Arc::clone(&talk.session),
            host: talk.host.clone(),
            reader: gateway.reader(),
            warning: talk.direct().and_then(|direct| direct.warning_of_many(gateway)),
            client: client.clone(),
            beside: Mutex::default(),
        }
    }

    /// Starts to send notices, because the client has sent `notifications/initialized`.
    pub(crate) fn begin(&self) {
        let (session, host) = (Arc::clone(&self.session), self.host.clone());
        let warning = self.warning.clone();
        self.once("notices", || notices::tell(session, host, warning));
    }

    /// Starts a task unless a task with this name runs already.
    fn once<W: Future<Output = ()> + Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce() -> W,
    ) {
        let mut beside = lock(&self.beside);
        let (names, tasks) = &mut *beside;
        if !names.contains(&name) {
            names.push(name);
            tasks.spawn(work());
        }
    }

    /// Answers a request. A failure is worded for the user.
    pub(crate) async fn answer(
        &self,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<McpResult, RpcError> {
        let nothing = Raw::from_json("{}".to_owned());
        let params = Some(params.unwrap_or(&nothing));
        match method {
            "switchboard/status" => {
                read::<Nothing>(params)?;
                Ok(self.status())
            }
            "switchboard/tools" => self.tools(&read(params)?),
            "switchboard/search" => self.search(caller, read(params)?).await,
            "switchboard/connect" => Ok(text(&self.connect(read(params)?).await?)),
            "switchboard/disconnect" => {
                let One { server } = read(params)?;
                let server = self.session.connection(&server).map_err(user_error)?;
                let request = Request::Disconnect { server: server.to_string() };
                self.session.handle_as(request, caller).await.map_err(user_error)?;
                Ok(text(&words::disconnected(&server)))
            }
            "switchboard/prompts" => {
                read::<Nothing>(params)?;
                self.prompts(caller).await
            }
            "switchboard/prompt" => self.prompt(caller, read(params)?).await,
            "switchboard/pending" => {
                read::<Nothing>(params)?;
                self.pending().await
            }
            "switchboard/trust" => {
                let Trust { server, hash } = read(params)?;
                self.reader.approve(&server, &hash).await.map_err(user_error)?;
                Ok(text(&words::trusted(&server)))
            }
            _ => Err(unsupported_method()),
        }
    }

    /// The status of all servers. From now on the client is notified when it changes.
    fn status(&self) -> McpResult {
        let (session, client) = (Arc::clone(&self.session), self.client.clone());
        // The change feed is subscribed to before the status is read, so that no change is missed.
        let changes = session.gateway().changes();
        let status = status::of(&session);
        let answer = McpResult::json(status.to_string());
        self.once("status", || status::follow(session, changes, status, client));
        answer
    }

    async fn pending(&self) -> Result<McpResult, RpcError> {
        let waiting = self.reader.pending().await.map_err(user_error)?;
        let row = |one: &PendingApproval| {
            json!({
                "server": one.server,
                "hash": one.hash.to_string(),
                "changed": one.definition.changed(),
                "text": one.definition.text(|_, text| text.to_owned()),
            })
        };
        let rows: Vec<_> = waiting.iter().map(row).collect();
        Ok(McpResult::json(json!({ "pending": rows }).to_string()))
    }

    /// Lists tools from the catalog; starts no server.
    fn tools(&self, of: &OneOrAll) -> Result<McpResult, RpcError> {
        let server = match &of.server {
            None => None,
            Some(server) => Some(self.session.connection(server).map_err(user_error)?),
        };
        let page = self.session.catalog().page(server.as_ref(), TOOLS);
        Ok(text(&words::tools(&page)))
    }

    async fn search(&self, caller: Caller, Query { query }: Query) -> Result<McpResult, RpcError> {
        let request = SearchRequest::words(query);
        match self.session.handle_as(Request::Search(request), caller).await.map_err(user_error)? {
            Reply::Found(page) => Ok(text(&words::found(&page))),
            other => Ok(text(&render::text::reply(&other))),
        }
    }

    async fn connect(&self, Connect { server, again }: Connect) -> Result<String, RpcError> {
        let existing = if again { Existing::Close } else { Existing::Stay };
        if let Some(server) = server {
            let server = self.session.connection(&server).map_err(user_error)?;
            let tools =
                self.session.reconnect(server.as_str(), existing).await.map_err(user_error)?;
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
struct Trust {
    server: String,
    /// The hash of the definition that the user was shown.
    hash: String,
}

#[derive(Deserialize)]
struct Query {
    query: String,
}

#[derive(Deserialize)]
struct Connect {
    #[serde(default)]
    server: Option<String>,
    /// Whether an open connection is closed before the server is connected.
    #[serde(default)]
    again: bool,
}

fn text(text: &str) -> McpResult {
    McpResult::json(json!({ "text": text }).to_string())
}

/// A failure, worded for the user of Pi.
#[expect(clippy::needless_pass_by_value, reason = "the argument of `map_err`")]
fn user_error(failure: Failure) -> RpcError {
    RpcError::new(protocol_code(&failure), words::failure(&failure))
}
