//! One client: dispatches its requests and notifications.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::exact::{Args, parsed_size};
use switchboard::host_profile::HostProfile;
use switchboard::{Gateway, Host};
use switchboard_wire::envelope::{INTERNAL_ERROR, Malformed};
use switchboard_wire::modern::{DISCOVER, LISTEN};
use switchboard_wire::peer::Pause;
use switchboard_wire::{Handler, Id, Notification, Peer, Raw, Responder, RpcError};

use crate::answer::McpResult;
use crate::calls::{Accepted, Calls};
use crate::conversation::Conversation;
use crate::modern;
use crate::news::{List, News};
use crate::pace::Pace;
use crate::pi::{PI_METHODS, Pi};

/// The MCP service for one client.
pub(crate) struct Service {
    talk: Arc<Conversation>,
    client: Peer,
    calls: Calls,
    pace: Pace,
    news: News,
    era: ClientEra,
    /// Handles the requests that only the Pi extension may send; `None` for other clients.
    pi: Option<Arc<Pi>>,
}

/// Which host the client is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// The client names its host in `clientInfo`.
    Any,
    /// The user named the host with `--host`; takes precedence over `clientInfo`.
    Named(&'static HostProfile),
    /// The Pi extension: it may also send requests on behalf of its user. When it disconnects, its
    /// requests are aborted without an answer.
    Pi,
}

impl HostKind {
    /// Parses the value of `serve --host`.
    pub fn named(name: &str) -> HostKind {
        if name == PI { HostKind::Pi } else { HostKind::Named(HostProfile::named(name)) }
    }

    pub(crate) fn profile(self) -> Option<&'static HostProfile> {
        match self {
            HostKind::Any => None,
            HostKind::Named(profile) => Some(profile),
            HostKind::Pi => Some(HostProfile::named(PI)),
        }
    }
}

const PI: &str = "pi";

/// The toolset that a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// `mcp`, or the pair if the host's profile requires it, and the direct tools that the
    /// configuration names.
    Auto,
    /// As `Auto`, with `mcp` alone for every host.
    Proxy,
    /// Like `Auto`, but every host gets the pair.
    Pair,
    /// As `Auto`, and every tool that the configuration does not exclude is a direct tool.
    Direct,
    /// The granular tools, one for each step, for all servers.
    Granular,
    /// One server under its own names, passed through unchanged. The value is its name in the
    /// configuration.
    Mirror(String),
}

/// The era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientEra {
    /// The era is not decided yet: each request shows its era.
    Either,
    /// The client opened with `initialize`; all its requests are session-based.
    Legacy,
    /// Every request must state the stateless revision.
    Modern,
}

impl Service {
    /// A service for the client of one connection.
    pub(crate) fn new(gateway: &Gateway, who: (&Offer, HostKind), client: Peer) -> Service {
        let talk = Arc::new(Conversation::with_client(gateway, who, &client));
        let pi = match who {
            (_, HostKind::Any | HostKind::Named(_)) => None,
            (_, HostKind::Pi) => Some(Arc::new(Pi::new(&talk, &client))),
        };
        Service::with_era(ClientEra::Either, talk, client, pi)
    }

    /// A service for a single stateless request, with the shared conversation.
    pub(crate) fn of_one_request(talk: Arc<Conversation>, client: Peer) -> Service {
        Service::with_era(ClientEra::Modern, talk, client, None)
    }

