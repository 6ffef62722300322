//! All servers behind the one tool: MCP methods as requests of a session. Reads, translates,
//! answers; decides nothing.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::json;
use switchboard::failure::Failure;
use switchboard::relay::{Lookup, Reference};
use switchboard::reply::Reply;
use switchboard::request::{self, Arguments, Request};
use switchboard::{Caller, Session, explain, tool_card};
use switchboard_wire::envelope::{INVALID_PARAMS, METHOD_NOT_FOUND};
use switchboard_wire::{Raw, Responder, RpcError};

use crate::answer::{self, as_the_server_said};
use crate::levels::Levelled;
use crate::params::{Located, Meta, Named, agreed_revision, read, with_progress, without_token};

pub(crate) async fn respond(
    session: &Session,
    caller: Caller,
    method: &str,
    params: Option<Raw>,
    responder: Responder,
) {
    if method == "tools/call" {
        return call_tool(session, caller, params, responder).await;
    }
    match Box::pin(answer_method(session, caller, method, params.as_ref())).await {
        Ok(result) => responder.result(|out| out.push_str(&result)).await,
        Err(error) => responder.error(&error).await,
    }
}

async fn answer_method(
    session: &Session,
    caller: Caller,
    method: &str,
    params: Option<&Raw>,
) -> Result<String, RpcError> {
    match method {
        "initialize" => Ok(initialize(params)),
        "ping" => Ok("{}".to_owned()),
        "tools/list" => Ok(format!("{{\"tools\":[{}]}}", tool_card::definition())),
        "prompts/list" => {
            let catalog = session.gateway().catalog();
            let rows = catalog.offered().flat_map(|listing| &listing.prompts);
            Ok(answer::list("prompts", rows.map(|prompt| &*prompt.raw)))
        }
        "prompts/get" => {
            let named: Named<'_> = read(params)?;
            let args = named.arguments.unwrap_or_default();
            let request = Request::Prompt { name: named.name.into_owned(), server: None, args };
            ask(session, caller, request).await.map(answer::raw)
        }
        "resources/list" => {
            let catalog = session.gateway().catalog();
            let rows = catalog.offered().flat_map(|listing| &listing.resources);
            Ok(answer::list("resources", rows.map(|resource| &*resource.raw)))
        }
        "resources/templates/list" => {
            let catalog = session.gateway().catalog();
            let rows = catalog.offered().flat_map(|listing| &listing.templates);
            Ok(answer::list("resourceTemplates", rows.map(|template| &*template.raw)))
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let located: Located<'_> = read(params)?;
            let done = if method == "resources/subscribe" {
                session.subscribe(&located.uri).await
            } else {
                session.unsubscribe(&located.uri, &caller).await
            };
            done.map(|()| "{}".to_owned()).map_err(|failure| answer::protocol_error(&failure))
        }
        "completion/complete" => complete(session, &caller, params).await,
        "logging/setLevel" => {
            let Levelled { level } = read(params)?;
            session.set_log_level(level, &caller).await;
            Ok("{}".to_owned())
        }
        "resources/read" => {
            let located: Located<'_> = read(params)?;
            let request = Request::ReadResource { uri: located.uri.into_owned(), server: None };
            ask(session, caller, request).await.map(answer::raw)
        }
        _ => Err(RpcError::new(METHOD_NOT_FOUND, "this method is not offered")),
    }
}

/// Asks the server whose prompt or resource template is meant.
async fn complete(
    session: &Session,
    caller: &Caller,
    params: Option<&Raw>,
) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct About<'a> {
        #[serde(borrow, rename = "ref")]
        of: Of<'a>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type")]
    enum Of<'a> {
        #[serde(rename = "ref/prompt")]
        Prompt {
            #[serde(borrow)]
            name: Cow<'a, str>,
        },
        #[serde(rename = "ref/resource")]
        Resource {
            #[serde(borrow)]
            uri: Cow<'a, str>,
        },
    }
    let About { of } = read(params)?;
    let reference = match &of {
        Of::Prompt { name } => Reference::Prompt(name),
        Of::Resource { uri } => Reference::Resource(uri),
    };
    let failed = |failure: Failure| as_the_server_said(&failure);
    let server = session.owner(&reference).map_err(failed)?;
    let params = without_token(params)?;
    let answer = session.look_up(&server, Lookup::Completion, params, caller).await;
    answer.map(Raw::into_string).map_err(failed)
}

async fn ask(session: &Session, caller: Caller, request: Request) -> Result<Reply, RpcError> {
    session.handle_as(request, caller).await.map_err(|failure| answer::protocol_error(&failure))
}

fn initialize(params: Option<&Raw>) -> String {
    json!({
        "protocolVersion": agreed_revision(params).as_str(),
        "capabilities": {
            "tools": {},
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "completions": {},
            "logging": {},
        },
        "serverInfo": {
            "name": "switchboard",
            "title": "Switchboard",
            "version": env!("CARGO_PKG_VERSION"),
        },
    })
    .to_string()
}

/// The one tool. Whatever goes wrong inside it is a result that the model can read.
async fn call_tool(session: &Session, caller: Caller, params: Option<Raw>, responder: Responder) {
    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default)]
        arguments: Arguments,
        #[serde(borrow, default, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    let call: Call<'_> = match read(params.as_ref()) {
        Ok(call) => call,
        Err(error) => return responder.error(&error).await,
    };
    if call.name != tool_card::NAME {
        let message = format!("there is one tool here, `{}`", tool_card::NAME);
        return responder.error(&RpcError::new(INVALID_PARAMS, message)).await;
    }
    let parsed = match request::parse(call.arguments) {
        Ok(parsed) => parsed,
        Err(error) => {
            let failure = explain::request_error(error);
            return responder.result(|out| answer::failure(out, &failure)).await;
        }
    };
    let token = call.meta.and_then(|meta| meta.progress_token);
    let outcome = match token {
        None => session.handle_as(parsed.request, caller).await,
        Some(token) => {
            let call = |caller| session.handle_as(parsed.request, caller);
            Box::pin(with_progress(caller, call, token, responder.peer())).await
        }
    };
    match outcome {
        Ok(reply) => responder.result(|out| answer::reply(out, &reply, &parsed.ignored)).await,
        Err(failure) => responder.result(|out| answer::failure(out, &failure)).await,
    }
}
