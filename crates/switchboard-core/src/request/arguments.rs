//! The arguments of an `mcp` call, parsed directly from the message.

use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::table::PARAMETERS;
use crate::exact::{Exact, ReadError, kind_of};

/// The arguments of an `mcp` call, as in the message. A handful of pairs needs no map.
#[derive(Clone, Debug)]
pub enum Arguments {
    Given(Vec<(String, Exact)>),
    /// Something else than an object.
    Other {
        found: &'static str,
    },
    /// The arguments of the tool cannot be passed on.
    Unread(ReadError),
    /// Too many parameters.
    TooMany,
}

/// The most parameters that are kept: those of `mcp`, and some that may be meant for a tool.
const MOST: usize = 64;

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::Given(Vec::new())
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Arguments {
        match value {
            Value::Null => Arguments::default(),
            Value::Object(given) => Arguments::Given(
                given.into_iter().map(|(name, value)| (name, value.into())).collect(),
            ),
            other => Arguments::Other { found: kind_of(&other) },
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Arguments, D::Error> {
        source.deserialize_any(ArgumentsVisitor)
    }
}

struct ArgumentsVisitor;

impl ArgumentsVisitor {
    fn other<E>(found: &'static str) -> Result<Arguments, E> {
        Ok(Arguments::Other { found })
    }
}

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Arguments;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the arguments of `mcp`")
    }

    /// Rejects a duplicate parameter, which is ambiguous.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Arguments, A::Error> {
        let mut given: Vec<(String, Exact)> = Vec::new();
        let mut unread = None;
        while let Some(name) = map.next_key::<String>()? {
            if given.len() >= MOST {
                map.next_value::<de::IgnoredAny>()?;
                unread = Some(Arguments::TooMany);
                continue;
            }
            if given.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom("a parameter is given twice"));
            }
            let is_ours = PARAMETERS.iter().any(|parameter| parameter.name == name);
            let value = if is_ours && name != "args" {
                Ok(map.next_value::<Value>()?.into())
            } else {
                // This is passed on to a server.
                Exact::parse(map.next_value::<&RawValue>()?.get())
            };
            match value {
                Ok(value) => given.push((name, value)),
                Err(cause) => unread = Some(Arguments::Unread(cause)),
            }
        }
        Ok(unread.unwrap_or(Arguments::Given(given)))
    }

    fn visit_unit<E>(self) -> Result<Arguments, E> {
        Ok(Arguments::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Arguments, E> {
        Self::other("a boolean")
    }

    fn visit_i64<E>(self, _: i64) -> Result<Arguments, E> {
        Self::other("a number")
    }

    fn visit_u64<E>(self, _: u64) -> Result<Arguments, E> {
        Self::other("a number")
    }

    fn visit_f64<E>(self, _: f64) -> Result<Arguments, E> {
        Self::other("a number")
    }

    fn visit_str<E>(self, _: &str) -> Result<Arguments, E> {
        Self::other("a string")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Arguments, A::Error> {
        while list.next_element::<de::IgnoredAny>()?.is_some() {}
        Self::other("an array")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn duplicate_parameter_is_refused() {
        let twice = r#"{"tool": "a", "tool": "b"}"#;
        assert!(serde_json::from_str::<Arguments>(twice).is_err());
    }

    #[test]
    fn excess_unknown_parameters_are_not_stored() {
        let many: Map<String, Value> =
            (0..1_000).map(|number| (format!("p{number}"), json!("x"))).collect();
        let read: Arguments = serde_json::from_str(&Value::Object(many).to_string()).unwrap();
        assert!(matches!(read, Arguments::TooMany));
    }
}
