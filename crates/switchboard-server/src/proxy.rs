//! The proxy face: the tool `mcp` for all servers, and the direct tools. Translates MCP methods
//! into requests of a session; makes no decisions.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard::approval::Access;
use switchboard::config::values::Advertise;
use switchboard::failure::{Code, Failure};
use switchboard::relay::{Lookup, Reference};
use switchboard::reply::Reply;
use switchboard::request::{self, Arguments, CallRequest, Request};
use switchboard::tool_card::{self, Cards};
use switchboard::{Caller, Session, explain};
use switchboard_wire::{Peer, Raw, RpcError};

use crate::answer::{self, McpResult, as_the_server_said};
use crate::conversation::View;
use crate::direct::{Direct, ListedTool};
use crate::params::{
    LevelParams, NamedParams, Passed, RequestMeta, UriParams, read, unsupported_method,
    with_progress,
};

/// Answers a request. Progress is sent to `progress`.
pub(crate) async fn answer(
    session: &Session,
    (direct, view): (&Direct, View),
    caller: Caller,
    method: &str,
    params: Option<&Raw>,
    progress: Option<&Peer>,
) -> Result<McpResult, RpcError> {
    match method {
        "tools/call" => call_tool(session, (direct, view), caller, params, progress).await,
        "tools/list" => Ok(McpResult::Json(direct.list(session.gateway(), view))),
        _ => Box::pin(answer_method(session, caller, method, params)).await,
    }
}

/// Answers a request of any method that is not about tools.
pub(crate) async fn answer_method(
    session: &Session,
    caller: Caller,
    method: &str,
    params: Option<&Raw>,
) -> Result<McpResult, RpcError> {
    match method {
        "prompts/list" => {
            let catalog = session.gateway().catalog();
            let rows: Vec<String> = catalog.prompts().map(|item| item.definition()).collect();
            Ok(McpResult::Json(answer::list("prompts", &rows)))
        }
        "prompts/get" => {
            let named: NamedParams<'_> = read(params)?;
            let args = named.arguments.unwrap_or_default();
            let request = Request::Prompt { name: named.name.into_owned(), server: None, args };
            ask(session, caller, request).await.map(answer::raw)
        }
        "resources/list" => {
            let rows = session.gateway().catalog().resource_definitions();
            Ok(McpResult::Json(answer::list("resources", &rows)))
        }
        "resources/templates/list" => {
            let rows = session.gateway().catalog().template_definitions();
            Ok(McpResult::Json(answer::list("resourceTemplates", &rows)))
        }
        "resources/subscribe" | "resources/unsubscribe" => {
            let located: UriParams<'_> = read(params)?;
            let done = if method == "resources/subscribe" {
                session.subscribe(&located.uri).await
            } else {
                session.unsubscribe(&located.uri, &caller).await
            };
            done.map(|()| McpResult::json("{}")).map_err(|failure| answer::protocol_error(&failure))
        }
        "completion/complete" => complete(session, &caller, params).await,
        "logging/setLevel" => {
            let LevelParams { level } = read(params)?;
            session.set_log_level(level, &caller).await;
            Ok(McpResult::json("{}"))
        }
        "resources/read" => {
            let located: UriParams<'_> = read(params)?;
            let request = Request::ReadResource { uri: located.uri.into_owned(), server: None };
            ask(session, caller, request).await.map(answer::raw)
        }
        _ => Err(unsupported_method()),
    }
}

/// Forwards a completion to the server that owns the prompt or resource template.
async fn complete(
    session: &Session,
    caller: &Caller,
    params: Option<&Raw>,
) -> Result<McpResult, RpcError> {
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
    let (server, name) = session.owner(&reference).map_err(failed)?;
    let Passed { mut params, .. } = Passed::read(params)?;
    let named = match reference {
        Reference::Prompt(_) => json!({ "type": "ref/prompt", "name": name }),
        Reference::Resource(_) => json!({ "type": "ref/resource", "uri": name }),
    };
    params.insert("ref", named);
    let answer = session.look_up(&server, Lookup::Completion, params, caller).await;
    answer.map(McpResult::Json).map_err(failed)
}

