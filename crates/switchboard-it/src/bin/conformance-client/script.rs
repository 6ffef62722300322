//! The calls and the elicitation answers that a conformance scenario expects of a client.

use serde_json::{Map, Value, json};

/// The depth up to which a schema is followed; deeper parts are left out.
const DEPTH: usize = 8;

/// A tool that returns the schema of another tool, as the client received it.
const ECHO: &str = "json_schema_echo";
const ECHOED: &str = "json_schema_2020_12_tool";

/// A tool as it was listed.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: String,
    pub(crate) args: Map<String, Value>,
}

/// The calls that the scenario's context names, or else every tool once.
pub(crate) fn calls(context: &Value, tools: &[Tool]) -> Vec<Call> {
    if let Some(calls) = context.get("toolCalls").and_then(Value::as_array) {
        return calls.iter().filter_map(named).collect();
    }
    let of = |name: &str| tools.iter().find(|tool| tool.name == name);
    if let (Some(echo), Some(echoed)) = (of(ECHO), of(ECHOED)) {
        let args = Map::from_iter([("schema".to_owned(), echoed.schema.clone())]);
        return vec![Call { tool: echo.name.clone(), args }];
    }
    let call = |tool: &Tool| Call { tool: tool.name.clone(), args: object(&tool.schema, DEPTH) };
    tools.iter().map(call).collect()
}

/// The answer to an elicitation: accepted, with the defaults of its form.
pub(crate) fn filled_in(elicitation: &Value) -> Value {
    let properties = elicitation.pointer("/requestedSchema/properties").and_then(Value::as_object);
    let content: Map<String, Value> = properties
        .into_iter()
        .flatten()
        .filter_map(|(name, schema)| Some((name.clone(), schema.get("default")?.clone())))
        .collect();
    json!({ "action": "accept", "content": content })
}

fn named(call: &Value) -> Option<Call> {
    let tool = call.get("name")?.as_str()?.to_owned();
    let args = call.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
    Some(Call { tool, args })
}

/// An object with everything that the schema requires, and no more.
fn object(schema: &Value, depth: usize) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let property = |name: &str| schema.get("properties").and_then(|all| all.get(name));
    names
        .map(|name| (name.to_owned(), property(name).map_or(json!("test"), |of| value(of, depth))))
        .collect()
}

/// Some value that fits the schema.
fn value(schema: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return Value::Null };
    let first = |key: &str| schema.get(key).and_then(Value::as_array).and_then(|all| all.first());
    let given = schema.get("default").or_else(|| schema.get("const")).or_else(|| first("enum"));
    if let Some(given) = given {
        return given.clone();
    }
    if let Some(choice) = first("anyOf").or_else(|| first("oneOf")) {
        return value(choice, depth);
    }
    let kind = first("type").or_else(|| schema.get("type")).and_then(Value::as_str);
    match kind {
        Some("object") => Value::Object(object(schema, depth)),
        Some("array") => json!([]),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        _ => json!("test"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        Tool { name: name.to_owned(), schema }
    }

    fn check(context: Value, tools: &[Tool], expected: &[(&str, Value)]) {
        let made: Vec<(String, Value)> = calls(&context, tools)
            .into_iter()
            .map(|call| (call.tool, Value::Object(call.args)))
            .collect();
        let expected: Vec<(String, Value)> =
            expected.iter().map(|(name, args)| ((*name).to_owned(), args.clone())).collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn each_tool_is_called_with_its_required_arguments() {
        let numbers = json!({
            "type": "object",
            "properties": { "a": { "type": "number" }, "b": { "type": "number", "minimum": 3 },
                            "note": { "type": "string" } },
            "required": ["a", "b"],
        });
        let all = json!({
            "properties": {
                "text": { "type": "string" },
                "whether": { "type": ["boolean", "null"] },
                "many": { "type": "array" },
                "none": { "type": "null" },
                "preset": { "type": "string", "default": "as given" },
                "only": { "const": 7 },
                "choice": { "enum": ["first", "second"] },
                "either": { "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "inner": { "type": "object", "properties": { "deep": { "type": "integer" } },
                           "required": ["deep"] },
            },
            "required": ["text", "whether", "many", "none", "preset", "only", "choice", "either",
                         "inner", "undescribed"],
        });
        let tools = [tool("add_numbers", numbers), tool("all", all), tool("plain", json!({}))];
        let whole = json!({
            "text": "test", "whether": true, "many": [], "none": null, "preset": "as given",
            "only": 7, "choice": "first", "either": 1, "inner": { "deep": 1 },
            "undescribed": "test",
        });
        check(
            Value::Null,
            &tools,
            &[("add_numbers", json!({ "a": 1, "b": 3 })), ("all", whole), ("plain", json!({}))],
        );
    }

    #[test]
    fn nested_schema_is_followed_to_a_bounded_depth() {
        let mut schema = json!({ "type": "object" });
        for _ in 0..100 {
            schema = json!({ "type": "object", "properties": { "a": schema }, "required": ["a"] });
        }
        let made = calls(&Value::Null, &[tool("deep", schema)]);
        assert!(json!(made[0].args).to_string().len() < 100);
    }

    #[test]
    fn conformance_scenario_context_decides_the_tool_calls() {
        let context = json!({ "toolCalls": [
            { "name": "b", "arguments": { "region": "north" } }, { "name": "a" }, "nonsense",
        ] });
        check(
            context,
            &[tool("a", json!({}))],
            &[("b", json!({ "region": "north" })), ("a", json!({}))],
        );
    }

    #[test]
    fn elicitation_is_accepted_with_the_schema_defaults() {
        let form = json!({ "requestedSchema": { "type": "object", "properties": {
            "name": { "type": "string", "default": "Ada" },
            "age": { "type": "integer" },
            "verified": { "type": "boolean", "default": false },
        } } });
        let content = json!({ "name": "Ada", "verified": false });
        assert_eq!(filled_in(&form), json!({ "action": "accept", "content": content }));
        assert_eq!(filled_in(&Value::Null), json!({ "action": "accept", "content": {} }));
    }

    #[test]
    fn conformance_client_returns_a_tool_schema_unchanged() {
        let schema = json!({ "$defs": { "a": { "$anchor": "b" } }, "required": ["c"] });
        let echo = json!({ "properties": { "schema": {} }, "required": ["schema"] });
        let tools = [tool(ECHOED, schema.clone()), tool(ECHO, echo)];
        check(Value::Null, &tools, &[(ECHO, json!({ "schema": schema }))]);
    }
}
