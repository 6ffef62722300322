//! Using things: calls a tool, reads a resource, fills in a prompt, and prints the result whole.

use std::cell::RefCell;
use std::io::Read;

use serde_json::{Value, json};
use switchboard::Progress;
use switchboard::content::{CallOutput, Part, ResultForm};
use switchboard::exact::Args;
use switchboard::failure::{Failure, Hint};
use switchboard::hidden;
use switchboard::render;
use switchboard::render::words::{clean_block, clean_line, plural, thousands};
use switchboard::reply::{Origin, Output, Reply};
use switchboard::request::{CallRequest, Request};
use tokio::sync::mpsc;

use crate::args::{self, Format};
use crate::boot::App;
use crate::call_args::{self, ArgsError, Pair};
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::report::Outcome;
use crate::sign_in;

/// Steps that may wait to be shown; more are of no use to anyone.
const STEPS: usize = 16;

pub(super) async fn call(talk: &Conversation<'_>, call: args::Call) -> Outcome {
    let pairs = call_args::pairs(&call.arguments).map_err(Failure::from)?;
    let base = match &call.args {
        Some(source) => {
            let text = text_of(talk.app, source).await;
            text.and_then(|text| call_args::object(&text)).map_err(Failure::from)?
        }
        None => Args::default(),
    };
    // A call that met a server that wants a sign-in has not been made.
    let made = match make(talk, &call, base.clone(), pairs.clone()).await {
        Err(failure) => {
            sign_in::for_a_call(talk, failure).await?;
            make(talk, &call, base, pairs).await
        }
        made => made,
    };
    let (reply, shape) = made?;
    print(talk, &reply, shape, call.format)
}

async fn make(
    talk: &Conversation<'_>,
    call: &args::Call,
    base: Args,
    pairs: Vec<Pair>,
) -> Result<(Reply, Shape), Failure> {
    let found = talk.describe(&call.tool, call.server.as_deref()).await?;
    let schema: Value = serde_json::from_str(&found.input_schema).unwrap_or_default();
    let args = call_args::typed(base, pairs, &schema);
    let mut request = CallRequest::new(
        found.line.shown.clone(),
        Some(found.line.server.as_str().to_owned()),
        args,
    );
    request.select.clone_from(&call.select);
    let shape = if found.resource.is_some() { Shape::Contents } else { Shape::Content };
    Ok((call_and_watch(talk, request, &found.line.shown).await?, shape))
}

/// The text that an argument means: JSON itself, `@file`, or `-` for standard input.
pub(super) async fn text_of(app: &App, source: &str) -> Result<String, ArgsError> {
    if source == "-" {
        let mut text = String::new();
        let read = tokio::task::spawn_blocking(move || {
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        });
        return match read.await {
            Ok(text) => text.map_err(ArgsError::Stdin),
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        };
    }
    match source.strip_prefix('@') {
        Some(path) => {
            let path = app.typed_in.join(path);
            std::fs::read_to_string(&path).map_err(|cause| ArgsError::File { path, cause })
        }
        None => Ok(source.to_owned()),
    }
}

/// Makes the call; its steps are shown while someone watches.
async fn call_and_watch(
    talk: &Conversation<'_>,
    request: CallRequest,
    shown: &str,
) -> Result<Reply, Failure> {
    let doing = format!("calling {shown}");
    if !talk.app.printer.is_watched() {
        return talk.ask(Request::Call(request), &doing).await;
    }
    let (sender, steps) = mpsc::channel(STEPS);
    let progress: Progress = Some(sender);
    let state = RefCell::new((steps, doing.clone()));
    let stage = async || {
        let (steps, last) = &mut *state.borrow_mut();
        while let Ok(step) = steps.try_recv() {
            *last = format!("{doing}: {}", step_line(step.as_str()));
        }
        last.clone()
    };
    talk.ask_with_progress(Request::Call(request), progress, stage).await
}

/// `3/5 copying`, from the parameters of a progress notification.
fn step_line(params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    let number = |key: &str| params.get(key).filter(|n| n.is_number()).map(ToString::to_string);
    let mut line = number("progress").unwrap_or_default();
    if let Some(total) = number("total") {
        line = format!("{line}/{total}");
    }
    match params.get("message").and_then(Value::as_str) {
        Some(message) => format!("{line} {}", clean_line(message, 100)),
        None => line,
    }
}

pub(super) async fn read(
    talk: &Conversation<'_>,
    uri: String,
    server: Option<String>,
    format: Format,
) -> Outcome {
    talk.list_unlisted(server.as_deref()).await?;
    let request = Request::ReadResource { uri, server };
    let reply = talk.ask(request, "reading the resource").await?;
    print(talk, &reply, Shape::Contents, format)
}

pub(super) async fn prompt(
    talk: &Conversation<'_>,
    (name, server): (String, Option<String>),
    arguments: &[String],
    format: Format,
) -> Outcome {
    let args = call_args::texts(arguments).map_err(Failure::from)?;
    talk.list_unlisted(server.as_deref()).await?;
    let request = Request::Prompt { name, server, args };
    let reply = talk.ask(request, "filling in the prompt").await?;
    print(talk, &reply, Shape::Messages, format)
}

