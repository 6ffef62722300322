//! What the requests of one client have in common, or those of all clients that are not told apart,
//! and how a request of either era is answered.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard::schema::mirrored;
use switchboard::{Caller, Gateway, Session, tool_card};
use switchboard_wire::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::modern::{DISCOVER, LISTEN};
use switchboard_wire::{Peer, Raw, Responder, RpcError};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::direct::Direct;
use crate::host::ClientHost;
use crate::listen::Listening;
use crate::mirror::Mirror;
use crate::modern::{self, Said, Stamp};
use crate::proxy;
use crate::question::Manner;
use crate::rounds::{Mouth, Parking, Rounds, Turn};
use crate::service::Offer;

/// Where a resource is not found: what servers of older revisions answer.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// One client, or all that are not told apart.
pub(crate) struct Conversation {
    session: Arc<Session>,
    host: ClientHost,
    /// Set where one server is shown as it is.
    mirror: Option<Mirror>,
    /// What is shown beside the one tool.
    direct: Arc<Direct>,
    /// Calls that wait for what they asked their client.
    parking: Parking,
    scope: Scope,
}

/// What is known of whoever asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// It is the one client of a connection.
    Client,
    /// Nothing but the request.
    Request,
}

impl Conversation {
    /// With the client at the other end of a connection.
    pub(crate) fn with_client(gateway: &Gateway, offer: &Offer, client: &Peer) -> Conversation {
        let (manner, mirror) = shown(offer);
        let host = ClientHost::new(client.clone(), manner);
        let session = match manner {
            Manner::OneOfMany => gateway.session(host.clone()),
            Manner::Verbatim => gateway.private_session(host.clone()),
        };
        Conversation::of(session, host, mirror, Direct::new(gateway, offer), Scope::Client)
    }

    /// With everybody who says with each request all that there is to know.
    pub(crate) fn with_anybody(gateway: &Gateway, offer: &Offer) -> Conversation {
        let (manner, mirror) = shown(offer);
        let host = ClientHost::common(manner);
        let session = match manner {
            Manner::OneOfMany => gateway.common_session(host.clone()),
            Manner::Verbatim => gateway.private_session(host.clone()),
        };
        Conversation::of(session, host, mirror, Direct::new(gateway, offer), Scope::Request)
    }

    fn of(
        session: Session,
        host: ClientHost,
        mirror: Option<Mirror>,
        direct: Direct,
        scope: Scope,
    ) -> Conversation {
        let (session, parking) = (Arc::new(session), Parking::default());
        Conversation { session, host, mirror, direct: Arc::new(direct), parking, scope }
    }

