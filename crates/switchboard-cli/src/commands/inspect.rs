//! Sends one request to one server, and prints the raw response.

use serde_json::{Value, json};
use switchboard::exact::Args;
use switchboard::failure::Failure;
use switchboard::inspect::Inspected;

use super::call;
use crate::args::inspect::Inspect;
use crate::call_args::{self, ArgSource};
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::CommandResult;

pub(super) async fn inspect(conversation: &Conversation<'_>, options: Inspect) -> CommandResult {
    let Inspect { server, method, params, yes: _, format: _ } = options;
    let printer = conversation.app.printer;
    let Some(method) = method else {
        let hello = conversation.session.inspect(&server);
        let hello = conversation.wait(async || format!("connecting to {server}"), hello).await?;
        print(printer, hello.as_str())?;
        return Ok(Exit::Done);
    };
    let params = match &params {
        Some(source) => {
            let (mut input, source) = (conversation.app.input(), ArgSource::of(source));
            let text = call::reading(move || input.text(source)).await;
            text.and_then(|text| call_args::params(&text)).map_err(Failure::from)?
        }
        None => Args::default(),
    };
    let answer = conversation.session.inspect_method(&server, &method, params);
    match conversation.wait(async || format!("waiting for {server}"), answer).await? {
        Inspected::Result(result) => {
            print(printer, result.as_str())?;
            Ok(Exit::Done)
        }
        Inspected::Error(error) => {
            let data = error.data.as_ref().and_then(|data| data.parse::<Value>().ok());
            let mut fields = json!({ "code": error.code, "message": error.message });
            if let (Some(data), Some(fields)) = (data, fields.as_object_mut()) {
                fields.insert("data".to_owned(), data);
            }
            print(printer, &json!({ "error": fields }).to_string())?;
            Ok(Exit::ToolError)
        }
    }
}

/// Prints JSON: unchanged into a file or a pipe, indented on a terminal.
fn print(printer: Printer, json: &str) -> std::io::Result<()> {
    match serde_json::from_str::<Value>(json) {
        Ok(value) if printer.is_read() => printer.json(&value),
        Ok(_) | Err(_) => printer.foreign(json),
    }
}
