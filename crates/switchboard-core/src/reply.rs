//! The structured answer of every mode; faces turn it into text, JSON or a screen.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::guess::NotCalled;
use crate::catalog::pin::{DriftCount, Pin};
use crate::catalog::search::Fit;
use crate::catalog::{Prompt, Resource};
use crate::config::values::Lifecycle;
use crate::content::CallOutput;
use crate::content::page::Page;
use crate::failure::Failure;
use crate::hidden::Hidden;
use crate::name::ServerName;
use crate::schema::Note;
use crate::sign_in::link::Link;

/// What a session answers.
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
    /// The user has to open an address to sign in.
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
    /// What a tool, a resource or a prompt gave.
    Output(Box<Output>),
    /// A part of a stored result.
    Stored {
        id: String,
        page: Page,
    },
    Resources(Vec<(ServerName, Resource)>),
    Prompts(Vec<(ServerName, Prompt)>),
}

#[derive(Debug)]
pub struct Overview {
    pub servers: Vec<ServerLine>,
    pub tools: usize,
    pub connected: usize,
    /// Places in configuration files that do not read; the last good version of each file holds.
    pub stale: Vec<String>,
    /// Places in configuration files where something is wrong and does not count.
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
    /// Set while it is connecting.
    pub underway: Option<Underway>,
    /// What the configuration calls it.
    pub description: Option<String>,
    /// Something odd about its lists, such as definitions that were left out.
    pub note: Option<String>,
    /// Tools that are not what was accepted.
    pub drift: DriftCount,
}

#[derive(Clone, Debug)]
pub struct PastFailure {
    pub ago: Duration,
    pub cause: String,
}

/// A connect that is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Underway {
    pub stage: Stage,
    /// For how long it has been at this stage.
    pub since: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// A launcher installs it first.
    Installing,
    Starting,
}

impl Stage {
    /// The stable spelling for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Stage::Installing => "installing",
            Stage::Starting => "starting",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerStatus {
    Connected,
    Cached,
    NotConnected,
    Connecting,
    NeedsAuth,
    Pending,
    Failed,
    Disabled,
}

impl ServerStatus {
    /// The stable spelling for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            ServerStatus::Connected => "connected",
            ServerStatus::Cached => "cached",
            ServerStatus::NotConnected => "not-connected",
            ServerStatus::Connecting => "connecting",
            ServerStatus::NeedsAuth => "needs-auth",
            ServerStatus::Pending => "pending",
            ServerStatus::Failed => "failed",
            ServerStatus::Disabled => "disabled",
        }
    }

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

/// Why a server may, or may not, run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustLevel {
    /// It stands in a file of the user's.
    User,
    /// It stands in a project's file, and the user approved exactly this.
    Approved,
    Pending,
}

impl TrustLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            TrustLevel::User => "user",
            TrustLevel::Approved => "approved",
            TrustLevel::Pending => "pending",
        }
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
    /// Servers that wait for the user's trust.
    pub pending: Vec<ServerName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLine {
    pub shown: String,
    pub server: ServerName,
    pub tool: String,
    pub description: String,
    pub pin: Pin,
    /// The server whose prefix the tool's own name bears; it is not this one.
    pub claims: Option<ServerName>,
    /// What was hidden in its definition.
    pub hidden: Option<Hidden>,
    pub reached_by: ReachedBy,
}

/// Which tool of ours calls it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReachedBy {
    /// The one that was asked.
    #[default]
    SameTool,
    /// `mcp_write`, because it does not declare itself read-only and `mcp` was asked.
    WriteTool,
}

#[derive(Debug)]
pub struct SearchPage {
    pub query: String,
    pub hits: Vec<SearchHit>,
    pub total: usize,
    pub offset: usize,
    pub next: Option<usize>,
    /// How well the best tool of the whole ranking fits.
    pub fit: Fit,
    /// How many tools from the first of the ranking on fit about as well as the best.
    pub good: usize,
    /// Matching tools that the user's rules deny, which are not shown.
    pub denied: usize,
    /// The tool that fits far better than every other; it may be a denied one.
    pub clear: Option<Arc<str>>,
    pub with_signatures: bool,
    pub not_listed: Vec<ServerName>,
    /// Servers without a listing that connecting would not help now.
    pub unavailable: Vec<(ServerName, Unavailable)>,
    pub pending: Vec<ServerName>,
    /// Why the search called nothing, if it came with arguments.
    pub not_called: Option<Box<NotCalled>>,
}

/// Why a server has no listing though it was asked for one.
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
    /// What the parameters mean that name and type do not tell.
    pub notes: Vec<Note>,
}

#[derive(Debug)]
pub struct Description {
    pub line: ToolLine,
    pub title: Option<String>,
    pub signature: String,
    /// Every parameter with all that the schema says about it.
    pub parameters: String,
    pub returns: Option<String>,
    /// Set for a resource that is read like a tool.
    pub resource: Option<String>,
    /// JSON, as the server wrote it.
    pub input_schema: String,
    pub output_schema: Option<String>,
    pub annotations: Option<String>,
    /// The `deny` rule because of which it is never called.
    pub denied: Option<String>,
}

/// What was asked to give an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Tool,
    Resource,
    Prompt,
}

#[derive(Debug)]
pub struct Output {
    pub origin: Origin,
    pub server: ServerName,
    /// The tool's or prompt's own name, or the resource's URI.
    pub name: String,
    pub content: CallOutput<'static>,
    /// Where the whole is kept, if the content was capped.
    pub result: Option<String>,
    /// What the tool takes, if its error is likely about the arguments.
    pub expected: Option<String>,
    /// Set if the tool was not named: the name that it is shown with, and how it was chosen.
    pub guessed: Option<Guessed>,
    /// Why a filter gave nothing: said in place of what it would have given.
    pub unselected: Option<Box<Failure>>,
}

/// A tool that was called without being named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guessed {
    pub shown: String,
    pub by: Clue,
}

/// What led to a tool that was not named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clue {
    Search,
    /// No tool has this name.
    Misspelt(String),
}
