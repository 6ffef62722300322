//! JSON that is passed on to a server. It is parsed once, must not have duplicate keys, and keeps
//! its numbers as they were written.
//!
//! A [`Value`] has 64 bits for a number. That is enough for checks, but not for passing it on:
//! `12345678901234567890123` would become another number, and `1.10` would be written differently.
//! So the text of each number that is parsed as a float is stored beside the value.

mod members;
mod reading;

use std::cell::Cell;
use std::fmt;

use serde::de::{self, Deserialize, DeserializeSeed, Deserializer};
use serde::ser::{self, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::render::words::clean_line;
pub(crate) use members::{Members, members};
use reading::Reading;
pub(crate) use reading::{Numbers, is_kept};

/// The maximum number of bytes of a key or a number in a message.
const SHOWN: usize = 64;

/// The maximum number of values in a JSON text, with [`OBJECT`] for each object and [`ARRAY`] for
/// each array. It limits memory, because a small value takes far more memory than text.
const MOST_VALUES: usize = 250_000;

/// How many values an object counts as: its table takes up to 500 bytes of memory, but an object can
/// have six bytes in the text (`{"":1}`).
const OBJECT: usize = 4;

/// How many values an array counts as: it takes up to 300 bytes of memory while it is parsed.
const ARRAY: usize = 3;

/// An estimate of the memory that a JSON text takes once it is parsed. A small value takes far more
/// memory than text.
pub fn parsed_size(text: &str) -> usize {
    /// The estimated memory of one value with its key.
    const VALUE: usize = 200;
    /// The estimated memory of the table of an object.
    const OBJECT: usize = 500;
    let values = memchr::memchr2_iter(b',', b'[', text.as_bytes()).count();
    let objects = memchr::memchr_iter(b'{', text.as_bytes()).count();
    text.len() + values * VALUE + objects * OBJECT
}

/// A JSON value that is written exactly as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Exact {
    value: Value,
    floats: Floats,
}

/// The arguments of a tool call: a JSON object that is written exactly as it was read.
#[derive(Clone, Default, PartialEq)]
pub struct Args {
    values: Map<String, Value>,
    floats: Floats,
}

/// The texts of all floats in a value, in document order.
type Floats = Vec<Box<str>>;

/// Why a JSON text cannot be passed on to a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("not valid JSON (line {line}, column {column})")]
    Syntax { line: usize, column: usize },
    /// Numbers that `f64` cannot represent cannot be validated.
    #[error("the number `{number}` is out of range")]
    OutOfRange { number: String },
    /// If a key occurs twice, parsers differ in which value they use.
    #[error("duplicate key `{name}`")]
    Twice { name: String },
    #[error("more than 250,000 values (an object counts as 4, an array as 3)")]
    TooMany,
    #[error("must be a JSON object, not {found}")]
    NotAnObject { found: &'static str },
}

impl Exact {
    pub fn parse(json: &str) -> Result<Exact, ReadError> {
        let mut reading = Reading::of(json);
        let mut source = serde_json::Deserializer::from_str(json);
        let read = reading.deserialize(&mut source);
        match read.and_then(|value| source.end().map(|()| value)) {
            Ok(value) => Ok(Exact { value, floats: reading.floats }),
            Err(error) => Err(match reading.twice {
                Some(name) => ReadError::Twice { name: shown(&name) },
                None if reading.values > MOST_VALUES => ReadError::TooMany,
                None => match reading.out_of_range() {
                    Some(number) => ReadError::OutOfRange { number: shown(number) },
                    None => ReadError::Syntax { line: error.line(), column: error.column() },
                },
            }),
        }
    }

    pub fn value(&self) -> &Value {
        &self.value
    }

    pub fn into_value(self) -> Value {
        self.value
    }

    /// Whether the [`Value`] represents all numbers exactly, without their texts.
    pub(crate) fn is_all_value(&self) -> bool {
        self.floats.iter().all(|float| is_kept(float))
    }
}

impl Args {
    pub fn parse(json: &str) -> Result<Args, ReadError> {
        Exact::parse(json)?.try_into()
    }

    /// Arguments with one member.
    pub fn of(name: &str, member: impl Into<Exact>) -> Args {
        let mut args = Args::default();
        args.insert(name, member);
        args
    }

    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Removes the member `name`, and returns its value.
    pub fn take(&mut self, name: &str) -> Option<Exact> {
        let start = self.floats_before(name);
        let value = self.values.shift_remove(name)?;
        let floats = self.floats.drain(start..start + count_floats(&value)).collect();
        Some(Exact { value, floats })
    }

