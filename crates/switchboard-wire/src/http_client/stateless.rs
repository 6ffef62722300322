//! The headers of a stateless request, which repeat parts of the message for proxies that do not
//! parse it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;

use super::link::REVISION;
use crate::envelope::Raw;

const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The prefix of all headers that repeat arguments.
const PREFIX: &str = "mcp-param-";

/// The headers of a stateless request; `None` for a session-based one.
pub(super) fn headers(
    method: &str,
    params: Option<&Raw>,
    labels: Option<&Vec<(String, String)>>,
) -> Option<HeaderMap> {
    #[derive(serde::Deserialize)]
    struct RequestParams<'a> {
        #[serde(rename = "_meta")]
        meta: RequestMeta,
        #[serde(borrow, default)]
        name: Option<&'a RawValue>,
        #[serde(borrow, default)]
        uri: Option<&'a RawValue>,
        #[serde(borrow, default, rename = "taskId")]
        task: Option<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct RequestMeta {
        #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
        revision: String,
    }
    let params: RequestParams<'_> = params?.parse().ok()?;
    let mut headers = HeaderMap::new();
    headers.insert(REVISION, encoded(&params.meta.revision));
    headers.insert(METHOD, encoded(method));
    let name = match method {
        "tools/call" | "prompts/get" => params.name,
        "resources/read" => params.uri,
        _ if method.starts_with("tasks/") => params.task,
        _ => None,
    };
    let name = name.and_then(|name| serde_json::from_str::<String>(name.get()).ok());
    headers.extend(name.map(|name| (NAME, encoded(&name))));
    for (name, value) in labels.into_iter().flatten() {
        let name = HeaderName::from_bytes(format!("{PREFIX}{name}").as_bytes());
        headers.extend(name.ok().map(|name| (name, encoded(value))));
    }
    Some(headers)
}

/// Encodes a value for a header. Values that a header cannot represent exactly are encoded as
/// base64.
fn encoded(value: &str) -> HeaderValue {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim_ascii() == value
        && !(value.starts_with("=?") && value.ends_with("?="));
    let text = match plain {
        true => value.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(value)),
    };
    HeaderValue::try_from(text).expect("printable ASCII is a header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(method: &str, params: &str, labels: &[(&str, &str)]) -> Option<String> {
        let labels: Vec<(String, String)> =
            labels.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let headers = headers(method, Some(&Raw::from_json(params.to_owned())), Some(&labels))?;
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        Some(headers.iter().map(line).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn stateless_request_headers_repeat_parts_of_the_message() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let version = "mcp-protocol-version: 2026-07-28";
        for (method, rest, expected) in [
            ("tools/list", "", "mcp-method: tools/list"),
            ("tools/call", r#","name":"add""#, "mcp-method: tools/call\nmcp-name: add"),
            (
                "prompts/get",
                r#","name":"hé""#,
                "mcp-method: prompts/get\nmcp-name: =?base64?aMOp?=",
            ),
            (
                "resources/read",
                r#","uri":"a://b","name":"c""#,
                "mcp-method: resources/read\nmcp-name: a://b",
            ),
            ("tools/call", r#","name":7"#, "mcp-method: tools/call"),
            ("tasks/get", r#","taskId":"7""#, "mcp-method: tasks/get\nmcp-name: 7"),
        ] {
            let params = format!("{{{meta}{rest}}}");
            assert_eq!(shown(method, &params, &[]), Some(format!("{version}\n{expected}")));
        }
        assert_eq!(shown("tools/list", "{}", &[]), None, "it belongs to a session");
    }

    #[test]
    fn parameter_header_with_unsafe_characters_is_base64_encoded() {
        let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"1"}}"#;
        for (value, expected) in [
            ("us west 1", "us west 1"),
            ("", ""),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("a\r\nx-evil: 1", "=?base64?YQ0KeC1ldmlsOiAx?="),
            ("\ttab", "=?base64?CXRhYg==?="),
            ("世界", "=?base64?5LiW55WM?="),
            ("=?base64?aaaa?=", "=?base64?PT9iYXNlNjQ/YWFhYT89?="),
        ] {
            let expected =
                format!("mcp-protocol-version: 1\nmcp-method: x\nmcp-param-region: {expected}");
            assert_eq!(shown("x", params, &[("Region", value)]), Some(expected), "{value:?}");
        }
        let unnameable = shown("x", params, &[("a b", "1"), ("a:b", "1")]);
        assert_eq!(unnameable.unwrap().lines().count(), 2);
    }
}
