//! What went wrong, as a product: a code to branch on, the cause to report, remedies as data.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::config::install::Target;
use crate::name::ServerName;
use crate::sign_in::link::Link;

/// The kind of a failure. Callers branch on this and on nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    BadRequest,
    UnknownTool,
    AmbiguousTool,
    UnknownServer,
    UnknownResource,
    UnknownPrompt,
    UnknownResult,
    ServerDisabled,
    TrustRequired,
    SignInRequired,
    BadArguments,
    BadPattern,
    BadFilter,
    ApprovalRequired,
    ApprovalDenied,
    ToolChanged,
    ToolBlocked,
    NotReadOnly,
    NoInstructions,
    Config,
    ConnectFailed,
    Starting,
    Backoff,
    CrashLoop,
    TimedOut,
    ConnectionLost,
    OutcomeUnknown,
    AnswerTooLarge,
    ServerError,
    Disconnected,
    ShuttingDown,
    Storage,
}

impl Code {
    pub const ALL: [Code; 32] = [
        Code::BadRequest,
        Code::UnknownTool,
        Code::AmbiguousTool,
        Code::UnknownServer,
        Code::UnknownResource,
        Code::UnknownPrompt,
        Code::UnknownResult,
        Code::ServerDisabled,
        Code::TrustRequired,
        Code::SignInRequired,
        Code::BadArguments,
        Code::BadPattern,
        Code::BadFilter,
        Code::ApprovalRequired,
        Code::ApprovalDenied,
        Code::ToolChanged,
        Code::ToolBlocked,
        Code::NotReadOnly,
        Code::NoInstructions,
        Code::Config,
        Code::ConnectFailed,
        Code::Starting,
        Code::Backoff,
        Code::CrashLoop,
        Code::TimedOut,
        Code::ConnectionLost,
        Code::OutcomeUnknown,
        Code::AnswerTooLarge,
        Code::ServerError,
        Code::Disconnected,
        Code::ShuttingDown,
        Code::Storage,
    ];

    /// Whether a name, or an address, means nothing that is known.
    pub fn is_unknown_name(self) -> bool {
        use Code::{UnknownPrompt, UnknownResource, UnknownServer, UnknownTool};
        matches!(self, UnknownTool | UnknownServer | UnknownResource | UnknownPrompt)
    }

    /// The stable spelling for machines.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::BadRequest => "bad_request",
            Code::UnknownTool => "unknown_tool",
            Code::AmbiguousTool => "ambiguous_tool",
            Code::UnknownServer => "unknown_server",
            Code::UnknownResource => "unknown_resource",
            Code::UnknownPrompt => "unknown_prompt",
            Code::UnknownResult => "unknown_result",
            Code::ServerDisabled => "server_disabled",
            Code::TrustRequired => "trust_required",
            Code::SignInRequired => "sign_in_required",
            Code::BadArguments => "bad_arguments",
            Code::BadPattern => "bad_pattern",
            Code::BadFilter => "bad_filter",
            Code::ApprovalRequired => "approval_required",
            Code::ApprovalDenied => "approval_denied",
            Code::ToolChanged => "tool_changed",
            Code::ToolBlocked => "tool_blocked",
            Code::NotReadOnly => "not_read_only",
            Code::NoInstructions => "no_instructions",
            Code::Config => "config",
            Code::ConnectFailed => "connect_failed",
            Code::Starting => "starting",
            Code::Backoff => "backoff",
            Code::CrashLoop => "crash_loop",
            Code::TimedOut => "timed_out",
            Code::ConnectionLost => "connection_lost",
            Code::OutcomeUnknown => "outcome_unknown",
            Code::AnswerTooLarge => "answer_too_large",
            Code::ServerError => "server_error",
            Code::Disconnected => "disconnected",
            Code::ShuttingDown => "shutting_down",
            Code::Storage => "storage",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a failure is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Request,
    Server(ServerName),
    /// A tool by the name that it is shown with.
    Tool {
        shown: String,
        server: ServerName,
    },
    Config {
        path: String,
    },
}

