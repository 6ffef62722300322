//! The page about failures: each code, what it means, and what a script sees.

use std::fmt::Write;

use switchboard_core::failure::Code;

use super::DocsError;

pub(super) fn page() -> Result<String, DocsError> {
    let mut out = String::from(
        "# Failures\n\n\
         A failure has a stable code, a message with its causes, and hints.\n\
         On the command line the code of the failure determines the exit code; with `--json` the code is in `error.code`.\n\
         For a model, the text of a failure begins with the code, and the result has `isError: true`.\n\n\
         | code | exit | meaning |\n|---|---|---|\n",
    );
    for &code in Code::ALL {
        let exit = switchboard_cli::exit_code(code);
        let _ = writeln!(out, "| `{code}` | {exit} | {} |", meaning(code));
    }
    out.push_str(
        "\n## Exit codes\n\n\
         | code | meaning |\n|---|---|\n\
         | 0 | success |\n\
         | 1 | the tool itself reported an error, or `doctor` found a problem |\n\
         | 2 | wrong usage, or an unusable configuration |\n\
         | 3 | a server requires sign-in |\n\
         | 4 | a call was not approved, or a server is not trusted |\n\
         | 5 | a server could not be reached, did not answer in time, or failed |\n\
         | 101 | Switchboard crashed because of a bug |\n\
         | 130 | interrupted |\n\n\
         [Troubleshooting](../guide/troubleshooting.md) says what to do about each failure.\n",
    );
    Ok(out)
}

fn meaning(code: Code) -> &'static str {
    match code {
        Code::BadRequest => "the request is invalid",
        Code::UnknownTool => "no tool has that name",
        Code::AmbiguousTool => "several tools or prompts have that name",
        Code::UnknownServer => "no server has that name",
        Code::UnknownResource => "no server lists that resource",
        Code::UnknownPrompt => "no server lists that prompt",
        Code::UnknownResult => "this session has no stored result with that id",
        Code::ServerDisabled => "the entry of the server disables the server",
        Code::TrustRequired => "the server comes from a project and was not approved",
        Code::SignInRequired => "the server requires authentication",
        Code::BadArguments => "the arguments do not fit the tool's schema",
        Code::BadPattern => "the text is not a valid regular expression, or it is too large",
        Code::BadFilter => {
            "`select` is not a valid jq filter, fails on this result, or needs too much time or memory"
        }
        Code::ApprovalRequired => "the call requires approval, and the user cannot be asked",
        Code::ApprovalDenied => "the user or a rule denied the call",
        Code::ToolChanged => "the tool changed or was removed while the call was prepared",
        Code::NotReadOnly => {
            "the tool does not declare itself read-only, and in this host `mcp` calls only such tools: use `mcp_write`"
        }
        Code::ToolBlocked => "the tool changed since it was pinned, and `pins` is `block`",
        Code::NoInstructions => "the server has no instructions, or was never connected",
        Code::Config => "the configuration is invalid for this request",
        Code::ConnectFailed => "the server did not start, or did not respond as an MCP server",
        Code::Starting => "a launcher is installing the server; the installation continues",
        Code::Backoff => "the server failed recently, and the retry is not due yet",
        Code::CrashLoop => "the server failed too often, so it is not started for a while",
        Code::TimedOut => "the server did not respond in time",
        Code::ConnectionLost => "the connection ended before the response",
        Code::OutcomeUnknown => "the connection ended, and the call may have taken effect",
        Code::AnswerTooLarge => "the response is larger than `maxFrameBytes`",
        Code::ServerError => "the server responded with a protocol error",
        Code::Disconnected => "the server was disconnected during the request",
        Code::ShuttingDown => "Switchboard is stopping",
        Code::Storage => "a file of Switchboard's own cannot be read or written",
    }
}
