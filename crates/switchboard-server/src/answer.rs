//! Replies and failures as MCP results.

use serde_json::{Value, json};
use switchboard::content::details::{self, Asked, ErrorType, Fault};
use switchboard::failure::{Code, Failure, Subject};
use switchboard::render;
use switchboard::reply::{Origin, Output, Reply};
use switchboard_wire::RpcError;
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_PARAMS, write_text};

/// The result of the `mcp` tool for a reply; `ignored` names parameters that were passed over.
pub(crate) fn reply(out: &mut Vec<u8>, reply: &Reply, ignored: &[&'static str]) {
    let note = note(ignored);
    match reply {
        Reply::Output(output) => output_result(out, output, note.as_deref()),
        _ => {
            let mut text = render::text::reply(reply);
            if let Some(note) = note {
                text.push_str("\n\n");
                text.push_str(&note);
            }
            text_result(out, &text);
            out.push(b'}');
        }
    }
}

fn note(ignored: &[&'static str]) -> Option<String> {
    if ignored.is_empty() {
        return None;
    }
    Some(format!("(ignored, because another parameter came first: {})", ignored.join(", ")))
}

fn output_result(out: &mut Vec<u8>, output: &Output, note: Option<&str>) {
    out.extend_from_slice(b"{\"content\":");
    // Straight into the frame: a large result is not copied once more.
    let mut frame = String::from_utf8(std::mem::take(out)).expect("a frame is written as UTF-8");
    output.content.write_content(&mut frame);
    *out = frame.into_bytes();
    if let Some(note) = note
        && out.pop() == Some(b']')
    {
        if out.last() != Some(&b'[') {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        write_text(out, note);
        out.extend_from_slice(b"}]");
    }
    if output.content.is_error() {
        out.extend_from_slice(b",\"isError\":true");
    }
    let mode = match output.origin {
        Origin::Tool => "call",
        Origin::Resource => "read",
        Origin::Prompt => "prompt",
    };
    let asked = Asked { mode, server: output.server.as_str(), tool: &output.name };
    meta(out, &details::of_output(&asked, &output.content));
    out.push(b'}');
}

/// The result of the `mcp` tool for a failure: an error that a model can act upon.
pub(crate) fn failure(out: &mut Vec<u8>, failure: &Failure) {
    text_result(out, &render::text::failure(failure));
    out.extend_from_slice(b",\"isError\":true");
    let (server, tool) = match &failure.subject {
        Subject::Tool { shown, server } => (server.as_str(), shown.as_str()),
        Subject::Server(server) => (server.as_str(), ""),
        Subject::Request | Subject::Config { .. } => ("", ""),
    };
    let asked = Asked { mode: "call", server, tool };
    let fault = Fault {
        error_type: error_type(failure.code),
        original: &failure.to_string(),
        code: failure.code.as_str(),
    };
    meta(out, &details::of_fault(&asked, &fault));
    out.push(b'}');
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
        | Code::BadPattern => ErrorType::Validation,
        Code::ServerError | Code::ToolChanged => ErrorType::Tool,
        Code::ServerDisabled
        | Code::TrustRequired
        | Code::ApprovalRequired
        | Code::ApprovalDenied
        | Code::ToolBlocked
        | Code::NoInstructions
        | Code::NotSupported
        | Code::Config
        | Code::ConnectFailed
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

/// A failure of a method that has no room for an error in its result.
pub(crate) fn protocol_error(failure: &Failure) -> RpcError {
    let code = match error_type(failure.code) {
        ErrorType::Validation => INVALID_PARAMS,
        ErrorType::Tool | ErrorType::Connection => INTERNAL_ERROR,
    };
    RpcError::new(code, render::text::failure(failure))
}

/// What a server gave, word for word.
pub(crate) fn raw(reply: Reply) -> String {
    match reply {
        Reply::Output(output) => output.content.raw().to_owned(),
        _ => "{}".to_owned(),
    }
}

pub(crate) fn prompts(reply: &Reply) -> String {
    without_server(render::json::reply(reply), "prompts")
}

pub(crate) fn resources(reply: &Reply) -> String {
    without_server(render::json::reply(reply), "resources")
}

/// MCP's own fields only, and no `null`s.
fn without_server(mut value: Value, list: &str) -> String {
    for row in value[list].as_array_mut().into_iter().flatten() {
        if let Some(row) = row.as_object_mut() {
            row.shift_remove("server");
            row.retain(|_, field| !field.is_null());
            for argument in
                row.get_mut("arguments").and_then(Value::as_array_mut).into_iter().flatten()
            {
                if let Some(argument) = argument.as_object_mut() {
                    argument.retain(|_, field| !field.is_null());
                }
            }
        }
    }
    json!({ list: value[list].take() }).to_string()
}

/// Opens a result that holds one text; the caller closes it.
fn text_result(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(b"{\"content\":[{\"type\":\"text\",\"text\":");
    write_text(out, text);
    out.extend_from_slice(b"}]");
}

fn meta(out: &mut Vec<u8>, details: &str) {
    out.extend_from_slice(b",\"_meta\":{\"switchboard/details\":");
    out.extend_from_slice(details.as_bytes());
    out.push(b'}');
}
