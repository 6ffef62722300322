//! Extracts the searchable text of an input schema.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The maximum size of a schema that is indexed, in bytes.
const LARGEST_SCHEMA: usize = 256 * 1024;
const DEEPEST: usize = 64;

/// A piece of text in a schema that is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// The name of a property.
    Name(&'a str),
    /// A description or an enum value of a property.
    Text(&'a str),
}

/// Calls `emit` with each piece of text in a schema, in document order. If the JSON is malformed,
/// the walk ends at the error.
///
/// The schema is parsed as a stream: most of it is not searchable, and parsing it into a value took
/// most of the indexing time.
pub(super) fn walk(schema: &str, mut emit: impl FnMut(Piece<'_>)) {
    if schema.len() > LARGEST_SCHEMA {
        return;
    }
    let root = Node { place: KeywordKind::Schema, depth: 0, emit: &mut emit };
    // A parse error only ends the walk: the texts before it are indexed.
    let _ = root.deserialize(&mut serde_json::Deserializer::from_str(schema));
}

/// The next value of a schema to be parsed, with its kind.
struct Node<'e, E> {
    place: KeywordKind,
    depth: usize,
    emit: &'e mut E,
}

impl<E: FnMut(Piece<'_>)> Node<'_, E> {
    fn child(&mut self, place: KeywordKind) -> Node<'_, E> {
        Node { place, depth: self.depth + 1, emit: self.emit }
    }
}

impl<'de, E: FnMut(Piece<'_>)> DeserializeSeed<'de> for Node<'_, E> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        if self.depth > DEEPEST {
            return input.deserialize_ignored_any(IgnoredAny).map(drop);
        }
        input.deserialize_any(self)
    }
}

impl<'de, E: FnMut(Piece<'_>)> Visitor<'de> for Node<'_, E> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON schema")
    }

    fn visit_str<X>(self, text: &str) -> Result<(), X> {
        if matches!(self.place, KeywordKind::Text) {
            (self.emit)(Piece::Text(text));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut values: A) -> Result<(), A::Error> {
        match self.place {
            KeywordKind::Schema | KeywordKind::Text => {
                let place = self.place;
                while values.next_element_seed(self.child(place))?.is_some() {}
            }
            KeywordKind::Properties | KeywordKind::Definitions => {
                while values.next_element::<IgnoredAny>()?.is_some() {}
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(place) = members.next_key_seed(Member(&mut self))? {
            match place {
                Some(place) => members.next_value_seed(self.child(place))?,
                None => members.next_value::<IgnoredAny>().map(drop)?,
            }
        }
        Ok(())
    }

    fn visit_bool<X>(self, _: bool) -> Result<(), X> {
        Ok(())
    }

    fn visit_i64<X>(self, _: i64) -> Result<(), X> {
        Ok(())
    }

    fn visit_u64<X>(self, _: u64) -> Result<(), X> {
        Ok(())
    }

    fn visit_f64<X>(self, _: f64) -> Result<(), X> {
        Ok(())
    }

    fn visit_unit<X>(self) -> Result<(), X> {
        Ok(())
    }
}

/// Parses the key of an object member: gives the kind of the member's value, if that can contain
/// text.
struct Member<'n, 'e, E>(&'n mut Node<'e, E>);

impl<'de, E: FnMut(Piece<'_>)> DeserializeSeed<'de> for Member<'_, '_, E> {
    type Value = Option<KeywordKind>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Option<KeywordKind>, D::Error> {
        input.deserialize_str(self)
    }
}

impl<E: FnMut(Piece<'_>)> Visitor<'_> for Member<'_, '_, E> {
    type Value = Option<KeywordKind>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<X>(self, key: &str) -> Result<Option<KeywordKind>, X> {
        Ok(match self.0.place {
            KeywordKind::Schema => KeywordKind::of(key),
            KeywordKind::Properties => {
                (self.0.emit)(Piece::Name(key));
                Some(KeywordKind::Schema)
            }
            KeywordKind::Definitions => Some(KeywordKind::Schema),
            KeywordKind::Text => None,
        })
    }
}

/// The kind of a value in a schema, given by its keyword.
#[derive(Debug, Clone, Copy)]
enum KeywordKind {
    /// A schema, or an array of schemas.
    Schema,
    /// An object with a schema for each name of a property.
    Properties,
    /// An object with a schema for each name, where the names are not properties of the arguments.
    Definitions,
    /// A text, or an array of values with texts among them.
    Text,
}

impl KeywordKind {
    /// The kind of a keyword's value; `None` if it has no searchable text. `title` is not indexed,
    /// because generators repeat the name of the property there.
    fn of(keyword: &str) -> Option<KeywordKind> {
        match keyword {
            "properties" => Some(KeywordKind::Properties),
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                Some(KeywordKind::Definitions)
            }
            "description" | "enum" | "const" => Some(KeywordKind::Text),
            "items"
            | "prefixItems"
            | "additionalProperties"
            | "anyOf"
            | "oneOf"
            | "allOf"
            | "if"
            | "then"
            | "else"
            | "contains" => Some(KeywordKind::Schema),
            _ => None,
        }
    }
}
