//! Parses JSON into a value, and stores the texts of its floats.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::{ARRAY, Floats, MOST_VALUES, OBJECT};
use crate::nesting::string_length;

/// The state while one value is parsed.
pub(super) struct Reading<'j> {
    numbers: Numbers<'j>,
    /// The number of integers since the last float.
    integers: usize,
    pub(super) floats: Floats,
    /// The first duplicate key; `None` if there is none.
    pub(super) twice: Option<String>,
    /// The number of values parsed so far, with [`OBJECT`] for each object and [`ARRAY`] for each
    /// array.
    pub(super) values: usize,
}

impl<'j> Reading<'j> {
    pub(super) fn of(json: &'j str) -> Reading<'j> {
        let (numbers, floats) = (Numbers(json), Floats::new());
        Reading { numbers, integers: 0, floats, twice: None, values: 0 }
    }

    fn count<E: de::Error>(&mut self, values: usize) -> Result<(), E> {
        self.values += values;
        if self.values > MOST_VALUES { Err(E::custom("too many values")) } else { Ok(()) }
    }

    /// The text of the number that is too large for `f64`, if parsing failed because of it.
    pub(super) fn out_of_range(mut self) -> Option<&'j str> {
        let next = self.numbers.nth(self.integers)?;
        next.parse().is_ok_and(f64::is_infinite).then_some(next)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reading<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        self.count(1)?;
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        self.integers += 1;
        Ok(number.into())
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        self.integers += 1;
        Ok(number.into())
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Value, E> {
        let written = self.numbers.nth(std::mem::take(&mut self.integers));
        let finite = Number::from_f64(number);
        let (written, number) =
            written.zip(finite).ok_or_else(|| E::custom("a number that cannot be written"))?;
        self.floats.push(written.into());
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        self.count(ARRAY - 1)?;
        let mut items = Vec::new();
        while let Some(item) = source.next_element_seed(&mut *self)? {
            items.push(item);
        }
        // A vector first reserves memory for four values.
        items.shrink_to_fit();
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        self.count(OBJECT - 1)?;
        let mut members = Map::new();
        while let Some(name) = source.next_key::<String>()? {
            match members.entry(name) {
                Entry::Vacant(free) => {
                    free.insert(source.next_value_seed(&mut *self)?);
                }
                Entry::Occupied(taken) => {
                    self.twice = Some(taken.key().clone());
                    return Err(de::Error::custom("duplicate key"));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

/// The numbers of a JSON text in document order, as they are written.
pub(crate) struct Numbers<'j>(pub(crate) &'j str);

impl<'j> Iterator for Numbers<'j> {
    type Item = &'j str;

    fn next(&mut self) -> Option<&'j str> {
        loop {
            let start = self.0.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit())?;
            let rest = self.0.get(start..)?;
            match rest.strip_prefix('"') {
                Some(inside) => {
                    let end = string_length(inside.as_bytes());
                    self.0 = inside.get(end + 1..).unwrap_or_default();
                }
                None => {
                    let is_part = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
                    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                    let (number, after) = rest.split_at_checked(end)?;
                    self.0 = after;
                    return Some(number);
                }
            }
        }
    }
}

/// The number of decimal digits that an `f64` represents exactly.
const EXACT_DIGITS: usize = 15;

/// Whether a [`Value`] represents this number exactly.
pub(crate) fn is_kept(number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.chars().filter(char::is_ascii_digit).skip_while(|c| *c == '0').count();
    let keeps_digits = digits <= EXACT_DIGITS && number.parse::<f64>().is_ok_and(f64::is_normal);
    digits == 0 || keeps_digits || number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}
