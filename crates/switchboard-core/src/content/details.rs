//! The machine-readable details of a reply, limited in size, for `_meta["switchboard/details"]`.

use serde_json::Value;

use super::CallOutput;
use super::block::{Block, MediaKind};
use super::json::{push_json_string, significant};
use crate::nesting::shallow;
use crate::spelled::spelled_enum;

/// The maximum number of bytes of each part of the details.
pub const MAX_PART_BYTES: usize = 16 << 10;

/// The call that the details describe.
#[derive(Debug, Clone, Copy)]
pub struct CallTarget<'d> {
    pub mode: &'d str,
    pub server: &'d str,
    pub tool: &'d str,
}

/// A failure that is not a result of the server.
#[derive(Debug, Clone, Copy)]
pub struct Fault<'d> {
    pub error_type: ErrorType,
    /// The error text of the server or of the transport.
    pub original: &'d str,
    pub code: &'d str,
}

spelled_enum! {
    pub enum ErrorType {
        /// The result of the tool has `isError`.
        Tool = "MCPToolError",
        /// The arguments do not match the tool's schema.
        Validation = "ValidationError",
        /// The transport failed, the request timed out, or a message violated the protocol.
        Connection = "MCPConnectionError",
    }
}

/// Appends the details of a server's result to `json`, as compact JSON.
pub fn of_output(json: &mut String, target: &CallTarget<'_>, output: &CallOutput<'_>) {
    open(json, target);
    json.push_str(",\"mcpResult\":");
    push_bounded(json, output.raw());
    json.push_str(",\"data\":");
    push_data(json, output);
    push_images(json, output);
    if output.is_error() {
        push_field(json, "errorType", ErrorType::Tool.as_str());
        json.push_str(",\"originalError\":");
        let content = output.content.map_or("", |span| span.of(&output.raw));
        if content.len() > MAX_PART_BYTES {
            push_bounded(json, content);
        } else {
            json.push_str(&shallow(&format!("[{content}]")));
        }
    }
    json.push('}');
}

/// Appends the details of a failure to `json`, as compact JSON.
pub fn of_fault(json: &mut String, target: &CallTarget<'_>, fault: &Fault<'_>) {
    open(json, target);
    push_field(json, "errorType", fault.error_type.as_str());
    push_field(json, "originalError", beginning(fault.original));
    push_field(json, "code", fault.code);
    json.push('}');
}

fn open(json: &mut String, target: &CallTarget<'_>) {
    json.push_str("{\"mode\":");
    push_json_string(json, target.mode);
    push_field(json, "server", target.server);
    push_field(json, "tool", target.tool);
}

fn push_field(json: &mut String, name: &str, value: &str) {
    json.push_str(",\"");
    json.push_str(name);
    json.push_str("\":");
    push_json_string(json, value);
}

/// Appends JSON of the server, or just its length if it is longer than the maximum.
fn push_bounded(json: &mut String, part: &str) {
    if part.len() <= MAX_PART_BYTES {
        json.push_str(&shallow(part));
    } else {
        json.push_str(&format!("{{\"omitted\":true,\"bytes\":{}}}", part.len()));
    }
}

fn push_data(json: &mut String, output: &CallOutput<'_>) {
    if let Some(structured) = output.structured() {
        push_bounded(json, structured);
        return;
    }
    let text = output.text();
    if is_json(&text) {
        let compact: String = text.chars().filter(significant()).collect();
        json.push_str(&shallow(&compact));
        return;
    }
    json.push_str("{\"raw\":");
    push_json_string(json, beginning(&text));
    if text.len() > MAX_PART_BYTES {
        json.push_str(",\"truncated\":true");
    }
    json.push('}');
}

/// Whether a text is a JSON object or array.
fn is_json(text: &str) -> bool {
    text.len() <= MAX_PART_BYTES
        && text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_PART_BYTES)).unwrap_or_default()
}

fn push_images(json: &mut String, output: &CallOutput<'_>) {
    let mut count = 0;
    let mut mimes: Vec<&str> = Vec::new();
    for block in &output.blocks {
        if let Block::Media(MediaKind::Image, image) = block {
            count += 1;
            if !mimes.contains(&image.mime.as_str()) {
                mimes.push(&image.mime);
            }
        }
    }
    if count > 0 {
        let mimes = Value::from(mimes);
        json.push_str(&format!(",\"imageCount\":{count},\"mimeTypes\":{mimes}"));
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::{Value, json};

    use super::*;

    const ASKED: CallTarget<'static> = CallTarget { mode: "call", server: "git\"hub", tool: "t" };

    fn of(raw: &str) -> String {
        let mut json = String::new();
        of_output(&mut json, &ASKED, &CallOutput::of_call(raw));
        json
    }

    fn data_of(text: &str) -> Value {
        let raw = json!({"content": [{"type": "text", "text": text}]}).to_string();
        serde_json::from_str::<Value>(&of(&raw)).unwrap()["data"].take()
    }

    #[test]
    fn result_details_contain_a_small_result_unchanged() {
        assert_snapshot!(
            of(r#"{"content":[{"type":"text","text":"hi \"you\""}]}"#),
            @r#"{"mode":"call","server":"git\"hub","tool":"t","mcpResult":{"content":[{"type":"text","text":"hi \"you\""}]},"data":{"raw":"hi \"you\""}}"#
        );
        assert_snapshot!(
            of(r#"{"content":[{"type":"image","data":"aGk="},{"type":"image","data":"aGk="}],"structuredContent":[1]}"#),
            @r#"{"mode":"call","server":"git\"hub","tool":"t","mcpResult":{"content":[{"type":"image","data":"aGk="},{"type":"image","data":"aGk="}],"structuredContent":[1]},"data":[1],"imageCount":2,"mimeTypes":["image/png"]}"#
        );
    }

    #[test]
    fn json_object_or_array_text_becomes_data_in_details() {
        assert_eq!(data_of("{\n \"a\": \"b c\"\n}\n"), json!({"a": "b c"}));
        assert_eq!(data_of("[1]"), json!([1]));
        assert_eq!(data_of("5"), json!({"raw": "5"}));
        assert_eq!(data_of("{oops"), json!({"raw": "{oops"}));
    }

    #[test]
    fn details_of_a_failed_call_contain_the_original_error() {
        assert_snapshot!(
            of(r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#),
            @r#"{"mode":"call","server":"git\"hub","tool":"t","mcpResult":{"content":[{"type":"text","text":"no"}],"isError":true},"data":{"raw":"no"},"errorType":"MCPToolError","originalError":[{"type":"text","text":"no"}]}"#
        );
        let fault = Fault { error_type: ErrorType::Connection, original: "gone", code: "timeout" };
        let mut json = String::new();
        of_fault(&mut json, &ASKED, &fault);
        assert_snapshot!(
            json,
            @r#"{"mode":"call","server":"git\"hub","tool":"t","errorType":"MCPConnectionError","originalError":"gone","code":"timeout"}"#
        );
    }

    #[test]
    fn details_of_a_large_result_are_truncated() {
        let big = "\u{1}".repeat(100_000);
        let raw = json!({
            "content": [{"type": "text", "text": big}],
            "structuredContent": {"big": big},
            "isError": true,
        });
        let details: Value = serde_json::from_str(&of(&raw.to_string())).unwrap();
        for part in ["mcpResult", "data", "originalError"] {
            assert_eq!(details[part]["omitted"], true, "{part}");
        }
        let cut = data_of(&"é".repeat(20_000));
        assert_eq!(cut["truncated"], true);
        assert_eq!(cut["raw"].as_str().unwrap().len(), MAX_PART_BYTES);
    }
}
