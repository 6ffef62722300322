//! Turns replies and failures into MCP results.

use std::error::Error;

use serde_json::Value;
use switchboard::Session;
use switchboard::content::details::{self, CallTarget, ErrorType, Fault};
use switchboard::content::{CallOutput, ResultForm, push_json_string};
use switchboard::elicitation::is_web_page;
use switchboard::exact::Args;
use switchboard::failure::{Code, Failure, Subject};
use switchboard::render;
use switchboard::reply::{Output, OutputOrigin, Reply};
use switchboard::{hidden, nesting};
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_PARAMS, URL_ELICITATION_REQUIRED};
use switchboard_wire::{Raw, RpcError};

/// The result of an MCP request, before it is written as JSON.
pub(crate) enum McpResult {
    /// JSON from a server, unchanged, or JSON that the gateway built.
    Json(Raw),
    /// A failed call: a result that a model can read.
    Failure(Failure),
    /// The output of a server, with an optional line of the gateway below it.
    Output(Box<Output>, Option<String>),
    /// Text of the gateway, with an error code if it reports an error.
    Text(String, Option<Code>),
}

/// The form in which a host gets results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultStyle {
    /// For hosts that mark errors for their model themselves: results have no details in `_meta`.
    Plain,
    /// For the Pi extension: the text of an error begins with its type, and `_meta` has details.
    Pi,
}

impl ResultStyle {
    fn error_head(self, error_type: ErrorType) -> &'static str {
        match (self, error_type) {
            (ResultStyle::Plain, _) => "",
            (ResultStyle::Pi, ErrorType::Tool | ErrorType::Validation) => "MCP tool error: ",
            (ResultStyle::Pi, ErrorType::Connection) => "MCP connection error: ",
        }
    }
}

/// The text of an error result if the server gave no text.
const UNKNOWN: &str = "Unknown error";

impl McpResult {
    pub(crate) fn json(json: impl Into<String>) -> McpResult {
        McpResult::Json(Raw::from_json(json.into()))
    }

    /// The size of the server's result in bytes. The written result is smaller if blocks were saved
    /// to files.
    pub(crate) fn source_bytes(&self) -> usize {
        match self {
            McpResult::Output(output, _) => output.content.raw().len(),
            McpResult::Json(json) => json.as_str().len(),
            McpResult::Failure(_) | McpResult::Text(..) => 0,
        }
    }

    /// Appends the result to `out`, the text of the response.
    pub(crate) fn write(&self, out: &mut String, style: ResultStyle) {
        let start = out.len();
        match self {
            McpResult::Json(json) => out.push_str(json.as_str()),
            McpResult::Failure(failure) => failure_result(out, failure, None, style),
            McpResult::Output(output, note) => output_result(out, output, note.as_deref(), style),
            McpResult::Text(text, None) => {
                text_result(out, text);
                out.push('}');
            }
            McpResult::Text(text, Some(code)) => {
                let target = CallTarget { mode: "call", server: "", tool: "" };
                let fault = fault(*code, text);
                error_result(out, text, None, (&target, &fault), style);
            }
        }
        nesting::confine(out, start);
    }
}

/// A text result of the `mcp` tool with `note` below it, truncated to the host's limit.
pub(crate) async fn text(
    session: &Session,
    reply: &Reply,
    note: Option<String>,
    form: ResultForm,
) -> McpResult {
    let mut text = render::text::reply(reply);
    if let Some(note) = note {
        text.push_str("\n\n");
        text.push_str(&note);
    }
    // A page of a stored result is within the limit already.
    if !matches!(reply, Reply::Stored { .. }) {
        text = session.fitted(text, form).await;
    }
    McpResult::Text(text, None)
}

/// An error result of the `mcp` tool, truncated to the host's limit.
pub(crate) async fn wrong(session: &Session, failure: Failure, form: ResultForm) -> McpResult {
    let text = render::text::failure(&failure);
    if form.max_bytes.is_none_or(|most| text.len() <= most) {
        return McpResult::Failure(failure);
    }
    McpResult::Text(session.fitted(text, form).await, Some(failure.code))
}