/// What a server's result is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Content,
    Contents,
    Messages,
}

fn print(talk: &Conversation<'_>, reply: &Reply, shape: Shape, format: Format) -> Outcome {
    let printer = talk.app.printer;
    let Reply::Output(output) = reply else {
        talk.print(reply, format)?;
        return Ok(Exit::Done);
    };
    if let Some(unselected) = &output.unselected {
        return Err(without_filter(talk, output, shape, unselected, format).into());
    }
    let exit = if output.content.is_error() { Exit::ToolError } else { Exit::Done };
    if format.json {
        printer.json(&whole(reply, output))?;
        return Ok(exit);
    }
    let text = match output.content.selected() {
        Some(selected) => selected.trim_end_matches('\n').to_owned(),
        None => text(output, shape),
    };
    if exit == Exit::ToolError {
        let text = clean_block(&text, usize::MAX);
        printer.note(&format!("{} {text}", printer.err.error("error:")));
    } else {
        printer.foreign(&text)?;
    }
    if let Some(hidden) = hidden::find(&text) {
        let count = plural(hidden.characters, "hidden character");
        printer.warn(&format!("{count} in this result"));
    }
    Ok(exit)
}

/// A call whose filter failed was made all the same, and what it gave ends with this process: so it
/// is printed, and then the failure.
fn without_filter(
    talk: &Conversation<'_>,
    output: &Output,
    shape: Shape,
    unselected: &Failure,
    format: Format,
) -> Failure {
    let whole = text(output, shape);
    if format.json {
        talk.app.printer.note(&clean_block(&whole, usize::MAX));
    } else {
        let _nobody_reads_it = talk.app.printer.foreign(&whole);
    }
    let mut failure = unselected.clone();
    failure.hints.retain(|hint| !matches!(hint, Hint::ReadResult(_)));
    failure
}

/// All text, with a note in the place of each image, sound and blob.
fn text(output: &Output, shape: Shape) -> String {
    // Mapped anew from what the server sent: the engine's files of blobs end with this process.
    let raw = output.content.raw();
    let content = match shape {
        Shape::Content => CallOutput::of_call(raw),
        Shape::Contents => CallOutput::of_resource(raw),
        Shape::Messages => CallOutput::of_prompt(raw),
    };
    let blobs = content.spills(&ResultForm::default());
    let note = |what: &str, mime: &str, bytes: usize| {
        format!("[{what} {}, {} bytes]", clean_line(mime, 100), thousands(bytes))
    };
    let mut parts = Vec::new();
    for (index, part) in content.parts().enumerate() {
        let blob = blobs.iter().find(|blob| blob.block == index);
        parts.push(match (part, blob) {
            (_, Some(blob)) => {
                note("blob", blob.mime, blob.decode().map_or(0, |bytes| bytes.len()))
            }
            (Part::Text(text), None) => text.into_owned(),
            (Part::Image(media), None) => note("image", media.mime, decoded_len(&media.data)),
            (Part::Audio(media), None) => note("audio", media.mime, decoded_len(&media.data)),
        });
    }
    parts.join("\n")
}

/// How many bytes a base64 text stands for.
fn decoded_len(data: &str) -> usize {
    let symbols = data.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    symbols.count() * 3 / 4
}

/// The JSON of an output, with every block as the server sent it.
fn whole(reply: &Reply, output: &Output) -> Value {
    let mut value = render::json::reply(reply);
    if output.content.selected().is_some() {
        return value;
    }
    let raw: Value = serde_json::from_str(output.content.raw()).unwrap_or_default();
    let blocks = match (raw.get("content"), raw.get("contents")) {
        (Some(Value::Array(blocks)), _) if output.origin == Origin::Tool => Some(blocks.clone()),
        (_, Some(Value::Array(items))) if output.origin != Origin::Prompt => {
            Some(items.iter().map(block_of).collect())
        }
        _ => None,
    };
    if let Some(blocks) = blocks
        && let Some(content) = value.get_mut("content")
    {
        *content = Value::Array(blocks);
    }
    value
}

/// A part of a resource as a content block.
fn block_of(item: &Value) -> Value {
    match item.get("text") {
        Some(Value::String(text)) => json!({ "type": "text", "text": text }),
        _ => json!({ "type": "resource", "resource": item }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_as_a_line() {
        let check = |params: &str, expected: &str| assert_eq!(step_line(params), expected);
        check(r#"{"progress": 3, "total": 5, "message": "copying"}"#, "3/5 copying");
        check(r#"{"progress": 0.5}"#, "0.5");
        check("nonsense", "");
    }

    #[test]
    fn the_size_of_base64_is_that_of_its_bytes() {
        let check = |data: &str, expected: usize| assert_eq!(decoded_len(data), expected);
        check("", 0);
        check("AA==", 1);
        check("AAA=", 2);
        check("AAAA\nAAAA", 6);
    }
}
