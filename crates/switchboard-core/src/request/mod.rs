//! What can be asked of a session, and how `mcp({...})` says it.

mod arguments;
mod parse;
mod prompt_line;
mod table;

pub use arguments::Arguments;
pub use parse::{Parsed, RequestError, args_of, parse, parse_args};
pub use prompt_line::{LineError, prompt_args};
pub use table::{Kind, PARAMETERS, Parameter, Place, card_parameters};

use crate::exact::Args;

/// Tools of a search page or a server's list, unless asked otherwise.
pub const DEFAULT_LIMIT: usize = 12;

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
}

/// Which part of a stored result to read; lines are counted from 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultView {
    pub offset: usize,
    pub limit: Option<usize>,
    pub grep: Option<String>,
}
