//! How typed arguments are parsed.

use std::path::Path;

use proptest::{prop_assert_eq, proptest};
use serde_json::json;

use super::*;

fn schema() -> Value {
    json!({
        "type": "object",
        "$defs": { "count": { "type": "integer" }, "loop": { "$ref": "#/$defs/loop" } },
        "properties": {
            "text": { "type": "string" },
            "count": { "type": "integer" },
            "ratio": { "type": "number" },
            "deep": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "string" } },
            "ids": { "type": "array", "items": { "type": "number" } },
            "maybe_tags": { "anyOf": [
                { "type": "array", "items": { "type": "string" } },
                { "type": "null" },
            ] },
            "where": { "type": "object" },
            "nothing": { "type": "null" },
            "either": { "type": ["string", "integer"] },
            "maybe": { "anyOf": [{ "type": "integer" }, { "type": "null" }] },
            "level": { "enum": [1, 2, 3] },
            "word": { "enum": ["1", "2"] },
            "by_ref": { "$ref": "#/$defs/count" },
            "endless": { "$ref": "#/$defs/loop" },
            "open": {},
            "positive": { "allOf": [{ "type": "number" }, { "minimum": 0 }] },
        },
        "allOf": [{ "properties": { "apart": { "$ref": "#/$defs/count" } } }],
    })
}

fn args(base: Args, words: &[String]) -> Result<Args, ArgsError> {
    let given = read(pairs(words)?, &mut nothing_to_read())?;
    typed(base, given, &schema())
}

fn nothing_to_read() -> Input {
    Input::new(Path::new("/nowhere"), Some(Path::new("/no-home")))
}

fn check(words: &[&str], expected: Value) {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let seen = match args(Args::default(), &words) {
        Ok(args) => Value::Object(args.values().clone()),
        Err(error) => Value::from(Failure::from(error).to_string()),
    };
    assert_eq!(seen, expected, "{words:?}");
}

#[test]
fn key_value_argument_gets_its_type_in_the_schema() {
    check(&["text=007"], json!({ "text": "007" }));
    check(&["text=true"], json!({ "text": "true" }));
    check(&["text="], json!({ "text": "" }));
    check(&["text=a=b"], json!({ "text": "a=b" }));
    check(&["text=@@file"], json!({ "text": "@file" }));
    check(&["text=@"], json!({ "text": "@" }));
    check(&["text:=\"-\""], json!({ "text": "-" }));
    check(&["count=2", "ratio=2.5"], json!({ "count": 2, "ratio": 2.5 }));
    check(&["ratio=1e3"], json!({ "ratio": 1000.0 }));
    check(&["deep=true"], json!({ "deep": true }));
    check(&["tags=[\"a\"]"], json!({ "tags": ["a"] }));
    check(&["where={\"a\": 1}"], json!({ "where": { "a": 1 } }));
    check(&["nothing=null", "maybe=null"], json!({ "nothing": null, "maybe": null }));
    check(&["either=5"], json!({ "either": "5" }));
    check(&["level=2", "word=2"], json!({ "level": 2, "word": "2" }));
    check(&["by_ref=2"], json!({ "by_ref": 2 }));
    check(&["endless=2"], json!({ "endless": 2 }));
    check(&["positive=1e2", "apart=-0"], json!({ "positive": 100.0, "apart": -0.0 }));
}

#[test]
fn argument_that_cannot_be_converted_is_passed_as_string() {
    check(&["count=two"], json!({ "count": "two" }));
    check(&["tags=a"], json!({ "tags": "a" }));
}

#[test]
fn undeclared_argument_is_text_unless_it_is_clearly_json() {
    check(&["open=2", "other=true"], json!({ "open": 2, "other": true }));
    check(&["open=[1]", "other={}"], json!({ "open": [1], "other": {} }));
    check(&["open=null", "other=\"x\""], json!({ "open": "null", "other": "\"x\"" }));
    check(&["open=007", "other=1.10"], json!({ "open": "007", "other": "1.10" }));
    let id = "12345678901234567890123";
    check(&[&format!("open={id}")], json!({ "open": id }));
}

