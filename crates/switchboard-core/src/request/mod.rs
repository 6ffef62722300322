//! What can be asked of a session, and how `mcp({...})` says it.

mod arguments;
mod parse;
mod prompt_line;
mod table;

pub use arguments::Arguments;
pub use parse::{Parsed, RequestError, args_of, parse, parse_args, unknown};
pub use prompt_line::{LineError, prompt_args};
pub use table::{Kind, PARAMETERS, Parameter, Place, card_parameters};

use crate::exact::Args;

/// Tools of a search page, unless asked otherwise.
pub const DEFAULT_LIMIT: usize = 12;

/// Tools of a page of a server's list, unless asked otherwise: most servers fit into one.
pub const LIST_LIMIT: usize = 40;

/// The largest page that can be asked for.
pub const MAX_LIMIT: usize = 100;

/// One question to a session. Faces make these; `Session::handle` answers them.
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
    /// Begin to sign in to a server; the user does the rest.
    SignIn {
        server: String,
    },
    /// Finish with what the user brings from the browser.
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
    /// Whether it changes something of the user's without calling a tool; calls are judged by what
    /// their tool declares.
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
    /// What to call the tool with, if one is clearly meant and only reads.
    pub args: Option<Args>,
    /// A jq filter on what the tool gives, if it is called.
    pub select: Option<String>,
}

impl SearchRequest {
    /// The first page of what these words find everywhere.
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
    /// Ranked, any word counts.
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
    /// A jq filter: only what it gives is shown.
    pub select: Option<String>,
}

impl CallRequest {
    /// The call of a tool by its name, which is meant as it stands.
    pub fn new(tool: impl Into<String>, server: Option<String>, args: Args) -> CallRequest {
        CallRequest { tool: tool.into(), server, args, reading: Reading::Literal, select: None }
    }
}

/// How freely a call is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// A person or a program wrote it, who mean what they say.
    #[default]
    Literal,
    /// A model wrote it: a name that no tool has may be that of the tool next to it.
    Forgiving,
    /// A model wrote it, with the arguments beside `tool` instead of inside `args`: each has to be
    /// a parameter of the tool.
    Beside,
}

/// Which part of a stored result to read; lines are counted from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultView {
    /// A jq filter: what it gives takes the place of the result.
    pub select: Option<String>,
    pub offset: usize,
    pub limit: Option<usize>,
    pub grep: Option<String>,
}
