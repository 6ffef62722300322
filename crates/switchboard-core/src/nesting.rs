//! Limits the nesting of JSON from servers before it is passed on. Many clients drop a message that
//! nests deeper than their parser allows.

use std::borrow::Cow;

use crate::content::push_json_string;
use crate::hidden::{find_json, marked_result, strip_json, with_mark};

/// The maximum number of nested levels in a message of Switchboard.
pub const MOST_LEVELS: usize = 64;

/// The maximum number of nested levels in a part of a message, which is itself some levels deep in
/// the message.
const PART_LEVELS: usize = 56;

/// The maximum number of nested levels in a result. The message and a batch of messages add one
/// level each.
const RESULT_LEVELS: usize = MOST_LEVELS - 2;

/// JSON from a server in the form that is passed on: without hidden text, and with limited nesting.
/// Results of calls use [`result`] instead.
pub fn plain(json: &str) -> Cow<'_, str> {
    shallow_of(strip_json(json))
}

/// A result that is not data, in the form that is passed on: without hidden text. Its `_meta` has
/// the number of removed characters.
pub fn plain_result(json: &str) -> Cow<'_, str> {
    let Some(hidden) = find_json(json) else { return shallow(json) };
    let stripped = strip_json(json);
    shallow_of(with_mark(&stripped, hidden.characters).map_or(stripped, Cow::Owned))
}

/// A result that is data, in the form that is passed on. Only parts that nest too deep are changed.
/// Its `_meta` has the number of hidden characters.
pub fn result(json: &str) -> Cow<'_, str> {
    shallow_of(marked_result(json).map_or(Cow::Borrowed(json), Cow::Owned))
}

/// Converts parts that nest too deep to text, in the result that begins at `start` in `out`. Every
/// response passes this function, whatever its parts are.
pub fn confine(out: &mut String, start: usize) {
    let Some(result) = out.get(start..) else { return };
    if let Cow::Owned(shallow) = shallow_to(result, RESULT_LEVELS) {
        out.truncate(start);
        out.push_str(&shallow);
    }
}

/// The JSON with every part that nests too deep converted to text.
pub fn shallow(json: &str) -> Cow<'_, str> {
    shallow_to(json, PART_LEVELS)
}

fn shallow_of(json: Cow<'_, str>) -> Cow<'_, str> {
    match json {
        Cow::Borrowed(json) => shallow(json),
        Cow::Owned(json) => Cow::Owned(shallow(&json).into_owned()),
    }
}

fn shallow_to(json: &str, levels: usize) -> Cow<'_, str> {
    if !is_deeper(json, levels) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len());
    let (mut depth, mut from, mut deep) = (0, 0, 0);
    for (at, byte) in brackets(json) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth == levels + 1 {
                    out.push_str(&json[from..at]);
                    deep = at;
                }
            }
            _ => {
                if depth == levels + 1 {
                    push_json_string(&mut out, &json[deep..=at]);
                    from = at + 1;
                }
                depth = depth.saturating_sub(1);
            }
        }
    }
    out.push_str(json.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// Whether the JSON has more nested levels than a part of a message may have.
pub fn is_deep(json: &str) -> bool {
    is_deeper(json, PART_LEVELS)
}

pub(crate) fn is_deeper(json: &str, levels: usize) -> bool {
    // Deep nesting requires at least as many brackets as levels, and most results have few.
    if json.len() <= 2 * levels
        || memchr::memchr2_iter(b'{', b'[', json.as_bytes()).nth(levels).is_none()
    {
        return false;
    }
    let mut depth = 0_usize;
    brackets(json).any(|(_, byte)| {
        match byte {
            b'{' | b'[' => depth += 1,
            _ => depth = depth.saturating_sub(1),
        }
        depth > levels
    })
}

/// The brackets of a JSON text outside of its strings, with their offsets.
fn brackets(json: &str) -> impl Iterator<Item = (usize, u8)> {
    let bytes = json.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let byte = *bytes.get(at)?;
            at += 1;
            match byte {
                b'"' => at += string_length(bytes.get(at..)?) + 1,
                b'{' | b'[' | b'}' | b']' => return Some((at - 1, byte)),
                _ => {}
            }
        }
    })
}

