//! Failures: a code to branch on, the cause to report, remedies as data.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::config::install::Target;
use crate::name::ServerName;
use crate::sign_in::link::Link;
use crate::spelled::spelled_enum;

spelled_enum! {
    /// The kind of a failure. Callers branch on this and on nothing else.
    pub enum Code {
        BadRequest = "bad_request",
        UnknownTool = "unknown_tool",
        AmbiguousTool = "ambiguous_tool",
        UnknownServer = "unknown_server",
        UnknownResource = "unknown_resource",
        UnknownPrompt = "unknown_prompt",
        UnknownResult = "unknown_result",
        ServerDisabled = "server_disabled",
        TrustRequired = "trust_required",
        SignInRequired = "sign_in_required",
        BadArguments = "bad_arguments",
        BadPattern = "bad_pattern",
        BadFilter = "bad_filter",
        ApprovalRequired = "approval_required",
        ApprovalDenied = "approval_denied",
        ToolChanged = "tool_changed",
        ToolBlocked = "tool_blocked",
        NotReadOnly = "not_read_only",
        NoInstructions = "no_instructions",
        Config = "config",
        ConnectFailed = "connect_failed",
        Starting = "starting",
        Backoff = "backoff",
        CrashLoop = "crash_loop",
        TimedOut = "timed_out",
        ConnectionLost = "connection_lost",
        OutcomeUnknown = "outcome_unknown",
        AnswerTooLarge = "answer_too_large",
        ServerError = "server_error",
        Disconnected = "disconnected",
        ShuttingDown = "shutting_down",
        Storage = "storage",
    }
}

impl Code {
    /// Whether a name or URI is unknown.
    pub fn is_unknown_name(self) -> bool {
        use Code::{UnknownPrompt, UnknownResource, UnknownServer, UnknownTool};
        matches!(self, UnknownTool | UnknownServer | UnknownResource | UnknownPrompt)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The subject of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Request,
    Server(ServerName),
    /// A tool, by its shown name.
    Tool {
        shown: String,
        server: ServerName,
    },
    Config {
        path: String,
    },
}

/// A remedy as data. Each face puts it into its own words.
///
/// The names of the variants are stable: machines get them as keys of JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hint {
    /// Names close to the requested one.
    DidYouMean(Vec<String>),
    /// The user or the model must choose one of these names.
    Choose(Vec<String>),
    /// The parameters of the tool, in full.
    Expected(String),
    /// Search with these words.
    Search(String),
    /// Servers that have never been listed, so their tools are not known.
    #[serde(rename = "notListed")]
    NotListedYet(Vec<ServerName>),
    /// List the servers.
    ListServers,
    /// List the tools of a server.
    ListTools(ServerName),
    Connect(ServerName),
    /// Approve the exact definition of a project's server.
    Trust(ServerName),
    /// Sign in, or add a token or headers to the server's entry.
    SignIn(ServerName),
    /// The sign-in has started: the user has to open this URL.
    #[serde(serialize_with = "as_text")]
    SignInAt(Link),
    /// The call was not executed: the user has to open this URL first.
    #[serde(serialize_with = "as_text")]
    VisitFirst(Link),
    /// The server rejects the credentials of its entry: set another token.
    GiveToken(ServerName),
    /// Store the token that the server's entry refers to.
    SetToken(ServerName),
    /// Unlock the keyring, or store tokens elsewhere.
    Unlock,
    /// Remove `disabled` from the server's entry.
    Enable(ServerName),
    /// Disable the server in this file, because its entry is in another one.
    Disable(ServerName),
    /// Import servers, or add one.
    Configure,
    /// Repeat the command with the flag that replaces an existing entry.
    Replace,
    /// Wait, then retry.
    #[serde(rename = "retryAfterMs", serialize_with = "as_millis")]
    RetryAfter(Duration),
    /// The last lines that the server wrote to its standard error.
    Stderr(Vec<String>),
    /// Read the server's log.
    ReadLog(ServerName),
    /// A setting that lifts a limit.
    Setting(&'static str),
    /// Use a host that can ask the user, or allow the call in advance.
    AskUser,
    /// Call this tool with `mcp_write`; without a name, repeat the request with `mcp_write`.
    UseWriteTool(Option<String>),
    /// Add this pattern to `allow`.
    Allow(String),
    /// Review what changed in the tools of a server, and accept it.
    Accept(ServerName),
    /// Remove this pattern from `deny`.
    LiftDenial(String),
    /// Read a stored result by its id: the call was made, although its filter failed.
    #[serde(rename = "result")]
    ReadResult(String),
    /// Repeat the call: its result is not stored any more.
    CallAgain,
    /// Put the arguments of a tool into `args`.
    UseArgs,
    /// Check the named program or path.
    CheckCommand(String),
    /// Keep only this program in `command`, and move the rest to `args`.
    SplitCommand(String),
    /// Make a file executable.
    MakeExecutable(String),
    /// Install a product that includes the program.
    Install(&'static str),
    /// Repeat the installation into this host.
    #[serde(serialize_with = "as_text")]
    InstallIn(Target),
    /// Set an environment variable.
    SetVariable(String),
    /// Pass these environment variables to the server, if it needs them.
    PassOn(Vec<String>),
    /// Link this program under the command name that it is called by.
    LinkProgram,
    /// Listen on another port.
    ChoosePort,
    /// List the configuration files.
    ListFiles,
    /// Correct a place in a configuration file.
    Edit {
        path: String,
        line: u32,
    },
    /// List all errors in the configuration files.
    CheckConfig,
    /// Correct a field of the server's entry.
    Correct(String),
    /// Give the server another name.
    Rename,
    /// Move a file away, so that a new one is created.
    MoveAway(String),
    /// Give only the owner access to a directory.
    MakePrivate(String),
    /// Check whether the call took effect before repeating it.
    CheckOutcome,
}

fn as_text<S: Serializer>(value: &impl fmt::Display, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(value)
}

fn as_millis<S: Serializer>(wait: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(wait.as_millis() as u64)
}

/// A failed request.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: Code,
    pub subject: Subject,
    pub cause: Arc<dyn Error + Send + Sync>,
    /// The remedies, the most useful first.
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

    /// Replaces one hint with a better one.
    #[must_use]
    pub fn instead(mut self, of: &Hint, better: Hint) -> Failure {
        self.hints.retain(|hint| hint != of);
        self.hints.insert(0, better);
        self
    }

    /// The error, then each of its sources.
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