/// A remedy. Each face words it with its own verbs.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// Names close to the one that was asked for.
    DidYouMean(Vec<String>),
    /// The names among which to choose.
    Choose(Vec<String>),
    /// What the tool takes, in full.
    Expected(String),
    /// Search with these words.
    Search(String),
    /// Servers that have never been listed, so their tools are not known.
    NotListedYet(Vec<ServerName>),
    /// See which servers there are.
    ListServers,
    /// See which tools a server has.
    ListTools(ServerName),
    Connect(ServerName),
    /// Approve the exact definition of a project's server.
    Trust(ServerName),
    /// Give the server's entry what the server wants to see: a token, or headers.
    SignIn(ServerName),
    /// A sign-in was begun: the user has to open this address.
    SignInAt(Link),
    /// The server did nothing: the user has to open this address before.
    VisitFirst(Link),
    /// The server does not take what its entry says.
    GiveToken(ServerName),
    /// Give the server's address the token that its entry wants to be kept.
    SetToken(ServerName),
    /// Unlock the keyring, or have tokens kept elsewhere.
    Unlock,
    /// Take `disabled` out of the server's entry.
    Enable(ServerName),
    /// Turn the server off where it cannot be taken away.
    Disable(ServerName),
    /// Import servers, or add one.
    Configure,
    /// Say that the entry which is there shall be replaced.
    Replace,
    /// Nothing helps but waiting.
    RetryAfter(Duration),
    /// The last lines that the server wrote to its standard error.
    Stderr(Vec<String>),
    /// Read the server's log.
    ReadLog(ServerName),
    /// A setting that lifts a limit.
    Setting(&'static str),
    /// Ask the user, in a host that can, or allow it beforehand.
    AskUser,
    /// Call this tool, or with none do the same, through the tool for writes.
    UseWriteTool(Option<String>),
    /// Allow calls that fit this pattern for good.
    Allow(String),
    /// Look at what changed in the tools of a server, and accept it.
    Accept(ServerName),
    /// Take this pattern back from what is denied.
    LiftDenial(String),
    /// Read a stored result by its id: the call was made, whatever was wrong with its filter.
    ReadResult(String),
    /// What the call gave is not kept any more.
    CallAgain,
    /// Put the arguments of a tool into `args`.
    UseArgs,
    /// Check the named program or path.
    CheckCommand(String),
    /// Leave this program alone in `command`, and put the rest into `args`.
    SplitCommand(String),
    /// Make a file a program.
    MakeExecutable(String),
    /// Install a product that brings the program.
    Install(&'static str),
    /// Let us change a host's files anew.
    InstallIn(Target),
    /// Set an environment variable.
    SetVariable(String),
    /// Let the server see these variables of ours, should it need them.
    PassOn(Vec<String>),
    /// Give this program the name by which it is known, besides the one that it has.
    LinkProgram,
    /// Listen at another port.
    ChoosePort,
    /// See which configuration files there are.
    ListFiles,
    /// Correct a place in a configuration file.
    Edit {
        path: String,
        line: u32,
    },
    /// Look at every mistake in the configuration files.
    CheckConfig,
    /// Correct a field of the server's entry.
    Correct(String),
    /// Give the server another name.
    Rename,
    /// Put a file out of the way, to begin anew.
    MoveAway(String),
    /// Let nobody but the owner into a directory.
    MakePrivate(String),
    /// Check whether the action took place before asking for it again.
    CheckOutcome,
}

/// A request that could not be answered.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: Code,
    pub subject: Subject,
    pub cause: Arc<dyn Error + Send + Sync>,
    /// In order of usefulness.
    pub hints: Vec<Hint>,
}

impl Failure {
    pub fn new(code: Code, subject: Subject, cause: impl Error + Send + Sync + 'static) -> Failure {
        Failure { code, subject, cause: Arc::new(cause), hints: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: Hint) -> Failure {
        self.hints.push(hint);
        self
    }

    /// The same with another remedy in place of one.
    #[must_use]
    pub fn instead(mut self, of: &Hint, better: Hint) -> Failure {
        self.hints.retain(|hint| hint != of);
        self.hints.insert(0, better);
        self
    }

    /// What was attempted, then each cause below it.
    pub fn chain(&self) -> Vec<String> {
        let mut chain = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = Some(self.cause.as_ref());
        while let Some(error) = next {
            chain.push(error.to_string());
            next = error.source();
        }
        chain
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain().join(": "))
    }
}

impl Error for Failure {}
