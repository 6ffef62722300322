//! The list of a tool's parameters, and its cost in tokens.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::schema::{expected, parameters, signature};

fn issue_search() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["query"],
        "properties": {
            "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open", "description": "Which issues to return"},
            "query": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Words to look for,\n  in any order"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30},
            "labels": {"type": "array", "maxItems": 5, "items": {"type": "string", "pattern": "^[a-z]+$"}, "description": "Labels that must all be set"},
            "between": {
                "description": "Time span",
                "type": "object",
                "required": ["from"],
                "properties": {
                    "from": {"type": "string", "format": "date-time", "description": "Inclusive"},
                    "to": {"type": ["string", "null"], "format": "date-time", "description": "Exclusive"}
                }
            }
        }
    })
}

fn page_edit() -> Value {
    json!({
        "type": "object",
        "required": ["blocks"],
        "properties": {
            "blocks": {"type": "array", "minItems": 1, "items": {"anyOf": [
                {"$ref": "#/$defs/text"},
                {"type": "object", "description": "A picture", "required": ["url"], "properties": {
                    "url": {"type": "string", "format": "uri"},
                    "caption": {"$ref": "#/$defs/text"}
                }}
            ]}},
            "meta": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Free labels"}
        },
        "$defs": {"text": {"type": "object", "description": "A paragraph", "required": ["text"], "properties": {
            "text": {"type": "string", "description": "Markdown"},
            "bold": {"type": "boolean", "default": false}
        }}}
    })
}

#[test]
fn flat_schema_outline_keeps_every_keyword() {
    assert_snapshot!(parameters(&issue_search()), @r#"
    query: string [1..200 chars] - Words to look for, in any order
    state?: "open"|"closed"|"all" = "open" - Which issues to return
    limit?: integer [1..100] = 30
    labels?: string[] [..5 items, each /^[a-z]+$/] - Labels that must all be set
    between?: object - Time span
     from: string [date-time] - Inclusive
     to?: string|null [date-time] - Exclusive
    "#);
}

#[test]
fn outline_lists_alternatives_and_shows_repeated_objects_once() {
    assert_snapshot!(parameters(&page_edit()), @r#"
    blocks: object[] [1.. items]
     | A paragraph
     text: string - Markdown
     bold?: boolean = false
     | A picture
     url: string [uri]
     caption?: object - A paragraph
      as in blocks
    meta?: {[key]: string} - Free labels
    "#);
}

#[test]
fn outline_lists_the_alternatives_of_any_of_beside_properties() {
    assert_snapshot!(parameters(&json!({
        "properties": {"id": {"type": "string"}},
        "anyOf": [
            {"properties": {"name": {"type": "string"}}, "required": ["name"]},
            {"properties": {"path": {"type": "string"}}, "required": ["path"]}
        ]
    })), @r#"
    id?: string
    |
    name: string
    |
    path: string
    "#);
}

#[test]
fn outline_of_a_schema_without_parameters_is_empty() {
    for schema in [json!({"type": "object", "properties": {}}), json!(7)] {
        assert_eq!(parameters(&schema), "");
        assert_eq!(expected(&schema), "(no parameters)");
    }
    assert_eq!(parameters(&json!({"additionalProperties": {"type": "number"}})), "[key]?: number");
}

#[test]
fn parameter_description_is_one_line_without_hidden_characters() {
    let schema =
        json!({"properties": {"a": {"description": "one\u{200b}\n\ntwo\u{202e} \u{7}three"}}});
    assert_eq!(parameters(&schema), "a?: any - one two three");
}

#[test]
fn outline_in_an_error_has_a_lower_size_limit() {
    assert_eq!(expected(&issue_search()), parameters(&issue_search()));
    let properties: serde_json::Map<String, Value> = (0..300)
        .map(|n| (format!("p{n}"), json!({"type": "string", "description": "long ".repeat(100)})))
        .collect();
    let schema = json!({"properties": properties});
    let tight = expected(&schema);
    assert!(tight.len() <= 3_600, "{} bytes", tight.len());
    assert!(tight.contains("\n… left out: p1") && tight.ends_with(" more"), "{tight}");
    assert!(parameters(&schema).len() <= 18_600);
}

#[test]
fn outline_names_the_omitted_parameters() {
    let long = "long ".repeat(1_000);
    let field = json!({"type": "string", "description": long});
    let names = ["a", "b", "c", "d", "e"];
    let fields: serde_json::Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), field.clone())).collect();
    let last = |schema: Value| parameters(&schema).lines().last().unwrap().to_owned();
    assert_eq!(last(json!({"properties": fields})), "… left out: d and e");
    let nested = json!({"properties": {"deep": {"properties": fields}, "after": {}}});
    assert_eq!(last(nested), "… cut within deep; left out: after");
}

#[test]
fn outline_shows_equal_objects_once() {
    let point =
        json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}});
    let schema = json!({"properties": {"from": point, "to": {"type": "array", "items": point}}});
    assert_snapshot!(parameters(&schema), @r"
    from?: object
     x: number
    to?: object[]
     as in from
    ");
}

fn read_file() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "File to read, relative to the workspace"},
            "head": {"type": "integer", "minimum": 1, "description": "Only the first lines"},
            "tail": {"type": "integer", "minimum": 1, "description": "Only the last lines"}
        }
    })
}

fn commit() -> Value {
    json!({
        "type": "object",
        "title": "CommitArguments",
        "required": ["repo_path", "message"],
        "properties": {
            "repo_path": {"type": "string", "title": "Repo Path"},
            "message": {"type": "string", "title": "Message"},
            "files": {"type": "array", "items": {"type": "string"}, "title": "Files"},
            "amend": {"type": "boolean", "default": false, "title": "Amend"}
        }
    })
}

#[test]
fn signature_and_outline_cost_less_than_the_definition() {
    let tokens = |text: &str| bpe_openai::o200k_base().count(text) as f64;
    let description = "Works on the files and issues that the signed-in user can read.";
    let (mut lines, mut described) = (Vec::new(), Vec::new());
    for schema in [issue_search(), page_edit(), read_file(), commit()] {
        let definition =
            json!({"name": "work", "description": description, "inputSchema": schema}).to_string();
        let whole = tokens(&definition);
        lines.push(tokens(&signature("work", &schema)) / whole);
        described.push(tokens(&format!("{description}\n{}", parameters(&schema))) / whole);
    }
    let upper_median = |mut ratios: Vec<f64>| {
        ratios.sort_by(f64::total_cmp);
        ratios[ratios.len() / 2]
    };
    let (line, described) = (upper_median(lines), upper_median(described));
    assert!(line <= 0.25, "a signature costs {line:.3}");
    assert!(described <= 0.6, "describe costs {described:.3}");
}