#[test]
fn argument_after_colon_equals_is_parsed_as_json() {
    check(&["text:=7", "open:=null"], json!({ "text": 7, "open": null }));
    check(&["open:=\"x\""], json!({ "open": "x" }));
    let unused = "the value of `open` is invalid: ";
    check(&["open:={"], json!(format!("{unused}not valid JSON (line 1, column 1)")));
    check(&[r#"open:={"a":1,"a":2}"#], json!(format!("{unused}duplicate key `a`")));
}

#[test]
fn number_arguments_are_passed_as_written() {
    let base = object(r#"{ "open": [1.10, 1e2], "count": 1.0 }"#).unwrap();
    let words = ["ratio=12345678901234567890123", "count:=-0", "deep={\"a\":0.10}"];
    let words = words.map(str::to_owned);
    let args = args(base, &words).unwrap();
    let expected =
        r#"{"open":[1.10,1e2],"count":-0,"ratio":12345678901234567890123,"deep":{"a":0.10}}"#;
    assert_eq!(args.to_string(), expected);
}

#[test]
fn argument_without_key_or_equals_sign_is_refused() {
    check(&["text"], json!("`text` is not of the form `key=value`"));
    check(&["=x"], json!("`=x` is not of the form `key=value`"));
    check(&[":=1"], json!("`:=1` is not of the form `key=value`"));
}

#[test]
fn repeated_argument_key_becomes_a_list_if_schema_allows() {
    check(&["tags=a", "tags=b,c"], json!({ "tags": ["a", "b,c"] }));
    check(&["ids=1", "ids=2.50"], json!({ "ids": [1, 2.5] }));
    check(
        &["maybe_tags=1", "count=2", "maybe_tags=2"],
        json!({ "maybe_tags": ["1", "2"], "count": 2 }),
    );
    check(&["open=1", "open=x"], json!({ "open": [1, "x"] }));
    check(&["open:=[1]", "open=2"], json!({ "open": [[1], 2] }));
    let twice = |key: &str| json!(format!("`{key}` is given twice, but does not accept a list"));
    check(&["text=a", "text=b"], twice("text"));
    check(&["count=1", "count=1"], twice("count"));
}

#[test]
fn commas_in_a_list_argument_are_refused() {
    let comma_error = |key: &str| {
        json!(format!(
            "`{key}` takes a list: repeat the key (`{key}=A {key}=B`), or write JSON (`{key}:='[…]'`)"
        ))
    };
    check(&["tags=a,b"], comma_error("tags"));
    check(&["ids=1,2"], comma_error("ids"));
    check(&["maybe_tags=a,b"], comma_error("maybe_tags"));
    check(&["tags:=[\"a,b\"]"], json!({ "tags": ["a,b"] }));
    check(&["text=a,b", "open=a,b"], json!({ "text": "a,b", "open": "a,b" }));
}

#[test]
fn missing_file_error_explains_escaping_of_at_sign() {
    let file_error = |path: &str| {
        json!(format!(
            "cannot use the file for `text` (to pass the text `@x`, write `text=@@x`): cannot read \
             `{path}`: No such file or directory (os error 2)"
        ))
    };
    check(&["text=@x"], file_error("/nowhere/x"));
    check(&["text:=@~/x"], file_error("/no-home/x"));
}

#[test]
fn key_value_arguments_override_the_args_object() {
    let base = object(r#"{"text": "a", "count": 1}"#).unwrap();
    let merged = args(base, &["count=2".to_owned()]).unwrap();
    assert_eq!(merged.to_string(), r#"{"text":"a","count":2}"#);
}

#[test]
fn malformed_args_object_error_points_at_the_mistake() {
    let check = |text: &str, expected: &str| {
        let failure = Failure::from(object(text).unwrap_err());
        assert_eq!(failure.to_string(), expected);
    };
    check(
        "{\n  \"a\": }",
        "the value of `--args` is invalid: `args` is not valid JSON (line 2, column 8)",
    );
    check(
        r#"{"a": {"b": 1, "b": 2}}"#,
        "the value of `--args` is invalid: `args` contains the duplicate key `b`",
    );
    check("[1]", "the value of `--args` is invalid: `args` must hold a JSON object, not an array");
}

#[test]
fn prompt_arguments_are_always_text() {
    let words = ["a=1".to_owned(), "b:=true".to_owned()];
    assert_eq!(
        texts(&words, &mut nothing_to_read()).unwrap().to_string(),
        r#"{"a":"1","b:":"true"}"#
    );
}

proptest! {
    #[test]
    fn argument_declared_as_string_is_passed_unchanged(text in proptest::arbitrary::any::<String>()) {
        let word = if text == "-" || text.starts_with('@') {
            format!("text:={}", Value::from(&*text))
        } else {
            format!("text={text}")
        };
        let args = args(Args::default(), &[word]).unwrap();
        prop_assert_eq!(args.values().get("text"), Some(&Value::from(text)));
    }
}
