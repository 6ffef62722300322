//! Exit statuses, which scripts may rely on.

use std::process::ExitCode;

use switchboard::failure::Code;

/// How a command ended. A panic ends with exit status 101.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The called tool itself reported an error.
    ToolError,
    /// `doctor` found a problem.
    Faults,
    /// The command line is invalid, or the configuration cannot be used.
    Usage,
    /// The command failed because a server requires sign-in.
    SignIn,
    /// A call was not approved, or a server is not trusted.
    NotApproved,
    /// A server could not be reached, did not answer in time, or failed.
    Unreachable,
    /// A signal, or the end of input in a dialogue, ended the command.
    Interrupted,
}

impl Exit {
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::ToolError | Exit::Faults => 1,
            Exit::Usage => 2,
            Exit::SignIn => 3,
            Exit::NotApproved => 4,
            Exit::Unreachable => 5,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.number())
    }
}

impl From<Code> for Exit {
    fn from(code: Code) -> Exit {
        match code {
            Code::BadRequest
            | Code::UnknownTool
            | Code::AmbiguousTool
            | Code::UnknownServer
            | Code::UnknownResource
            | Code::UnknownPrompt
            | Code::UnknownResult
            | Code::ServerDisabled
            | Code::BadArguments
            | Code::BadPattern
            | Code::BadFilter
            | Code::ToolChanged
            | Code::NoInstructions
            | Code::Config
            | Code::Storage => Exit::Usage,
            Code::SignInRequired => Exit::SignIn,
            Code::TrustRequired
            | Code::ApprovalRequired
            | Code::ApprovalDenied
            | Code::ToolBlocked
            | Code::NotReadOnly => Exit::NotApproved,
            Code::ConnectFailed
            | Code::Starting
            | Code::Backoff
            | Code::CrashLoop
            | Code::TimedOut
            | Code::ConnectionLost
            | Code::OutcomeUnknown
            | Code::AnswerTooLarge
            | Code::ServerError
            | Code::Disconnected
            | Code::ShuttingDown => Exit::Unreachable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_code_has_an_exit_code() {
        let codes: Vec<String> =
            Code::ALL.iter().map(|code| format!("{} {code}", Exit::from(*code).number())).collect();
        insta::assert_snapshot!(codes.join("\n"), @r"
        2 bad_request
        2 unknown_tool
        2 ambiguous_tool
        2 unknown_server
        2 unknown_resource
        2 unknown_prompt
        2 unknown_result
        2 server_disabled
        4 trust_required
        3 sign_in_required
        2 bad_arguments
        2 bad_pattern
        2 bad_filter
        4 approval_required
        4 approval_denied
        2 tool_changed
        4 tool_blocked
        4 not_read_only
        2 no_instructions
        2 config
        5 connect_failed
        5 starting
        5 backoff
        5 crash_loop
        5 timed_out
        5 connection_lost
        5 outcome_unknown
        5 answer_too_large
        5 server_error
        5 disconnected
        5 shutting_down
        2 storage
        ");
    }
}
