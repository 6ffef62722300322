//! Which frames are messages, and that payloads are unchanged.

use proptest::prelude::*;

use super::*;

fn check(frame: &str, expected: &str) {
    let frame = Bytes::copy_from_slice(frame.as_bytes());
    let seen = match parse(&frame) {
        Ok(Message::Request { id, method, params }) => {
            format!("request {id:?} {method} {}", params.as_ref().map_or("-", Raw::as_str))
        }
        Ok(Message::Notification { method, params }) => {
            format!("notification {method} {}", params.as_ref().map_or("-", Raw::as_str))
        }
        Ok(Message::Answer { id, outcome: Ok(result) }) => {
            format!("result {id:?} {}", result.as_str())
        }
        Ok(Message::Answer { id, outcome: Err(error) }) => format!("failure {id:?} {error}"),
        Err(malformed) => format!("malformed {} {malformed}", malformed.code()),
    };
    assert_eq!(seen, expected);
}

#[test]
fn frames_parse_as_requests_responses_or_notifications() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"z":1.0,"a":2}}"#,
        r#"request Number(Number(1)) a/b {"z":1.0,"a":2}"#,
    );
    check(r#"{"method":"\u0061","jsonrpc":"2.0"}"#, "notification a -");
    check(r#"{"jsonrpc":"2.0","id":"1","result":null}"#, r#"result Text("1") null"#);
    check(
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#,
        "failure Number(Number(7)) error -32601: no",
    );
    check(
        r#"{"jsonrpc":"2.0","id":7,"error":"odd"}"#,
        "failure Number(Number(7)) error -32603: the error object is malformed",
    );
}

#[test]
fn malformed_message_gives_error_code_and_reason() {
    check("{", "malformed -32700 the message is not valid JSON");
    check("npm notice", "malformed -32700 the message is not valid JSON");
    check("[]", "malformed -32600 JSON-RPC batches are not supported");
    check("{}", "malformed -32600 the message is not JSON-RPC 2.0");
    check(
        r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#,
        "malformed -32600 the message is not JSON-RPC 2.0",
    );
    check(
        r#"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
        "malformed -32600 the message is not JSON-RPC 2.0",
    );
    check(
        r#"{"jsonrpc":"1.0","id":1,"method":"a"}"#,
        "malformed -32600 the message is not JSON-RPC 2.0",
    );
    check(
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        "malformed -32600 the message is not JSON-RPC 2.0",
    );
}

#[test]
fn duplicate_json_rpc_envelope_key_is_refused() {
    check(
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        "malformed -32600 the message is not JSON-RPC 2.0",
    );
}

#[test]
fn error_for_malformed_request_carries_its_id() {
    let check = |frame: &str, expected: Option<Id>| {
        let malformed = parse(&Bytes::copy_from_slice(frame.as_bytes())).unwrap_err();
        assert_eq!(malformed.id(), expected.as_ref(), "{frame}");
    };
    let one = Some(Id::number(1));
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, one.clone());
    check(r#"{"jsonrpc":"2.0","method":"a","params":{},"params":{},"id":1}"#, one.clone());
    check(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, one.clone());
    check(r#"{"jsonrpc":2.0,"id":1,"method":"a"}"#, one);
    // The id is ambiguous, or may be the id of one of our own requests.
    check(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"#, None);
    check(r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#, None);
    check(r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b","error":{}}"#, None);
    check(r#"{"jsonrpc":"2.0","id":{},"method":"a","method":"b"}"#, None);
}

#[test]
fn json_rpc_envelope_keys_are_case_sensitive() {
    check(r#"{"jsonrpc":"2.0","ID":1,"method":"a"}"#, "notification a -");
}

#[test]
fn id_is_found_at_either_end_of_oversized_response() {
    let head = br#"{"jsonrpc":"2.0","id":42,"result":{"content":[{"te"#;
    assert_eq!(id_in_head(head), Some(42));
    assert_eq!(id_in_head(br#"{"jsonrpc":"2.0","result":{"id":7,"content"#), None);
    assert_eq!(id_in_tail(br#"xxxx"}]},"id" : 9 }"#), Some(9));
    assert_eq!(id_in_tail(b"xxxx"), None);
}

#[test]
fn oversized_request_is_distinguished_from_a_response() {
    assert!(asks_in_head(br#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"te"#));
    assert!(!asks_in_head(br#"{"jsonrpc":"2.0","id":4,"result":{"method":"x","te"#));
}

#[test]
fn json_rpc_id_is_written_as_it_was_parsed() {
    let long = "12345678901234567890123";
    for id in ["1", "-5", "1.5", "1e2", "-0", "18446744073709551615", long, r#""a\nb""#] {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let Ok(Message::Request { id: parsed, .. }) = parse(&Bytes::from(frame)) else {
            panic!("a request with id {id}");
        };
        let mut out = String::new();
        parsed.write(&mut out);
        assert_eq!(out, id);
    }
}

proptest! {
    #[test]
    fn parsing_an_arbitrary_frame_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&Bytes::from(bytes));
    }
}

#[test]
fn forwarded_message_has_no_line_breaks() {
    let check = |message: &'static str, expected: &str| {
        assert_eq!(on_one_line(&Bytes::from(message)), expected);
    };
    check("{}", "{}");
    check(" {}\r\n", "{}");
    check("{\n  \"a\": \"b\\n\"\r\n}\n", "{   \"a\": \"b\\n\"  }");
    check("\n", "");
}

#[test]
fn overlong_request_id_is_malformed() {
    let id = |length: usize| {
        let json = format!("\"{}\"", "x".repeat(length));
        Id::read(&RawValue::from_string(json).unwrap())
    };
    assert!(id(LONGEST_ID - 2).is_some());
    assert_eq!(id(LONGEST_ID - 1), None);
}
