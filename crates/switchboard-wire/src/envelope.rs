//! The JSON-RPC envelope: parsed once and strictly; payloads stay unparsed bytes.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
/// Error code: the user must first visit the URLs in `data.elicitations` (revision 2025-11-25).
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// JSON text from the wire that is forwarded unchanged: valid UTF-8, one JSON value.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(ByteString);

impl Raw {
    fn within(frame: &ByteString, value: &RawValue) -> Raw {
        Raw(frame.slice_ref(value.get()))
    }

    /// Wraps JSON text without checking it. The text must be valid JSON.
    pub fn from_json(json: String) -> Raw {
        Raw(ByteString::from(json))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Copies the text out of its frame, so that the memory of the frame can be freed.
    pub fn into_string(self) -> String {
        self.0.to_string()
    }

    /// Deserialises the value into a type that may borrow from it.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl fmt::Debug for Raw {
    /// Payloads can hold secrets, so only the size is shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Raw({} bytes)", self.0.len())
    }
}

/// The maximum length of a request id in bytes. Ids are kept until their requests are answered.
const LONGEST_ID: usize = 1024;

/// A request id with its JSON type: `1` and `"1"` are different ids.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Id {
    /// An id that is an integer.
    Number(serde_json::Number),
    /// An id that is any other number, such as `1.5` or `-0`. A response repeats the id exactly as
    /// it was written.
    Odd(Box<str>),
    Text(String),
}

impl Id {
    pub fn number(value: u64) -> Id {
        Id::Number(value.into())
    }

    /// Parses a JSON value as an id; `None` if it is neither a number nor a string, or too long.
    pub fn read(json: &RawValue) -> Option<Id> {
        let json = json.get();
        if json.len() > LONGEST_ID {
            return None;
        }
        match json.as_bytes().first()? {
            b'"' => serde_json::from_str(json).ok().map(Id::Text),
            b'-' | b'0'..=b'9' => Some(match (json.parse::<u64>(), json.parse::<i64>()) {
                (Ok(number), _) => Id::number(number),
                // `-0` equals `0`, but must be returned as `-0`.
                (_, Ok(number)) if number != 0 => Id::Number(number.into()),
                (_, _) => Id::Odd(json.into()),
            }),
            _ => None,
        }
    }

    pub fn write(&self, out: &mut String) {
        match self {
            Id::Number(number) => out.push_str(&number.to_string()),
            Id::Odd(number) => out.push_str(number),
            Id::Text(text) => out.push_str(&text_json(text)),
        }
    }
}

/// A JSON-RPC error object.
#[derive(Clone, Debug, thiserror::Error)]
#[error("error {code}: {message}")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Raw>,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: message.into(), data: None }
    }
}

/// One JSON-RPC message: the content of one frame.
#[derive(Debug)]
pub enum Message {
    Request { id: Id, method: String, params: Option<Raw> },
    Notification { method: String, params: Option<Raw> },
    Answer { id: Id, outcome: Result<Raw, RpcError> },
}

/// A frame that is not a valid message. A malformed request gets an error response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the message is not valid JSON")]
    Json,
    #[error("JSON-RPC batches are not supported")]
    Batch,
    #[error("the message is larger than {limit} bytes")]
    TooLong { id: Option<Id>, limit: usize },
    /// A response with neither `result` nor `error`, or with both.
    #[error("the message is not JSON-RPC 2.0")]
    Answer { id: Id },
    #[error("the message is not JSON-RPC 2.0")]
    /// `id` is set only for a malformed request. A malformed response has the id of one of our own
    /// requests, which an error response must not repeat.
    Envelope { id: Option<Id> },
}

impl Malformed {
    pub fn code(&self) -> i64 {
        match self {
            Malformed::Json => PARSE_ERROR,
            Malformed::Batch
            | Malformed::TooLong { .. }
            | Malformed::Answer { .. }
            | Malformed::Envelope { .. } => INVALID_REQUEST,
        }
    }

    /// The id of the malformed request, if it is known.
    pub fn id(&self) -> Option<&Id> {
        match self {
            Malformed::TooLong { id, .. } | Malformed::Envelope { id } => id.as_ref(),
            Malformed::Json | Malformed::Batch | Malformed::Answer { .. } => None,
        }
    }
}

/// Parses one frame as a JSON-RPC message.
pub fn parse(frame: &Bytes) -> Result<Message, Malformed> {
    if frame.trim_ascii_start().first() == Some(&b'[') {
        return Err(Malformed::Batch);
    }
    // UTF-8 is validated once for the whole frame, so that no part needs validation again.
    let frame = ByteString::try_from(frame.clone()).map_err(|_| Malformed::Json)?;
    let frame = &frame;
    let envelope: Envelope<'_> = serde_json::from_str(frame).map_err(|error| {
        if error.is_data() {
            Malformed::Envelope { id: id_of_malformed_request(frame) }
        } else {
            Malformed::Json
        }
    })?;
    if envelope.jsonrpc.is_none_or(|version| version.0 != "2.0") {
        let asked = envelope.method.and(envelope.id);
        return Err(Malformed::Envelope { id: asked.and_then(Id::read) });
    }
    let id = match envelope.id {
        None => None,
        Some(id) => Some(Id::read(id).ok_or(Malformed::Envelope { id: None })?),
    };
    let params = envelope.params.map(|params| Raw::within(frame, params));
    match (envelope.method, id, envelope.result, envelope.error) {
        (Some(Text(method)), Some(id), None, None) => {
            Ok(Message::Request { id, method: method.into_owned(), params })
        }
        (Some(Text(method)), None, None, None) => {
            Ok(Message::Notification { method: method.into_owned(), params })
        }
        (None, Some(id), Some(result), None) => {
            Ok(Message::Answer { id, outcome: Ok(Raw::within(frame, result)) })
        }
        (None, Some(id), None, Some(error)) => {
            Ok(Message::Answer { id, outcome: Err(read_error(frame, error)) })
        }
        (None, Some(id), _, _) => Err(Malformed::Answer { id }),
        // A message that is both a request and a response is ambiguous.
        (_, _, _, _) => Err(Malformed::Envelope { id: None }),
    }
}

