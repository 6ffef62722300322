//! From the arguments of the `mcp` tool to a [`Request`], with errors that point.

use serde_json::Value;

use super::arguments::Arguments;
use super::table::{Kind, PARAMETERS, elsewhere, nearest};
use super::{
    CallRequest, DEFAULT_LIMIT, LIST_LIMIT, MAX_LIMIT, Matching, PageRequest, Reading, Request,
    ResultView, SearchRequest, Signatures,
};
use crate::exact::{Args, Exact, ReadError, kind_of};

/// A request, and what was passed over to get to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub request: Request,
    /// Parameters of lower modes that were given too.
    pub ignored: Vec<&'static str>,
}

/// Why the arguments ask for nothing that can be answered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the arguments of `mcp` must be a JSON object, not {found}")]
    NotAnObject { found: &'static str },
    #[error("`{name}` is not a parameter of `mcp`{}", nearest_clause(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    /// The likely reason: a tool's own arguments beside `tool` instead of inside `args`.
    #[error("`{name}` is not a parameter of `mcp`; the arguments of `{tool}` go into `args`")]
    OutsideArgs { name: String, tool: String },
    #[error("these are more parameters than `mcp` has; the arguments of a tool go into `args`")]
    TooMany,
    #[error("`{name}` must be {expected}, not {found}")]
    WrongType { name: &'static str, expected: &'static str, found: &'static str },
    #[error("`{name}` is empty")]
    Empty { name: &'static str },
    #[error("`{name}` must be from {least} to {most}")]
    OutOfRange { name: &'static str, least: usize, most: usize },
    #[error("`args` is not valid JSON (line {line}, column {column})")]
    ArgsSyntax { line: usize, column: usize },
    #[error("`args` holds the number `{number}`, which is out of range")]
    ArgsOutOfRange { number: String },
    /// Nobody can tell which one was meant.
    #[error("`args` holds an object with `{name}` twice")]
    ArgsTwice { name: String },
    #[error("`args` must hold a JSON object, not {found}")]
    ArgsNotAnObject { found: &'static str },
    #[error("`args` needs a `tool` or a `search` beside it")]
    ArgsAlone,
    #[error("`{name}` needs `{needs}` beside it")]
    Alone { name: &'static str, needs: &'static str },
    #[error("`{name}` is not an `action`: those are `auth-start` and `auth-complete`")]
    UnknownAction { name: String },
    #[error(
        "`auth-complete` needs `args` with the `redirectUrl` that the browser was sent to, or the `code` in it"
    )]
    NoAnswer,
}

fn nearest_clause(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Reads the arguments of one `mcp` call.
pub fn parse(arguments: Arguments) -> Result<Parsed, RequestError> {
    let given = match arguments {
        Arguments::Given(given) => given,
        Arguments::Other { found } => return Err(RequestError::NotAnObject { found }),
        Arguments::Unread(cause) => return Err(unread(cause)),
        Arguments::TooMany => return Err(RequestError::TooMany),
    };
    let mut fields = Fields::check(given)?;
    let request = fields.mode()?;
    let ignored = fields.leftovers();
    Ok(Parsed { request, ignored })
}

/// Reads a text that holds a tool's arguments; a blank one holds none.
pub fn parse_args(text: &str) -> Result<Args, RequestError> {
    if text.trim().is_empty() {
        return Ok(Args::default());
    }
    Args::parse(text).map_err(unread)
}

/// A tool's arguments: an object, or a JSON string that holds one.
pub fn args_of(given: Exact) -> Result<Args, RequestError> {
    match given.value() {
        Value::String(text) => parse_args(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            given.try_into().map_err(unread)
        }
    }
}

/// `arguments` is what the protocol calls `args`. Beside a `search` it can mean nothing else; beside
/// a `tool` it may be a parameter of that tool.
fn with_args(mut given: Vec<(String, Exact)>) -> Vec<(String, Exact)> {
    let is_given =
        |name: &str| given.iter().any(|(it, value)| it == name && !value.value().is_null());
    if !is_given("search") || is_given("tool") || is_given("args") {
        return given;
    }
    let meant =
        given.iter().position(|(name, value)| name == "arguments" && value.value().is_object());
    if let Some((name, _)) = meant.and_then(|at| given.get_mut(at)) {
        *name = "args".to_owned();
    }
    given
}

/// A text without a word: a blank that a model left.
fn is_blank(given: &Exact) -> bool {
    given.value().as_str().is_some_and(|text| text.trim().is_empty())
}

/// What a user brought from a browser. Whatever a model calls it, there is one thing that it can be.
fn brought(args: Exact) -> Result<Option<String>, RequestError> {
    if let Value::String(text) = args.value()
        && !text.trim_start().starts_with('{')
    {
        return Ok(Some(text.clone()).filter(|text| !text.trim().is_empty()));
    }
    let args = args_of(args)?;
    let mut given = ["redirectUrl", "code", "input"].into_iter();
    Ok(given.find_map(|name| args.values().get(name)?.as_str()).map(str::to_owned))
}

fn unread(cause: ReadError) -> RequestError {
    match cause {
        ReadError::Syntax { line, column } => RequestError::ArgsSyntax { line, column },
        ReadError::OutOfRange { number } => RequestError::ArgsOutOfRange { number },
        ReadError::Twice { name } => RequestError::ArgsTwice { name },
        ReadError::NotAnObject { found } => RequestError::ArgsNotAnObject { found },
    }
}

/// The steps of a sign-in that can be asked for.
#[derive(Clone, Copy)]
enum Step {
    Start,
    Complete,
}

impl Step {
    fn as_str(self) -> &'static str {
        match self {
            Step::Start => "auth-start",
            Step::Complete => "auth-complete",
        }
    }
}

/// What was given; each parameter is taken out once.
struct Fields {
    given: Vec<(String, Exact)>,
    /// What stands beside `tool` and is no parameter of `mcp`: the arguments of the tool, it seems.
    beside: Option<Args>,
}

impl Fields {
    /// Refuses what is not a parameter, unless it can be meant for the tool.
    fn check(given: Vec<(String, Exact)>) -> Result<Fields, RequestError> {
        let given = with_args(given);
        let known = |name: &str| PARAMETERS.iter().find(|parameter| parameter.name == name);
        let (given, strays): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|(name, _)| known(name).is_some());
        let Some((stray, _)) = strays.first() else {
            return Ok(Fields { given, beside: None });
        };
        let tool = given.iter().find(|(name, value)| name == "tool" && !is_blank(value));
        let tool = tool.and_then(|(_, tool)| tool.value().as_str());
        // Beside anything else nobody can tell what belongs to whom.
        let alone = given.iter().all(|(name, value)| {
            matches!(name.as_str(), "tool" | "server" | "select")
                || value.value().is_null()
                || is_blank(value)
        });
        if tool.is_none() || !alone {
            return Err(unknown(stray, tool.map(str::to_owned)));
        }
        let mut beside = Args::default();
        for (name, value) in strays {
            beside.insert(&name, value);
        }
        Ok(Fields { given, beside: Some(beside) })
    }

    /// Takes a parameter out. A `null` counts as not given: models fill in blanks.
    fn take(&mut self, name: &str) -> Option<Exact> {
        let index = self.given.iter().position(|(given, _)| given == name)?;
        let (_, value) = self.given.swap_remove(index);
        Some(value).filter(|value| !value.value().is_null())
    }

    fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, value)| given == name && !value.value().is_null())
    }

    /// The highest mode that was asked for.
    fn mode(&mut self) -> Result<Request, RequestError> {
        if let Some(action) = self.text("action")? {
            return self.action(&action);
        }
        if let Some(tool) = self.text("tool")? {
            let server = self.text("server")?;
            let (args, reading) = match self.beside.take() {
                Some(args) => (args, Reading::Beside),
                None => {
                    let args = self.take("args").map_or_else(|| Ok(Args::default()), args_of)?;
                    (args, Reading::Forgiving)
                }
            };
            let select = self.text("select")?;
            return Ok(Request::Call(CallRequest { tool, server, args, reading, select }));
        }
        if let Some(id) = self.text("result")? {
            let grep = self.text("grep")?;
            let offset = self.count("offset", 0, usize::MAX)?.unwrap_or(0);
            let limit = self.count("limit", 1, usize::MAX)?;
            let select = self.text("select")?;
            return Ok(Request::Result { id, view: ResultView { select, offset, limit, grep } });
        }
        if let Some(server) = self.text("connect")? {
            return Ok(Request::Connect { server });
        }
        if let Some(tool) = self.text("describe")? {
            return Ok(Request::Describe { tool, server: self.text("server")? });
        }
        if let Some(server) = self.text("instructions")? {
            return Ok(Request::Instructions { server });
        }
        if let Some(query) = self.text("search")? {
            return self.search(query);
        }
        if let Some(server) = self.text("server")? {
            return Ok(Request::List { server, page: self.page(LIST_LIMIT)? });
        }
        self.nothing_alone()?;
        Ok(Request::Status)
    }

    fn action(&mut self, action: &str) -> Result<Request, RequestError> {
        let steps = [Step::Start, Step::Complete];
        let step = steps.into_iter().find(|step| step.as_str() == action);
        let step = step.ok_or_else(|| RequestError::UnknownAction { name: action.to_owned() })?;
        let server = self.text("server")?;
        let server = server.ok_or(RequestError::Alone { name: "action", needs: "server" })?;
        match step {
            Step::Start => Ok(Request::SignIn { server }),
            Step::Complete => {
                let args = self.take("args").ok_or(RequestError::NoAnswer)?;
                let answer = brought(args)?.ok_or(RequestError::NoAnswer)?;
                Ok(Request::CompleteSignIn { server, answer })
            }
        }
    }

    fn search(&mut self, query: String) -> Result<Request, RequestError> {
        let matching = match self.flag("regex")? {
            Some(true) => Matching::Pattern,
            Some(false) | None => Matching::Words,
        };
        let signatures = match self.flag("includeSchemas")? {
            Some(false) => Signatures::Hidden,
            Some(true) | None => Signatures::Shown,
        };
        let server = self.text("server")?;
        let page = self.page(DEFAULT_LIMIT)?;
        let args = self.take("args").filter(|args| !is_blank(args)).map(args_of).transpose()?;
        let select = if args.is_some() { self.text("select")? } else { None };
        Ok(Request::Search(SearchRequest {
            query,
            matching,
            server,
            signatures,
            page,
            args,
            select,
        }))
    }

    /// Parameters that only make sense beside another one.
    fn nothing_alone(&self) -> Result<(), RequestError> {
        if self.has("args") {
            return Err(RequestError::ArgsAlone);
        }
        for (name, needs) in
            [("grep", "result"), ("select", "tool"), ("regex", "search"), ("offset", "search")]
        {
            if self.has(name) {
                return Err(RequestError::Alone { name, needs });
            }
        }
        Ok(())
    }

    /// `usual` is the size of a page as long as none is given.
    fn page(&mut self, usual: usize) -> Result<PageRequest, RequestError> {
        Ok(PageRequest {
            offset: self.count("offset", 0, usize::MAX)?.unwrap_or(0),
            limit: self.count("limit", 1, MAX_LIMIT)?.unwrap_or(usual),
        })
    }

    /// Modes that were given beside a higher one.
    fn leftovers(&self) -> Vec<&'static str> {
        if self.given.is_empty() {
            return Vec::new();
        }
        PARAMETERS
            .iter()
            .filter(|parameter| self.has(parameter.name))
            .map(|parameter| parameter.name)
            .collect()
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, RequestError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => {
                // An empty search is a mistake; other empty texts are blanks that a model left.
                if name == "search" { Err(RequestError::Empty { name }) } else { Ok(None) }
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, Kind::Text, &other)),
        }
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<bool>, RequestError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(other) => Err(wrong_type(name, Kind::Flag, &other)),
        }
    }

    fn count(
        &mut self,
        name: &'static str,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>, RequestError> {
        let Some(value) = self.take(name).map(Exact::into_value) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => whole(number),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            None if value.as_f64().is_some_and(|number| number < 0.0) => {
                Err(RequestError::OutOfRange { name, least, most })
            }
            None => Err(wrong_type(name, Kind::Count, &value)),
            Some(count) if (least..=most).contains(&count) => Ok(Some(count)),
            Some(_) => Err(RequestError::OutOfRange { name, least, most }),
        }
    }
}