/// A line that names the ignored parameters; `None` if none was ignored.
pub(crate) fn note(ignored: &[&'static str]) -> Option<String> {
    let names = ignored.join(", ");
    (!names.is_empty()).then(|| format!("(ignored, because another parameter came first: {names})"))
}

fn output_result(out: &mut String, output: &Output, note: Option<&str>, style: ResultStyle) {
    if let Some(unselected) = &output.unselected {
        return failure_result(out, unselected, Some(&output.content), style);
    }
    out.push_str("{\"content\":");
    let guessed = output.guessed.as_ref().map(render::text::guessed_line);
    match style {
        ResultStyle::Pi if output.content.is_error() => {
            let line = guessed.map(|line| line + "\n").unwrap_or_default();
            let head = format!("{}{line}", style.error_head(ErrorType::Tool));
            output.content.write_error_content(out, &head, UNKNOWN);
        }
        ResultStyle::Pi | ResultStyle::Plain => {
            let first = out.len() + 1;
            // The content is written directly into the frame, so a large result is not copied.
            output.content.write_content(out);
            if let Some(line) = guessed {
                let rest = if out.ends_with("[]") { "" } else { "," };
                out.insert_str(first, &(text_block(&line) + rest));
            }
        }
    }
    let expected = render::text::expected_line(output);
    for note in expected.as_deref().into_iter().chain(note) {
        if out.pop() == Some(']') && !out.ends_with('[') {
            out.push(',');
        }
        out.push_str(&text_block(note));
        out.push(']');
    }
    if output.content.is_error() {
        out.push_str(",\"isError\":true");
    }
    let mode = match output.origin {
        OutputOrigin::Tool => "call",
        OutputOrigin::Resource => "read",
        OutputOrigin::Prompt => "prompt",
    };
    let target = CallTarget { mode, server: output.server.as_str(), tool: &output.name };
    meta(out, style, |out| details::of_output(out, &target, &output.content));
    out.push('}');
}

/// The error result of the `mcp` tool for a failure, with the blocks of `beside` after it.
fn failure_result(
    out: &mut String,
    failure: &Failure,
    beside: Option<&CallOutput<'_>>,
    style: ResultStyle,
) {
    let (server, tool) = match &failure.subject {
        Subject::Tool { shown, server } => (server.as_str(), shown.as_str()),
        Subject::Server(server) => (server.as_str(), ""),
        Subject::Request | Subject::Config { .. } => ("", ""),
    };
    let target = CallTarget { mode: "call", server, tool };
    let original = failure.to_string();
    let fault = fault(failure.code, &original);
    error_result(out, &render::text::failure(failure), beside, (&target, &fault), style);
}

/// An error result with a text, and the blocks of `beside` after it.
fn error_result(
    out: &mut String,
    text: &str,
    beside: Option<&CallOutput<'_>>,
    (target, fault): (&CallTarget<'_>, &Fault<'_>),
    style: ResultStyle,
) {
    text_result(out, &format!("{}{text}", style.error_head(fault.error_type)));
    if let Some(beside) = beside
        && out.pop() == Some(']')
    {
        beside.write_blocks(out);
        out.push(']');
    }
    out.push_str(",\"isError\":true");
    meta(out, style, |out| details::of_fault(out, target, fault));
    out.push('}');
}

fn fault(code: Code, original: &str) -> Fault<'_> {
    Fault { error_type: error_type(code), original, code: code.as_str() }
}

fn error_type(code: Code) -> ErrorType {
    match code {
        Code::BadRequest
        | Code::UnknownTool
        | Code::AmbiguousTool
        | Code::UnknownServer
        | Code::UnknownResource
        | Code::UnknownPrompt
        | Code::UnknownResult
        | Code::BadArguments
        | Code::BadPattern
        | Code::BadFilter => ErrorType::Validation,
        Code::ServerError
        | Code::ToolChanged
        | Code::ToolBlocked
        | Code::NotReadOnly
        | Code::ApprovalRequired
        | Code::ApprovalDenied => ErrorType::Tool,
        Code::ServerDisabled
        | Code::TrustRequired
        | Code::SignInRequired
        | Code::NoInstructions
        | Code::Config
        | Code::ConnectFailed
        | Code::Starting
        | Code::Backoff
        | Code::CrashLoop
        | Code::TimedOut
        | Code::ConnectionLost
        | Code::OutcomeUnknown
        | Code::AnswerTooLarge
        | Code::Disconnected
        | Code::ShuttingDown
        | Code::Storage => ErrorType::Connection,
    }
}

/// Converts a failure to a JSON-RPC error, for methods that have no error results.
pub(crate) fn protocol_error(failure: &Failure) -> RpcError {
    RpcError::new(protocol_code(failure), render::text::failure(failure))
}

pub(crate) fn protocol_code(failure: &Failure) -> i64 {
    match error_type(failure.code) {
        ErrorType::Validation => INVALID_PARAMS,
        ErrorType::Tool | ErrorType::Connection => INTERNAL_ERROR,
    }
}

