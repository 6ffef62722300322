//! One server as it is, under its own names: every method is passed through, and what runs
//! something still passes the same gate as everywhere.

use std::sync::OnceLock;

use serde_json::{Map, Value};
use switchboard::failure::Code;
use switchboard::name::ServerName;
use switchboard::relay::Lookup;
use switchboard::{Caller, Session};
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::{Raw, Responder, RpcError};

use crate::answer::{self, as_the_server_said};
use crate::params::{Located, Named, agreed_revision, read, with_progress, without_token};

/// What a client of one server needs to know of it.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// As the user wrote it.
    wanted: String,
    /// Set once the server is connected.
    server: OnceLock<ServerName>,
}

impl Mirror {
    pub(crate) fn of(server: &str) -> Mirror {
        Mirror { wanted: server.to_owned(), server: OnceLock::new() }
    }

    pub(crate) async fn respond(
        &self,
        session: &Session,
        caller: Caller,
        method: &str,
        params: Option<Raw>,
        responder: Responder,
    ) {
        if method == "tools/call" {
            return self.call_tool(session, caller, params, responder).await;
        }
        match self.answer(session, caller, method, params.as_ref()).await {
            Ok(answer) => responder.result(|out| out.push_str(answer.as_str())).await,
            Err(error) => responder.error(&error).await,
        }
    }

    async fn answer(
        &self,
        session: &Session,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
    ) -> Result<Raw, RpcError> {
        match method {
            "initialize" => return self.initialize(session, params).await,
            "ping" => return Ok(Raw::from_json("{}".to_owned())),
            _ => {}
        }
        let server = self.server()?;
        let answer = match method {
            "resources/read" => {
                let located: Located<'_> = read(params)?;
                session.read_by_uri(server, &located.uri, &caller).await
            }
            "prompts/get" => {
                let named: Named<'_> = read(params)?;
                let args = named.arguments.unwrap_or_default();
                session.prompt_by_own_name(server, &named.name, args, &caller).await
            }
            _ => {
                let Some(lookup) = Lookup::of_method(method) else {
                    return Err(RpcError::new(METHOD_NOT_FOUND, "this method is not passed on"));
                };
                session.look_up(server, lookup, without_token(params)?, &caller).await
            }
        };
        answer.map_err(|failure| as_the_server_said(&failure))
    }

    /// Connects the server for this client alone, as what this client is.
    async fn initialize(&self, session: &Session, params: Option<&Raw>) -> Result<Raw, RpcError> {
        let opened = session.open(&self.wanted).await;
        let (server, hello) = opened.map_err(|failure| answer::protocol_error(&failure))?;
        let _connected_before = self.server.set(server);
        let malformed = |_| RpcError::new(INTERNAL_ERROR, "the server's greeting does not read");
        let mut hello: Map<String, Value> = hello.parse().map_err(malformed)?;
        let revision = agreed_revision(params);
        hello.insert("protocolVersion".to_owned(), Value::from(revision.as_str()));
        if let Some(capabilities) = hello.get_mut("capabilities").and_then(Value::as_object_mut) {
            capabilities.retain(|capability, _| PASSED_ON.contains(&capability.as_str()));
        }
        Ok(Raw::from_json(Value::Object(hello).to_string()))
    }

    async fn call_tool(
        &self,
        session: &Session,
        caller: Caller,
        params: Option<Raw>,
        responder: Responder,
    ) {
        let parsed = read::<Named<'_>>(params.as_ref()).and_then(|call| Ok((self.server()?, call)));
        let (server, call) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return responder.error(&error).await,
        };
        let args = call.arguments.unwrap_or_default();
        let run = async |caller: Caller| {
            session.call_by_own_name(server, &call.name, args, &caller).await
        };
        let outcome = match call.meta.and_then(|meta| meta.progress_token) {
            None => run(caller).await,
            Some(token) => with_progress(caller, run, token, responder.peer()).await,
        };
        match outcome {
            Ok(answer) => responder.result(|out| out.push_str(answer.as_str())).await,
            Err(failure) if failure.code == Code::UnknownTool => {
                responder.error(&answer::protocol_error(&failure)).await;
            }
            Err(failure) => match answer::servers_own_error(&failure) {
                Some(error) => responder.error(error).await,
                None => responder.result(|out| answer::failure(out, &failure)).await,
            },
        }
    }

    fn server(&self) -> Result<&ServerName, RpcError> {
        let uninitialized = || RpcError::new(INVALID_PARAMS, "`initialize` comes first");
        self.server.get().ok_or_else(uninitialized)
    }
}

/// Capabilities whose methods and notifications are passed on.
const PASSED_ON: [&str; 6] =
    ["tools", "resources", "prompts", "completions", "logging", "experimental"];
