//! The requests to a session, which can also be written as arguments of `mcp`.

mod arguments;
mod parse;
mod prompt_line;
mod table;

pub use arguments::Arguments;
pub use parse::{Parsed, RequestError, args_of, parse, parse_args, unknown};
pub use prompt_line::{LineError, prompt_args};
pub use table::{PARAMETERS, Parameter, ParameterKind, ParameterPlace, card_parameters};

use crate::exact::Args;

/// The number of tools on a page of search results if the request has no `limit`.
pub const DEFAULT_LIMIT: usize = 12;

/// The number of tools on a page of a server's list if the request has no `limit`. Most servers
/// have fewer.
pub const LIST_LIMIT: usize = 40;

/// The maximum `limit` of a page.
pub const MAX_LIMIT: usize = 100;

/// A request to a session. Faces make requests, and `Session::handle` processes them.
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
    /// Read a part of a stored result.
    Result {
        id: String,
        view: ResultView,
    },
    Disconnect {
        server: String,
    },
    /// Start the sign-in to a server. The user completes it in the browser.
    SignIn {
        server: String,
    },
    /// Complete the sign-in with the redirect URL from the browser, or with the code in it.
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
    /// Whether the request itself changes sign-ins or connections, so that a read-only `mcp`
    /// refuses it. For calls this is `false`: the annotations of the tool decide.
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
    /// Whether the search results have signatures.
    pub signatures: Signatures,
    pub page: PageRequest,
    /// The arguments for calling the tool, if one tool matches clearly and is read-only.
    pub args: Option<Args>,
    /// A jq filter for the result of the tool, if it is called.
    pub select: Option<String>,
}

impl SearchRequest {
    /// A request for the first page of a search for these words on all servers.
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
    /// The query consists of words. The results are ranked.
    Words,
    /// The query is a regular expression. The results are not ranked.
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
    /// A jq filter; only its output is shown.
    pub select: Option<String>,
}

impl CallRequest {
    /// A call of the tool with exactly this name.
    pub fn new(tool: impl Into<String>, server: Option<String>, args: Args) -> CallRequest {
        CallRequest { tool: tool.into(), server, args, reading: Reading::Literal, select: None }
    }
}

/// How leniently the tool's name and arguments of a call are interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// A user or a program wrote the call: names must be exact.
    #[default]
    Literal,
    /// A model wrote the call: an unknown tool name may be a misspelling of a similar one.
    Forgiving,
    /// A model wrote the call, with the arguments beside `tool` instead of inside `args`. Each
    /// argument must be a parameter of the tool.
    Beside,
}

/// Which part of a stored result to read. Lines are counted from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultView {
    /// A jq filter; only its output is shown.
    pub select: Option<String>,
    pub offset: usize,
    pub limit: Option<usize>,
    pub grep: Option<String>,
}
