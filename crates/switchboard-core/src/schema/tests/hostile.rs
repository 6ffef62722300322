//! Hostile schemas: every text is limited, every check ends, and no schema causes a panic.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::schema::{SchemaError, Validator, expected, output_shape, parameters, signature};

/// Checks that all texts about the schema are within their limits, and compares the result of
/// compiling it.
#[track_caller]
fn check(schema: &Value, compiled: Result<(), SchemaError>) {
    assert_bounded(schema);
    let found = Validator::compile(schema).map(|validator| {
        let _ = validator.check(nested_arguments(40).into());
    });
    assert_eq!(found, compiled);
}

fn assert_bounded(schema: &Value) {
    assert!(signature("tool", schema).len() <= 640);
    assert!(output_shape(schema).len() <= 640);
    assert!(parameters(schema).len() <= 33 * 1024);
    assert!(expected(schema).len() <= 4 * 1024);
}

fn nested_arguments(levels: usize) -> Map<String, Value> {
    let mut value = json!({"a": 1});
    for _ in 0..levels {
        value = json!({"a": value});
    }
    value.as_object().unwrap().clone()
}

#[test]
fn schema_check_with_a_reference_cycle_terminates() {
    check(&json!({"$ref": "#"}), Ok(()));
    check(&json!({"properties": {"a": {"$ref": "#"}}}), Ok(()));
    check(&json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}), Ok(()));
    let mutual = json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
    check(&mutual, Ok(()));
}

#[test]
fn schema_nested_too_deep_is_refused() {
    for wrap in [
        (|inner| json!({"properties": {"a": inner}})) as fn(Value) -> Value,
        |inner| json!({"items": inner}),
        |inner| json!({"anyOf": [inner]}),
        |inner| json!({"properties": {"a": {"default": inner}}}),
    ] {
        let mut schema = json!({});
        for _ in 0..10_000 {
            // `json!` would copy the whole value.
            let slot = std::mem::take(&mut schema);
            schema = replace_null(wrap(Value::Null), slot);
        }
        check(&schema, Err(SchemaError::TooDeep { limit: 64 }));
        // The value is not dropped, because dropping it would recurse too deep.
        std::mem::forget(schema);
    }
}

fn replace_null(mut shell: Value, inner: Value) -> Value {
    let mut at = &mut shell;
    while !at.is_null() {
        at = match at {
            Value::Object(map) => map.values_mut().next().unwrap(),
            Value::Array(items) => items.first_mut().unwrap(),
            other => panic!("no hole in {other}"),
        };
    }
    *at = inner;
    shell
}

#[test]
fn schema_references_that_expand_exponentially_are_refused() {
    for combine in ["allOf", "anyOf", "oneOf"] {
        let mut defs = Map::new();
        for level in 0..20 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({combine: vec![next; 10]}));
        }
        defs.insert("d20".to_owned(), json!({"type": "string"}));
        let schema = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}});
        check(&schema, Err(SchemaError::Expands { limit: 100_000 }));
    }
}

#[test]
fn long_schema_reference_chain_is_refused() {
    let mut defs = Map::new();
    for level in 0..3_000 {
        defs.insert(format!("d{level}"), json!({"$ref": format!("#/$defs/d{}", level + 1)}));
    }
    let schema = json!({"$defs": defs, "properties": {"a": {"$ref": "#/$defs/d0"}}});
    check(&schema, Err(SchemaError::TooDeep { limit: 256 }));
}

#[test]
fn huge_enum_of_a_schema_is_shortened() {
    let options: Vec<String> = (0..9_000).map(|n| format!("option {n}")).collect();
    check(&json!({"properties": {"a": {"enum": options}}}), Ok(()));
    let options: Vec<u32> = (0..20_000).collect();
    let too_many = json!({"properties": {"a": {"enum": options}}});
    check(&too_many, Err(SchemaError::TooManyNodes { limit: 10_000 }));
    let too_large = json!({"description": "x".repeat(300_000)});
    check(&too_large, Err(SchemaError::TooLarge { limit: 256 * 1024 }));
}

