//! JSON is written exactly as it was read.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn json_numbers_are_written_as_they_were_parsed() {
    let check = |number: &str| {
        let text = format!(r#"{{"a":[1,{number},"{number}"],"{number}":{{"b":{number}}}}}"#);
        assert_eq!(Args::parse(&text).unwrap().to_string(), text);
    };
    for number in ["0", "-1", "18446744073709551615", "-9223372036854775808", "0.1", "1E+5"] {
        check(number);
    }
    for number in ["12345678901234567890123", "-18446744073709551616", "1e2", "1.10", "-0"] {
        check(number);
    }
    check("0.1e-400");
}

#[test]
fn white_space_outside_json_strings_is_removed() {
    let text = "{ \"a\" :\r\n [ 1.0 ,\t\"x\\n \\\" 2.0\" ] }";
    assert_eq!(Args::parse(text).unwrap().to_string(), r#"{"a":[1.0,"x\n \" 2.0"]}"#);
}

#[test]
fn duplicate_key_huge_number_or_malformed_json_is_rejected() {
    let check = |text: &str, expected: &str| {
        assert_eq!(Args::parse(text).unwrap_err().to_string(), expected, "{text}");
    };
    check(r#"{"a": 1, "a": 1}"#, "duplicate key `a`");
    check(r#"{"a": [{"b": 1, "\u0062": null}]}"#, "duplicate key `b`");
    check("{\"\\u001b[31m\": 1, \"\\u001b[31m\": 2}", "duplicate key ``");
    check(r#"{"a": 1e400}"#, "the number `1e400` is out of range");
    check(r#"{"1e500": [1, 1e300, 2, -1e400, 3]}"#, "the number `-1e400` is out of range");
    check(r#"{"a": [1, 2.5, x], "b": 3}"#, "not valid JSON (line 1, column 16)");
    check(r#"{"a": "\ud800"}"#, "not valid JSON (line 1, column 14)");
    check(r#"{"a": 1} 2"#, "not valid JSON (line 1, column 10)");
    check("[1]", "must be a JSON object, not an array");
}

#[test]
fn json_keys_differing_in_case_or_nul_are_distinct() {
    let text = r#"{"a":1,"A":2,"a\u0000":3}"#;
    assert_eq!(Args::parse(text).unwrap().to_string(), text);
}

#[test]
fn editing_json_members_keeps_numbers_as_written() {
    let mut args =
        Args::parse(r#"{"a": 1.10, "b": [1e2, {"c": 2.50}], "d": 3.0, "e": 4}"#).unwrap();
    assert_eq!(written(&args.take("b").unwrap()), r#"[1e2,{"c":2.50}]"#);
    assert_eq!(args.take("b"), None);
    args.insert("a", Exact::parse("-0").unwrap());
    args.insert("f", json!({ "g": 0.5 }));
    assert_eq!(args.to_string(), r#"{"a":-0,"d":3.0,"e":4,"f":{"g":0.5}}"#);
}

fn written(exact: &Exact) -> String {
    serde_json::to_string(exact).unwrap()
}

/// Random JSON without white space. Its numbers fit into an `f64` and are written in any form.
fn json_text() -> impl Strategy<Value = String> {
    let number = "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?";
    let string = any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap());
    let leaf = prop_oneof![number, string, "true|false|null"];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let items = prop::collection::vec(inner, 0..6);
        prop_oneof![
            items.clone().prop_map(|items| format!("[{}]", items.join(","))),
            items.prop_map(|items| {
                let member = |(at, item)| format!(r#""1.{at}e":{item}"#);
                let members: Vec<String> = items.iter().enumerate().map(member).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_round_trips_exactly(text in json_text()) {
        let exact = Exact::parse(&text).unwrap();
        prop_assert_eq!(written(&exact), text.as_str());
        let value: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(exact.value(), &value);
        prop_assert_eq!(count_floats(&value), exact.floats.len());
        prop_assert_eq!(written(&value.clone().into()), value.to_string());
    }

    #[test]
    fn parsing_arbitrary_text_as_json_never_panics(text in "[\\[\\]{}:,\"\\\\0-9eE.+a é-]{0,40}") {
        let _ = Exact::parse(&text);
        let _ = Numbers(&text).count();
    }
}

#[test]
fn memory_estimate_of_json_grows_with_each_value() {
    let (few, many) = (parsed_size(&"x".repeat(1_000)), parsed_size(&"{},".repeat(1_000)));
    assert_eq!(few, 1_000);
    assert!(many > 100_000, "{many}");
}

#[test]
fn json_with_too_many_values_is_rejected() {
    let list = |item: &str, count: usize| format!(r#"{{"a":[{}]}}"#, vec![item; count].join(","));
    // The object and its array count as well.
    let left = MOST_VALUES - OBJECT - ARRAY;
    for (item, weight) in [("1", 1), ("[]", ARRAY), ("{}", OBJECT)] {
        let most = left / weight;
        assert!(Args::parse(&list(item, most)).is_ok(), "{item}");
        assert_eq!(Args::parse(&list(item, most + 1)), Err(ReadError::TooMany), "{item}");
    }
    let text = serde_json::json!({ "a": "[],".repeat(MOST_VALUES) }).to_string();
    assert!(Args::parse(&text).is_ok());
}
