//! The JSON types that a schema allows for a value.

use serde_json::{Map, Value};

use super::{object, refs};

/// How a word of a command line is converted to the JSON value of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The schema allows a string, so the word becomes a string.
    Text,
    /// The schema allows only other types, so the word is parsed as JSON.
    Json,
    /// The schema declares no type, so the word may become any value.
    Anything,
}

/// Whether several words for one property become an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Refused,
    /// The schema allows an array and other types. The word tells how each item is converted.
    Admitted(Word),
    /// The schema allows only an array or `null`. The word tells how each item is converted.
    Required(Word),
}

/// How a word is converted for this property of an object schema.
pub fn word(schema: &Value, property: &str) -> Word {
    property_schema(schema, property).map_or(Word::Anything, |found| word_of(schema, found))
}

/// Whether this property of an object schema allows or requires an array.
pub fn list(schema: &Value, property: &str) -> List {
    let Some(found) = property_schema(schema, property) else {
        return List::Admitted(Word::Anything);
    };
    let types = Types::of(schema, found);
    let item = items(schema, found).map_or(Word::Anything, |items| word_of(schema, items));
    if types.without(Types::NULL) == Types::ARRAY {
        List::Required(item)
    } else if types.contain(Types::ARRAY) {
        List::Admitted(item)
    } else {
        List::Refused
    }
}

fn property_schema<'s>(schema: &'s Value, property: &str) -> Option<&'s Value> {
    let fields = object::fields(schema, schema);
    let declared = fields.iter().find(|field| field.name == property).map(|field| field.schema);
    declared.or_else(|| object::extra(schema, schema))
}

fn word_of(root: &Value, schema: &Value) -> Word {
    match Types::of(root, schema) {
        Types::ANY => Word::Anything,
        types if types.contain(Types::STRING) => Word::Text,
        _ => Word::Json,
    }
}

/// The schema of an array's items. The array may be one of several alternatives.
fn items<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let schema = refs::resolve(root, schema)?;
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        return Some(items);
    }
    let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array())?;
    let branch = branches.iter().find(|branch| Types::of(root, branch).contain(Types::ARRAY))?;
    refs::resolve(root, branch)?.get("items").filter(|items| items.is_object())
}

/// The first name in `given` that is not a declared property.
pub fn undeclared<'g>(schema: &Value, given: &'g Map<String, Value>) -> Option<&'g str> {
    let fields = object::fields(schema, schema);
    let is_declared = |name: &str| fields.iter().any(|field| field.name == name);
    given.keys().map(String::as_str).find(|name| !is_declared(name))
}

/// How many levels of `allOf`, `anyOf` and `oneOf` are examined. Below, every type is regarded as
/// allowed.
const MAX_LEVELS: usize = 6;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types(1);
    pub(super) const BOOLEAN: Types = Types(1 << 1);
    pub(super) const STRING: Types = Types(1 << 2);
    pub(super) const ARRAY: Types = Types(1 << 3);
    pub(super) const OBJECT: Types = Types(1 << 4);
    pub(super) const INTEGER: Types = Types(1 << 5);
    /// A number with a fraction. `number` in a schema means this type and `INTEGER`.
    const FRACTION: Types = Types(1 << 6);
    pub(super) const ANY: Types = Types(0x7f);

    pub(super) fn of(root: &Value, schema: &Value) -> Types {
        Types::admitted(root, schema, 0)
    }

    pub(super) fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
            Value::Number(number) if number.as_f64().is_some_and(|n| n.fract() == 0.0) => {
                Types::INTEGER
            }
            Value::Number(_) => Types::FRACTION,
        }
    }

    pub(super) fn contain(self, other: Types) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) fn without(self, other: Types) -> Types {
        Types(self.0 & !other.0)
    }

    fn admitted(root: &Value, schema: &Value, level: usize) -> Types {
        let Some(schema) = refs::resolve(root, schema) else {
            return Types::ANY;
        };
        if level > MAX_LEVELS {
            return Types::ANY;
        }
        let mut types = match schema.get("type") {
            Some(Value::String(name)) => Types::named(name),
            Some(Value::Array(names)) => {
                union(names.iter().filter_map(Value::as_str), Types::named)
            }
            _ => Types::ANY,
        };
        if let Some(value) = schema.get("const") {
            types = types.and(Types::of_value(value));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            types = types.and(union(values, Types::of_value));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                let admitted = |branch| Types::admitted(root, branch, level + 1);
                types = types.and(union(branches, admitted));
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                types = types.and(Types::admitted(root, part, level + 1));
            }
        }
        types
    }

    fn named(name: &str) -> Types {
        match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            "integer" => Types::INTEGER,
            "number" => Types(Types::INTEGER.0 | Types::FRACTION.0),
            _ => Types::ANY,
        }
    }

    fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }
}

fn union<T>(values: impl IntoIterator<Item = T>, types: impl Fn(T) -> Types) -> Types {
    values.into_iter().fold(Types::NONE, |all, value| Types(all.0 | types(value).0))
}
