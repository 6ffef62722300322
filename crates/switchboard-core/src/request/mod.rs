//! The requests to a session, and their form as arguments of `mcp`.

mod arguments;
mod parse;
mod prompt_line;
mod table;

pub use arguments::Arguments;
pub use parse::{Parsed, RequestError, args_of, parse, parse_args, unknown};
pub use prompt_line::{LineError, prompt_args};
pub use table::{PARAMETERS, Parameter, ParameterKind, ParameterPlace, card_parameters};

use crate::exact::Args;

/// Tools on a search page by default.
pub const DEFAULT_LIMIT: usize = 12;

/// Tools on a page of a server's list by default: most servers fit into one.
pub const LIST_LIMIT: usize = 40;

/// The largest page that can be requested.
pub const MAX_LIMIT: usize = 100;

/// One request to a session. Faces make these; `Session::handle` processes them.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    Status,
    List {
        server: String,
        page: PageRequest,
    },
    Search(SearchRequest),
    Describe {
        tool: String,
        server: Option<String>,
    },
    Instructions {
        server: String,
    },
    Call(CallRequest),
    Connect {
        server: String,
    },
    /// Read more of a stored result.
    Result {
        id: String,
        view: ResultView,
    },
    Disconnect {
        server: String,
    },
    /// Start the sign-in to a server; the user completes it in the browser.
    SignIn {
        server: String,
    },
    /// Complete the sign-in with the redirect URL or code from the browser.
    CompleteSignIn {
        server: String,
        answer: String,
    },
    Resources {
        server: Option<String>,
    },
    ReadResource {
        uri: String,
        server: Option<String>,
    },
    Prompts {
        server: Option<String>,
    },
    Prompt {
        name: String,
        server: Option<String>,
        args: Args,
    },
}

impl Request {
    /// Whether it changes state of the user without calling a tool; for calls, the annotations of
    /// the tool decide.
    pub fn changes_state(&self) -> bool {
        match self {
            Request::SignIn { .. }
            | Request::CompleteSignIn { .. }
            | Request::Disconnect { .. } => true,
            Request::Status
            | Request::List { .. }
            | Request::Search(_)
            | Request::Describe { .. }
            | Request::Instructions { .. }
            | Request::Call(_)
            | Request::Connect { .. }
            | Request::Result { .. }
            | Request::Resources { .. }
            | Request::ReadResource { .. }
            | Request::Prompts { .. }
            | Request::Prompt { .. } => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: usize,
    pub limit: usize,
}

impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest { offset: 0, limit: DEFAULT_LIMIT }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest {
    pub query: String,
    pub matching: Matching,
    pub server: Option<String>,
    /// Whether hits come with their signatures.
    pub signatures: Signatures,
    pub page: PageRequest,
    /// Arguments with which the tool is called, if one clearly matches and is read-only.
    pub args: Option<Args>,
    /// A jq filter on the result of the tool, if it is called.
    pub select: Option<String>,
}

impl SearchRequest {
    /// The first page of a search for these words on all servers.
    pub fn words(query: impl Into<String>) -> SearchRequest {
        SearchRequest {
            query: query.into(),
            matching: Matching::Words,
            server: None,
            signatures: Signatures::Shown,
            page: PageRequest::default(),
            args: None,
            select: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matching {
    /// Ranked by the words that match.
    Words,
    /// A regular expression, unranked.
    Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signatures {
    Shown,
    Hidden,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CallRequest {
    pub tool: String,
    pub server: Option<String>,
    pub args: Args,
    pub reading: Reading,
    /// A jq filter: only its output is shown.
    pub select: Option<String>,
}

impl CallRequest {
    /// The call of a tool by its exact name.
    pub fn new(tool: impl Into<String>, server: Option<String>, args: Args) -> CallRequest {
        CallRequest { tool: tool.into(), server, args, reading: Reading::Literal, select: None }
    }
}

/// How leniently a call is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// Written by a user or a program: taken literally.
    #[default]
    Literal,
    /// Written by a model: an unknown tool name may be a misspelling of a similar one.
    Forgiving,
    /// Written by a model, with the arguments beside `tool` instead of inside `args`: each has to
    /// be a parameter of the tool.
    Beside,
}

/// Which part of a stored result to read; lines are counted from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultView {
    /// A jq filter: its output replaces the result.
    pub select: Option<String>,
    pub offset: usize,
    pub limit: Option<usize>,
    pub grep: Option<String>,
}
