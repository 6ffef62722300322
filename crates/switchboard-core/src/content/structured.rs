//! Decides whether a text block already tells what `structuredContent` holds.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{significant, unescaped};
use crate::exact::{Numbers, is_kept};

/// Two JSON texts that differ in more than white space are compared as values up to this size.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Whether a text block (with its quotes) already tells what `structuredContent` holds.
pub(super) fn says(quoted: &str, json: &str) -> bool {
    // Indentation and escapes make a text longer, but not without end.
    if quoted.len() > json.len() * 16 + 1_024 || json.len() > quoted.len() * 2 + 64 {
        return false;
    }
    let text = unescaped(quoted);
    // A number or a word alone does not say what its name says.
    let inner =
        only(json).filter(|(name, value)| *name == "result" || value.starts_with(['"', '{', '[']));
    tells(&text, json) || inner.is_some_and(|(_, value)| tells(&text, value))
}

/// Whether text blocks (with their quotes) say the items of a list, one each and in its order:
/// frameworks give a list both ways.
pub(super) fn say_together(quoted: &[&str], json: &str) -> bool {
    let list = only(json).filter(|(name, _)| *name == "result").map_or(json, |(_, value)| value);
    if quoted.len() < 2 || !list.starts_with('[') {
        return false;
    }
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(list) else { return false };
    let pairs = || quoted.iter().zip(&items);
    items.len() == quoted.len() && pairs().all(|(text, item)| tells(&unescaped(text), item.get()))
}

/// The text that an object is the envelope of.
pub(super) fn enclosed_text(json: &str) -> Option<&str> {
    only(json).map(|(_, value)| value).filter(|value| value.starts_with('"'))
}

/// Name and value of the field of an object that has one only. Frameworks wrap whatever is no
/// object as `{"result": …}`; servers give the same once as a block and once as a field.
fn only(json: &str) -> Option<(Cow<'_, str>, &str)> {
    let Only { name, value } = serde_json::from_str(json).ok()?;
    Some((name, value.get()))
}

/// The field of an object that has no other.
struct Only<'a> {
    name: Cow<'a, str>,
    value: &'a RawValue,
}

#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
                match map.next_key::<IgnoredAny>()? {
                    None => Ok(Only { name: name.0, value }),
                    Some(_) => Err(M::Error::invalid_length(2, &self)),
                }
            }
        }
        deserializer.deserialize_map(OneField)
    }
}

fn tells(text: &str, json: &str) -> bool {
    if json.starts_with('"') {
        return text == unescaped(json);
    }
    let is_list = text.trim_start().starts_with(['{', '[']);
    if text.trim() == json
        || is_list && text.chars().filter(significant()).eq(json.chars().filter(significant()))
    {
        return true;
    }
    // Same value in another spelling: order of keys, escapes.
    let text = text.trim_start();
    let alike = text.starts_with(['{', '[']) && text.get(..1) == json.get(..1);
    if !alike || text.len().max(json.len()) > MAX_COMPARED_BYTES {
        return false;
    }
    // Two numbers that are read as one are not the same.
    if !Numbers(text).chain(Numbers(json)).all(is_kept) {
        return false;
    }
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    value(text).is_some_and(|text| Some(text) == value(json))
}
