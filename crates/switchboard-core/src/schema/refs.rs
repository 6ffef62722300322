//! Resolves references within one schema. Other documents are never loaded.

use std::borrow::Cow;

use serde_json::Value;

/// The maximum length of a chain of references. A longer chain is treated like a cycle.
const MAX_HOPS: usize = 16;

/// Keywords whose value is an object with a schema for each name.
pub(super) const SCHEMAS_BY_NAME: [&str; 6] =
    ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"];

/// The target of the `$ref` in `schema`; `None` if it is not a JSON pointer into `root`.
pub(super) fn target<'s>(root: &'s Value, schema: &Value) -> Option<&'s Value> {
    let reference = schema.get("$ref")?.as_str()?;
    root.pointer(&pointer(reference)?)
}

/// The schema at the end of a chain of references; `None` for a cycle or a missing target.
pub(super) fn resolve<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let mut schema = schema;
    for _ in 0..MAX_HOPS {
        if schema.get("$ref").is_none() {
            return Some(schema);
        }
        schema = target(root, schema)?;
    }
    None
}

/// The JSON pointer in a reference such as `#/…`; `None` for anchors and other documents.
pub(super) fn pointer(reference: &str) -> Option<Cow<'_, str>> {
    let fragment = reference.strip_prefix('#')?;
    if !fragment.is_empty() && !fragment.starts_with('/') {
        return None;
    }
    if !fragment.contains('%') {
        return Some(Cow::Borrowed(fragment));
    }
    let mut decoded = Vec::with_capacity(fragment.len());
    let mut bytes = fragment.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let (high, low) = (hex(bytes.next()?)?, hex(bytes.next()?)?);
            decoded.push(high * 16 + low);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16)?.try_into().ok()
}