/// A whole number, also when it is written `5.0`.
fn whole(number: &serde_json::Number) -> Option<usize> {
    if let Some(whole) = number.as_u64() {
        return usize::try_from(whole).ok();
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    (0.0..=9e15).contains(&float).then_some(float as usize)
}

/// A name that is no parameter of `mcp`, nor of the tool that it stands beside.
pub fn unknown(name: &str, tool: Option<String>) -> RequestError {
    let nearest = match &tool {
        Some(_) => nearest(name),
        None => nearest(name).or_else(|| elsewhere(name)),
    };
    let nearest = nearest.map(str::to_owned);
    let name: String = name.chars().take(64).filter(|c| !c.is_control()).collect();
    match (nearest, tool) {
        (None, Some(tool)) => RequestError::OutsideArgs { name, tool },
        (nearest, _) => RequestError::Unknown { name, nearest },
    }
}

fn wrong_type(name: &'static str, kind: Kind, found: &Value) -> RequestError {
    let expected = match kind {
        Kind::Text => "a string",
        Kind::Flag => "true or false",
        Kind::Count => "a whole number",
        Kind::Arguments => "an object",
    };
    RequestError::WrongType { name, expected, found: kind_of(found) }
}

#[cfg(test)]
mod tests {
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
    fn each_mode_is_read() {
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
    fn arguments_beside_a_search_are_for_what_it_finds() {
        let check = |args: Value, expected: Option<&str>| {
            let given = json!({ "search": "x", "args": args });
            let Ok(Parsed { request: Request::Search(request), ignored }) = parse(given.into())
            else {
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
    fn arguments_beside_a_search_are_its_args() {
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
    fn arguments_may_come_as_a_json_string() {
        for args in [json!({"a": 1}), json!(r#"{"a": 1}"#)] {
            check(
                json!({"tool": "t", "args": args}),
                r#"Call(CallRequest { tool: "t", server: None, args: {"a":1}, reading: Forgiving, select: None })"#,
            );
        }
        check(
            json!({"tool": "t", "args": "{\"a\": "}),
            "`args` is not valid JSON (line 1, column 6)",
        );
        check(json!({"tool": "t", "args": [1]}), "`args` must hold a JSON object, not an array");
        check(json!({"tool": "t", "args": "7"}), "`args` must hold a JSON object, not a number");
    }

    #[test]
    fn what_stands_beside_a_tool_is_taken_for_its_arguments() {
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

    /// What policy looks at, what a user is shown and what a server gets is one text.
    #[test]
    fn a_tools_arguments_keep_every_number_and_have_no_name_twice() {
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
        check(r#"{"a": 1, "b": 2, "a": 1}"#, "`args` holds an object with `a` twice");
        check(r#"{"a": [{"b": 1, "\u0062": 2}]}"#, "`args` holds an object with `b` twice");
        check(r#"{"a": 1e400}"#, "`args` holds the number `1e400`, which is out of range");
    }

    #[test]
    fn the_higher_of_two_modes_is_answered_and_the_other_named() {
        check(
            json!({"search": "x", "tool": "t"}),
            r#"Call(CallRequest { tool: "t", server: None, args: {}, reading: Forgiving, select: None }), ignored ["search"]"#,
        );
        check(
            json!({"connect": "a", "server": "b"}),
            r#"Connect { server: "a" }, ignored ["server"]"#,
        );
    }

    #[test]
    fn blanks_that_a_model_left_do_not_count() {
        check(json!({"tool": "", "args": null, "search": null, "server": " "}), "Status");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        check(json!([]), "the arguments of `mcp` must be a JSON object, not an array");
        check(
            json!({"serach": "x"}),
            "`serach` is not a parameter of `mcp`; did you mean `search`?",
        );
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
        check(
            json!({"search": "x", "regex": "yes"}),
            "`regex` must be true or false, not a string",
        );
        check(json!({"grep": "x"}), "`grep` needs `result` beside it");
        check(json!({"action": "auth-start"}), "`action` needs `server` beside it");
        check(
            json!({"action": "auth", "server": "a"}),
            "`auth` is not an `action`: those are `auth-start` and `auth-complete`",
        );
        let no_answer = "`auth-complete` needs `args` with the `redirectUrl` that the browser was \
                         sent to, or the `code` in it";
        for args in [json!(null), json!({}), json!("  "), json!({ "code": 7 })] {
            check(json!({"action": "auth-complete", "server": "a", "args": args}), no_answer);
        }
        check(json!({"select": ".a"}), "`select` needs `tool` beside it");
    }

    #[test]
    fn a_sign_in_is_begun_and_finished_before_anything_else() {
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
        fn no_arguments_panic(text in "\\PC{0,60}", count in any::<f64>(), name in "[a-z]{1,10}") {
            let _ = parse(json!({ name: text.clone(), "limit": count, "tool": text }).into());
        }
    }
}
