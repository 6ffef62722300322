//! Properties of edits of any file. The result parses, contains exactly the requested change and
//! keeps all comments. Removing an added value restores the original bytes.

use jsonc_parser::tokens::Token;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::super::{Change, Document, Edit, apply, value_at};

/// A JSON object with blanks and comments, as in a file written by hand.
fn document() -> impl Strategy<Value = String> {
    let newline = prop_oneof![Just("\n"), Just("\r\n")];
    let mark = prop_oneof![4 => Just(""), 1 => Just("\u{feff}")];
    (mark, filler(), object(3), filler(), newline).prop_map(
        |(mark, before, object, after, newline)| {
            format!("{mark}{}", format!("{before}{object}{after}").replace('\n', newline))
        },
    )
}

fn filler() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(String::new()),
        2 => Just(" ".to_owned()),
        3 => Just("\n  ".to_owned()),
        1 => Just("\n\t".to_owned()),
        1 => Just(" // , \"a\": {\u{a0}\n".to_owned()),
        1 => Just("/* } */".to_owned()),
    ]
}

fn key() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("mcpServers"), Just("c d"), Just("é\\\"")]
}

fn value(depth: u32) -> BoxedStrategy<String> {
    let plain = prop_oneof![
        Just("1".to_owned()),
        Just("null".to_owned()),
        Just("\"x\"".to_owned()),
        Just("\"// y\"".to_owned()),
    ];
    if depth == 0 {
        return plain.boxed();
    }
    prop_oneof![plain, object(depth - 1), array(depth - 1)].boxed()
}

fn object(depth: u32) -> BoxedStrategy<String> {
    let member = (key(), filler(), value(depth))
        .prop_map(|(key, gap, value)| format!("\"{key}\":{gap}{value}"));
    sequence(member.boxed()).prop_map(|inside| format!("{{{inside}}}")).boxed()
}

fn array(depth: u32) -> BoxedStrategy<String> {
    sequence(value(depth)).prop_map(|inside| format!("[{inside}]")).boxed()
}

fn sequence(item: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let item = (filler(), item, filler()).prop_map(|(a, item, b)| format!("{a}{item}{b}"));
    (prop::collection::vec(item, 0..4), filler(), any::<bool>()).prop_map(
        |(items, rest, trailing)| {
            let comma = if trailing && !items.is_empty() { "," } else { "" };
            format!("{}{comma}{rest}", items.join(","))
        },
    )
}

fn edit() -> impl Strategy<Value = Edit> {
    let path = prop::collection::vec(key().prop_map(|key| key.replace('\\', "")), 1..4);
    let change = prop_oneof![
        Just(Change::Set(json!({ "command": "x", "args": ["y"], "env": {} }))),
        Just(Change::Set(json!({ "a": 1, "b": [{ "c": null }] }))),
        Just(Change::Set(json!("x"))),
        Just(Change::Remove),
        Just(Change::AddItem("x".into())),
        Just(Change::AddItem("new \u{1f980}".into())),
        Just(Change::AddItem(json!({ "source": "x" }))),
        Just(Change::RemoveItem("x".into())),
        Just(Change::RemoveItem(json!({ "b": 1 }))),
    ];
    (path, change).prop_map(|(at, change)| Edit { at, change })
}

/// The result of the same change to parsed data; `None` if the change is impossible.
fn expected(data: &Json, at: &[String], change: &Change) -> Option<Json> {
    let Some((key, rest)) = at.split_first() else {
        return match (change, data) {
            (Change::Set(value), _) => Some(value.clone()),
            (Change::AddItem(item), Json::Array(items)) => {
                let mut items = items.clone();
                if !items.contains(item) {
                    items.push(item.clone());
                }
                Some(Json::Array(items))
            }
            (Change::RemoveItem(item), Json::Array(items)) => {
                Some(items.iter().filter(|kept| *kept != item).cloned().collect())
            }
            _ => None,
        };
    };
    let mut members = data.as_object()?.clone();
    let adds = matches!(change, Change::Set(_) | Change::AddItem(_));
    match members.get(key) {
        Some(_) if rest.is_empty() && *change == Change::Remove => {
            members.shift_remove(key);
        }
        Some(inner) => {
            let changed = expected(inner, rest, change)?;
            members.insert(key.clone(), changed);
        }
        None if adds => {
            let empty = if rest.is_empty() { json!([]) } else { json!({}) };
            members.insert(key.clone(), expected(&empty, rest, change)?);
        }
        None => {}
    }
    Some(Json::Object(members))
}

fn comments(text: &str) -> Vec<String> {
    let document = Document::parse(text.trim_start_matches('\u{feff}')).unwrap();
    let mut comments: Vec<String> = document
        .tokens
        .iter()
        .filter_map(|token| match token.token {
            Token::CommentLine(text) | Token::CommentBlock(text) => Some(text.to_owned()),
            _ => None,
        })
        .collect();
    comments.sort();
    comments
}

proptest! {
    #[test]
    fn edit_changes_exactly_the_requested_value(text in document(), edit in edit()) {
        let before = value_at(&text, &[]).unwrap().unwrap();
        match (apply(&text, std::slice::from_ref(&edit)), expected(&before, &edit.at, &edit.change)) {
            (Ok(after), Some(wanted)) => {
                prop_assert_eq!(value_at(&after, &[]).unwrap().unwrap(), wanted, "{}", after);
                prop_assert_eq!(&apply(&after, std::slice::from_ref(&edit)).unwrap(), &after);
                prop_assert_eq!(text.starts_with('\u{feff}'), after.starts_with('\u{feff}'));
                let mixed = |text: &str| text.replace("\r\n", "").contains('\n');
                prop_assert!(mixed(&text) || !text.contains('\r') || !mixed(&after));
            }
            (Err(_), None) => {}
            (edited, wanted) => prop_assert!(false, "{edited:?} instead of {wanted:?}"),
        }
    }

    #[test]
    fn added_then_removed_key_restores_the_bytes(
        before in filler(),
        holder in object(2),
        after in filler(),
        value in prop_oneof![Just(json!("x")), Just(json!({ "command": "x", "env": { "A": "b" } }))],
    ) {
        // Blanks inside an empty object are not restored.
        prop_assume!(value_at(&holder, &[]).unwrap() != Some(json!({})));
        let text = format!("{{ \"first\": 1,{before}\"holder\": {holder}{after}}}");
        let mut edit = Edit::new(["holder", "new"], Change::Set(value));
        let added = apply(&text, std::slice::from_ref(&edit)).unwrap();
        prop_assert_eq!(comments(&text), comments(&added));
        edit.change = Change::Remove;
        let back = apply(&added, &[edit]).unwrap();
        prop_assert_eq!(value_at(&back, &[]).unwrap(), value_at(&text, &[]).unwrap());
        prop_assert_eq!(comments(&text), comments(&back));
        prop_assert_eq!(back, text, "{}", added);
    }

    #[test]
    fn edit_of_arbitrary_text_never_panics(text in any::<String>(), edit in edit()) {
        let _refused = apply(&text, &[edit]);
    }

    #[test]
    fn edit_of_a_truncated_file_never_panics(
        text in document(),
        cut in any::<prop::sample::Index>(),
        edit in edit(),
    ) {
        let mut end = cut.index(text.len() + 1);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let _refused = apply(&text[..end], &[edit]);
    }
}
