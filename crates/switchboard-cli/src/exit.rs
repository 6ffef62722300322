//! Exit codes: what a script may branch on.

use std::process::ExitCode;

use switchboard::failure::Code;

/// How a command ended. A bug of ours ends with 101, as every panic does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    /// The tool itself reported an error.
    ToolError,
    /// Wrong usage, or a configuration that cannot be used.
    Usage,
    /// Not approved, or not trusted.
    NotApproved,
    /// A server could not be reached, did not answer in time, or failed.
    Unreachable,
    Interrupted,
}

impl Exit {
    pub(crate) fn number(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::ToolError => 1,
            Exit::Usage => 2,
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
            | Code::ToolChanged
            | Code::NoInstructions
            | Code::NotSupported
            | Code::Config
            | Code::Storage => Exit::Usage,
            Code::TrustRequired | Code::ApprovalRequired | Code::ApprovalDenied => {
                Exit::NotApproved
            }
            Code::ConnectFailed
            | Code::Backoff
            | Code::CrashLoop
            | Code::Starting
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
    fn every_failure_has_its_exit_code() {
        let codes: Vec<String> =
            Code::ALL.iter().map(|code| format!("{} {code}", Exit::from(*code).number())).collect();
        insta::assert_snapshot!(codes.join("\n"));
    }
}