async fn ask(session: &Session, caller: Caller, request: Request) -> Result<Reply, RpcError> {
    session.handle_as(request, caller).await.map_err(|failure| answer::protocol_error(&failure))
}

/// The capabilities and instructions for a host. `mcp` reads resources too, so the resources
/// capability is not offered to hosts that would add tools of their own for it.
pub(crate) fn offer(
    session: &Session,
    view: View,
    instructions: Option<&str>,
) -> Map<String, Value> {
    let mut capabilities = json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    });
    let resources = match session.gateway().settings().advertise_resources {
        Advertise::Auto => view.profile.resource_tools.is_none(),
        Advertise::On => true,
        Advertise::Off => false,
    };
    if resources {
        capabilities["resources"] = json!({ "listChanged": true, "subscribe": true });
    }
    let instructions = instructions.map(|text| ("instructions".to_owned(), Value::from(text)));
    [("capabilities".to_owned(), capabilities)].into_iter().chain(instructions).collect()
}

/// The gateway's own `serverInfo`.
pub(crate) fn server_info() -> Value {
    json!({
        "name": "switchboard",
        "title": "Switchboard",
        "version": env!("CARGO_PKG_VERSION"),
    })
}

/// Calls `mcp` or a direct tool. A failure becomes a result that the model can read.
async fn call_tool(
    session: &Session,
    (direct, view): (&Direct, View),
    mut caller: Caller,
    params: Option<&Raw>,
    progress: Option<&Peer>,
) -> Result<McpResult, RpcError> {
    #[derive(Deserialize)]
    struct ToolCallParams<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default)]
        arguments: Arguments,
        #[serde(default, rename = "_meta")]
        meta: Option<RequestMeta>,
    }
    let call: ToolCallParams<'_> = read(params)?;
    let ours = match (view.cards, &*call.name) {
        (_, tool_card::NAME) => true,
        (Cards::Pair, tool_card::WRITE_NAME) => true,
        (Cards::One | Cards::Pair, _) => false,
    };
    let mut access = match view.cards {
        Cards::Pair if call.name == tool_card::NAME => Access::ReadOnly,
        Cards::One | Cards::Pair => Access::Full,
    };
    let (request, note) = if ours {
        match request::parse(call.arguments) {
            Ok(parsed) => (parsed.request, answer::note(&parsed.ignored)),
            Err(error) => return Ok(McpResult::Failure(explain::request_error(error))),
        }
    } else {
        let ListedTool { id: target, access: shown } =
            direct.target(session.gateway(), &call.name)?;
        access = shown;
        let args = Passed::read(params)?.arguments()?;
        let (tool, server) = (target.tool.to_string(), Some(target.server.to_string()));
        (Request::Call(CallRequest::new(tool, server, args)), None)
    };
    if access == Access::ReadOnly {
        caller = caller.read_only();
    }
    let form = caller.result_form();
    let token = call.meta.and_then(|meta| meta.progress_token);
    let call = |caller| session.handle_as(request, caller);
    let outcome = with_progress(caller, call, token.as_ref().zip(progress)).await;
    if let Ok(Reply::Found(page)) = &outcome {
        direct.add_found_tools(session.gateway(), page);
    }
    let failure = match outcome {
        Ok(Reply::Output(output)) => return Ok(McpResult::Output(output, note)),
        Ok(reply) => return Ok(Box::pin(answer::text(session, &reply, note, form)).await),
        Err(failure) => failure,
    };
    let failure = if !ours && failure.code == Code::NotReadOnly {
        explain::no_longer_read_only(failure)
    } else if access == Access::ReadOnly {
        // A sign-in changes state, so no sign-in starts for a read-only caller.
        failure
    } else {
        session.offering_sign_in(failure).await
    };
    Ok(Box::pin(answer::wrong(session, failure, form)).await)
}
