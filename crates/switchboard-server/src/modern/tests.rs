//! Metadata of requests, and the members added to results.

use switchboard_wire::envelope::INVALID_PARAMS;

use super::*;

fn parse(params: Value) -> Result<ModernRequest, RpcError> {
    ModernRequest::read(Some(&Raw::from_json(params.to_string())))
}

fn stamped(method: &str, result: &str) -> Value {
    let mut out = format!("before{result}");
    stamp(&mut out, "before".len(), method, &json!({ "name": "x" }));
    serde_json::from_str(out.strip_prefix("before").unwrap()).unwrap()
}

#[test]
fn request_meta_must_have_revision_and_capabilities() {
    let (version, can) = (meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES);
    let good = parse(json!({
        "name": "t",
        "arguments": { "a": 1 },
        "requestState": "s",
        "inputResponses": { "k": { "action": "accept" } },
        "_meta": {
            version: REVISION,
            can: { "sampling": {} },
            "io.modelcontextprotocol/logLevel": "info",
            "progressToken": 7,
            "own": true,
        },
    }))
    .unwrap();
    assert!(good.abilities.sampling.is_some() && good.abilities.roots.is_none());
    assert_eq!(good.level, Some(LogLevel::Info));
    assert_eq!(good.state.as_deref(), Some("s"));
    assert_eq!(good.request.to_string(), r#"{"name":"t","arguments":{"a":1}}"#);
    assert_eq!(good.answers.values().len(), 1);
    for (bad, code) in [
        (json!({}), INVALID_PARAMS),
        (json!({ "_meta": {} }), INVALID_PARAMS),
        (json!({ "_meta": { version: REVISION } }), INVALID_PARAMS),
        (json!({ "_meta": { version: REVISION, can: 5 } }), INVALID_PARAMS),
        (json!({ "_meta": { version: 5, can: {} } }), INVALID_PARAMS),
        (json!({ "_meta": { version: "v9", can: {} } }), UNSUPPORTED_VERSION),
        (json!({ "_meta": { version: REVISION, can: {} }, "requestState": 5 }), INVALID_PARAMS),
        (
            json!({ "_meta": { version: REVISION, can: {} }, "inputResponses": null }),
            INVALID_PARAMS,
        ),
        (
            json!({ "_meta": { version: REVISION, can: {} }, "inputResponses": { "k": 5 } }),
            INVALID_PARAMS,
        ),
    ] {
        assert_eq!(parse(bad.clone()).unwrap_err().code, code, "{bad}");
    }
}

#[test]
fn protocol_version_inside_tool_arguments_is_ignored() {
    let stated = |params: Value| stated_revision(Some(&Raw::from_json(params.to_string())));
    let version = meta::PROTOCOL_VERSION;
    assert_eq!(stated(json!({ "_meta": { version: "v1" } })).as_deref(), Some("v1"));
    assert_eq!(stated(json!({ "arguments": { "_meta": { version: "v1" } } })), None);
    assert_eq!(stated(json!({ "_meta": { "x": version } })), None);
}

#[test]
fn stateless_result_gains_type_and_keeps_server_fields() {
    let info = meta::SERVER_INFO;
    let complete = json!({ "resultType": "complete", "_meta": { info: { "name": "x" } } });
    assert_eq!(stamped("tools/call", "{}"), complete);
    assert_eq!(stamped("tools/call", " { } "), complete);
    assert_eq!(
        stamped("tools/list", r#"{"tools":[],"_meta":{"own":1}}"#),
        json!({
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "tools": [],
            "_meta": { info: { "name": "x" }, "own": 1 },
        })
    );
    let nested = json!({ "_meta": { "details": { info: {} } } });
    assert_eq!(stamped("tools/call", &nested.to_string())["_meta"][info]["name"], "x");
    let theirs = json!({
        "resultType": "task",
        "ttlMs": 5,
        "cacheScope": "public",
        "_meta": { info: { "name": "theirs" } },
    });
    assert_eq!(stamped("tools/list", &theirs.to_string()), theirs);
}