#[test]
fn schema_pattern_matches_hostile_text_in_linear_time() {
    let schema = json!({"properties": {"a": {"pattern": "^(a+)+$"}, "b": {"pattern": "(x{1,1000}){1,1000}"}}});
    let validator = Validator::compile(&schema).unwrap();
    let hostile = "a".repeat(50_000) + "!";
    assert!(validator.check(json!({"a": hostile}).as_object().unwrap().clone().into()).is_err());
    assert!(validator.check(json!({"b": "anything"}).as_object().unwrap().clone().into()).is_ok());
}

#[test]
fn deeply_nested_arguments_are_refused() {
    let validator = Validator::compile(&json!({"properties": {"a": {"$ref": "#"}}})).unwrap();
    let mismatches = validator.check(nested_arguments(300).into()).unwrap_err();
    let texts: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["the object of arguments must not be nested deeper than 256 levels"]);
}

#[test]
fn schema_check_of_branching_recursion_terminates() {
    let branch = |name: &str| json!({"properties": {"a": {"$ref": "#"}}, "required": [name]});
    let schema = json!({"anyOf": [branch("x"), branch("y")]});
    let validator = Validator::compile(&schema).unwrap();
    assert!(validator.check(nested_arguments(1).into()).is_err());
    assert!(validator.check(nested_arguments(200).into()).is_ok());
    let tree = json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}});
    assert!(Validator::compile(&tree).unwrap().check(nested_arguments(200).into()).is_err());
}

#[test]
fn large_invalid_arguments_get_a_short_error() {
    let texts = |schema: Value, args: Value| -> Vec<String> {
        let validator = Validator::compile(&schema).unwrap();
        let mismatches = validator.check(args.as_object().unwrap().clone().into()).unwrap_err();
        mismatches.iter().map(ToString::to_string).collect()
    };
    let items = |items: Value| json!({"properties": {"a": {"items": items}}});
    let records = items(json!({"type": "object", "required": ["x", "y"]}));
    assert_eq!(texts(records.clone(), json!({"a": [{}]})).len(), 2);
    assert_eq!(texts(records, json!({"a": vec![json!({}); 100_000]})), ["`a[0].x` is required"]);
    let longer = (0..300).map(|n| json!({"type": "string", "minLength": n + 2}));
    let either = items(json!({"anyOf": longer.collect::<Vec<Value>>()}));
    assert!(texts(either.clone(), json!({"a": ["x"]}))[0].starts_with("`a[0]` must fit"));
    let somewhere = "the object of arguments does not match its schema";
    assert_eq!(texts(either.clone(), json!({"a": vec!["x"; 500]})), [somewhere]);
    let endless = Validator::compile(&either).unwrap();
    let args = json!({"a": vec!["x"; 100_000]}).as_object().unwrap().clone();
    assert!(endless.check(args.into()).is_ok(), "a check of them would take long");
}

/// Random JSON that mostly looks like a schema.
fn any_json() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "required",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "$ref",
        "$defs",
        "default",
        "description",
        "additionalProperties",
        "pattern",
        "minimum",
        "maxLength",
        "if",
        "then",
        "$schema",
        "$id",
        "prefixItems",
        "examples",
        "a",
        "patternProperties",
        "format",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(vec![
            "object",
            "string",
            "array",
            "integer",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "#a",
            "https://example.com/x",
            "^a(b",
            "http://json-schema.org/draft-07/schema#",
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((keyword.clone(), inner), 0..6).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn size_of_schema_outlines_signatures_and_errors_is_bounded(
        schema in any_json(),
        properties in any_json(),
        args in prop::collection::vec(("[a-z$]{1,3}", any_json()), 0..4)
    ) {
        let schema = match schema {
            Value::Object(mut keywords) => {
                keywords.insert("properties".to_owned(), json!({"a": properties}));
                Value::Object(keywords)
            }
            other => other,
        };
        assert_bounded(&schema);
        if let Ok(validator) = Validator::compile(&schema) {
            let _ = validator.check(Map::from_iter(args).into());
        }
    }
}
