//! State shared by the requests of one client, or of all stateless HTTP clients, and how each
//! request is answered.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value, json};
use switchboard::content::Spacing;
use switchboard::exact::Args;
use switchboard::host_profile::{HostProfile, UNKNOWN};
use switchboard::schema::mirrored;
use switchboard::tool_card::{self, Cards};
use switchboard::{Caller, Gateway, Session};
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::modern::{DISCOVER, LISTEN};
use switchboard_wire::{Peer, Raw, Responder, RpcError};
use tokio_util::sync::CancellationToken;

use crate::answer::{McpResult, ResultStyle};
use crate::direct::Direct;
use crate::granular;
use crate::host::ClientHost;
use crate::listen;
use crate::mirror::Mirror;
use crate::modern::{self, ModernRequest};
use crate::pace::Room;
use crate::params::{initialize_result, unsupported_method};
use crate::proxy;
use crate::question::Manner;
use crate::rounds::{Parking, Rounds, Turn};
use crate::service::{HostKind, Offer};

/// Error code of session-based servers for a resource that does not exist.
const RESOURCE_NOT_FOUND: i64 = -32002;

/// The state of one client, or of all stateless HTTP clients together.
pub(crate) struct Conversation {
    pub(crate) session: Arc<Session>,
    pub(crate) host: ClientHost,
    face: Face,
    /// The parked calls: each waits for input from its client.
    parking: Parking,
    pub(crate) style: ResultStyle,
    offer: Offer,
    clients: Clients,
    /// The instructions for a single client, which do not change after its first request.
    instructions: OnceLock<String>,
}

/// How many clients share the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clients {
    One,
    /// All stateless HTTP clients, which are indistinguishable.
    Many,
}

/// The host's profile and the tool cards that a client gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    pub(crate) profile: &'static HostProfile,
    pub(crate) cards: Cards,
}

/// The tools that clients get: the toolset of the conversation.
enum Face {
    /// The `mcp` tool for all servers, and the direct tools.
    Proxy(Arc<Direct>),
    /// The granular tools for all servers.
    Granular,
    /// One server under its own names, passed through unchanged.
    Mirror(Mirror),
}

impl Face {
    fn of(offer: &Offer, gateway: &Gateway) -> Face {
        match offer {
            Offer::Auto | Offer::Proxy | Offer::Pair | Offer::Direct => {
                Face::Proxy(Arc::new(Direct::new(gateway, offer)))
            }
            Offer::Granular => Face::Granular,
            Offer::Mirror(server) => Face::Mirror(Mirror::of(server)),
        }
    }

    fn manner(&self) -> Manner {
        match self {
            Face::Proxy(_) | Face::Granular => Manner::OneOfMany,
            Face::Mirror(_) => Manner::Verbatim,
        }
    }

    /// Whether white space is removed from JSON in results. The results of the granular tools are
    /// specified exactly, so their white space is preserved.
    fn spacing(&self) -> Spacing {
        match self {
            Face::Proxy(_) => Spacing::Compact,
            Face::Granular | Face::Mirror(_) => Spacing::AsWritten,
        }
    }
}

impl Conversation {
    /// A conversation with the client of one connection.
    pub(crate) fn with_client(
        gateway: &Gateway,
        (offer, kind): (&Offer, HostKind),
        client: &Peer,
    ) -> Conversation {
        let style = match kind {
            HostKind::Any | HostKind::Named(_) => ResultStyle::Plain,
            HostKind::Pi => ResultStyle::Pi,
        };
        let face = Face::of(offer, gateway);
        let host = ClientHost::new(client.clone(), face.manner(), face.spacing());
        kind.profile().into_iter().for_each(|profile| host.set_profile(profile));
        let session = match face.manner() {
            Manner::OneOfMany => gateway.session(host.clone()),
            Manner::Verbatim => gateway.private_session(host.clone()),
        };
        let (session, parking) = (Arc::new(session), Parking::default());
        let (offer, clients, instructions) = (offer.clone(), Clients::One, OnceLock::new());
        Conversation { session, host, face, parking, style, offer, clients, instructions }
    }

    /// A conversation with all stateless HTTP clients. Each request declares the capabilities of
    /// its client.
    pub(crate) fn with_stateless_clients(gateway: &Gateway, offer: &Offer) -> Conversation {
        let face = Face::of(offer, gateway);
        let host = ClientHost::common(face.manner(), face.spacing());
        let session = match face.manner() {
            Manner::OneOfMany => gateway.common_session(host.clone()),
            Manner::Verbatim => gateway.private_session(host.clone()),
        };
        let (session, parking) = (Arc::new(session), Parking::default());
        let (offer, clients, instructions) = (offer.clone(), Clients::Many, OnceLock::new());
        let style = ResultStyle::Plain;
        Conversation { session, host, face, parking, style, offer, clients, instructions }
    }

