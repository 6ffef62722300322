//! Schemas as a type on one line.

use serde_json::{Value, json};

use crate::schema::{output_shape, signature};

#[track_caller]
fn check(schema: Value, expected: &str) {
    assert_eq!(signature("t", &schema), format!("t({expected})"));
}

/// Checks the type of the parameter `a`, which has this schema.
#[track_caller]
fn check_type(schema: Value, expected: &str) {
    check(json!({"properties": {"a": schema}, "required": ["a"]}), &format!("a: {expected}"));
}

#[test]
fn required_parameters_come_first_in_declared_order() {
    check(
        json!({
            "type": "object",
            "properties": {
                "state": {"enum": ["open", "closed"], "default": "open", "description": "Which"},
                "repo": {"type": "string"},
                "owner": {"type": "string"},
                "limit": {"type": "integer", "default": 30}
            },
            "required": ["owner", "repo"]
        }),
        r#"repo: string, owner: string, state?: "open"|"closed" = "open", limit?: integer = 30"#,
    );
}

#[test]
fn signature_has_a_short_text_for_every_schema_type() {
    check_type(json!({"type": "string"}), "string");
    check_type(json!({}), "any");
    check_type(json!(true), "any");
    check_type(json!({"type": ["string", "null"]}), "string|null");
    check_type(json!({"type": "string", "nullable": true}), "string|null");
    check_type(json!({"anyOf": [{"type": "string"}, {"type": "number"}]}), "string|number");
    check_type(json!({"oneOf": [{"const": "x"}, {"const": 2}]}), r#""x"|2"#);
    check_type(json!({"type": "array", "items": {"type": "string"}}), "string[]");
    check_type(json!({"type": "array"}), "any[]");
    check_type(json!({"type": "array", "items": {"type": ["string", "null"]}}), "(string|null)[]");
    check_type(json!({"type": "array", "items": {"enum": ["a|b"]}}), r#""a|b"[]"#);
    check_type(
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
        "[string, number]",
    );
    check_type(
        json!({"type": "object", "additionalProperties": {"type": "number"}}),
        "{[key]: number}",
    );
    check_type(
        json!({"allOf": [
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            {"properties": {"c": {"type": "number"}}}
        ]}),
        "{b: string, c?: number}",
    );
    check_type(json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8]}), "1|2|3|4|5|6|7|8");
    let words: Vec<String> = (0..40).map(|n| format!("a long option {n}")).collect();
    check_type(
        json!({"enum": words}),
        r#""a long option 0"|"a long option 1"|"a long option 2"|"a long option 3"|"a long option 4"|"a long option 5"|…34 more"#,
    );
}

#[test]
fn signature_shows_nested_objects_to_a_small_depth() {
    let leaf = json!({"type": "object", "properties": {"d": {"type": "string"}}});
    let inner = json!({"type": "object", "properties": {"c": leaf}});
    check_type(json!({"type": "object", "properties": {"b": inner}}), "{b?: {c?: object}}");
}

#[test]
fn signature_follows_only_local_schema_references() {
    let schema = |reference: &str| {
        json!({
            "properties": {"a": {"$ref": reference}},
            "$defs": {"a b": {"type": "string"}, "loop": {"$ref": "#/$defs/loop"}}
        })
    };
    check(schema("#/$defs/a%20b"), "a?: string");
    check(schema("#/$defs/loop"), "a?: any");
    check(schema("#/$defs/missing"), "a?: any");
    check(schema("https://example.com/a.json"), "a?: any");
}

#[test]
fn signature_ends_at_a_recursive_reference() {
    check(
        json!({
            "properties": {"root": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {
                "type": "object",
                "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}
            }}
        }),
        "root?: {children?: object[]}",
    );
}

#[test]
fn signature_escapes_hidden_characters() {
    check(
        json!({"properties": {
            "two words": {"type": "string"},
            "a\u{200b}b": {"enum": ["x\u{202e}y", "line\nbreak"]}
        }}),
        r#""two words"?: string, "a\u200bb"?: "x\u202ey"|"line\nbreak""#,
    );
}

#[test]
fn long_signature_is_cut_at_a_parameter() {
    let properties: serde_json::Map<String, Value> =
        (0..500).map(|n| (format!("parameter_{n}"), json!({"type": "string"}))).collect();
    let line = signature("t", &json!({"properties": properties}));
    assert!(line.len() <= 620, "{}", line.len());
    assert!(line.ends_with("?: string, …)"), "{line}");
}

#[test]
fn signature_without_parameters_has_empty_parentheses() {
    check(json!({"type": "object", "properties": {}}), "");
    check(json!({}), "");
    check(json!(null), "");
}

#[test]
fn output_schema_is_shown_as_one_inline_type() {
    let schema = json!({
        "type": "object",
        "properties": {"items": {"type": "array", "items": {
            "type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]
        }}},
        "required": ["items"]
    });
    assert_eq!(output_shape(&schema), "{items: {id: integer}[]}");
}
