//! The members of a JSON object, with their values as text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The keys and values of an object, in order. A key may occur several times.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Members<'a> {
    /// The value of a key. Of duplicate keys, the last is used, as in most parsers.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

/// The members of an object; `None` if the text is not a JSON object.
pub(crate) fn members(json: &str) -> Option<Members<'_>> {
    serde_json::from_str(json).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    members.push((key, map.next_value::<&'de RawValue>()?.get()));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Object).map(Members)
    }
}
