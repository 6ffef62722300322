//! Requests that are parsed from arguments, and the errors about invalid arguments.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(arguments: Value, expected: &str) {
    let text = arguments.to_string();
    let read: Arguments = serde_json::from_str(&text).unwrap();
    let seen = parse(read);
    assert_eq!(seen, parse(arguments.into()), "the same from a value");
    let seen = match seen {
        Ok(Parsed { request, ignored }) if ignored.is_empty() => format!("{request:?}"),
        Ok(Parsed { request, ignored }) => format!("{request:?}, ignored {ignored:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(seen, expected);
}

#[test]
fn parameters_of_mcp_decide_the_request_mode() {
    check(json!({}), "Status");
    check(json!(null), "Status");
    check(
        json!({"server": "demo"}),
        r#"List { server: "demo", page: PageRequest { offset: 0, limit: 40 } }"#,
    );
    check(
        json!({"describe": "add", "server": "demo"}),
        r#"Describe { tool: "add", server: Some("demo") }"#,
    );
    check(json!({"instructions": "demo"}), r#"Instructions { server: "demo" }"#);
    check(json!({"connect": "demo"}), r#"Connect { server: "demo" }"#);
    check(
        json!({"result": "r1", "grep": "x", "limit": "5"}),
        r#"Result { id: "r1", view: ResultView { select: None, offset: 0, limit: Some(5), grep: Some("x") } }"#,
    );
    check(
        json!({"result": "r1", "select": ".a", "offset": 2}),
        r#"Result { id: "r1", view: ResultView { select: Some(".a"), offset: 2, limit: None, grep: None } }"#,
    );
    check(
        json!({"tool": "t", "select": ".a"}),
        r#"Call(CallRequest { tool: "t", server: None, args: {}, reading: Forgiving, select: Some(".a") })"#,
    );
    check(
        json!({"search": "a b", "regex": true, "includeSchemas": false, "offset": 12.0}),
        r#"Search(SearchRequest { query: "a b", matching: Pattern, server: None, signatures: Hidden, page: PageRequest { offset: 12, limit: 12 }, args: None, select: None })"#,
    );
}

#[test]
fn args_beside_search_become_arguments_of_the_search() {
    let check = |args: Value, expected: Option<&str>| {
        let given = json!({ "search": "x", "args": args });
        let Ok(Parsed { request: Request::Search(request), ignored }) = parse(given.into()) else {
            panic!("no search: {args}")
        };
        let args = request.args.map(|args| args.to_string());
        assert_eq!((args.as_deref(), ignored), (expected, vec![]));
    };
    check(json!({ "a": 1 }), Some(r#"{"a":1}"#));
    check(json!(r#"{ "a": 1.10 }"#), Some(r#"{"a":1.10}"#));
    check(json!({}), Some("{}"));
    check(json!(null), None);
    check(json!(" "), None);
}

#[test]
fn arguments_key_beside_search_is_an_alias_of_args() {
    let search = |given: Value| match parse(given.into()) {
        Ok(Parsed { request: Request::Search(request), .. }) => {
            request.args.map(|args| args.to_string())
        }
        other => panic!("no search: {other:?}"),
    };
    let given = search(json!({ "search": "x", "arguments": { "a": 1 } }));
    assert_eq!(given.as_deref(), Some(r#"{"a":1}"#));
    check(
        json!({ "search": "x", "args": {}, "arguments": {} }),
        "`arguments` is not a parameter of `mcp`; did you mean `args`?",
    );
}

#[test]
fn args_may_be_a_json_string() {
    for args in [json!({"a": 1}), json!(r#"{"a": 1}"#)] {
        check(
            json!({"tool": "t", "args": args}),
            r#"Call(CallRequest { tool: "t", server: None, args: {"a":1}, reading: Forgiving, select: None })"#,
        );
    }
    check(json!({"tool": "t", "args": "{\"a\": "}), "`args` is not valid JSON (line 1, column 6)");
    check(json!({"tool": "t", "args": [1]}), "`args` must hold a JSON object, not an array");
    check(json!({"tool": "t", "args": "7"}), "`args` must hold a JSON object, not a number");
}

#[test]
fn parameters_beside_tool_become_its_arguments() {
    check(
        json!({"tool": "t", "server": "s", "args": null, "search": null, "path": "/a", "n": 1.5}),
        r#"Call(CallRequest { tool: "t", server: Some("s"), args: {"path":"/a","n":1.5}, reading: Beside, select: None })"#,
    );
    let exact = r#"{"tool": "t", "n": 12345678901234567890123}"#;
    let Ok(Request::Call(call)) =
        parse(serde_json::from_str(exact).unwrap()).map(|parsed| parsed.request)
    else {
        panic!("no call")
    };
    assert_eq!(call.args.to_string(), r#"{"n":12345678901234567890123}"#);
}

/// The same exact text is compared with rules, shown to the user and sent to the server.
#[test]
fn tool_arguments_keep_numbers_and_refuse_duplicate_names() {
    let check = |args: &str, expected: &str| {
        let in_a_string = serde_json::to_string(args).unwrap();
        for args in [args, &in_a_string] {
            let read: Arguments =
                serde_json::from_str(&format!(r#"{{"tool": "t", "args": {args}}}"#)).unwrap();
            let seen = match parse(read).map(|parsed| parsed.request) {
                Ok(Request::Call(call)) => call.args.to_string(),
                other => other.unwrap_err().to_string(),
            };
            assert_eq!(seen, expected, "{args}");
        }
    };
    check(
        r#"{ "n": [12345678901234567890123, 1e2, 1.10, -0, 0.1e-400, 7] }"#,
        r#"{"n":[12345678901234567890123,1e2,1.10,-0,0.1e-400,7]}"#,
    );
    check(r#"{"a": 1, "b": 2, "a": 1}"#, "`args` contains the duplicate key `a`");
    check(r#"{"a": [{"b": 1, "\u0062": 2}]}"#, "`args` contains the duplicate key `b`");
    check(r#"{"a": 1e400}"#, "`args` holds the number `1e400`, which is out of range");
}

#[test]
fn second_mode_of_a_request_is_ignored_and_reported() {
    check(
        json!({"search": "x", "tool": "t"}),
        r#"Call(CallRequest { tool: "t", server: None, args: {}, reading: Forgiving, select: None }), ignored ["search"]"#,
    );
    check(json!({"connect": "a", "server": "b"}), r#"Connect { server: "a" }, ignored ["server"]"#);
}

#[test]
fn blank_parameters_of_mcp_are_ignored() {
    check(json!({"tool": "", "args": null, "search": null, "server": " "}), "Status");
}

#[test]
fn parse_error_names_the_invalid_parameter() {
    check(json!([]), "the arguments of `mcp` must be a JSON object, not an array");
    check(json!({"serach": "x"}), "`serach` is not a parameter of `mcp`; did you mean `search`?");
    check(json!({"query": "x"}), "`query` is not a parameter of `mcp`; did you mean `search`?");
    check(json!({"foo": 1}), "`foo` is not a parameter of `mcp`");
    check(
        json!({"tool": "demo_add", "a": 1, "args": {"b": 2}}),
        "`a` is not a parameter of `mcp`; the arguments of `demo_add` go into `args`",
    );
    check(
        json!({"tool": "demo_add", "a": 1, "limit": 2}),
        "`a` is not a parameter of `mcp`; the arguments of `demo_add` go into `args`",
    );
    check(json!({"args": {"a": 1}}), "`args` needs a `tool` or a `search` beside it");
    check(json!({"search": 5}), "`search` must be a string, not a number");
    check(json!({"search": "  "}), "`search` is empty");
    check(json!({"search": "x", "limit": 0}), "`limit` must be from 1 to 100");
    check(json!({"search": "x", "limit": -1}), "`limit` must be from 1 to 100");
    check(json!({"search": "x", "limit": 1.5}), "`limit` must be a whole number, not a number");
    check(json!({"search": "x", "regex": "yes"}), "`regex` must be true or false, not a string");
    check(json!({"grep": "x"}), "`grep` needs `result` beside it");
    check(json!({"action": "auth-start"}), "`action` needs `server` beside it");
    check(
        json!({"action": "auth", "server": "a"}),
        "unknown `action` `auth`; use `auth-start` or `auth-complete`",
    );
    let no_answer = "`auth-complete` needs `args` with the `redirectUrl` that the browser was \
                     sent to, or the `code` in it";
    for args in [json!(null), json!({}), json!("  "), json!({ "code": 7 })] {
        check(json!({"action": "auth-complete", "server": "a", "args": args}), no_answer);
    }
    check(json!({"select": ".a"}), "`select` needs `tool` beside it");
}

#[test]
fn sign_in_actions_take_precedence_over_other_modes() {
    let parsed = |given: Value| parse(given.into()).unwrap().request;
    let begun = parsed(json!({"action": "auth-start", "server": "a", "tool": "x"}));
    assert_eq!(begun, Request::SignIn { server: "a".to_owned() });
    let url = "http://127.0.0.1:1/callback?code=c&state=s";
    for args in [
        json!({ "redirectUrl": url }),
        json!({ "code": url }),
        json!({ "input": url }),
        json!(url),
        json!(format!("{{\"redirectUrl\":\"{url}\"}}")),
    ] {
        let given = json!({"action": "auth-complete", "server": "a", "args": args});
        let (server, answer) = ("a".to_owned(), url.to_owned());
        assert_eq!(parsed(given), Request::CompleteSignIn { server, answer });
    }
}

proptest! {
    #[test]
    fn parsing_arbitrary_arguments_never_panics(text in "\\PC{0,60}", count in any::<f64>(), name in "[a-z]{1,10}") {
        let _ = parse(json!({ name: text.clone(), "limit": count, "tool": text }).into());
    }
}
