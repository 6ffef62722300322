//! One server under its own names: every method is forwarded, and calls pass the same gate as with
//! the other toolsets.

use std::sync::OnceLock;

use serde_json::{Map, Value, json};
use switchboard::failure::Code;
use switchboard::name::ServerName;
use switchboard::relay::{Foreign, Lookup};
use switchboard::{Caller, Session};
use switchboard_wire::envelope::{INTERNAL_ERROR, METHOD_NOT_FOUND};
use switchboard_wire::modern::{REVISION, meta};
use switchboard_wire::{Peer, Raw, RpcError};

use crate::answer::{self, McpResult, as_the_server_said};
use crate::params::{Passed, initialize_result, with_progress};

/// The mirrored server of a client.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// The name of the server as the user wrote it.
    wanted: String,
    /// The mirrored server; set once the server is connected.
    shown: OnceLock<MirroredServer>,
}

/// The connected server and its `initialize` result.
#[derive(Debug)]
struct MirroredServer {
    server: ServerName,
    info: Value,
    hello: Map<String, Value>,
}

impl Mirror {
    pub(crate) fn of(server: &str) -> Mirror {
        Mirror { wanted: server.to_owned(), shown: OnceLock::new() }
    }

    /// Answers a request. Progress is sent to `progress`.
    pub(crate) async fn answer(
        &self,
        session: &Session,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
        progress: Option<&Peer>,
    ) -> Result<McpResult, RpcError> {
        if method == "initialize" {
            let shown = self.shown(session).await?;
            let result = initialize_result(shown.offer(), shown.info.clone(), params);
            return Ok(McpResult::Json(result));
        }
        let (server, passed) = (&self.shown(session).await?.server, Passed::read(params)?);
        let token = passed.progress_token.clone();
        let ask = |caller| pass_on(session, server, method, passed, caller);
        with_progress(caller, ask, token.as_ref().zip(progress)).await
    }

    /// The server's `initialize` result as the client gets it: with the forwarded capabilities
    /// only.
    pub(crate) async fn offer(&self, session: &Session) -> Result<Map<String, Value>, RpcError> {
        Ok(self.shown(session).await?.offer())
    }

    /// The server's name; `None` until it is connected.
    pub(crate) fn server(&self) -> Option<&ServerName> {
        self.shown.get().map(|shown| &shown.server)
    }

    /// Whether the connected server uses the stateless revision.
    pub(crate) fn is_modern(&self) -> bool {
        let revision = self.shown.get().and_then(|shown| shown.hello.get("protocolVersion"));
        revision.is_some_and(|revision| *revision == REVISION)
    }

    /// The server's own `serverInfo`; `None` until it is connected.
    pub(crate) fn server_info(&self) -> Option<Value> {
        Some(self.shown.get()?.info.clone())
    }

    /// The mirrored server; connects it if necessary.
    async fn shown(&self, session: &Session) -> Result<&MirroredServer, RpcError> {
        if let Some(shown) = self.shown.get() {
            return Ok(shown);
        }
        let opened = session.open(&self.wanted).await;
        let (server, hello) = opened.map_err(|failure| answer::protocol_error(&failure))?;
        let malformed =
            |_| RpcError::new(INTERNAL_ERROR, "the server's `initialize` result is malformed");
        let mut hello: Map<String, Value> = hello.parse().map_err(malformed)?;
        let info = hello.remove("serverInfo").unwrap_or_else(|| json!({ "name": self.wanted }));
        Ok(self.shown.get_or_init(|| MirroredServer { server, info, hello }))
    }
}

impl MirroredServer {
    fn offer(&self) -> Map<String, Value> {
        let mut offer = self.hello.clone();
        offer.remove("protocolVersion");
        if let Some(capabilities) = offer.get_mut("capabilities").and_then(Value::as_object_mut) {
            capabilities.retain(|capability, _| FORWARDED.contains(&capability.as_str()));
        }
        offer
    }
}

/// The server's capabilities whose methods and notifications are forwarded to the client.
const FORWARDED: [&str; 6] =
    ["tools", "resources", "prompts", "completions", "logging", "experimental"];

async fn pass_on(
    session: &Session,
    server: &ServerName,
    method: &str,
    mut passed: Passed,
    caller: Caller,
) -> Result<McpResult, RpcError> {
    let mut about = std::mem::take(&mut passed.meta);
    // These members of `_meta` describe the client's connection, not ours to the server.
    for ours in [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES] {
        about.take(ours);
    }
    let caller = &caller.with_meta(about);
    let answer = match method {
        "tools/call" => {
            let (name, args) = (passed.text("name")?, passed.arguments()?);
            return match session.call_by_own_name(server, &name, args, caller).await {
                Ok(answer) => Ok(McpResult::Json(answer)),
                Err(failure) if failure.code == Code::UnknownTool => {
                    Err(answer::protocol_error(&failure))
                }
                Err(failure) => match answer::servers_own_error(&failure) {
                    Some(error) => Err(error),
                    None => Ok(McpResult::Failure(failure)),
                },
            };
        }
        "resources/read" => session.read_by_uri(server, &passed.text("uri")?, caller).await,
        "prompts/get" => {
            let (name, args) = (passed.text("name")?, passed.arguments()?);
            session.prompt_by_own_name(server, &name, args, caller).await
        }
        _ => match (Lookup::of_method(method), Foreign::method(method)) {
            (Some(lookup), _) => session.look_up(server, lookup, passed.params, caller).await,
            (None, Some(foreign)) => {
                session.ask_foreign(server, foreign, passed.params, caller).await
            }
            (None, None) => {
                return Err(RpcError::new(METHOD_NOT_FOUND, "this method is not forwarded"));
            }
        },
    };
    answer.map(McpResult::Json).map_err(|failure| as_the_server_said(&failure))
}
