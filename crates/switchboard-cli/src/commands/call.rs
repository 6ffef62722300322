//! Calls a tool, reads a resource, fills in a prompt.

use std::cell::RefCell;

use serde_json::Value;
use switchboard::FoundTool;
use switchboard::catalog::EntryKind;
use switchboard::exact::Args;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::render::words::clean_line;
use switchboard::reply::Reply;
use switchboard::request::Request;
use switchboard::schema;
use tokio::sync::mpsc;

use super::output::{self, BlobForm, PrintOptions};
use super::saving::Destination;
use crate::args::call::{CallOptions, Printed};
use crate::call_args::{self, ArgSource, ArgsError, Given, Input, Pair};
use crate::conversation::Conversation;
use crate::report::CommandResult;
use crate::sign_in;

/// The maximum length of a tool name in a warning, in characters.
const NAME: usize = 100;

/// The maximum number of progress notifications that are queued for display.
const QUEUED_STEPS: usize = 16;

pub(super) async fn call(conversation: &Conversation<'_>, call: CallOptions) -> CommandResult {
    let save = Destination::check(conversation.app, call.printed.save.as_deref(), &call.tool)?;
    let mut input = conversation.app.input();
    let (words, object) = (call.arguments.clone(), call.args.clone());
    let given = reading(move || arguments(&words, object.as_deref(), &mut input)).await;
    let (base, pairs) = given.map_err(Failure::from)?;
    // With `--timeout`, the time limits of the settings do not apply, so no hint may suggest them.
    let without_settings = |mut failure: Failure| {
        if call.timeout.is_some() {
            failure.hints.retain(|hint| !matches!(hint, Hint::Setting(_)));
        }
        failure
    };
    // The server refused the call before it ran, because sign-in is required. So the call can be
    // repeated.
    let (reply, blob) = match make(conversation, &call, base.clone(), pairs.clone()).await {
        Err(failure) => {
            sign_in::for_a_call(conversation, without_settings(failure)).await?;
            make(conversation, &call, base, pairs).await.map_err(without_settings)?
        }
        Ok(made) => made,
    };
    output::print(conversation, &reply, PrintOptions { blob, printed: &call.printed, save })
}

/// All arguments: from the command line, files and standard input.
fn arguments(
    words: &[String],
    object: Option<&str>,
    input: &mut Input,
) -> Result<(Args, Vec<Pair<Given>>), ArgsError> {
    let (base, words) = match (object, words) {
        (Some(source), words) => (call_args::object(&input.text(ArgSource::of(source))?)?, words),
        // The JSON object of `--args`, without the option.
        (None, [object, rest @ ..]) if object.starts_with('{') => {
            (call_args::object(object)?, rest)
        }
        (None, words) => (Args::default(), words),
    };
    let pairs = call_args::pairs(words)?;
    Ok((base, call_args::read(pairs, input)?))
}

