//! Parses the arguments of the `mcp` tool into a [`Request`].

use serde_json::Value;

use super::arguments::Arguments;
use super::table::{PARAMETERS, ParameterKind, elsewhere, nearest};
use super::{
    CallRequest, DEFAULT_LIMIT, LIST_LIMIT, MAX_LIMIT, Matching, PageRequest, Reading, Request,
    ResultView, SearchRequest, Signatures,
};
use crate::exact::{Args, Exact, ReadError, kind_of};

/// A valid request, and the parameters that were ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    pub request: Request,
    /// The parameters that were ignored because they belong to a mode with lower precedence.
    pub ignored: Vec<&'static str>,
}

/// Why the arguments are not a valid request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("the arguments of `mcp` must be a JSON object, not {found}")]
    NotAnObject { found: &'static str },
    #[error("`{name}` is not a parameter of `mcp`{}", nearest_clause(.nearest.as_deref()))]
    Unknown { name: String, nearest: Option<String> },
    /// Probably the arguments of the tool stand beside `tool` instead of inside `args`.
    #[error("`{name}` is not a parameter of `mcp`; the arguments of `{tool}` go into `args`")]
    OutsideArgs { name: String, tool: String },
    #[error("too many parameters for `mcp`; the arguments of a tool go into `args`")]
    TooMany,
    #[error("`{name}` must be {expected}, not {found}")]
    WrongType { name: &'static str, expected: &'static str, found: &'static str },
    #[error("`{name}` is empty")]
    Empty { name: &'static str },
    #[error("`{name}` must be from {least} to {most}")]
    OutOfRange { name: &'static str, least: usize, most: usize },
    #[error("`args` {}", problem_of_args(.0))]
    Args(ReadError),
    #[error("`args` needs a `tool` or a `search` beside it")]
    ArgsAlone,
    #[error("`{name}` needs `{needs}` beside it")]
    Alone { name: &'static str, needs: &'static str },
    #[error("unknown `action` `{name}`; use `auth-start` or `auth-complete`")]
    UnknownAction { name: String },
    #[error(
        "`auth-complete` needs `args` with the `redirectUrl` that the browser was sent to, or the `code` in it"
    )]
    NoAnswer,
}

fn nearest_clause(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

fn problem_of_args(cause: &ReadError) -> String {
    match cause {
        ReadError::Syntax { .. } => format!("is {cause}"),
        ReadError::OutOfRange { number } => {
            format!("holds the number `{number}`, which is out of range")
        }
        ReadError::Twice { .. } => format!("contains the {cause}"),
        ReadError::TooMany => format!("holds {cause}"),
        ReadError::NotAnObject { found } => format!("must hold a JSON object, not {found}"),
    }
}

/// Parses the arguments of an `mcp` call.
pub fn parse(arguments: Arguments) -> Result<Parsed, RequestError> {
    let given = match arguments {
        Arguments::Given(given) => given,
        Arguments::Other { found } => return Err(RequestError::NotAnObject { found }),
        Arguments::Unread(cause) => return Err(RequestError::Args(cause)),
        Arguments::TooMany => return Err(RequestError::TooMany),
    };
    let mut fields = GivenParameters::check(given)?;
    let request = fields.mode()?;
    let ignored = fields.leftovers();
    Ok(Parsed { request, ignored })
}

/// Parses the text of a tool's arguments. A blank text means no arguments.
pub fn parse_args(text: &str) -> Result<Args, RequestError> {
    if text.trim().is_empty() {
        return Ok(Args::default());
    }
    Args::parse(text).map_err(RequestError::Args)
}

/// The arguments of a tool, given as an object or as a JSON string that contains an object.
pub fn args_of(given: Exact) -> Result<Args, RequestError> {
    match given.value() {
        Value::String(text) => parse_args(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            given.try_into().map_err(RequestError::Args)
        }
    }
}

/// Renames `arguments`, the term of the protocol, to `args` if the call has `search`. In a call
/// with `tool`, `arguments` may be a parameter of that tool.
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

/// Whether a value is a blank string, which models send for unused parameters.
fn is_blank(given: &Exact) -> bool {
    given.value().as_str().is_some_and(|text| text.trim().is_empty())
}

/// The redirect URL or the code from the browser. Models use several names for this parameter.
fn sign_in_answer(args: Exact) -> Result<Option<String>, RequestError> {
    if let Value::String(text) = args.value()
        && !text.trim_start().starts_with('{')
    {
        return Ok(Some(text.clone()).filter(|text| !text.trim().is_empty()));
    }
    let args = args_of(args)?;
    let mut given = ["redirectUrl", "code", "input"].into_iter();
    Ok(given.find_map(|name| args.values().get(name)?.as_str()).map(str::to_owned))
}

/// The parameters of a call of `mcp`. Each is removed when it is used.
struct GivenParameters {
    given: Vec<(String, Exact)>,
    /// The parameters beside `tool` that `mcp` does not have. They are probably the arguments of
    /// the tool.
    beside: Option<Args>,
}

impl GivenParameters {
    /// Rejects unknown parameters, unless they may belong to the tool.
    fn check(given: Vec<(String, Exact)>) -> Result<GivenParameters, RequestError> {
        let given = with_args(given);
        let known = |name: &str| PARAMETERS.iter().find(|parameter| parameter.name == name);
        let (given, strays): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|(name, _)| known(name).is_some());
        let Some((stray, _)) = strays.first() else {
            return Ok(GivenParameters { given, beside: None });
        };
        let tool = given.iter().find(|(name, value)| name == "tool" && !is_blank(value));
        let tool = tool.and_then(|(_, tool)| tool.value().as_str());
        // If other parameters of `mcp` are present, an unknown one may be a misspelt parameter of
        // `mcp`.
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
        Ok(GivenParameters { given, beside: Some(beside) })
    }

    /// Removes a parameter. `null` means that it is missing, because models send `null` for unused
    /// parameters.
    fn take(&mut self, name: &str) -> Option<Exact> {
        let index = self.given.iter().position(|(given, _)| given == name)?;
        let (_, value) = self.given.swap_remove(index);
        Some(value).filter(|value| !value.value().is_null())
    }

    fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, value)| given == name && !value.value().is_null())
    }

    /// The request for the mode with the highest precedence.
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
        if !matches!(action, "auth-start" | "auth-complete") {
            return Err(RequestError::UnknownAction { name: action.to_owned() });
        }
        let server = self.text("server")?;
        let server = server.ok_or(RequestError::Alone { name: "action", needs: "server" })?;
        if action == "auth-start" {
            return Ok(Request::SignIn { server });
        }
        let args = self.take("args").ok_or(RequestError::NoAnswer)?;
        let answer = sign_in_answer(args)?.ok_or(RequestError::NoAnswer)?;
        Ok(Request::CompleteSignIn { server, answer })
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

    /// Rejects a parameter without the other parameter that it requires.
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

    /// The offset and limit of the requested page. `usual` is the default limit.
    fn page(&mut self, usual: usize) -> Result<PageRequest, RequestError> {
        Ok(PageRequest {
            offset: self.count("offset", 0, usize::MAX)?.unwrap_or(0),
            limit: self.count("limit", 1, MAX_LIMIT)?.unwrap_or(usual),
        })
    }

    /// The parameters of modes that are ignored because another mode has precedence.
    fn leftovers(&self) -> Vec<&'static str> {
        PARAMETERS.iter().map(|parameter| parameter.name).filter(|name| self.has(name)).collect()
    }

    fn text(&mut self, name: &'static str) -> Result<Option<String>, RequestError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => {
                // An empty search is an error. All other parameters may be empty, because models
                // send empty text for unused parameters.
                if name == "search" { Err(RequestError::Empty { name }) } else { Ok(None) }
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong_type(name, ParameterKind::Text, &other)),
        }
    }

    fn flag(&mut self, name: &'static str) -> Result<Option<bool>, RequestError> {
        match self.take(name).map(Exact::into_value) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(Value::String(text)) if text == "true" => Ok(Some(true)),
            Some(Value::String(text)) if text == "false" => Ok(Some(false)),
            Some(other) => Err(wrong_type(name, ParameterKind::Flag, &other)),
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
            None => Err(wrong_type(name, ParameterKind::Count, &value)),
            Some(count) if (least..=most).contains(&count) => Ok(Some(count)),
            Some(_) => Err(RequestError::OutOfRange { name, least, most }),
        }
    }
}

/// The value of a whole number, also if it is written as `5.0`.
fn whole(number: &serde_json::Number) -> Option<usize> {
    if let Some(whole) = number.as_u64() {
        return usize::try_from(whole).ok();
    }
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    (0.0..=9e15).contains(&float).then_some(float as usize)
}

/// The error about a parameter that neither `mcp` nor the tool in the call has.
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

fn wrong_type(name: &'static str, kind: ParameterKind, found: &Value) -> RequestError {
    let expected = match kind {
        ParameterKind::Text => "a string",
        ParameterKind::Flag => "true or false",
        ParameterKind::Count => "a whole number",
        ParameterKind::Arguments => "an object",
    };
    RequestError::WrongType { name, expected, found: kind_of(found) }
}

#[cfg(test)]
mod tests;
