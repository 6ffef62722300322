//! Failures of calls and connections that a rule, a pin or the user does not allow.

use std::sync::Arc;

use switchboard_core::approval::{self, RefusalCause, RefusedCall};
use switchboard_core::catalog::Resolved;
use switchboard_core::catalog::pin::Pin;
use switchboard_core::config::layers::ConfigOrigin;
use switchboard_core::failure::{Code, Failure, Hint, Subject};
use switchboard_core::name::ServerName;

use super::{Cause, expected, of_request, of_server, of_tool};
use crate::host::CannotAsk;

pub(crate) fn cannot_ask_to_connect(why: CannotAsk, server: &ServerName) -> Failure {
    of_server(Code::ApprovalRequired, server, Cause::NeedsConsent(server.clone(), why))
        .hint(Hint::AskUser)
        .hint(Hint::Configure)
}

pub(crate) fn connection_denied(server: &ServerName) -> Failure {
    of_server(Code::ApprovalDenied, server, Cause::ConnectionDenied(server.clone()))
}

pub(crate) fn ad_hoc_is_off(server: &ServerName) -> Failure {
    of_server(Code::ApprovalDenied, server, Cause::AdHocIsOff(server.clone())).hint(Hint::Configure)
}

pub(crate) fn denied(target: &Resolved) -> Failure {
    of_tool(Code::ApprovalDenied, target, Cause::Denied(target.shown.to_string()))
        .hint(Hint::Allow(approval::pattern_of(target)))
}

/// The failure for a direct tool that was listed as read-only and no longer is.
pub fn no_longer_read_only(mut failure: Failure) -> Failure {
    if let Subject::Tool { shown, server } = &failure.subject {
        failure.hints = vec![Hint::ListTools(server.clone())];
        failure.cause = Arc::new(Cause::NoLongerReadOnly(shown.clone()));
        failure.code = Code::ToolChanged;
    }
    failure
}

/// The failure for a request that changes something, to a tool that accepts only read-only
/// requests.
pub(crate) fn reads_only() -> Failure {
    of_request(Code::NotReadOnly, Cause::ReadsOnly).hint(Hint::UseWriteTool(None))
}

pub(crate) fn cannot_ask(why: CannotAsk, target: &Resolved) -> Failure {
    let cause = Cause::NeedsApproval(target.shown.to_string(), why);
    of_tool(Code::ApprovalRequired, target, cause)
        .hint(Hint::AskUser)
        .hint(Hint::Allow(approval::pattern_of(target)))
}

pub(crate) fn blocked_instructions(server: &ServerName, pin: Pin) -> Failure {
    of_server(Code::ToolBlocked, server, not_accepted(pin, "instructions".to_owned()))
        .hint(Hint::Accept(server.clone()))
}

fn not_accepted(pin: Pin, shown: String) -> Cause {
    match pin {
        Pin::Unknown => Cause::Unverified(shown),
        Pin::New => Cause::Added(shown),
        Pin::Changed | Pin::Same => Cause::Drifted(shown),
    }
}

pub(crate) fn refused(refusal: &RefusedCall) -> Failure {
    let RefusedCall { target, .. } = refusal;
    let shown = target.shown.to_string();
    match &refusal.cause {
        RefusalCause::NotAccepted(pin) => {
            of_tool(Code::ToolBlocked, target, not_accepted(*pin, shown))
                .hint(Hint::Accept(target.server.clone()))
        }
        RefusalCause::NotReadOnly => {
            of_tool(Code::NotReadOnly, target, Cause::NotReadOnly(shown.clone()))
                .hint(Hint::UseWriteTool(Some(shown)))
        }
        RefusalCause::Unread(ConfigOrigin { path, line, .. }) => {
            let (path, line) = (path.to_string(), *line);
            of_tool(Code::Config, target, Cause::UnreadRules(shown)).hint(Hint::Edit { path, line })
        }
        RefusalCause::Denied { pattern } => denied_name(shown, pattern.clone(), target),
    }
}

/// The failure for a name that a `deny` rule matches. `target` is the tool of that name, or a
/// similar one.
pub(crate) fn denied_name(name: String, pattern: String, target: &Resolved) -> Failure {
    let cause = Cause::DeniedByRule { tool: name, pattern: pattern.clone() };
    of_tool(Code::ApprovalDenied, target, cause).hint(Hint::LiftDenial(pattern))
}

pub(crate) fn tool_changed(target: &Resolved) -> Failure {
    of_tool(Code::ToolChanged, target, Cause::Changed(target.shown.to_string()))
        .hint(expected(target))
}