    /// The profile and tool cards for a client. `client` is the name in its `clientInfo`, if it is
    /// stateless. For a single client, the first profile is permanent: a tool that was declared
    /// read-only must remain so.
    fn view(&self, client: Option<&str>) -> View {
        let named = client.map(HostProfile::of_client);
        let profile = match self.clients {
            Clients::One => {
                named.into_iter().for_each(|profile| self.host.set_profile(profile));
                self.host.profile()
            }
            Clients::Many => named.unwrap_or(&UNKNOWN),
        };
        let cards = match (&self.offer, self.clients) {
            (Offer::Pair, _) => Cards::Pair,
            (Offer::Auto | Offer::Direct, Clients::One) if profile.wants_pair() => Cards::Pair,
            (
                Offer::Auto | Offer::Direct | Offer::Proxy | Offer::Granular | Offer::Mirror(_),
                _,
            ) => Cards::One,
        };
        View { profile, cards }
    }

    /// The `instructions` for the client; `None` unless the toolset has the `mcp` tool.
    fn instructions(&self, view: View) -> Option<Cow<'_, str>> {
        let Face::Proxy(_) = &self.face else { return None };
        let made = || self.session.introduction(view.profile);
        Some(match self.clients {
            Clients::One => Cow::Borrowed(self.instructions.get_or_init(made)),
            Clients::Many => Cow::Owned(made()),
        })
    }

    /// The result of `initialize` for this client.
    fn offered(&self, view: View) -> Map<String, Value> {
        proxy::offer(&self.session, view, self.instructions(view).as_deref())
    }

    /// The direct tools, if the toolset has any.
    pub(crate) fn direct(&self) -> Option<&Arc<Direct>> {
        match &self.face {
            Face::Proxy(direct) => Some(direct),
            Face::Granular | Face::Mirror(_) => None,
        }
    }

    pub(crate) fn mirror(&self) -> Option<&Mirror> {
        match &self.face {
            Face::Mirror(mirror) => Some(mirror),
            Face::Proxy(_) | Face::Granular => None,
        }
    }

    /// Drops all parked calls, because the client has disconnected.
    pub(crate) fn end(&self) {
        self.parking.clear();
    }

    /// The caller of a session-based request. Over HTTP, server-to-client requests during the
    /// request use its response stream.
    pub(crate) fn caller(&self, responder: &Responder) -> Caller {
        let caller = self.session.caller();
        match responder.exchange() {
            None => caller,
            Some(_) => caller.with_host(Arc::new(self.host.at(responder.peer()))),
        }
    }

    /// Answers a request of a client that opened with `initialize`.
    pub(crate) async fn answer_legacy(
        &self,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
        client: &Peer,
    ) -> Result<McpResult, RpcError> {
        let view = self.view(None);
        let answer = self.answer(caller, view, method, params, Some(client)).await;
        match self.mirror() {
            Some(mirror) if mirror.is_modern() => for_legacy_client(method, answer),
            Some(_) | None => answer,
        }
    }

    /// Answers a request. Progress is sent to `progress`, unless the caller already handles it.
    pub(crate) async fn answer(
        &self,
        caller: Caller,
        view: View,
        method: &str,
        params: Option<&Raw>,
        progress: Option<&Peer>,
    ) -> Result<McpResult, RpcError> {
        let session = &*self.session;
        match (&self.face, method) {
            (Face::Proxy(_) | Face::Granular, "initialize") => {
                let offered = self.offered(view);
                Ok(McpResult::Json(initialize_result(offered, proxy::server_info(), params)))
            }
            (Face::Proxy(direct), method) => {
                proxy::answer(session, (direct, view), caller, method, params, progress).await
            }
            (Face::Granular, "tools/list") => Ok(granular::list()),
            (Face::Granular, "tools/call") => {
                Box::pin(granular::call(session, caller, params, progress)).await
            }
            (Face::Granular, method) => {
                Box::pin(proxy::answer_method(session, caller, method, params)).await
            }
            (Face::Mirror(mirror), method) => {
                Box::pin(mirror.answer(session, caller, method, params, progress)).await
            }
        }
    }

    /// Answers a request of a stateless client.
    pub(crate) async fn answer_modern(
        self: Arc<Conversation>,
        method: String,
        params: Option<Raw>,
        responder: Responder,
        (closing, room): (CancellationToken, Option<Room>),
    ) {
        let talk = Arc::clone(&self);
        let answered = async {
            let parsed = ModernRequest::read(params.as_ref())?;
            self.host.declare(&parsed.abilities);
            self.session.gateway().declare(&parsed.abilities);
            let view = self.view(parsed.client.as_deref());
            match method.as_str() {
                removed if modern::REMOVED.contains(&removed) => Err(unsupported_method()),
                DISCOVER => self.discover(view).await,
                LISTEN => {
                    let (client, request) = (responder.peer(), responder.id());
                    listen::run(&self, closing, &parsed.request, (client, request)).await
                }
                asking if modern::MAY_REQUEST_INPUT.contains(&asking) => {
                    talk.in_rounds((asking, params), parsed, view, responder.peer()).await
                }
                other => {
                    let caller = self.session.lone_caller();
                    self.answer(caller, view, other, params.as_ref(), None).await
                }
            }
        };
        match answered.await {
            Ok(answer) => {
                let info = self.mirror().and_then(Mirror::server_info);
                let info = info.unwrap_or_else(proxy::server_info);
                let stamped = |out: &mut String| {
                    let start = out.len();
                    answer.write(out, self.style);
                    modern::stamp(out, start, &method, &info);
                    if let Some(room) = &room {
                        room.answered(out.len().max(answer.source_bytes()));
                    }
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

    /// Runs a call until it has a result or requires input from its client.
    async fn in_rounds(
        self: Arc<Conversation>,
        (method, params): (&str, Option<Raw>),
        parsed: ModernRequest,
        view: View,
        client: &Peer,
    ) -> Result<McpResult, RpcError> {
        let ModernRequest {
            abilities,
            level,
            about,
            progress_token,
            mut request,
            state,
            answers,
            ..
        } = parsed;
        // The client must repeat the method when it continues the call.
        request.insert("method", Value::from(method));
        let rounds = match state {
            Some(state) => self.parking.resume(&state, &request, answers)?,
            None => {
                let (talk, method) = (Arc::clone(&self), method.to_owned());
                Rounds::begin(request, answers, |words, steps| {
                    let host = Arc::new(talk.host.within(words, abilities, level, view.profile));
                    let under_way = talk.host.begin(&host);
                    let caller = talk.session.lone_caller().with_host(host).with_meta(about);
                    let caller = caller.with_progress(Some(steps));
                    Box::pin(async move {
                        let _until_answered = under_way;
                        talk.answer(caller, view, &method, params.as_ref(), None).await
                    })
                })
            }
        };
        match rounds.go_on(client, progress_token.as_ref()).await {
            Turn::Done(outcome) => outcome,
            Turn::Asks(rounds) => self.parking.park(rounds),
        }
    }

    /// The names and values of the arguments that HTTP headers must repeat (`x-mcp-header`).
    pub(crate) fn mirrored(&self, tool: &str, args: &Map<String, Value>) -> Vec<(String, String)> {
        let gateway = self.session.gateway();
        let catalog = gateway.catalog();
        let target = match &self.face {
            Face::Mirror(mirror) => mirror.server().and_then(|own| catalog.own_tool(own, tool)),
            Face::Proxy(direct) if ![tool_card::NAME, tool_card::WRITE_NAME].contains(&tool) => {
                let target = direct.target(gateway, tool).ok();
                target.and_then(|shown| catalog.own_tool(&shown.id.server, shown.id.tool.as_str()))
            }
            Face::Proxy(_) | Face::Granular => None,
        };
        let named = target.filter(|target| target.entry.input_schema().contains("x-mcp-header"));
        let found = named.and_then(|target| mirrored(&target.entry.input_value(), args).ok());
        found.unwrap_or_default()
    }

    async fn discover(&self, view: View) -> Result<McpResult, RpcError> {
        let mut discovered = match self.mirror() {
            None => self.offered(view),
            Some(mirror) => mirror.offer(&self.session).await?,
        };
        discovered.insert("supportedVersions".to_owned(), json!(modern::revisions()));
        Ok(McpResult::json(Value::Object(discovered).to_string()))
    }
}

/// Translates the result of a stateless server for a session-based client.
fn for_legacy_client(
    method: &str,
    answer: Result<McpResult, RpcError>,
) -> Result<McpResult, RpcError> {
    match answer {
        Ok(McpResult::Json(json)) => {
            let Ok(mut result) = Args::parse(json.as_str()) else {
                return Ok(McpResult::Json(json));
            };
            for member in ["resultType", "ttlMs", "cacheScope"] {
                drop(result.take(member));
            }
            Ok(McpResult::json(result.to_string()))
        }
        Err(error) if method == "resources/read" && error.code == INVALID_PARAMS => {
            Err(RpcError { code: RESOURCE_NOT_FOUND, ..error })
        }
        other => other,
    }
}
