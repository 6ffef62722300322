//! Printing results: as text, as JSON, as the raw result, or as the bytes of a blob.

use serde_json::{Value, json};
use switchboard::content::{CallOutput, Part, ResultForm};
use switchboard::failure::{Failure, Hint};
use switchboard::hidden;
use switchboard::render;
use switchboard::render::words::{clean_block, clean_line, plural, thousands};
use switchboard::reply::{Output, OutputOrigin, Reply};

use super::saving::{Destination, Saved};
use crate::args::Format;
use crate::args::call::Printed;
use crate::conversation::Conversation;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::report::CommandResult;

/// How a result that consists of one blob is printed into a pipe or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlobForm {
    /// The decoded bytes: the blob is the content of a resource.
    Bytes,
    Note,
}

/// How a result is printed.
pub(super) struct PrintOptions<'a> {
    pub(super) blob: BlobForm,
    pub(super) printed: &'a Printed,
    pub(super) save: Option<Destination>,
}

pub(super) fn print(
    conversation: &Conversation<'_>,
    reply: &Reply,
    PrintOptions { blob, printed, save }: PrintOptions<'_>,
) -> CommandResult {
    let (printer, format) = (conversation.app.printer, printed.format);
    let Reply::Output(output) = reply else {
        conversation.print(reply, format)?;
        return Ok(Exit::Done);
    };
    if let Some(unselected) = &output.unselected {
        return Err(without_filter(conversation, output, unselected, format).into());
    }
    let content = &output.content;
    // The call was made, so its result is printed even if saving fails.
    let (saved, unsaved) = match save.map(|save| save.write(content)) {
        None => (Vec::new(), None),
        Some((saved, failure)) => (saved, failure),
    };
    if printed.save.is_some() && saved.is_empty() && unsaved.is_none() {
        printer.warn("the result has no image, audio or blob: nothing was saved");
    }
    let exit = if content.is_error() { Exit::ToolError } else { Exit::Done };
    // The blob of this result, if the result has no other content.
    let only_blob = content.spills(&ResultForm::default()).pop();
    let only_blob = only_blob.filter(|_| content.parts().count() == 1);
    match only_blob.filter(|_| blob == BlobForm::Bytes && printed.save.is_none()) {
        _ if printed.raw => printer.foreign(content.raw())?,
        _ if format.json => printer.json(&whole(reply, output, &saved))?,
        Some(blob) if !printer.is_read() => {
            printer.bytes(&blob.decode_whole().map_err(std::io::Error::other)?)?;
        }
        Some(_) | None => match content.selected() {
            Some(selected) => print_text(printer, selected.trim_end_matches('\n'), exit)?,
            None => print_text(printer, &text(content, &saved), exit)?,
        },
    }
    match unsaved {
        Some(failure) => Err(failure.into()),
        None => Ok(exit),
    }
}

fn print_text(printer: Printer, text: &str, exit: Exit) -> std::io::Result<()> {
    if exit == Exit::ToolError {
        let text = clean_block(text, usize::MAX);
        printer.note(&format!("{} {text}", printer.err.error("error:")));
    } else {
        printer.foreign(text)?;
    }
    if let Some(hidden) = hidden::find(text) {
        let count = plural(hidden.characters, "hidden character");
        printer.warn(&format!("{count} in this result"));
    }
    Ok(())
}

/// Prints the unfiltered result before the failure of the filter, because the call was made and no
/// later command can read its result.
fn without_filter(
    conversation: &Conversation<'_>,
    output: &Output,
    unselected: &Failure,
    format: Format,
) -> Failure {
    let whole = text(&output.content, &[]);
    if format.json {
        conversation.app.printer.note(&clean_block(&whole, usize::MAX));
    } else {
        let _closed = conversation.app.printer.foreign(&whole);
    }
    let mut failure = unselected.clone();
    failure.hints.retain(|hint| !matches!(hint, Hint::ReadResult(_)));
    failure
}

/// All text, with a note in place of each image, audio and blob.
fn text(content: &CallOutput<'_>, saved: &[Saved]) -> String {
    let blobs = content.spills(&ResultForm::default());
    let note = |index: usize, what: &str, mime: &str, bytes: usize| {
        let path = saved.iter().find(|saved| saved.block == index);
        let path = path.map(|saved| saved.path.to_string_lossy());
        let path = path.map(|path| format!(", saved to {}", clean_line(&path, 500)));
        let path = path.unwrap_or_default();
        format!("[{what} {}, {} bytes{path}]", clean_line(mime, 100), thousands(bytes))
    };
    let mut parts = Vec::new();
    for (index, part) in content.parts().enumerate() {
        let blob = blobs.iter().find(|blob| blob.block == index);
        parts.push(match (part, blob) {
            (_, Some(blob)) => {
                let length = blob.decode_whole().map_or(0, |bytes| bytes.len());
                note(index, "blob", blob.mime, length)
            }
            (Part::Text(text), None) => text.into_owned(),
            (Part::Image(media), None) => {
                note(index, "image", media.mime, decoded_len(&media.data))
            }
            (Part::Audio(media), None) => {
                note(index, "audio", media.mime, decoded_len(&media.data))
            }
        });
    }
    parts.join("\n")
}

/// The number of bytes that a Base64 text decodes to.
fn decoded_len(data: &str) -> usize {
    let symbols = data.bytes().filter(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(byte));
    symbols.count() * 3 / 4
}

/// The JSON of an output. Every block is unchanged from the server.
fn whole(reply: &Reply, output: &Output, saved: &[Saved]) -> Value {
    let mut value = render::json::reply(reply);
    if !saved.is_empty() {
        value["saved"] = saved.iter().map(|saved| saved.path.to_string_lossy()).collect();
    }
    if output.content.selected().is_some() {
        return value;
    }
    let raw: Value = serde_json::from_str(output.content.raw()).unwrap_or_default();
    let blocks = match (raw.get("content"), raw.get("contents")) {
        (Some(Value::Array(blocks)), _) if output.origin == OutputOrigin::Tool => {
            Some(blocks.clone())
        }
        (_, Some(Value::Array(items))) if output.origin != OutputOrigin::Prompt => {
            Some(items.iter().map(block_of).collect())
        }
        _ => None,
    };
    if let (OutputOrigin::Prompt, Some(messages)) = (output.origin, raw.get("messages")) {
        value["messages"] = messages.clone();
    }
    if let Some(blocks) = blocks {
        value["content"] = Value::Array(blocks);
    }
    value
}

/// Converts a resource content into a content block.
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
    fn base64_length_is_the_number_of_decoded_bytes() {
        let check = |data: &str, expected: usize| assert_eq!(decoded_len(data), expected);
        check("", 0);
        check("AA==", 1);
        check("AAA=", 2);
        check("AAAA\nAAAA", 6);
    }
}
