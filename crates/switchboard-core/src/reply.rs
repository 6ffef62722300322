//! The reply to every mode of a request, as data. Faces render it as text, JSON or terminal output.

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

/// The reply to a request.
#[derive(Debug)]
pub enum Reply {
    Status(Overview),
    /// The tools of one server, or of all servers.
    Tools(ToolPage),
    /// The tools of a server that was connected or refreshed.
    Connected(ToolPage),
    Disconnected {
        servers: Vec<ServerName>,
    },
    /// A sign-in has begun. The user has to open a URL.
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
    /// The result of a call, a resource or a prompt.
    Output(Box<Output>),
    /// A page of a stored result.
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
    /// The configuration files that cannot be parsed. For each, the last version that could be
    /// parsed is in use.
    pub stale: Vec<String>,
    /// The positions of errors in configuration files. The entries there are ignored.
    pub mistakes: Vec<String>,
}

#[derive(Debug)]
pub struct ServerLine {
    pub name: ServerName,
    pub status: ServerStatus,
    /// The number of the server's tools; `None` until the server was first listed.
    pub tools: Option<usize>,
    /// The number of the server's tools that `deny` rules match.
    pub denied: usize,
    pub resources: usize,
    pub lifecycle: Lifecycle,
    pub trust: TrustLevel,
    pub failure: Option<PastFailure>,
    /// The connection attempt in progress; `None` if there is none.
    pub underway: Option<Underway>,
    /// The description of the server in the configuration.
    pub description: Option<String>,
    /// A remark about the listing, such as the number of skipped definitions.
    pub note: Option<String>,
    /// The numbers of definitions that do not match their pins.
    pub drift: DriftCount,
}

#[derive(Clone, Debug)]
pub struct PastFailure {
    pub ago: Duration,
    pub cause: String,
}

/// A connection attempt in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Underway {
    pub stage: ConnectStage,
    /// How long the current stage has taken so far.
    pub since: Duration,
}

spelled_enum! {
    pub enum ConnectStage {
        /// A launcher is installing the server.
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
    /// Why a server may be used, or may not.
    pub enum TrustLevel {
        /// A file of the user has the server's entry.
        User = "user",
        /// A file of the project has the server's entry, and the user approved this definition.
        Approved = "approved",
        Pending = "pending",
    }
}

#[derive(Debug)]
pub struct ToolPage {
    /// The server of the tools; `None` if the page lists the tools of all servers.
    pub server: Option<ServerName>,
    pub tools: Vec<ToolLine>,
    /// The number of tools that are not listed because `deny` rules match them.
    pub denied: usize,
    pub total: usize,
    pub offset: usize,
    pub next: Option<usize>,
    /// The definitions of the server that were skipped, each with the reason.
    pub skipped: Vec<String>,
    /// Whether the server declared that it has no tools.
    pub without_tools: bool,
    pub has_instructions: bool,
    /// The servers that were never listed, so their tools are unknown.
    pub not_listed: Vec<ServerName>,
    /// The servers of a project that the user has not approved.
    pub pending: Vec<ServerName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLine {
    pub shown: String,
    pub server: ServerName,
    pub tool: String,
    pub description: String,
    pub pin: Pin,
    /// Another server whose prefix the original name of the tool has.
    pub claims: Option<ServerName>,
    /// The hidden text in the definition of the tool.
    pub hidden: Option<Hidden>,
    pub reached_by: ReachedBy,
}

/// Which tool of Switchboard can call a listed tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReachedBy {
    /// The tool of Switchboard whose reply lists the tool can also call it.
    #[default]
    SameTool,
    /// `mcp_write`: the listed tool is not declared read-only, and the reply is one of `mcp`.
    WriteTool,
}

#[derive(Debug)]
pub struct SearchPage {
    pub query: String,
    pub hits: Vec<SearchHit>,
    pub total: usize,
    pub offset: usize,
    pub next: Option<usize>,
    /// How well the best tool of all pages matches.
    pub fit: Fit,
    /// How many tools, from the best one on, match about as well as the best one.
    pub good: usize,
    /// The number of matching tools that are not shown because `deny` rules match them.
    pub denied: usize,
    /// The shown name of the tool that matches far better than every other tool. A `deny` rule may
    /// match it.
    pub clear: Option<Arc<str>>,
    pub with_signatures: bool,
    pub not_listed: Vec<ServerName>,
    /// The servers without a listing to which no connection is possible now.
    pub unavailable: Vec<(ServerName, Unavailable)>,
    pub pending: Vec<ServerName>,
    /// Why the search called no tool although it had arguments.
    pub not_called: Option<Box<NotCalled>>,
}

/// Why a server has no listing although the search tried to connect to it.
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
    /// Explanations of the parameters whose name and type do not say enough.
    pub notes: Vec<Note>,
}

#[derive(Debug)]
pub struct Description {
    pub line: ToolLine,
    pub title: Option<String>,
    pub signature: String,
    /// All parameters of the tool, with everything that the schema declares about them.
    pub parameters: String,
    pub returns: Option<String>,
    /// The URI of the resource that this tool reads; `None` for other tools.
    pub resource: Option<String>,
    /// The input schema of the tool as JSON, as the server wrote it.
    pub input_schema: String,
    pub output_schema: Option<String>,
    pub annotations: Option<String>,
    /// The `deny` rule that matches the tool.
    pub denied: Option<String>,
}

/// Whether a tool, a resource or a prompt produced an [`Output`].
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
    /// The original name of the tool or prompt, or the URI of the resource.
    pub name: String,
    pub content: CallOutput<'static>,
    /// The id of the stored result; `None` if the output is not shortened.
    pub result: Option<String>,
    /// The parameters of the tool, if its error is probably about the arguments.
    pub expected: Option<String>,
    /// How the tool was chosen; `None` if the caller named it exactly.
    pub guessed: Option<Guessed>,
    /// Why the filter failed. The error is shown in place of the filter's output.
    pub unselected: Option<Box<Failure>>,
}

/// A tool that was called although the caller did not name it exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guessed {
    pub shown: String,
    pub by: Clue,
}

/// Why a tool was called that the caller did not name exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clue {
    Search,
    /// The name in the call, which is a misspelling of the tool's name.
    Misspelt(String),
}
