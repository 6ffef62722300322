//! Checks and repairs of arguments.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::exact::{Args, Exact};
use crate::schema::repair::repair;
use crate::schema::{SchemaError, Validator, undeclared_arguments};

fn schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["repo_name"],
        "properties": {
            "repo_name": {"type": "string"},
            "count": {"type": "integer", "minimum": 1, "maximum": 10},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string", "minLength": 2}, "maxItems": 3},
            "ids": {"type": "array", "items": {"type": "integer"}},
            "state": {"enum": ["open", "closed"]},
            "mode": {"oneOf": [{"const": "Fast"}, {"const": "Slow"}]},
            "filter": {"anyOf": [{"$ref": "#/$defs/filter"}, {"type": "null"}]},
            "either": {"type": ["string", "integer"]},
            "code": {"type": "string", "pattern": "^[A-Z]+$"}
        },
        "$defs": {"filter": {
            "type": "object",
            "required": ["state"],
            "properties": {"state": {"enum": ["open", "closed"]}, "max": {"type": "integer"}}
        }}
    })
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

fn outcome(schema: &Value, args: Value) -> Result<Value, String> {
    let validator = Validator::compile(schema).unwrap();
    validator.check(object(args).into()).map(|args| Exact::from(args).into_value()).map_err(
        |mismatches| mismatches.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    )
}

/// Checks these fields, together with the required one.
#[track_caller]
fn check(args: Value, expected: Result<Value, &str>) {
    let with_repo = |fields: Value| {
        let mut args = object(json!({"repo_name": "r"}));
        args.extend(object(fields));
        Value::Object(args)
    };
    let found = outcome(&schema(), with_repo(args));
    assert_eq!(found, expected.map(with_repo).map_err(str::to_owned));
}

#[test]
fn argument_with_exactly_one_possible_correction_is_repaired() {
    check(json!({"count": "7"}), Ok(json!({"count": 7})));
    check(json!({"ratio": "0.1"}), Ok(json!({"ratio": 0.1})));
    check(json!({"deep": "true"}), Ok(json!({"deep": true})));
    check(json!({"ids": "[1, 2]"}), Ok(json!({"ids": [1, 2]})));
    check(json!({"ids": ["1", 2]}), Ok(json!({"ids": [1, 2]})));
    check(json!({"ids": "5"}), Ok(json!({"ids": [5]})));
    check(json!({"ids": 5}), Ok(json!({"ids": [5]})));
    check(json!({"tags": "ab"}), Ok(json!({"tags": ["ab"]})));
    check(json!({"tags": "[\"ab\"]"}), Ok(json!({"tags": ["ab"]})));
    check(json!({"state": "OPEN"}), Ok(json!({"state": "open"})));
    check(json!({"mode": "fast"}), Ok(json!({"mode": "Fast"})));
    check(
        json!({"filter": "{\"state\": \"Open\", \"max\": \"3\"}"}),
        Ok(json!({"filter": {"state": "open", "max": 3}})),
    );
    check(json!({"filter": "null"}), Ok(json!({"filter": null})));
    check(json!({"Count": "7"}), Ok(json!({"count": 7})));
    check(json!({"Count": 7, "count": null}), Ok(json!({"count": 7})));
    check(json!({"count": null, "deep": null, "filter": null}), Ok(json!({"filter": null})));
    check(json!({"tags": [12, "ab"]}), Ok(json!({"tags": ["12", "ab"]})));
    check(json!({"tags": 12}), Ok(json!({"tags": ["12"]})));
    for name in ["Repo-Name", "repoName", "reponame", "RepoName"] {
        assert_eq!(outcome(&schema(), json!({ name: 7 })), Ok(json!({"repo_name": "7"})));
    }
}

#[test]
fn repair_leaves_a_valid_value_unchanged() {
    check(json!({"count": 3.0}), Ok(json!({"count": 3.0})));
    check(json!({"either": "7"}), Ok(json!({"either": "7"})));
    check(json!({"count": "7", "either": "8"}), Ok(json!({"count": 7, "either": "8"})));
    check(json!({"ratio": 1e300}), Ok(json!({"ratio": 1e300})));
}

#[test]
fn argument_with_several_possible_corrections_is_not_repaired() {
    check(json!({"count": "seven"}), Err("`count` must be an integer, not a string"));
    check(json!({"count": ""}), Err("`count` must be an integer, not a string"));
    check(json!({"deep": "yes"}), Err("`deep` must be a boolean, not a string"));
    check(json!({"deep": 1}), Err("`deep` must be a boolean, not a number"));
    check(json!({"ids": "a"}), Err("`ids` must be an array, not a string"));
    check(json!({"tags": "[\"ab\""}), Err("`tags` must be an array, not a string"));
    check(json!({"code": 7}), Err("`code` must match the pattern `^[A-Z]+$`"));
    check(json!({"code": 1.5}), Err("`code` must be a string, not a number"));
    check(json!({"code": true}), Err("`code` must be a string, not a boolean"));
}

