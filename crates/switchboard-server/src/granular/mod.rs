//! All servers behind the granular tools, one for each step: `mcp_connect`, `mcp_list_tools`,
//! `mcp_call_tool` and so on. Translates tool calls into requests of a session; makes no decisions.

mod cards;

use serde::Deserialize;
use serde_json::Value;
use switchboard::connection::{ConnectParams, ConnectionRequest};
use switchboard::connections::Existing;
use switchboard::exact::{Args, Exact};
use switchboard::failure::{Code, Failure};
use switchboard::notice::{NoticeFilter, NotificationKind};
use switchboard::render::granular::{self as words, RequestedNames};
use switchboard::render::words::clean_line;
use switchboard::reply::{Output, Reply};
use switchboard::request::{
    CallRequest, DEFAULT_LIMIT, MAX_LIMIT, Matching, PageRequest, Request, SearchRequest,
    Signatures, args_of,
};
use switchboard::{Caller, Session};
use switchboard_wire::{Peer, Raw, RpcError};

use crate::answer::{self, McpResult};
use crate::params::{NamedParams, RequestMeta, invalid_params, read, with_progress};
use cards::{CARDS, Card, Tool};

/// The successful result of a granular tool.
enum ToolOutcome {
    Text(String),
    Output(Box<Output>),
}

/// The error result of a granular tool.
struct ToolError {
    text: String,
    code: Code,
}

pub(crate) fn list() -> McpResult {
    McpResult::Json(answer::list("tools", &definitions()))
}

pub(crate) fn definitions() -> Vec<String> {
    CARDS.iter().map(Card::definition).collect()
}

/// Calls one of the granular tools. A failure is a result that the model can read. If notifications
/// for handlers are pending, the last line reports them.
pub(crate) async fn call(
    session: &Session,
    caller: Caller,
    params: Option<&Raw>,
    progress: Option<&Peer>,
) -> Result<McpResult, RpcError> {
    #[derive(Deserialize)]
    struct About {
        #[serde(default, rename = "_meta")]
        meta: Option<RequestMeta>,
    }
    let named: NamedParams<'_> = read(params)?;
    let Some(card) = CARDS.iter().find(|card| card.name == named.name) else {
        let name = clean_line(&named.name, 100);
        return Err(invalid_params(format!("there is no tool `{name}`")));
    };
    let token = read::<About>(params)?.meta.and_then(|meta| meta.progress_token);
    let given = Given { card, args: named.arguments.unwrap_or_default() };
    let run = |caller| run(session, given, caller);
    let outcome = with_progress(caller, run, token.as_ref().zip(progress)).await;
    let notices = session.take_notices();
    let below = |text: String| match &notices {
        Some(notices) => format!("{text}\n\n{notices}"),
        None => text,
    };
    Ok(match outcome {
        Ok(ToolOutcome::Text(text)) => McpResult::Text(below(text), None),
        Err(ToolError { text, code }) => McpResult::Text(below(text), Some(code)),
        Ok(ToolOutcome::Output(output)) => McpResult::Output(output, notices),
    })
}

async fn run(
    session: &Session,
    mut given: Given,
    caller: Caller,
) -> Result<ToolOutcome, ToolError> {
    given.refuse_unknown()?;
    match given.card.tool {
        Tool::Connect => connect(session, given, &caller).await,
        Tool::Disconnect => {
            let id = given.text("id")?;
            let closed = session.close(&id).await.map_err(|failure| wrong(&failure, &id, ""))?;
            Ok(ToolOutcome::Text(words::closed(&closed)))
        }
        Tool::ListConnections => Ok(ToolOutcome::Text(words::connections(&session.connections()))),
        Tool::ListTools => {
            let id = given.optional_text("id")?;
            let tools = session.tools_from(id.as_deref()).await;
            let failed = |failure| wrong(&failure, id.as_deref().unwrap_or_default(), "");
            tools.map(|tools| ToolOutcome::Text(words::tools(&tools))).map_err(failed)
        }
        Tool::Call => {
            let (server, tool) = (given.text("connection_id")?, given.text("tool_name")?);
            let args = given.object("arguments")?;
            let call = CallRequest::new(tool.clone(), Some(server.clone()), args);
            ask(session, Request::Call(call), caller, (&server, &tool)).await
        }
        Tool::ListResources => {
            let id = given.text("id")?;
            let resources = session.resources_from(&id).await;
            let resources = resources.map_err(|failure| wrong(&failure, &id, ""))?;
            Ok(ToolOutcome::Text(words::resources(&resources)))
        }
        Tool::ReadResource => {
            let (server, uri) = (given.text("connection_id")?, given.text("uri")?);
            let read = Request::ReadResource { uri, server: Some(server.clone()) };
            ask(session, read, caller, (&server, "")).await
        }
        Tool::ReloadConfig => reload(session, given).await,
        Tool::RegisterHandler => register(session, given),
        Tool::Search => search(session, given, caller).await,
    }
}

async fn connect(
    session: &Session,
    mut given: Given,
    caller: &Caller,
) -> Result<ToolOutcome, ToolError> {
    let (id, url) = (given.text("id")?, given.text("url")?);
    let (transport, timeout) = (given.optional_text("type")?, given.count("timeout")?);
    let order = ConnectParams { id: &id, address: &url, transport: transport.as_deref(), timeout };
    let connected = async { session.connect_to(&ConnectionRequest::read(order)?, caller).await };
    match connected.await {
        Ok(connected) => Ok(ToolOutcome::Text(words::connected(&connected))),
        Err(error) => Err(ToolError { text: words::connect_error(&error), code: error.code() }),
    }
}

