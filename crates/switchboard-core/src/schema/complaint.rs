//! Detects errors of tools that are about the arguments of a call.

use serde_json::Value;

use super::object;

/// How many bytes of an error are searched. An error about arguments mentions them at the
/// beginning.
const LOOKED_AT: usize = 2 * 1024;

/// Phrases of libraries that validate arguments.
const ARGUMENT_PHRASES: [&str; 14] = [
    "-32602",
    "bad argument",
    "field required",
    "invalid argument",
    "invalid input",
    "invalid param",
    "invalid_type",
    "keyword argument",
    "missing required",
    "positional argument",
    "required argument",
    "required param",
    "unrecognized_keys",
    "validation error",
];

/// Phrases in errors about a single parameter.
const PARAMETER_PHRASES: [&str; 9] = [
    "expected",
    "invalid",
    "missing",
    "must be",
    "not allowed",
    "not valid",
    "required",
    "unexpected",
    "unknown",
];

/// Whether an error is probably about arguments: it contains a phrase of a validation library, or
/// names a parameter together with a word such as `invalid`.
pub fn complains(schema: &Value, error: &str) -> bool {
    let fields = object::fields(schema, schema);
    if fields.is_empty() {
        return false;
    }
    let error = error.get(..error.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
    let lower = error.to_lowercase();
    if ARGUMENT_PHRASES.iter().any(|words| lower.contains(words)) {
        return true;
    }
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    let mut words = error.split(|c| !is_part(c));
    let names_one = words.any(|word| fields.iter().any(|field| field.name == word));
    names_one && PARAMETER_PHRASES.iter().any(|words| lower.contains(words))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn server_error_about_arguments_is_recognized_by_its_text() {
        let schema = json!({ "properties": { "path": {}, "maxDepth": {} } });
        let check = |error: &str, expected: bool| {
            assert_eq!(complains(&schema, error), expected, "{error}");
        };
        check("MCP error -32602: Input validation error", true);
        check("1 validation error for ReadArguments\npath\n  Field required", true);
        check("read() missing 1 required positional argument: 'path'", true);
        check("`maxDepth` must be at most 5", true);
        check("path: expected a directory", true);
        check("the disk is full", false);
        check("cannot open the path /tmp/x: permission denied", false);
        check("the token is invalid", false);
        check("", false);
        check(&format!("{} -32602", "x".repeat(LOOKED_AT)), false);
        assert!(!complains(&json!({}), "invalid arguments"), "there are none to expect");
    }
}
