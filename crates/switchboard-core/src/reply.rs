//! The structured reply of every mode; faces turn it into text, JSON or terminal output.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::guess::NotCalled;
use crate::catalog::pin::{DriftCount, Pin};
use crate::catalog::search::Fit;
use crate::catalog::{Prompt, Resource};
use crate::config::values::Lifecycle;
use crate::content::CallOutput;
use crate::content::page::ResultPage;
use crate::failure::Failure;
use crate::hidden::Hidden;
use crate::name::ServerName;
use crate::schema::Note;
use crate::sign_in::link::Link;
use crate::spelled::spelled_enum;

/// The reply of a session.
#[derive(Debug)]
pub enum Reply {
    Status(Overview),
    /// Tools of one server, or of all.
    Tools(ToolPage),
    /// A server was connected or refreshed; its tools.
    Connected(ToolPage),
    Disconnected {
        servers: Vec<ServerName>,
    },
    /// The user has to open a URL to sign in.
    SignInBegun {
        server: ServerName,
        link: Link,
    },
    SignedIn {
        server: ServerName,
        scopes: Vec<String>,
    },
    Found(SearchPage),
    Described(Box<Description>),
    Instructions {
        server: ServerName,
        text: String,
    },
    /// The result of a tool, a resource or a prompt.
    Output(Box<Output>),
    /// A part of a stored result.
    Stored {
        id: String,
        page: ResultPage,
    },
    Resources(Vec<(ServerName, Resource)>),
    Prompts(Vec<(ServerName, Prompt)>),
}

#[derive(Debug)]
pub struct Overview {
    pub servers: Vec<ServerLine>,
    pub tools: usize,
    pub connected: usize,
    /// Configuration files that cannot be parsed; the last good version of each is in use.
    pub stale: Vec<String>,
    /// Places in configuration files with errors, which are ignored.
    pub mistakes: Vec<String>,
}

#[derive(Debug)]
pub struct ServerLine {
    pub name: ServerName,
    pub status: ServerStatus,
    /// `None` until the server has been listed.
    pub tools: Option<usize>,
    /// Tools that the user's rules deny.
    pub denied: usize,
    pub resources: usize,
    pub lifecycle: Lifecycle,
    pub trust: TrustLevel,
    pub failure: Option<PastFailure>,
    /// The connect in progress, if any.
    pub underway: Option<Underway>,
    /// The description from the configuration.
    pub description: Option<String>,
    /// A remark on its listing, such as definitions that were left out.
    pub note: Option<String>,
    /// Tools that changed since they were pinned.
    pub drift: DriftCount,
}

#[derive(Clone, Debug)]
pub struct PastFailure {
    pub ago: Duration,
    pub cause: String,
}

/// A connect in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Underway {
    pub stage: ConnectStage,
    /// The time since this stage began.
    pub since: Duration,
}

spelled_enum! {
    pub enum ConnectStage {
        /// A launcher is installing it.
        Installing = "installing",
        Starting = "starting",
    }
}

spelled_enum! {
    pub enum ServerStatus {
        Connected = "connected",
        Cached = "cached",
        NotConnected = "not-connected",
        Connecting = "connecting",
        NeedsAuth = "needs-auth",
        Pending = "pending",
        Failed = "failed",
        Disabled = "disabled",
    }
}

impl ServerStatus {
    pub fn glyph(self) -> char {
        match self {
            ServerStatus::Connected => '✓',
            ServerStatus::Cached | ServerStatus::NotConnected | ServerStatus::Connecting => '○',
            ServerStatus::NeedsAuth | ServerStatus::Pending => '⚠',
            ServerStatus::Failed => '✗',
            ServerStatus::Disabled => '⊘',
        }
    }
}

spelled_enum! {
    /// Whether a server is trusted, and why.
    pub enum TrustLevel {
        /// The server's entry is in a file of the user.
        User = "user",
        /// The server's entry is in a project's file, and the user approved this definition.
        Approved = "approved",
        Pending = "pending",
    }
}

