//! Describes the outermost level of a JSON text, as a help for writing a filter.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::render::words::clean_line;

/// The maximum number of an object's keys that are listed, and of the characters of each.
const MOST_NAMES: usize = 8;
const LONGEST_NAME: usize = 40;

/// A description such as `an object with: issues, total` or `a list of 3`. Of several JSON values,
/// the first is described.
pub fn outline(json: &str) -> Option<String> {
    let mut input = serde_json::Deserializer::from_str(json);
    Some(match json.trim_start().chars().next()? {
        '{' => object(&BTreeMap::deserialize(&mut input).ok()?),
        '[' => format!("a list of {}", Vec::<IgnoredAny>::deserialize(&mut input).ok()?.len()),
        '"' => "a string".to_owned(),
        't' | 'f' => "a boolean".to_owned(),
        'n' => "null".to_owned(),
        _ => "a number".to_owned(),
    })
}

fn object(members: &BTreeMap<String, IgnoredAny>) -> String {
    if members.is_empty() {
        return "an empty object".to_owned();
    }
    let names = members.keys().take(MOST_NAMES).map(|name| clean_line(name, LONGEST_NAME));
    let names: Vec<_> = names.collect();
    let more = if members.len() > MOST_NAMES { ", …" } else { "" };
    format!("an object with: {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_outline_describes_only_the_outermost_value() {
        let check = |json: &str, expected: &str| {
            assert_eq!(outline(json).unwrap_or_default(), expected, "{json}");
        };
        check(r#"{"issues": [1], "total\u001b": 2}"#, r"an object with: issues, total\u{1b}");
        check("{}", "an empty object");
        let many: Vec<String> = (10..30).map(|number| format!(r#""n{number}": 0"#)).collect();
        let many = format!("{{{}}}", many.join(","));
        check(&many, "an object with: n10, n11, n12, n13, n14, n15, n16, n17, …");
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