#[test]
fn number_string_that_would_lose_digits_is_not_converted() {
    for text in ["0.12345678901234567890", "123456789012345678901234567890", "1e-400"] {
        check(json!({"ratio": text}), Err("`ratio` must be a number, not a string"));
    }
    check(json!({"ids": "[9007199254740993]"}), Ok(json!({"ids": [9_007_199_254_740_993_u64]})));
}

#[test]
fn numbers_keep_their_digits_or_block_the_repair() {
    let check = |args: &str, expected: Result<&str, &str>| {
        let checked = Validator::compile(&schema()).unwrap().check(Args::parse(args).unwrap());
        let found = match &checked {
            Ok(args) => Ok(args.to_string()),
            Err(mismatches) => Err(mismatches[0].to_string()),
        };
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    };
    let valid = r#"{"repo_name":"r","ratio":0.12345678901234567890,"count":1e0}"#;
    check(valid, Ok(valid));
    check(
        r#"{"repo_name":"r","ratio":1.10,"count":"7"}"#,
        Ok(r#"{"repo_name":"r","ratio":1.1,"count":7}"#),
    );
    check(
        r#"{"repo_name":"r","ratio":0.12345678901234567890,"count":"7"}"#,
        Err("`count` must be an integer, not a string"),
    );
}

#[test]
fn json_string_with_duplicate_key_is_not_unpacked() {
    check(
        json!({"filter": "{\"state\": \"open\", \"state\": \"closed\"}"}),
        Err(r#"`filter` must fit `{state: "open"|"closed", max?: integer}|null`"#),
    );
}

#[test]
fn argument_error_names_path_and_cause_of_each_mismatch() {
    check(json!({"count": 0}), Err("`count` must be at least 1"));
    check(json!({"count": "11"}), Err("`count` must be at most 10"));
    check(json!({"tags": ["x"]}), Err("`tags[0]` must have at least 2 characters"));
    check(json!({"tags": ["ab", "ab", "ab", "ab"]}), Err("`tags` must have at most 3 items"));
    check(json!({"state": "opne"}), Err(r#"`state` must be "open"|"closed""#));
    check(json!({"filter": {"max": 1}}), Err("`filter.state` is required"));
    check(json!({"filter": {"state": "x"}}), Err(r#"`filter.state` must be "open"|"closed""#));
    check(
        json!({"filter": 3}),
        Err(r#"`filter` must fit `{state: "open"|"closed", max?: integer}|null`"#),
    );
    check(json!({"coutn": 1}), Err("`coutn` is not a parameter, did you mean `count`?"));
    check(json!({"zzz": 1}), Err("`zzz` is not a parameter"));
    check(json!({"either": true}), Err("`either` must be an integer or a string, not a boolean"));
    check(json!({"code": "a"}), Err("`code` must match the pattern `^[A-Z]+$`"));
    assert_eq!(outcome(&schema(), json!({})), Err("`repo_name` is required".to_owned()));
}

#[test]
fn misspelt_required_parameter_is_reported_despite_open_schema() {
    let schema = json!({"required": ["path"], "properties": {"path": {}, "head": {}}});
    let both = "`path` is required; `pth` is not a parameter";
    assert_eq!(outcome(&schema, json!({"pth": "x", "head": 1})), Err(both.to_owned()));
    assert_eq!(outcome(&schema, json!({"head": 1})), Err("`path` is required".to_owned()));
    assert_eq!(outcome(&schema, json!({"path": 1, "hed": 1})), Ok(json!({"path": 1, "hed": 1})));
}

#[test]
fn undeclared_arguments_are_named_unless_schema_expects_more() {
    let check = |schema: Value, expected: &[&str]| {
        let given = json!({"path": 1, "hed": 1, "zzz": 2});
        let found = undeclared_arguments(&schema, given.as_object().unwrap());
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{schema}");
    };
    let properties = json!({"path": {}, "head": {}});
    let both = ["`hed` is not a parameter, did you mean `head`?", "`zzz` is not a parameter"];
    check(json!({"properties": properties}), &both);
    check(json!({"properties": properties, "additionalProperties": true}), &[]);
    check(json!({"properties": properties, "patternProperties": {"^z": {}}}), &[]);
    check(json!({"type": "object"}), &[]);
}

#[test]
fn at_most_eight_short_mismatches_are_reported() {
    let many: Map<String, Value> =
        (0..100).map(|n| (format!("{n}{}", "unknown".repeat(100)), json!(1))).collect();
    let mismatches = Validator::compile(&schema()).unwrap().check(many.into()).unwrap_err();
    assert_eq!(mismatches.len(), 8);
    assert!(mismatches.iter().all(|mismatch| mismatch.to_string().len() < 500));
}

#[test]
fn ambiguous_parameter_spelling_is_left_unchanged() {
    let schema = json!({
        "additionalProperties": false,
        "properties": {"a_b": {}, "A_B": {}, "c_d": {}}
    });
    assert!(outcome(&schema, json!({"a-b": 1})).is_err());
    assert!(outcome(&schema, json!({"c-d": 1, "C_D": 2})).is_err());
    assert!(outcome(&schema, json!({"cD": 1, "c-d": 2})).is_err());
    assert!(outcome(&schema, json!({"aB": 1})).is_err());
    assert_eq!(outcome(&schema, json!({"cD": 1})), Ok(json!({"c_d": 1})));
    assert_eq!(outcome(&schema, json!({"C-D": 1})), Ok(json!({"c_d": 1})));
}

#[test]
fn parameter_allowed_by_an_open_schema_is_not_renamed() {
    let schema = json!({"properties": {"name": {"type": "string"}, "count": {"type": "integer"}}});
    assert_eq!(
        outcome(&schema, json!({"Name": "x", "count": "1"})),
        Ok(json!({"Name": "x", "count": 1})),
    );
}

#[test]
fn repeated_argument_mismatch_is_reported_once() {
    let schema = json!({"allOf": [{"required": ["a"]}, {"required": ["a"]}]});
    assert_eq!(outcome(&schema, json!({})), Err("`a` is required".to_owned()));
}

#[test]
fn schema_format_keyword_is_not_validated() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"a": {"type": "string", "format": "email"}}
    });
    assert_eq!(outcome(&schema, json!({"a": "no-at-sign"})), Ok(json!({"a": "no-at-sign"})));
}

#[test]
fn arguments_are_checked_by_the_declared_schema_dialect() {
    let schema =
        |dialect: Value| json!({"$schema": dialect, "properties": {"a": {"type": "string"}}});
    let refuses = |dialect: &str| outcome(&schema(json!(dialect)), json!({"a": true})).is_err();
    assert!(refuses("http://json-schema.org/draft-07/schema#"));
    assert!(refuses("https://json-schema.org/draft/2020-12/schema"));
    assert!(!refuses("https://example.com/own-dialect"));
    let tuple = |dialect: &str| json!({"$schema": dialect, "properties": {"a": {"items": [{"type": "string"}]}}});
    let draft_7 = tuple("http://json-schema.org/draft-07/schema#");
    assert!(outcome(&draft_7, json!({"a": [true]})).is_err());
    let newer = Validator::compile(&tuple("https://json-schema.org/draft/2020-12/schema"));
    assert_eq!(newer.unwrap_err(), SchemaError::Invalid);
}

#[test]
fn uncheckable_subschema_accepts_any_value() {
    let schema = json!({
        "properties": {
            "remote": {"$ref": "https://example.com/schema.json#/a"},
            "dangling": {"$ref": "#/$defs/nowhere"},
            "lookahead": {"type": "string", "pattern": "^(?!x)"},
            "negated": {"not": {"$ref": "https://example.com/schema.json"}},
            "count": {"type": "integer"}
        }
    });
    let args = json!({"remote": 1, "dangling": [], "lookahead": "x", "negated": {}, "count": 1});
    assert_eq!(outcome(&schema, args.clone()), Ok(args));
    assert!(outcome(&schema, json!({"count": []})).is_err());
    assert!(outcome(&schema, json!({"lookahead": true})).is_err());
}

fn value_of_any_kind() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        "[a-zA-Z0-9\\[\\]{}\":,. ]{0,12}".prop_map(Value::from),
        prop::sample::select(vec!["open", "Closed", "[1]", "{\"state\":\"OPEN\"}", "3", "true"])
            .prop_map(Value::from),
        prop::collection::vec((0_i64..9).prop_map(Value::from), 0..3).prop_map(Value::from),
        prop::collection::vec("[a-z]{0,3}", 0..3).prop_map(Value::from),
    ]
}

proptest! {
    #[test]
    fn repair_keeps_valid_arguments_and_yields_valid_ones(
        fields in prop::collection::vec((
            prop::sample::select(vec![
                "repo_name", "count", "ratio", "deep", "tags", "ids", "state", "mode", "filter",
                "either", "code", "Repo-Name", "COUNT", "repoName",
            ]),
            value_of_any_kind(),
        ), 0..6)
    ) {
        let args: Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut once = Value::Object(args.clone());
        repair(&schema(), &mut once);
        let mut twice = once.clone();
        repair(&schema(), &mut twice);
        prop_assert_eq!(once, twice, "a repair leaves nothing to repair");
        // The validator comes from the library with the original schema, not from `compile`.
        let judge = jsonschema::validator_for(&schema()).unwrap();
        let valid = judge.is_valid(&Value::Object(args.clone()));
        match Validator::compile(&schema()).unwrap().check(args.clone().into()) {
            Ok(checked) if valid => prop_assert_eq!(checked, args.into()),
            Ok(repaired) => prop_assert!(judge.is_valid(&Value::Object(repaired.values().clone()))),
            Err(mismatches) => prop_assert!(!valid && !mismatches.is_empty()),
        }
    }
}