/// The JSON-RPC error that the server returned; `None` if the failure has another cause.
pub(crate) fn servers_own_error(failure: &Failure) -> Option<RpcError> {
    let cause: &(dyn Error + 'static) = failure.cause.as_ref();
    let mut causes = std::iter::successors(Some(cause), |&error| error.source());
    causes.find_map(|error| error.downcast_ref::<RpcError>()).map(without_hidden_text)
}

fn without_hidden_text(error: &RpcError) -> RpcError {
    let message = hidden::strip(&error.message).into_owned();
    let data = error.data.as_ref().map(|data| nesting::plain(data.as_str()).into_owned());
    let data = match error.code {
        URL_ELICITATION_REQUIRED => data.and_then(with_web_pages_only),
        _ => data,
    };
    RpcError { code: error.code, message, data: data.map(Raw::from_json) }
}

/// The error data without elicitations whose URL must not be opened; `None` if the data is
/// ambiguous, such as with duplicate keys.
fn with_web_pages_only(data: String) -> Option<String> {
    let mut read = Args::parse(&data).ok()?;
    let pages = match read.values().get("elicitations")? {
        Value::Array(pages) => pages.clone(),
        _ => return None,
    };
    let is_valid = |page: &Value| match page.get("url") {
        Some(url) => url.as_str().is_some_and(is_web_page),
        None => page.is_object(),
    };
    if pages.iter().all(is_valid) {
        return Some(data);
    }
    read.insert("elicitations", Value::from_iter(pages.into_iter().filter(is_valid)));
    Some(read.to_string())
}

/// The server's JSON-RPC error without hidden text; for other failures, the gateway's own error.
pub(crate) fn as_the_server_said(failure: &Failure) -> RpcError {
    servers_own_error(failure).unwrap_or_else(|| protocol_error(failure))
}

/// The result of a call as the server sent it, without changes.
pub(crate) fn raw(reply: Reply) -> McpResult {
    match reply {
        Reply::Output(output) => McpResult::json(nesting::result(output.content.raw())),
        _ => McpResult::json("{}"),
    }
}

/// The result of a list method. The rows are the JSON of the servers, unchanged.
pub(crate) fn list(name: &str, rows: &[impl AsRef<str>]) -> Raw {
    let rows: Vec<&str> = rows.iter().map(AsRef::as_ref).collect();
    Raw::from_json(format!("{{\"{name}\":[{}]}}", rows.join(",")))
}

/// Writes the beginning of a result with one text block; the caller adds further members and the
/// closing brace.
fn text_result(out: &mut String, text: &str) {
    out.push_str("{\"content\":[");
    out.push_str(&text_block(text));
    out.push(']');
}

fn text_block(text: &str) -> String {
    let mut block = "{\"type\":\"text\",\"text\":".to_owned();
    push_json_string(&mut block, text);
    block.push('}');
    block
}

/// `_meta` with details that Pi shows its user. Other hosts might pass them to the model, so they
/// get none.
fn meta(out: &mut String, style: ResultStyle, details: impl FnOnce(&mut String)) {
    if style == ResultStyle::Plain {
        return;
    }
    out.push_str(",\"_meta\":{\"switchboard/details\":");
    details(out);
    out.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_url_is_omitted_from_url_elicitation_required_error() {
        let check = |code: i64, data: &str, expected: Option<&str>| {
            let data = Some(Raw::from_json(data.to_owned()));
            let error = RpcError { code, message: "visit".to_owned(), data };
            let passed = without_hidden_text(&error).data;
            assert_eq!(passed.as_ref().map(Raw::as_str), expected);
        };
        let good = r#"{ "elicitations": [{"mode":"url","url":"https://example.com/","n":1.00}] }"#;
        check(-32042, good, Some(good));
        check(
            -32042,
            r#"{"x":1.00,"elicitations":[{"url":"file:///etc/passwd"},{"url":"https://a.example"},{"url":"http://169.254.169.254/"},{"url":7},"javascript:x"]}"#,
            Some(r#"{"x":1.00,"elicitations":[{"url":"https://a.example"}]}"#),
        );
        check(-32042, r#"{"elicitations":[],"elicitations":[{"url":"data:x"}]}"#, None);
        check(-32042, r#"{"elicitations":{"url":"data:x"}}"#, None);
        let other = r#"{"elicitations":[{"url":"data:x"}]}"#;
        check(-32000, other, Some(other));
    }

    #[test]
    fn deeply_nested_result_is_flattened_when_written() {
        let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
        let mut out = String::new();
        McpResult::json(deep).write(&mut out, ResultStyle::Plain);
        let levels = out.split("\\\"").next().unwrap_or_default().matches('{').count();
        assert!(levels < nesting::MOST_LEVELS, "{levels}");
    }
}
