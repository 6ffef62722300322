//! Elicitation and sampling requests of servers while a command runs, answered by the user at the
//! terminal.

mod form;

use serde_json::{Map, Value, json};
use switchboard::elicitation::{is_web_page, signed_message};
use switchboard::host::{ServerQuestion, Topic};
use switchboard::render::words::{clean_block, clean_line};
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::{Raw, RpcError};

use crate::printer::{Printer, is_yes};
use form::FormField;

/// The maximum number of bytes that are shown of a sampling conversation.
const SHOWN: usize = 8 * 1024;

/// The MCP error code for sampling that the user refuses.
const REJECTED: i64 = -1;

/// Asks the user, and returns the result that MCP defines for the request.
pub(crate) async fn ask(question: &ServerQuestion<'_>, printer: Printer) -> Result<Raw, RpcError> {
    let params = question.params.map_or("{}", Raw::as_str);
    let malformed = |_| RpcError::new(INVALID_PARAMS, "malformed parameters");
    let params: Map<String, Value> = serde_json::from_str(params).map_err(malformed)?;
    match question.topic {
        Topic::Roots => Err(question.topic.refused()),
        Topic::Sampling => sample(question, &params, printer).await,
        Topic::Elicitation => elicit(question, &params, printer).await,
    }
}

async fn elicit(
    question: &ServerQuestion<'_>,
    params: &Map<String, Value>,
    printer: Printer,
) -> Result<Raw, RpcError> {
    let secret = question.asks_for_secret.as_deref();
    let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
    printer.note(&signed_message(question.server, message, secret));
    if let Some(url) = params.get("url") {
        let url = url.as_str().filter(|url| is_web_page(url)).ok_or_else(|| {
            RpcError::new(INVALID_PARAMS, "the URL must be `https` or lead to this machine")
        })?;
        printer.note(&format!("The server asks you to open: {}", printer.err.name(url)));
        let done = confirm(printer, "Have you done so? [y = done, N = decline]").await;
        return Ok(done.map_or_else(cancelled, |done| decided(done, None)));
    }
    let fields = form::fields(params).ok_or_else(|| {
        RpcError::new(INVALID_PARAMS, "the form has a field that a terminal does not support")
    })?;
    match confirm(printer, "Answer it? [y = answer, N = decline]").await {
        None => return Ok(cancelled()),
        Some(false) => return Ok(decided(false, None)),
        Some(true) => {}
    }
    let mut content = Map::new();
    for field in &fields {
        let is_secret = secret == Some(field.name.as_str());
        match ask_field(field, is_secret, printer).await {
            None => return Ok(cancelled()),
            Some(None) => {}
            Some(Some(value)) => drop(content.insert(field.name.clone(), value)),
        }
    }
    Ok(decided(true, Some(content)))
}

/// Asks until the answer is valid; `None` at the end of input.
async fn ask_field(field: &FormField, is_secret: bool, printer: Printer) -> Option<Option<Value>> {
    loop {
        let unseen = is_secret.then(|| printer.hide_typing());
        let typed = printer.answer(field.question()).await;
        if unseen.is_some() {
            printer.note("");
        }
        drop(unseen);
        match field.read(&typed?) {
            Ok(value) => return Some(value),
            Err(problem) => printer.note(&printer.err.warning(problem).to_string()),
        }
    }
}

async fn sample(
    question: &ServerQuestion<'_>,
    params: &Map<String, Value>,
    printer: Printer,
) -> Result<Raw, RpcError> {
    let server = clean_line(question.server.as_str(), 200);
    printer.note(&format!("The server `{server}` requests a completion of a model (sampling):"));
    printer.note(&clean_block(&conversation(params), SHOWN));
    let typed = printer.answer("Your answer instead of the model's [Enter = refuse]:".to_owned());
    match typed.await.filter(|typed| !typed.is_empty()) {
        None => Err(RpcError::new(REJECTED, "the user refused")),
        Some(text) => Ok(Raw::from_json(
            json!({
                "role": "assistant",
                "content": { "type": "text", "text": text },
                "model": "user",
                "stopReason": "endTurn",
            })
            .to_string(),
        )),
    }
}

/// The system prompt and the messages, each with its role.
fn conversation(params: &Map<String, Value>) -> String {
    let system = params.get("systemPrompt").and_then(Value::as_str);
    let system = system.map(|text| format!("system: {text}"));
    let messages = params.get("messages").and_then(Value::as_array).into_iter().flatten();
    let messages = messages.map(|message| {
        let role = message.get("role").and_then(Value::as_str).unwrap_or("?");
        let content = message.get("content").unwrap_or(&Value::Null);
        let text = match content.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => match content.get("type").and_then(Value::as_str) {
                Some(kind) => format!("({kind})"),
                None => content.to_string(),
            },
        };
        format!("{role}: {text}")
    });
    system.into_iter().chain(messages).collect::<Vec<_>>().join("\n")
}

/// Asks a question with the answers yes and no; `None` at the end of input.
async fn confirm(printer: Printer, question: &str) -> Option<bool> {
    printer.answer(question.to_owned()).await.map(|typed| is_yes(&typed))
}

fn decided(accepted: bool, content: Option<Map<String, Value>>) -> Raw {
    let action = if accepted { "accept" } else { "decline" };
    let mut answer = Map::from_iter([("action".to_owned(), Value::from(action))]);
    answer.extend(content.map(|content| ("content".to_owned(), Value::Object(content))));
    Raw::from_json(Value::Object(answer).to_string())
}

fn cancelled() -> Raw {
    Raw::from_json(r#"{"action":"cancel"}"#.to_owned())
}
