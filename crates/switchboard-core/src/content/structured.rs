//! Decides whether a text block already tells what `structuredContent` holds.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{significant, unescaped};

/// Two JSON texts that differ in more than white space are compared as values up to this size.
const MAX_COMPARED_BYTES: usize = 64 << 10;

/// Whether a text block (with its quotes) already tells what `structuredContent` holds.
pub(super) fn says(quoted: &str, json: &str) -> bool {
    // Indentation and escapes make a text longer, but not without end.
    if quoted.len() > json.len() * 16 + 1_024 || json.len() > quoted.len() * 2 + 64 {
        return false;
    }
    let text = unescaped(quoted);
    tells(&text, json) || wrapped(json).is_some_and(|inner| tells(&text, inner))
}

/// What an object says that has one field only. Frameworks wrap whatever is no object as
/// `{"result": …}`; servers give the same text once as a block and once as a field.
fn wrapped(json: &str) -> Option<&str> {
    let Only { name, value } = serde_json::from_str(json).ok()?;
    let value = value.get();
    (name == "result" || value.starts_with('"')).then_some(value)
}

/// The field of an object that has no other.
struct Only<'a> {
    name: Cow<'a, str>,
    value: &'a RawValue,
}

impl<'de: 'a, 'a> Deserialize<'de> for Only<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneField;
        impl<'de> Visitor<'de> for OneField {
            type Value = Only<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with one field")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Only<'de>, M::Error> {
                let none = || M::Error::invalid_length(0, &self);
                let (name, value) = map.next_entry::<Name<'de>, _>()?.ok_or_else(none)?;
                match map.next_key::<Name<'de>>()? {
                    None => Ok(Only { name: name.0, value }),
                    Some(_) => Err(M::Error::invalid_length(2, &self)),
                }
            }
        }
        deserializer.deserialize_map(OneField)
    }
}

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

fn tells(text: &str, json: &str) -> bool {
    if json.starts_with('"') {
        return text == unescaped(json);
    }
    if text.chars().filter(significant()).eq(json.chars().filter(significant())) {
        return true;
    }
    // Same value in another spelling: order of keys, escapes.
    let text = text.trim_start();
    let alike = text.starts_with(['{', '[']) && text.get(..1) == json.get(..1);
    if !alike || text.len().max(json.len()) > MAX_COMPARED_BYTES {
        return false;
    }
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    value(text).is_some_and(|text| Some(text) == value(json))
}