    /// Replaces the value of the member `name`, or appends the member.
    pub fn insert(&mut self, name: &str, member: impl Into<Exact>) {
        let Exact { value, floats } = member.into();
        let start = self.floats_before(name);
        let replaced = self.values.insert(name.to_owned(), value);
        let end = start + replaced.as_ref().map_or(0, count_floats);
        self.floats.splice(start..end, floats);
    }

    fn floats_before(&self, name: &str) -> usize {
        let before = self.values.iter().take_while(|(known, _)| *known != name);
        before.map(|(_, value)| count_floats(value)).sum()
    }
}

/// Collects values into a JSON array.
impl FromIterator<Exact> for Exact {
    fn from_iter<T: IntoIterator<Item = Exact>>(items: T) -> Exact {
        let (mut values, mut floats) = (Vec::new(), Floats::new());
        for item in items {
            values.push(item.value);
            floats.extend(item.floats);
        }
        Exact { value: Value::Array(values), floats }
    }
}

impl From<Value> for Exact {
    fn from(value: Value) -> Exact {
        let mut floats = Floats::new();
        spell(&value, &mut floats);
        Exact { value, floats }
    }
}

impl From<Map<String, Value>> for Args {
    fn from(values: Map<String, Value>) -> Args {
        let mut floats = Floats::new();
        values.values().for_each(|value| spell(value, &mut floats));
        Args { values, floats }
    }
}

impl From<Args> for Exact {
    fn from(Args { values, floats }: Args) -> Exact {
        Exact { value: Value::Object(values), floats }
    }
}

impl TryFrom<Exact> for Args {
    type Error = ReadError;

    fn try_from(Exact { value, floats }: Exact) -> Result<Args, ReadError> {
        match value {
            Value::Object(values) => Ok(Args { values, floats }),
            other => Err(ReadError::NotAnObject { found: kind_of(&other) }),
        }
    }
}

fn spell(value: &Value, floats: &mut Floats) {
    match value {
        Value::Number(number) if number.is_f64() => floats.push(number.to_string().into()),
        Value::Array(items) => items.iter().for_each(|item| spell(item, floats)),
        Value::Object(members) => members.values().for_each(|member| spell(member, floats)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn count_floats(value: &Value) -> usize {
    match value {
        Value::Number(number) => usize::from(number.is_f64()),
        Value::Array(items) => items.iter().map(count_floats).sum(),
        Value::Object(members) => members.values().map(count_floats).sum(),
        Value::Null | Value::Bool(_) | Value::String(_) => 0,
    }
}

fn shown(text: &str) -> String {
    clean_line(text, SHOWN).into_owned()
}

/// The name of the value's JSON type, for messages.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

impl<'de> Deserialize<'de> for Exact {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Exact, D::Error> {
        let raw = <&RawValue>::deserialize(source)?;
        Exact::parse(raw.get()).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Args {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Args, D::Error> {
        Exact::deserialize(source)?.try_into().map_err(de::Error::custom)
    }
}

impl Serialize for Exact {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        Spelled { value: &self.value, floats: &Cell::new(&self.floats) }.serialize(out)
    }
}

impl Serialize for Args {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        if self.floats.is_empty() {
            return self.values.serialize(out);
        }
        spelled_members(&self.values, &Cell::new(&self.floats), out)
    }
}

/// A value, and the texts of the floats that remain to be written.
struct Spelled<'v, 'f> {
    value: &'v Value,
    floats: &'v Cell<&'f [Box<str>]>,
}

impl Serialize for Spelled<'_, '_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let Spelled { value, floats } = self;
        match value {
            Value::Number(number) if number.is_f64() => match floats.get().split_first() {
                Some((written, rest)) => {
                    floats.set(rest);
                    let number: &RawValue =
                        serde_json::from_str(written).map_err(ser::Error::custom)?;
                    number.serialize(out)
                }
                None => number.serialize(out),
            },
            Value::Array(items) => {
                out.collect_seq(items.iter().map(|value| Spelled { value, floats }))
            }
            Value::Object(members) => spelled_members(members, floats, out),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                value.serialize(out)
            }
        }
    }
}

fn spelled_members<S: Serializer>(
    members: &Map<String, Value>,
    floats: &Cell<&[Box<str>]>,
    out: S,
) -> Result<S::Ok, S::Error> {
    let mut map = out.serialize_map(Some(members.len()))?;
    for (name, value) in members {
        map.serialize_entry(name, &Spelled { value, floats })?;
    }
    map.end()
}

impl fmt::Display for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Args {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