/// How many bytes of `text`, which begins inside a JSON string, precede the closing quote.
pub(crate) fn string_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn nested(levels: usize, open: &str, close: &str) -> String {
        format!("{}1{}", open.repeat(levels), close.repeat(levels))
    }

    fn depth(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
            _ => 0,
        }
    }

    #[test]
    fn only_json_beyond_the_nesting_limit_becomes_text() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[ { \"]\\\\\\\"\" : ", " } ]")] {
            let per = open.matches(['[', '{']).count();
            for levels in [1, 20, 28, 55, 56, 57, 60, 100, 120] {
                let json = nested(levels, open, close);
                let passed = shallow(&json);
                let read: Value = serde_json::from_str(&passed).unwrap();
                assert!(depth(&read) <= PART_LEVELS, "{levels} {open}");
                assert_eq!(passed == json, levels * per <= PART_LEVELS, "{levels} {open}");
                if passed != json {
                    // The part below the maximum nesting must be there as text.
                    let mut deepest = &read;
                    while !deepest.is_string() {
                        deepest = match deepest {
                            Value::Array(items) => &items[0],
                            other => other.as_object().unwrap().values().next().unwrap(),
                        };
                    }
                    let text = deepest.as_str().unwrap();
                    assert!(json.contains(text) && text.contains('1'), "{text}");
                }
            }
        }
        let wide = format!("[{},{},2.50]", nested(70, "[", "]"), nested(3, "[", "]"));
        let passed = shallow(&wide);
        assert!(passed.ends_with(",[[[1]]],2.50]"), "{passed}");
    }

    #[test]
    fn flattened_message_is_nested_at_most_64_levels() {
        let part = shallow(&nested(400, "{\"a\":", "}")).into_owned();
        let message = format!("{{\"result\":{{\"tools\":[{{\"inputSchema\":{part}}}]}}}}");
        assert!(depth(&serde_json::from_str(&message).unwrap()) <= MOST_LEVELS);
    }

    #[test]
    fn removed_hidden_characters_are_counted_in_meta() {
        let json = r#"{"prompts":[{"name":"a\u200bb\u001b"}],"_meta":{"k":1.50}}"#;
        let expected =
            r#"{"prompts":[{"name":"ab"}],"_meta":{"k":1.50,"switchboard/hiddenCharacters":2}}"#;
        assert_eq!(plain_result(json), expected);
        let clean = r#"{"prompts": [ ]}"#;
        assert_eq!(plain_result(clean), clean);
    }

    #[test]
    fn written_result_never_exceeds_the_nesting_limit() {
        for levels in [1, 55, 59, 60, 61, 100, 5_000] {
            let deep = nested(levels, "{\"a\":", "}");
            for result in [
                format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"t\",\"_meta\":{deep}}}]}}"),
                format!("{{\"content\":[{{\"annotations\":{deep},\"type\":\"image\"}}]}}"),
                deep.clone(),
            ] {
                let mut out = "{\"id\":1,\"result\":".to_owned();
                let start = out.len();
                out.push_str(&result);
                confine(&mut out, start);
                out.push('}');
                let read: Value = serde_json::from_str(&out).unwrap();
                assert!(depth(&read) < MOST_LEVELS, "{levels}: {}", depth(&read));
                if levels <= 55 {
                    assert!(out.contains(&result), "{levels}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn flattening_arbitrary_text_never_panics(text in "[\\[\\]{}\"\\\\a1,: é]{0,300}") {
            shallow(&text);
            plain(&text);
        }

        #[test]
        fn json_within_the_nesting_limit_is_unchanged(levels in 0..57_usize, text in ".{0,20}") {
            let inner = Value::from(text.as_str()).to_string();
            let json = format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
            prop_assert_eq!(&*shallow(&json), &json);
        }
    }
}
