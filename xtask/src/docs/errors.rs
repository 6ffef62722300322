//! The page about failures: each code, what it means, and what a script sees.

use std::fmt::Write;

use switchboard_core::failure::Code;

use super::DocsError;

pub(super) fn page() -> Result<String, DocsError> {
    let mut out = String::from(
        "# Failures\n\n\
         A failure has a code that does not change, a message with its causes, and hints.\n\
         On the command line the code decides the exit code; with `--json` it stands in `error.code`.\n\
         To a model the text of a failure begins with the code, and the result has `isError`.\n\n\
         | code | exit | meaning |\n|---|---|---|\n",
    );
    for &code in Code::ALL {
        let exit = switchboard_cli::exit_code(code);
        let _ = writeln!(out, "| `{code}` | {exit} | {} |", meaning(code));
    }
    out.push_str(
        "\n## Exit codes\n\n\
         | code | meaning |\n|---|---|\n\
         | 0 | done |\n\
         | 1 | the tool itself reported an error, or `doctor` found something |\n\
         | 2 | wrong usage, or a configuration that cannot be used |\n\
         | 3 | a sign-in is needed |\n\
         | 4 | not approved, or not trusted |\n\
         | 5 | a server could not be reached, did not answer in time, or failed |\n\
         | 101 | a bug of Switchboard |\n\
         | 130 | interrupted |\n\n\
         [Troubleshooting](../guide/troubleshooting.md) says what to do about each.\n",
    );
    Ok(out)
}

fn meaning(code: Code) -> &'static str {
    match code {
        Code::BadRequest => "the request asks for nothing that can be answered",
        Code::UnknownTool => "no tool has that name",
        Code::AmbiguousTool => "several tools or prompts have that name",
        Code::UnknownServer => "no server has that name",
        Code::UnknownResource => "no server lists that resource",
        Code::UnknownPrompt => "no server lists that prompt",
        Code::UnknownResult => "this session has no stored result with that id",
        Code::ServerDisabled => "the server's entry disables it",
        Code::TrustRequired => "the server comes from a project and was not approved",
        Code::SignInRequired => "the server wants to know who is asking",
        Code::BadArguments => "the arguments do not fit the tool's schema",
        Code::BadPattern => "the text is not a regular expression that can be used",
        Code::BadFilter => {
            "`select` is not a filter, fails on this result, or needs too much time or memory"
        }
        Code::ApprovalRequired => "the call needs a yes, and nobody can be asked",
        Code::ApprovalDenied => "the user said no, now or by a rule",
        Code::ToolChanged => "the tool changed or went while the call was prepared",
        Code::NotReadOnly => {
            "the tool does not declare itself read-only, and `mcp` calls only such tools in this host: `mcp_write` calls it"
        }
        Code::ToolBlocked => "the tool is not what was accepted, and `pins` says `block`",
        Code::NoInstructions => "the server gives no instructions, or was never connected",
        Code::Config => "the configuration cannot be used for this",
        Code::ConnectFailed => "the server did not start, or did not answer as an MCP server",
        Code::Starting => "the server is being installed, which goes on",
        Code::Backoff => "the server failed a moment ago, and the next try is not due",
        Code::CrashLoop => "the server went down too often and rests for a while",
        Code::TimedOut => "the server did not answer in time",
        Code::ConnectionLost => "the connection ended before the answer",
        Code::OutcomeUnknown => "the connection ended, and the call may have taken effect",
        Code::AnswerTooLarge => "the answer is larger than `maxFrameBytes`",
        Code::ServerError => "the server answered with a protocol error",
        Code::Disconnected => "the server was disconnected while somebody waited for it",
        Code::ShuttingDown => "Switchboard is stopping",
        Code::Storage => "a file of Switchboard's own cannot be read or written",
    }
}
