//! Properties of schemas that are rendered as text for a model.

use serde_json::Value;
use switchboard_core::schema::{expected, output_shape, parameters, signature};

/// Every rendering of a schema is bounded and contains no control characters.
pub(crate) fn is_shown_within_bounds(input: &[u8]) {
    let Ok(schema) = serde_json::from_slice::<Value>(input) else { return };
    check(&signature("tool", &schema), 1024);
    check(&output_shape(&schema), 1024);
    check(&parameters(&schema), 40 * 1024);
    check(&expected(&schema), 5 * 1024);
}

fn check(text: &str, bytes: usize) {
    assert!(text.len() <= bytes, "{} bytes", text.len());
    let control = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(control, None, "{text}");
}