    pub(crate) fn direct(&self) -> &Arc<Direct> {
        &self.direct
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn host(&self) -> &ClientHost {
        &self.host
    }

    pub(crate) fn is_mirror(&self) -> bool {
        self.mirror.is_some()
    }

    /// Nothing that waits for a client is waited for any more.
    pub(crate) fn end(&self) {
        self.parking.clear();
    }

    /// Questions about a request of the older era travel with it, where the transport can tell.
    pub(crate) fn caller(&self, responder: &Responder) -> Caller {
        let caller = self.session.caller();
        match responder.exchange() {
            None => caller,
            Some(_) => caller.with_host(Arc::new(self.host.at(responder.peer()))),
        }
    }

    /// Answers a request; its steps go to `progress`, unless the caller has seen to them.
    pub(crate) async fn answer(
        &self,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
        progress: Option<&Peer>,
    ) -> Result<Answer, RpcError> {
        match &self.mirror {
            None => {
                let (session, direct) = (&self.session, &self.direct);
                proxy::answer(session, direct, caller, method, params, progress).await
            }
            Some(mirror) => {
                let session = &self.session;
                Box::pin(mirror.answer(session, caller, method, params, progress)).await
            }
        }
    }

    /// Answers a request of the stateless era.
    pub(crate) async fn answer_modern(
        self: Arc<Conversation>,
        method: String,
        params: Option<Raw>,
        responder: Responder,
        closing: CancellationToken,
    ) {
        let talk = Arc::clone(&self);
        let answered = async {
            let said = Said::read(params.as_ref())?;
            match method.as_str() {
                removed if modern::is_removed(removed) => Err(not_offered()),
                DISCOVER => self.discover().await,
                LISTEN => {
                    let (client, request) = (responder.peer(), responder.id());
                    self.listening(closing).run(&said.request, client, request).await
                }
                asking if modern::may_ask(asking) => {
                    talk.in_rounds(asking, params, said, responder.peer()).await
                }
                other => self.answer(self.lone_caller(), other, params.as_ref(), None).await,
            }
        };
        match answered.await {
            Ok(answer) => {
                let info = self.server_info();
                let stamp = Stamp { method: &method, server_info: &info };
                let stamped = |out: &mut String| {
                    let start = out.len();
                    answer.write(out);
                    stamp.put(out, start);
                };
                responder.result(stamped).await;
            }
            Err(mut error) => {
                if error.code == RESOURCE_NOT_FOUND {
                    error.code = INVALID_PARAMS;
                }
                responder.error(&error).await;
            }
        }
    }

    /// A call goes on until it is done or asks its client something.
    async fn in_rounds(
        self: Arc<Conversation>,
        method: &str,
        params: Option<Raw>,
        said: Said,
        client: &Peer,
    ) -> Result<Answer, RpcError> {
        let Said { abilities, level, about, progress_token, mut request, state, answers } = said;
        // What it asks for is as much what it calls.
        request.insert("method", Value::from(method));
        let rounds = match state {
            Some(state) => self.parking.resume(&state, &request, answers)?,
            None => {
                let (talk, method) = (Arc::clone(&self), method.to_owned());
                Rounds::begin(request, answers, |Mouth { words, steps }| {
                    let host = talk.host.within(words, abilities, level);
                    let caller = talk.lone_caller().with_host(Arc::new(host)).with_meta(about);
                    let caller = caller.with_progress(Some(steps));
                    Box::pin(
                        async move { talk.answer(caller, &method, params.as_ref(), None).await },
                    )
                })
            }
        };
        match rounds.go_on(client, progress_token.as_ref()).await {
            Turn::Done(outcome) => outcome,
            Turn::Asks(rounds) => self.parking.park(rounds),
        }
    }

    /// The parameters of a call that have to stand in its headers, too: names, and what they say.
    pub(crate) fn mirrored(&self, tool: &str, args: &Map<String, Value>) -> Vec<(String, String)> {
        let gateway = self.session.gateway();
        let catalog = gateway.catalog();
        let target = match self.mirror.as_ref().map(Mirror::server) {
            Some(server) => server.and_then(|server| catalog.own_tool(server, tool)),
            None if tool == tool_card::NAME => None,
            None => {
                let target = self.direct.target(gateway, tool).ok();
                target.and_then(|id| catalog.own_tool(&id.server, id.tool.as_str()))
            }
        };
        let named = target.filter(|target| target.entry.input_schema().contains("x-mcp-header"));
        let found = named.and_then(|target| mirrored(&target.entry.input_value(), args).ok());
        found.unwrap_or_default()
    }

    fn lone_caller(&self) -> Caller {
        match self.scope {
            Scope::Client => self.session.caller(),
            Scope::Request => self.session.lone_caller(),
        }
    }

    fn listening(&self, closing: CancellationToken) -> Listening {
        Listening {
            session: Arc::clone(&self.session),
            bulletin: self.host.bulletin().clone(),
            direct: Arc::clone(&self.direct),
            manner: if self.is_mirror() { Manner::Verbatim } else { Manner::OneOfMany },
            closing,
        }
    }

    async fn discover(&self) -> Result<Answer, RpcError> {
        let mut discovered = match &self.mirror {
            None => proxy::offer(),
            Some(mirror) => mirror.offer(&self.session).await?,
        };
        discovered.insert("supportedVersions".to_owned(), json!(modern::revisions()));
        Ok(Answer::json(Value::Object(discovered).to_string()))
    }

    /// Who answers, as JSON.
    fn server_info(&self) -> String {
        let theirs = self.mirror.as_ref().and_then(Mirror::server_info);
        theirs.unwrap_or_else(proxy::server_info)
    }
}

fn shown(offer: &Offer) -> (Manner, Option<Mirror>) {
    match offer {
        Offer::Proxy | Offer::Direct => (Manner::OneOfMany, None),
        Offer::Mirror(server) => (Manner::Verbatim, Some(Mirror::of(server))),
    }
}

fn not_offered() -> RpcError {
    RpcError::new(METHOD_NOT_FOUND, "this method is not offered")
}
