//! Checks whether the text blocks already contain the data of `structuredContent`.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::{significant, unescaped};
use crate::exact::{Numbers, is_kept};

/// The size limit of JSON texts that are compared as values.
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// Whether a text block contains the data of `structuredContent`. `quoted` is the text with its
/// quotes.
pub(super) fn contains_data(quoted: &str, json: &str) -> bool {
    // Indentation and escapes lengthen a text only by a limited factor, so very different lengths
    // mean different data.
    if quoted.len() > json.len() * 16 + 1_024 || json.len() > quoted.len() * 2 + 64 {
        return false;
    }
    let text = unescaped(quoted);
    // A text that is only a number or boolean may have another meaning than a field with that
    // value, except for the field `result` of frameworks.
    let inner =
        only(json).filter(|(name, value)| *name == "result" || value.starts_with(['"', '{', '[']));
    is_same_json(&text, json) || inner.is_some_and(|(_, value)| is_same_json(&text, value))
}

/// Whether the text blocks are the items of an array in `structuredContent`, one block per item.
/// Some frameworks send an array in both forms. The texts in `quoted` have their quotes.
pub(super) fn are_items(quoted: &[&str], json: &str) -> bool {
    let list = only(json).filter(|(name, _)| *name == "result").map_or(json, |(_, value)| value);
    if quoted.len() < 2 || !list.starts_with('[') {
        return false;
    }
    let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(list) else { return false };
    let pairs = || quoted.iter().zip(&items);
    items.len() == quoted.len()
        && pairs().all(|(text, item)| is_same_json(&unescaped(text), item.get()))
}

/// The string in an object that has only this field; `None` for other objects.
pub(super) fn enclosed_text(json: &str) -> Option<&str> {
    only(json).map(|(_, value)| value).filter(|value| value.starts_with('"'))
}

/// The key and value of an object with a single field. Frameworks wrap a value that is not an
/// object as `{"result": …}`, and servers also send the value as a text block.
fn only(json: &str) -> Option<(Cow<'_, str>, &str)> {
    let Only { name, value } = serde_json::from_str(json).ok()?;
    Some((name, value.get()))
}

/// An object with exactly one field.
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

fn is_same_json(text: &str, json: &str) -> bool {
    if json.starts_with('"') {
        return text == unescaped(json);
    }
    let is_list = text.trim_start().starts_with(['{', '[']);
    if text.trim() == json
        || is_list && text.chars().filter(significant()).eq(json.chars().filter(significant()))
    {
        return true;
    }
    // The values are compared, because the order of keys and the escapes may differ.
    let text = text.trim_start();
    let alike = text.starts_with(['{', '[']) && text.get(..1) == json.get(..1);
    if !alike || text.len().max(json.len()) > MAX_COMPARED_BYTES {
        return false;
    }
    // Numbers that `f64` does not represent exactly could be equal as `f64` although they differ.
    if !Numbers(text).chain(Numbers(json)).all(is_kept) {
        return false;
    }
    let value = |json: &str| serde_json::from_str::<serde_json::Value>(json).ok();
    value(text).is_some_and(|text| Some(text) == value(json))
}
