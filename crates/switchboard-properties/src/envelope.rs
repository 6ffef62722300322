//! Properties of the parser of the JSON-RPC envelope.

use std::collections::HashMap;
use std::fmt;

use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_wire::envelope::{self, Id, Message};

/// The parser agrees with a second, simple parser: both accept the same messages, with the same
/// parts. An accepted message is also accepted after it is written again.
pub(crate) fn agrees_with_a_plain_reading(input: &[u8]) {
    let frame = Bytes::copy_from_slice(input);
    let parsed = envelope::parse(&frame).ok().map(|message| Parts::of(&message));
    let expected = std::str::from_utf8(input).ok().and_then(plainly);
    assert_eq!(parsed, expected);
    if let Some(parts) = parsed {
        let again = envelope::parse(&Bytes::from(parts.write())).expect("still a message");
        assert_eq!(Parts::of(&again), parts);
    }
}

/// A message as JSON texts.
#[derive(Debug, PartialEq)]
struct Parts {
    id: Option<String>,
    method: Option<String>,
    params: Option<String>,
    result: Option<String>,
    /// Whether the message has an error object. Its fields are parsed leniently, so they are not
    /// compared.
    failed: bool,
}

impl Parts {
    fn of(message: &Message) -> Parts {
        let mut parts = Parts { id: None, method: None, params: None, result: None, failed: false };
        match message {
            Message::Request { id, method, params } => {
                parts.id = Some(json(id));
                parts.method = Some(method.clone());
                parts.params = params.as_ref().map(|params| params.as_str().to_owned());
            }
            Message::Notification { method, params } => {
                parts.method = Some(method.clone());
                parts.params = params.as_ref().map(|params| params.as_str().to_owned());
            }
            Message::Answer { id, outcome } => {
                parts.id = Some(json(id));
                match outcome {
                    Ok(result) => parts.result = Some(result.as_str().to_owned()),
                    Err(_) => parts.failed = true,
                }
            }
        }
        parts
    }

    fn write(&self) -> String {
        let mut text = r#"{"jsonrpc":"2.0""#.to_owned();
        let mut field = |name: &str, value: &str| text.push_str(&format!(",\"{name}\":{value}"));
        if let Some(id) = &self.id {
            field("id", id);
        }
        if let Some(method) = &self.method {
            field("method", &Value::from(method.as_str()).to_string());
        }
        for (name, value) in [("params", &self.params), ("result", &self.result)] {
            if let Some(value) = value {
                field(name, value);
            }
        }
        if self.failed {
            field("error", "{}");
        }
        text.push('}');
        text
    }
}

fn json(id: &Id) -> String {
    let mut text = String::new();
    id.write(&mut text);
    text
}

fn plainly(text: &str) -> Option<Parts> {
    let JsonFields(mut fields) = serde_json::from_str(text).ok()?;
    if fields.remove("jsonrpc")?.parse::<String>()? != "2.0" {
        return None;
    }
    let id = match fields.remove("id") {
        None => None,
        Some(id) if id.0.starts_with('"') => Some(Value::from(id.parse::<String>()?).to_string()),
        Some(id) if id.0.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => Some(id.0),
        Some(_) => return None,
    };
    let method = match fields.remove("method") {
        None => None,
        Some(method) => Some(method.parse::<String>()?),
    };
    let [params, result, error] =
        ["params", "result", "error"].map(|name| fields.remove(name).map(|field| field.0));
    // A response has no parameters; the parser ignores them.
    let params = params.filter(|_| method.is_some());
    let failed = error.is_some();
    let answers = u8::from(result.is_some()) + u8::from(failed);
    let is_message = match (&method, &id) {
        (Some(_), _) => answers == 0,
        (None, Some(_)) => answers == 1,
        (None, None) => false,
    };
    is_message.then_some(Parts { id, method, params, result, failed })
}

/// The fields of an object; a known field must not repeat.
struct JsonFields(HashMap<String, JsonField>);

struct JsonField(String);

impl JsonField {
    fn parse<T: for<'de> Deserialize<'de>>(&self) -> Option<T> {
        serde_json::from_str(&self.0).ok()
    }
}

impl<'de> Deserialize<'de> for JsonFields {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = JsonFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonFields, A::Error> {
                const KNOWN: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
                let mut fields = HashMap::new();
                while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    let known = KNOWN.contains(&name.as_str());
                    let before = fields.insert(name, JsonField(value.get().to_owned()));
                    if known && before.is_some() {
                        return Err(serde::de::Error::custom("a checked field is there twice"));
                    }
                }
                Ok(JsonFields(fields))
            }
        }
        source.deserialize_map(Object)
    }
}