async fn reload(session: &Session, mut given: Given) -> Result<ToolOutcome, ToolError> {
    let existing = match given.flag("disconnect_existing")? {
        Some(true) => Existing::Close,
        Some(false) | None => Existing::Stay,
    };
    let reloaded = session.reload(existing).await.map_err(|failure| wrong(&failure, "", ""))?;
    match words::reloaded(&reloaded) {
        Ok(text) => Ok(ToolOutcome::Text(text)),
        Err(text) => Err(ToolError { text, code: Code::Config }),
    }
}

fn register(session: &Session, mut given: Given) -> Result<ToolOutcome, ToolError> {
    let (id, types) = (given.optional_text("connection_id")?, given.texts("types")?);
    // `description` is accepted but ignored; only its type is checked.
    given.optional_text("description")?;
    let failed = |failure: &Failure| wrong(failure, id.as_deref().unwrap_or_default(), "");
    let server = id.as_deref().map(|id| session.connection(id)).transpose();
    let server = server.map_err(|failure| failed(&failure))?;
    let mut kinds = Vec::new();
    for word in types {
        let Some(kind) = NotificationKind::from_word(&word) else {
            let known: Vec<&str> = NotificationKind::ALL.iter().map(|kind| kind.as_str()).collect();
            return Err(bad("types", &format!("must be of {}", known.join(", "))));
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let filter = NoticeFilter { server, kinds };
    let handler = session.register_handler(filter.clone()).map_err(|failure| failed(&failure))?;
    Ok(ToolOutcome::Text(words::registered(handler, &filter)))
}

async fn search(
    session: &Session,
    mut given: Given,
    caller: Caller,
) -> Result<ToolOutcome, ToolError> {
    let query = given.text("query")?;
    let limit = given.count("limit")?.and_then(|limit| usize::try_from(limit).ok());
    let offset = given.count("offset")?.and_then(|offset| usize::try_from(offset).ok());
    let page = PageRequest {
        limit: limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT),
        offset: offset.unwrap_or_default(),
    };
    let (matching, signatures) = (Matching::Words, Signatures::Shown);
    let request = SearchRequest { matching, signatures, page, ..SearchRequest::words(query) };
    match session.handle_as(Request::Search(request), caller).await {
        Ok(Reply::Found(page)) => Ok(ToolOutcome::Text(words::found(&page))),
        Ok(other) => Ok(ToolOutcome::Text(switchboard::render::text::reply(&other))),
        Err(failure) => Err(wrong(&failure, "", "")),
    }
}

async fn ask(
    session: &Session,
    request: Request,
    caller: Caller,
    (connection, tool): (&str, &str),
) -> Result<ToolOutcome, ToolError> {
    match session.handle_as(request, caller).await {
        Ok(Reply::Output(output)) => Ok(ToolOutcome::Output(output)),
        Ok(other) => Ok(ToolOutcome::Text(switchboard::render::text::reply(&other))),
        Err(failure) => Err(wrong(&failure, connection, tool)),
    }
}

fn wrong(failure: &Failure, connection: &str, tool: &str) -> ToolError {
    ToolError {
        text: words::failure(failure, RequestedNames { connection, tool }),
        code: failure.code,
    }
}

fn bad(parameter: &str, problem: &str) -> ToolError {
    ToolError { text: format!("Error: {parameter}: {problem}"), code: Code::BadRequest }
}

/// The arguments of a call of a granular tool; each is removed when it is read.
struct Given {
    card: &'static Card,
    args: Args,
}

impl Given {
    fn refuse_unknown(&self) -> Result<(), ToolError> {
        let takes: Vec<&str> = self.card.parameters.iter().map(|known| known.name).collect();
        match self.args.values().keys().find(|name| !takes.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let problem = match takes.is_empty() {
                    true => format!("unknown parameter; {} takes none", self.card.name),
                    false => {
                        format!("unknown parameter; {} takes {}", self.card.name, takes.join(", "))
                    }
                };
                Err(bad(&clean_line(name, 100), &problem))
            }
        }
    }

    fn take(&mut self, name: &str) -> Option<Exact> {
        self.args.take(name).filter(|value| !value.value().is_null())
    }

    fn text(&mut self, name: &str) -> Result<String, ToolError> {
        self.optional_text(name)?.ok_or_else(|| bad(name, "is required"))
    }

    fn optional_text(&mut self, name: &str) -> Result<Option<String>, ToolError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(bad(name, "must be a string")),
        }
    }

    /// Parses a number. A string is accepted too, because some models write numbers as strings.
    fn count(&mut self, name: &str) -> Result<Option<u64>, ToolError> {
        let whole = || bad(name, "must be a whole number");
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::Number(number)) => number.as_u64().map(Some).ok_or_else(whole),
            Some(Value::String(text)) => text.parse().map(Some).map_err(|_| whole()),
            Some(_) => Err(whole()),
        }
    }

    fn flag(&mut self, name: &str) -> Result<Option<bool>, ToolError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(_) => Err(bad(name, "must be true or false")),
        }
    }

    fn texts(&mut self, name: &str) -> Result<Vec<String>, ToolError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(Vec::new()),
            Some(Value::String(text)) => Ok(vec![text]),
            Some(Value::Array(items)) => {
                let texts = items.into_iter().map(|item| match item {
                    Value::String(text) => Ok(text),
                    _ => Err(bad(name, "must be an array of strings")),
                });
                texts.collect()
            }
            Some(_) => Err(bad(name, "must be an array of strings")),
        }
    }

    /// Parses the arguments for a server's tool; numbers keep their digits.
    fn object(&mut self, name: &str) -> Result<Args, ToolError> {
        let Some(given) = self.take(name) else { return Ok(Args::default()) };
        args_of(given).map_err(|error| bad(name, &error.to_string()))
    }
}