    fn with_era(
        era: ClientEra,
        talk: Arc<Conversation>,
        client: Peer,
        pi: Option<Arc<Pi>>,
    ) -> Service {
        let (pace, calls, news) = (Pace::of(&client), Calls::default(), News::default());
        Service { talk, client, calls, pace, news, era, pi }
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    fn is_modern(&self, method: &str, params: Option<&Raw>) -> bool {
        match self.era {
            ClientEra::Legacy => false,
            ClientEra::Modern => true,
            ClientEra::Either => method == DISCOVER || modern::stated_revision(params).is_some(),
        }
    }

    /// Updates the state that a session-based request changes before it is answered.
    fn observe_legacy(&mut self, method: &str, params: Option<&Raw>) {
        match method {
            "initialize" => {
                self.era = ClientEra::Legacy;
                self.talk.host.learn(params);
                self.talk.session.gateway().declare(&self.talk.host.abilities());
            }
            "logging/setLevel" => self.talk.host.set_log_threshold(params),
            // A mirrored server sends its own list changes, so its lists are not watched.
            _ if self.talk.mirror().is_some() => {}
            "tools/list" => {
                if let Some(direct) = self.talk.direct() {
                    self.news.follow_tools(direct, &self.talk.session, &self.client);
                }
            }
            "prompts/list" => self.news.follow(List::Prompts, &self.talk.session, &self.client),
            "switchboard/prompts" if self.pi.is_some() => {
                self.news.follow(List::Prompts, &self.talk.session, &self.client);
            }
            "resources/list" | "resources/templates/list" => {
                self.news.follow(List::Resources, &self.talk.session, &self.client);
            }
            _ => {}
        }
    }

    fn answer_modern(
        &self,
        method: String,
        params: Option<Raw>,
        accepted: Arc<Accepted>,
        responder: Responder,
    ) {
        let (talk, closing) = (Arc::clone(&self.talk), self.calls.closing());
        // A `subscriptions/listen` request is not counted, because it has no large result.
        let room = (method != LISTEN).then(|| self.pace.room(size(params.as_ref())));
        self.calls.run(accepted, async move {
            let room = match room {
                Some(room) => Some(room.await),
                None => None,
            };
            talk.answer_modern(method, params, responder, (closing, room)).await;
        });
    }

    /// The parameters of a notification that is forwarded to servers; `None` if it is not
    /// forwarded.
    fn params_to_pass_on(&self, notification: &Notification) -> Option<String> {
        let params = match (self.talk.mirror().is_some(), notification.method.as_str()) {
            // These notifications concern only our connection with the client.
            (_, "notifications/initialized" | "notifications/cancelled") => return None,
            (_, "notifications/roots/list_changed") | (true, _) => notification.params.as_ref(),
            (false, _) => return None,
        };
        match params {
            None => Some(String::new()),
            Some(params) => Some(params.parse::<Args>().ok()?.to_string()),
        }
    }
}

impl Drop for Service {
    /// The end of a single stateless request must not end the shared conversation.
    fn drop(&mut self) {
        if self.era != ClientEra::Modern {
            self.talk.end();
        }
    }
}

/// The memory of the parsed parameters, as estimated.
fn size(params: Option<&Raw>) -> usize {
    params.map_or(0, |params| parsed_size(params.as_str()))
}

/// The error for a request of a client that has too many others without a response.
const FULL: &str = "too many requests wait for the response to a server-to-client request";

impl Handler for Service {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        if self.pace.refuses() {
            let error = RpcError::new(INTERNAL_ERROR, FULL);
            return self.calls.spawn(async move { responder.error(&error).await });
        }
        let Some((accepted, responder)) = self.calls.accept(responder) else { return };
        if self.is_modern(&method, params.as_ref()) {
            return self.answer_modern(method, params, accepted, responder);
        }
        self.observe_legacy(&method, params.as_ref());
        let talk = Arc::clone(&self.talk);
        let caller = talk.caller(&responder);
        let pi = self.pi.clone().filter(|_| method.starts_with(PI_METHODS));
        let room = self.pace.room(size(params.as_ref()));
        self.calls.run(accepted, async move {
            let room = room.await;
            let (params, client) = (params.as_ref(), responder.peer());
            let answer = match (pi, method.as_str()) {
                (Some(pi), method) => pi.answer(caller, method, params).await,
                (None, "ping") => Ok(McpResult::json("{}")),
                (None, method) => talk.answer_legacy(caller, method, params, client).await,
            };
            match answer {
                Ok(answer) => {
                    let write = |out: &mut String| {
                        answer.write(out, talk.style);
                        room.answered(out.len().max(answer.source_bytes()));
                    };
                    responder.result(write).await;
                }
                Err(error) => responder.error(&error).await,
            }
        });
    }

    fn pause(&self) -> Option<Pause> {
        self.pace.pause()
    }

    fn notification(&mut self, notification: Notification) {
        if let Some(id) = cancelled_id(&notification) {
            self.calls.cancel(&id);
        }
        if let Some(pi) = &self.pi
            && notification.method == "notifications/initialized"
        {
            pi.begin();
        }
        let Some(params) = self.params_to_pass_on(&notification) else { return };
        let talk = Arc::clone(&self.talk);
        self.calls.spawn(async move {
            talk.session.tell_own_servers(&notification.method, &params).await;
        });
    }

    fn malformed(&mut self, error: &Malformed, peer: &Peer) {
        let (error, peer) = (error.clone(), peer.clone());
        self.calls.spawn(async move { peer.refuse(&error).await });
    }
}

/// The id of the request that this notification cancels; `None` for other notifications.
pub(crate) fn cancelled_id(notification: &Notification) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if notification.method != "notifications/cancelled" {
        return None;
    }
    let Cancelled { request_id } = notification.params.as_ref()?.parse().ok()?;
    Id::read(request_id)
}