/// Runs `read` on a blocking thread, so that the runtime still handles Ctrl-C.
pub(super) async fn reading<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(read).await {
        Ok(read) => read,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

async fn make(
    conversation: &Conversation<'_>,
    call: &CallOptions,
    base: Args,
    pairs: Vec<Pair<Given>>,
) -> Result<(Reply, BlobForm), Failure> {
    let server = call.server.as_deref();
    let find = async || conversation.session.find_tool(&call.tool, server).await;
    let found = conversation.look_up(server, find).await?;
    let args = call_args::typed(base, pairs, &found.target.entry.input_value())?;
    warn_about_undeclared(conversation, &found, &args);
    let blob = match found.target.entry.kind {
        EntryKind::Resource { .. } => BlobForm::Bytes,
        EntryKind::Tool | EntryKind::Prompt => BlobForm::Note,
    };
    Ok((call_and_watch(conversation, found, args, call.select.clone()).await?, blob))
}

/// Warns about arguments that the tool does not declare. They are sent anyway, because the schema
/// allows them.
fn warn_about_undeclared(conversation: &Conversation<'_>, found: &FoundTool, args: &Args) {
    let schema = found.target.entry.input_value();
    for argument in schema::undeclared_arguments(&schema, args.values()) {
        let tool = clean_line(&found.target.shown, NAME);
        conversation.spinner.warn(&format!("{tool}: {argument}"));
    }
}

/// Makes the call, and shows its progress on a terminal.
async fn call_and_watch(
    conversation: &Conversation<'_>,
    found: FoundTool,
    args: Args,
    select: Option<String>,
) -> Result<Reply, Failure> {
    let doing = format!("calling {}", found.target.shown);
    let (sender, steps) = mpsc::channel(QUEUED_STEPS);
    let progress = conversation.app.printer.is_watched().then_some(sender);
    let caller = conversation.session.caller().with_progress(progress);
    let state = RefCell::new((steps, doing.clone()));
    let stage = async || {
        let (steps, last) = &mut *state.borrow_mut();
        while let Ok(step) = steps.try_recv() {
            *last = format!("{doing}: {}", step_line(step.as_str()));
        }
        last.clone()
    };
    conversation.wait(stage, conversation.session.call_found(found, args, select, &caller)).await
}

/// One line such as `3/5 copying`, from the parameters of a progress notification.
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
    conversation: &Conversation<'_>,
    (uri, server): (String, Option<String>),
    printed: &Printed,
) -> CommandResult {
    let save = Destination::check(conversation.app, printed.save.as_deref(), last_segment(&uri))?;
    conversation.list_unlisted(server.as_deref()).await?;
    let request = Request::ReadResource { uri, server };
    let reply = conversation.ask(request, "reading the resource").await?;
    output::print(conversation, &reply, PrintOptions { blob: BlobForm::Bytes, printed, save })
}

/// The last segment of a URI without extension: `logo` for `file:///logo.png`.
fn last_segment(uri: &str) -> &str {
    let name = uri.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

pub(super) async fn prompt(
    conversation: &Conversation<'_>,
    (name, server): (String, Option<String>),
    arguments: Vec<String>,
    printed: &Printed,
) -> CommandResult {
    let save = Destination::check(conversation.app, printed.save.as_deref(), &name)?;
    let mut input = conversation.app.input();
    let args = reading(move || call_args::texts(&arguments, &mut input)).await;
    let args = args.map_err(Failure::from)?;
    conversation.list_unlisted(server.as_deref()).await?;
    check_prompt(conversation, (&name, server.as_deref()), &args)?;
    let request = Request::Prompt { name, server, args };
    let reply = conversation.ask(request, "filling in the prompt").await?;
    output::print(conversation, &reply, PrintOptions { blob: BlobForm::Note, printed, save })
}

/// Refuses arguments that a prompt does not declare, and the lack of required arguments. For an
/// unknown prompt it does nothing, because the session reports that error.
fn check_prompt(
    conversation: &Conversation<'_>,
    (name, server): (&str, Option<&str>),
    args: &Args,
) -> Result<(), Failure> {
    let catalog = conversation.session.catalog();
    let within = server.and_then(|server| catalog.active_server(server).ok());
    let Ok(Some(item)) = catalog.find_prompt(name, within.as_ref()) else { return Ok(()) };
    item.prompt.check(args).map_err(|error| {
        let failure = Failure::new(Code::BadArguments, Subject::Request, error);
        let expected = item.prompt.expected();
        if expected.is_empty() { failure } else { failure.hint(Hint::Expected(expected)) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_resource_is_named_after_last_uri_segment() {
        let check = |uri: &str, expected: &str| assert_eq!(last_segment(uri), expected, "{uri}");
        check("file:///logo.png", "logo");
        check("note:7", "7");
        check("demo://notes/", "notes");
        check("x://", "");
    }

    #[test]
    fn progress_notification_becomes_one_readable_line() {
        let check = |params: &str, expected: &str| assert_eq!(step_line(params), expected);
        check(r#"{"progress": 3, "total": 5, "message": "copying"}"#, "3/5 copying");
        check(r#"{"progress": 0.5}"#, "0.5");
        check("nonsense", "");
    }
}