/// The id of a request whose envelope is otherwise malformed, such as with two methods.
fn id_of_malformed_request(frame: &str) -> Option<Id> {
    let mut has_method = false;
    let mut ids: Vec<&RawValue> = Vec::new();
    for (name, value) in serde_json::from_str::<ObjectFields<'_>>(frame).ok()?.0 {
        match &*name.0 {
            "id" => ids.push(value),
            "method" => has_method = true,
            "result" | "error" => return None,
            _ => {}
        }
    }
    match ids[..] {
        [id] if has_method => Id::read(id),
        _ => None,
    }
}

/// All fields of an object, including unknown and repeated ones.
struct ObjectFields<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = ObjectFields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut source: A,
            ) -> Result<ObjectFields<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = source.next_entry()? {
                    fields.push(field);
                }
                Ok(ObjectFields(fields))
            }
        }
        source.deserialize_map(FieldsVisitor)
    }
}

/// The fields of the envelope; serde refuses duplicate fields.
#[derive(serde::Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<Text<'a>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Distinguishes `null`, which is `Some`, from an absent field, which is `None`.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    source: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(source).map(Some)
}

/// A string that is borrowed unless it contains an escape; serde would always copy into a bare
/// `Cow`.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// Parses an error object as far as possible: a malformed error object still means that the request
/// failed.
fn read_error(frame: &ByteString, raw: &RawValue) -> RpcError {
    #[derive(serde::Deserialize)]
    struct ErrorObject<'a> {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
        #[serde(borrow, default)]
        data: Option<&'a RawValue>,
    }
    match serde_json::from_str::<ErrorObject<'_>>(raw.get()) {
        Ok(error) => RpcError {
            code: error.code,
            message: error.message,
            data: error.data.map(|data| Raw::within(frame, data)),
        },
        Err(_) => RpcError {
            code: INTERNAL_ERROR,
            message: "the error object is malformed".to_owned(),
            data: Some(Raw::within(frame, raw)),
        },
    }
}

/// Replaces line breaks by blanks. In valid JSON, line breaks occur only between tokens.
pub(crate) fn on_one_line(message: &Bytes) -> Bytes {
    let message = message.slice_ref(message.trim_ascii());
    if memchr::memchr2(b'\n', b'\r', &message).is_none() {
        return message;
    }
    let blank = |byte: &u8| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    message.iter().map(blank).collect()
}

/// Whether an over-long line that begins with `head` is a request or notification, not a response.
pub(crate) fn asks_in_head(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let before_result = text.split("\"result\"").next().unwrap_or_default();
    before_result.contains("\"method\"")
}

/// The id of an over-long response, if it is near the beginning of the line.
pub(crate) fn id_in_head(head: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(head);
    let (before, after) = text.split_once("\"id\"")?;
    if before.contains("\"result\"") { None } else { number_after_colon(after) }
}

/// The id of an over-long response, if it is near the end of the line.
pub(crate) fn id_in_tail(tail: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(tail);
    let (_, after) = text.rsplit_once("\"id\"")?;
    number_after_colon(after)
}

fn number_after_colon(text: &str) -> Option<u64> {
    let digits = text.trim_start().strip_prefix(':')?.trim_start();
    let end = digits.find(|c: char| !c.is_ascii_digit())?;
    digits.get(..end)?.parse().ok()
}

pub(crate) fn request_frame(id: u64, method: &str, params: &str) -> Bytes {
    let mut out = Vec::with_capacity(params.len() + method.len() + 64);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    write_call(&mut out, method, params);
    Bytes::from(out)
}

pub(crate) fn notification_frame(method: &str, params: &str) -> Bytes {
    let mut out = Vec::with_capacity(params.len() + method.len() + 48);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    write_call(&mut out, method, params);
    Bytes::from(out)
}

fn write_call(out: &mut Vec<u8>, method: &str, params: &str) {
    out.extend_from_slice(b",\"method\":");
    write_text(out, method);
    if !params.is_empty() {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params.as_bytes());
    }
    out.extend_from_slice(b"}\n");
}

/// A response whose result `write` appends directly to the frame, so that a large result is copied
/// only once.
pub(crate) fn result_frame(id: &Id, write: impl FnOnce(&mut String)) -> Bytes {
    let mut out = String::with_capacity(512);
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    id.write(&mut out);
    out.push_str(",\"result\":");
    write(&mut out);
    out.push_str("}\n");
    Bytes::from(out)
}

/// An error response, with a newline.
pub fn error_frame(id: Option<&Id>, error: &RpcError) -> Bytes {
    let mut out = String::with_capacity(128);
    out.push_str("{\"jsonrpc\":\"2.0\",\"id\":");
    match id {
        Some(id) => id.write(&mut out),
        None => out.push_str("null"),
    }
    out.push_str(&format!(",\"error\":{{\"code\":{},\"message\":", error.code));
    out.push_str(&text_json(&error.message));
    if let Some(data) = &error.data {
        out.push_str(",\"data\":");
        out.push_str(data.as_str());
    }
    out.push_str("}}\n");
    Bytes::from(out)
}

pub(crate) fn text_json(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// Writes a JSON string.
pub fn write_text(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string into a vector always serialises");
}

#[cfg(test)]
mod tests;
