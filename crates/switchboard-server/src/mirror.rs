//! One server as it is, under its own names: every method is passed through, and what runs
//! something still passes the same gate as everywhere.

use std::sync::OnceLock;

use serde_json::{Map, Value};
use switchboard::failure::Code;
use switchboard::name::ServerName;
use switchboard::relay::{Foreign, Lookup};
use switchboard::{Caller, Session};
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::{Peer, Raw, RpcError};

use crate::answer::{self, Answer, as_the_server_said};
use crate::params::{Passed, agreed_revision, with_progress};

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

    /// What `client` gets for a request.
    pub(crate) async fn answer(
        &self,
        session: &Session,
        caller: Caller,
        method: &str,
        params: Option<&Raw>,
        client: &Peer,
    ) -> Result<Answer, RpcError> {
        if method == "initialize" {
            return self.initialize(session, params).await.map(Answer::Json);
        }
        let (server, passed) = (self.server()?, Passed::read(params)?);
        let token = passed.progress_token.clone();
        let ask = |caller| pass_on(session, server, method, passed, caller);
        match token {
            None => ask(caller).await,
            Some(token) => with_progress(caller, ask, &token, client).await,
        }
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

    fn server(&self) -> Result<&ServerName, RpcError> {
        let uninitialized = || RpcError::new(INVALID_PARAMS, "`initialize` comes first");
        self.server.get().ok_or_else(uninitialized)
    }
}

/// Capabilities whose methods and notifications are passed on.
const PASSED_ON: [&str; 6] =
    ["tools", "resources", "prompts", "completions", "logging", "experimental"];

async fn pass_on(
    session: &Session,
    server: &ServerName,
    method: &str,
    mut passed: Passed,
    caller: Caller,
) -> Result<Answer, RpcError> {
    let caller = &caller.with_meta(std::mem::take(&mut passed.meta));
    let answer = match method {
        "tools/call" => {
            let (name, args) = (passed.text("name")?, passed.arguments()?);
            return match session.call_by_own_name(server, &name, args, caller).await {
                Ok(answer) => Ok(Answer::Json(answer)),
                Err(failure) if failure.code == Code::UnknownTool => {
                    Err(answer::protocol_error(&failure))
                }
                Err(failure) => match answer::servers_own_error(&failure) {
                    Some(error) => Err(error.clone()),
                    None => Ok(Answer::Failure(failure)),
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
                return Err(RpcError::new(METHOD_NOT_FOUND, "this method is not passed on"));
            }
        },
    };
    answer.map(Answer::Json).map_err(|failure| as_the_server_said(&failure))
}
