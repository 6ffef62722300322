//! Removes the white space from results that are JSON.

use super::*;

fn compact(raw: &str) -> CallOutput<'_> {
    let mut output = CallOutput::of_call(raw);
    output.compact();
    output
}

fn check(text: &str, expected: &str) {
    let raw = json!({"content": [{"type": "text", "text": text}]}).to_string();
    assert_eq!(compact(&raw).text(), expected);
}

#[test]
fn compact_json_loses_only_white_space() {
    check("{\n  \"a\": [1, 2.0, 1e9]\n}\n", r#"{"a":[1,2.0,1e9]}"#);
    check("[12345678901234567890123, 1.10, -0]", "[12345678901234567890123,1.10,-0]");
    check(r#" {"a b": "c  d\n \u0041 \" e"}"#, r#"{"a b":"c  d\n \u0041 \" e"}"#);
    check("{\"k\": 1, \"k\": 2}", r#"{"k":1,"k":2}"#);
}

#[test]
fn compaction_leaves_text_other_than_json_unchanged() {
    for text in [
        r#"{"a":[1,2]}"#,
        "{ oops }",
        "[1, 2] and more",
        "See: {\n \"a\": 1\n}",
        "{\"a\": 1}\n{\"a\": 2}",
        "\"a  b\"",
        "  plain  words",
        "[a, b](link)",
        "",
    ] {
        let shown = if text.is_empty() { "(empty result)" } else { text };
        check(text, shown);
    }
}

#[test]
fn json_compaction_keeps_annotations_and_embedded_resources() {
    let raw = r#"{"content":[{ "annotations":{"priority":0.50},"type":"text","text":"{ \"a\": \"x y\" }", "_meta":{}},
        {"type":"resource","resource":{"uri":"a:b","text":"[ 1 ]"}}]}"#;
    let output = compact(raw);
    assert_snapshot!(shown(&output), @r#"
    { "annotations":{"priority":0.50},"type":"text","text":"{\"a\":\"x y\"}", "_meta":{}}
    {"type":"text","text":"[Resource: a:b]\n[ 1 ]"}
    "#);
    assert_eq!(output.json().as_deref(), Some("{\"a\":\"x y\"}\n[ 1 ]"));
}

proptest! {
    #[test]
    fn compacted_json_is_equal_and_never_longer(value in any_json(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let raw = json!({"content": [{"type": "text", "text": text}]}).to_string();
        let output = compact(&raw);
        let shown = output.text();
        prop_assert!(shown.len() <= text.len());
        prop_assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        "[\\PC\\n\\t\"\\\\ ]{0,12}".prop_map(Value::from),
    ];
    let deep = leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec(("[a-z: ]{0,4}", inner), 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    proptest::collection::vec(deep, 0..4).prop_map(Value::from)
}