#[derive(Debug)]
pub struct ToolPage {
    /// `None` when the tools are those of all servers.
    pub server: Option<ServerName>,
    pub tools: Vec<ToolLine>,
    /// Tools that the user's rules deny, which are not listed.
    pub denied: usize,
    pub total: usize,
    pub offset: usize,
    pub next: Option<usize>,
    /// Definitions of the server that were left out, each with a reason.
    pub skipped: Vec<String>,
    /// The server declared that it has no tools at all.
    pub without_tools: bool,
    pub has_instructions: bool,
    /// Servers whose tools are not known, because they were never listed.
    pub not_listed: Vec<ServerName>,
    /// Servers that are pending: the user has not approved them.
    pub pending: Vec<ServerName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLine {
    pub shown: String,
    pub server: ServerName,
    pub tool: String,
    pub description: String,
    pub pin: Pin,
    /// Another server, whose prefix the tool's own name begins with.
    pub claims: Option<ServerName>,
    /// Hidden text in its definition.
    pub hidden: Option<Hidden>,
    pub reached_by: ReachedBy,
}

/// The tool of Switchboard that can call it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReachedBy {
    /// The tool of Switchboard that returned this line.
    #[default]
    SameTool,
    /// `mcp_write`, because it is not declared read-only and `mcp` returned this line.
    WriteTool,
}

#[derive(Debug)]
pub struct SearchPage {
    pub query: String,
    pub hits: Vec<SearchHit>,
    pub total: usize,
    pub offset: usize,
    pub next: Option<usize>,
    /// How well the best tool of the whole ranking matches.
    pub fit: Fit,
    /// How many tools at the top of the ranking match about as well as the best.
    pub good: usize,
    /// Matching tools that the user's rules deny, which are not shown.
    pub denied: usize,
    /// The tool that matches far better than every other; it may be denied.
    pub clear: Option<Arc<str>>,
    pub with_signatures: bool,
    pub not_listed: Vec<ServerName>,
    /// Servers without a listing that cannot be connected now.
    pub unavailable: Vec<(ServerName, Unavailable)>,
    pub pending: Vec<ServerName>,
    /// Why a search with arguments called no tool.
    pub not_called: Option<Box<NotCalled>>,
}

/// Why a server has no listing although it was connected for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unavailable {
    Starting,
    Failed { reason: Box<str> },
}

#[derive(Debug)]
pub struct SearchHit {
    pub line: ToolLine,
    pub score: f32,
    pub signature: String,
    /// Explanations of parameters whose name and type are not enough.
    pub notes: Vec<Note>,
}

#[derive(Debug)]
pub struct Description {
    pub line: ToolLine,
    pub title: Option<String>,
    pub signature: String,
    /// Every parameter with everything that the schema declares about it.
    pub parameters: String,
    pub returns: Option<String>,
    /// The URI, for a resource that is read like a tool.
    pub resource: Option<String>,
    /// JSON, as the server wrote it.
    pub input_schema: String,
    pub output_schema: Option<String>,
    pub annotations: Option<String>,
    /// The `deny` rule that matches it.
    pub denied: Option<String>,
}

/// The origin of an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputOrigin {
    Tool,
    Resource,
    Prompt,
}

#[derive(Debug)]
pub struct Output {
    pub origin: OutputOrigin,
    pub server: ServerName,
    /// The tool's or prompt's own name, or the resource's URI.
    pub name: String,
    pub content: CallOutput<'static>,
    /// The id of the stored result, if the content was capped.
    pub result: Option<String>,
    /// The parameters of the tool, if its error is likely about the arguments.
    pub expected: Option<String>,
    /// How the tool was chosen, if the caller did not name it exactly, with its shown name.
    pub guessed: Option<Guessed>,
    /// Why the filter failed, which is shown instead of its result.
    pub unselected: Option<Box<Failure>>,
}

/// A tool that was called although the caller did not name it exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guessed {
    pub shown: String,
    pub by: Clue,
}

/// How a tool was chosen that the caller did not name exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clue {
    Search,
    /// The name that the caller wrote. No tool has it.
    Misspelt(String),
}
