//! Failures: a code on which callers branch, the cause to show, and the remedies as data.

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
    /// The kind of a failure. Callers branch only on this code.
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
    /// Whether the failure is an unknown name or URI.
    pub fn is_unknown_name(self) -> bool {
        use Code::{UnknownPrompt, UnknownResource, UnknownServer, UnknownTool};
        matches!(self, UnknownTool | UnknownServer | UnknownResource | UnknownPrompt)
    }
}

/// What a failure is about, such as a server or a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Request,
    Server(ServerName),
    /// A tool, given by its shown name.
    Tool {
        shown: String,
        server: ServerName,
    },
    Config {
        path: String,
    },
}

/// A remedy as data, which each face puts into its own words.
///
/// The names of the variants are stable, because JSON output uses them as keys.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hint {
    /// Use one of these names, which are similar to the requested one.
    DidYouMean(Vec<String>),
    /// Choose one of these names, because the requested one is ambiguous.
    Choose(Vec<String>),
    /// Use these parameters: all parameters of the tool.
    Expected(String),
    /// Search for tools with these words.
    Search(String),
    /// List the tools of these servers, which were never listed.
    #[serde(rename = "notListed")]
    NotListedYet(Vec<ServerName>),
    /// List the servers.
    ListServers,
    /// List the tools of a server.
    ListTools(ServerName),
    /// List the resources of all servers.
    ListResources,
    /// List the prompts of all servers.
    ListPrompts,
    Connect(ServerName),
    /// Approve the exact definition of a project's server.
    Trust(ServerName),
    /// Sign in, or add a token or headers to the server's entry.
    SignIn(ServerName),
    /// Open this URL to finish the sign-in, which has started.
    #[serde(serialize_with = "as_text")]
    SignInAt(Link),
    /// Open this URL, then repeat the call, which was not executed.
    #[serde(serialize_with = "as_text")]
    VisitFirst(Link),
    /// Set another token, because the server rejects the credentials in its entry.
    GiveToken(ServerName),
    /// Store the token to which the server's entry refers.
    SetToken(ServerName),
    /// Unlock the keyring, or store tokens in a file.
    Unlock,
    /// Remove `disabled` from the server's entry.
    Enable(ServerName),
    /// Disable the server in this file, because another file has its entry.
    Disable(ServerName),
    /// Import servers from other hosts, or add a server.
    Configure,
    /// Repeat the command with the flag that replaces an existing entry.
    Replace,
    /// Wait for this time, then retry.
    #[serde(rename = "retryAfterMs", serialize_with = "as_millis")]
    RetryAfter(Duration),
    /// Read these last lines that the server wrote to its standard error.
    Stderr(Vec<String>),
    /// Read the server's log.
    ReadLog(ServerName),
    /// Change this setting, which raises a limit.
    Setting(&'static str),
    /// Use a host that can ask the user for approval, or add an `allow` rule.
    AskUser,
    /// Call this tool with `mcp_write`; without a tool, repeat the request with `mcp_write`.
    UseWriteTool(Option<String>),
    /// Add this pattern to the `allow` rules.
    Allow(String),
    /// Review the changed definitions of a server, and accept them.
    Accept(ServerName),
    /// Remove this pattern from the `deny` rules.
    LiftDenial(String),
    /// Read the stored result with this id. The call succeeded, although its filter failed.
    #[serde(rename = "result")]
    ReadResult(String),
    /// Repeat the call, because its result is no longer stored.
    CallAgain,
    /// Put the arguments of the tool into the parameter `args`.
    UseArgs,
    /// Check this program or path.
    CheckCommand(String),
    /// Keep only this program in `command`, and move the other words to `args`.
    SplitCommand(String),
    /// Make this file executable.
    MakeExecutable(String),
    /// Install this product, which includes the program.
    Install(&'static str),
    /// Repeat `install` for this host.
    #[serde(serialize_with = "as_text")]
    InstallIn(Target),
    /// Set this environment variable.
    SetVariable(String),
    /// Pass these environment variables on to the server, if it needs them.
    PassOn(Vec<String>),
    /// Add a link to the running program under the name `switchboard`.
    LinkProgram,
    /// Choose another port to listen on.
    ChoosePort,
    /// List the configuration files.
    ListFiles,
    /// Correct the file at this position.
    Edit {
        path: String,
        line: u32,
    },
    /// List all errors in the configuration files.
    CheckConfig,
    /// Correct this field of the server's entry.
    Correct(String),
    /// Check that the server is running, and the `url` of its entry.
    CheckUrl,
    /// Give the server another name.
    Rename,
    /// Move this file to another place, so that a new one is created.
    MoveAway(String),
    /// Allow only the owner to access this directory.
    MakePrivate(String),
    /// Check whether the call had an effect before repeating it.
    CheckOutcome,
}

fn as_text<S: Serializer>(value: &impl fmt::Display, out: S) -> Result<S::Ok, S::Error> {
    out.collect_str(value)
}

fn as_millis<S: Serializer>(wait: &Duration, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_u64(wait.as_millis() as u64)
}

/// A failed request, with its code, subject, cause and remedies.
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: Code,
    pub subject: Subject,
    pub cause: Arc<dyn Error + Send + Sync>,
    /// The remedies, the most useful one first.
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

    /// Replaces the hint `of` by `better`.
    #[must_use]
    pub fn instead(mut self, of: &Hint, better: Hint) -> Failure {
        self.hints.retain(|hint| hint != of);
        self.hints.insert(0, better);
        self
    }

    /// The texts of the error and of each of its sources.
    pub fn chain(&self) -> Vec<String> {
        let cause: &(dyn Error + 'static) = self.cause.as_ref();
        let causes = std::iter::successors(Some(cause), |&error| error.source());
        causes.map(ToString::to_string).collect()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.chain().join(": "))
    }
}

impl Error for Failure {}
