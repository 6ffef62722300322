//! The arguments of an `mcp` call, parsed directly from the text of the message.

use serde::de::{self, Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::table::PARAMETERS;
use crate::exact::{Exact, Members, ReadError, kind_of, members};

/// The arguments of an `mcp` call, in the order of the message.
#[derive(Clone, Debug)]
pub enum Arguments {
    Given(Vec<(String, Exact)>),
    /// The arguments are not an object.
    Other {
        found: &'static str,
    },
    /// The arguments inside `args` cannot be passed on to a tool.
    Unread(ReadError),
    /// The call has too many parameters.
    TooMany,
}

/// The maximum number of parameters of a call: those of `mcp`, and some that may belong to a tool.
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
    /// Rejects a parameter that occurs twice, because its value would be ambiguous.
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Arguments, D::Error> {
        let json = <&RawValue>::deserialize(source)?.get();
        let value = |json| serde_json::from_str::<Value>(json).map_err(de::Error::custom);
        let Some(Members(members)) = members(json) else {
            return value(json).map(Arguments::from);
        };
        let mut given: Vec<(String, Exact)> = Vec::new();
        let mut unread = None;
        for (name, json) in members {
            if given.len() >= MOST {
                return Ok(Arguments::TooMany);
            }
            if given.iter().any(|(known, _)| *known == name) {
                return Err(de::Error::custom("a parameter is given twice"));
            }
            let is_ours = PARAMETERS.iter().any(|parameter| parameter.name == name);
            if is_ours && name != "args" {
                given.push((name.into_owned(), value(json)?.into()));
                continue;
            }
            // The value keeps its exact text, because it is passed on to a server.
            match Exact::parse(json) {
                Ok(value) => given.push((name.into_owned(), value)),
                Err(cause) => unread = Some(cause),
            }
        }
        Ok(unread.map_or(Arguments::Given(given), Arguments::Unread))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn duplicate_parameter_of_mcp_is_refused() {
        let twice = r#"{"tool": "a", "tool": "b"}"#;
        assert!(serde_json::from_str::<Arguments>(twice).is_err());
    }

    #[test]
    fn too_many_unknown_parameters_of_mcp_are_refused() {
        let many: Map<String, Value> =
            (0..1_000).map(|number| (format!("p{number}"), json!("x"))).collect();
        let read: Arguments = serde_json::from_str(&Value::Object(many).to_string()).unwrap();
        assert!(matches!(read, Arguments::TooMany));
    }
}
