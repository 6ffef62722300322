//! What a filter can go on: the outermost shape of some JSON, in a few words.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::render::words::clean_line;

/// Names of an object that are told, and characters of each.
const MOST_NAMES: usize = 8;
const LONGEST_NAME: usize = 40;

/// `an object with: issues, total`, or `a list of 3`; of several values, the first one.
pub fn outline(json: &str) -> Option<String> {
    Outline.deserialize(&mut serde_json::Deserializer::from_str(json)).ok()
}

struct Outline;

impl<'de> DeserializeSeed<'de> for Outline {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<String, D::Error> {
        input.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outline {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<String, A::Error> {
        let (mut names, mut count) = (Vec::new(), 0);
        while let Some((name, IgnoredAny)) = members.next_entry::<String, _>()? {
            if count < MOST_NAMES {
                names.push(clean_line(&name, LONGEST_NAME).into_owned());
            }
            count += 1;
        }
        if count > MOST_NAMES {
            names.push("…".to_owned());
        }
        Ok(match count {
            0 => "an empty object".to_owned(),
            _ => format!("an object with: {}", names.join(", ")),
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<String, A::Error> {
        let mut count = 0_usize;
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(format!("a list of {count}"))
    }

    fn visit_str<X>(self, _: &str) -> Result<String, X> {
        Ok("a string".to_owned())
    }

    fn visit_bool<X>(self, _: bool) -> Result<String, X> {
        Ok("a boolean".to_owned())
    }

    fn visit_i64<X>(self, _: i64) -> Result<String, X> {
        Ok("a number".to_owned())
    }

    fn visit_u64<X>(self, _: u64) -> Result<String, X> {
        Ok("a number".to_owned())
    }

    fn visit_f64<X>(self, _: f64) -> Result<String, X> {
        Ok("a number".to_owned())
    }

    fn visit_unit<X>(self) -> Result<String, X> {
        Ok("null".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outermost_shape_is_told() {
        let check = |json: &str, expected: &str| {
            assert_eq!(outline(json).unwrap_or_default(), expected, "{json}");
        };
        check(r#"{"issues": [1], "total\u001b": 2}"#, r"an object with: issues, total\u{1b}");
        check("{}", "an empty object");
        let many: Vec<String> = (0..20).map(|number| format!(r#""n{number}": 0"#)).collect();
        let many = format!("{{{}}}", many.join(","));
        check(&many, "an object with: n0, n1, n2, n3, n4, n5, n6, n7, …");
        check("[1, [2, 3], {}]", "a list of 3");
        check("[]\n{}", "a list of 0");
        check("\"x\"", "a string");
        check("-1", "a number");
        check("1e3", "a number");
        check("null", "null");
        check("true", "a boolean");
        check("{", "");
    }
}
