//! Findings from the configuration alone: errors, similar names, pending and disabled servers, and
//! variables that are not set.

use std::collections::BTreeMap;

use super::{Fault, Finding};
use crate::config::diagnostic::{Diagnostic, DiagnosticKind};
use crate::config::expand::{self, ExpandError, Surroundings};
use crate::config::layers::Config;
use crate::config::server::ServerEntry;
use crate::config::values::{Template, TemplateMap};
use crate::name::look;

/// Checks a configuration. The values of pending servers are not expanded.
pub fn examine(config: &Config, with: &Surroundings<'_>) -> Vec<Finding> {
    let of_diagnostic = |diagnostic: &Diagnostic| {
        let (_, server) = code_and_server(&diagnostic.kind);
        Finding { server: server.cloned(), fault: Fault::Config(diagnostic.clone()) }
    };
    let mut findings: Vec<Finding> = config.diagnostics.iter().map(of_diagnostic).collect();
    findings.extend(names(config));
    for pending in &config.pending {
        let fault = match pending.definition.is_disabled() {
            true => Fault::Disabled,
            false => Fault::Untrusted { cause: pending.cause },
        };
        findings.push(Finding::of(&pending.name, fault));
    }
    for (name, server) in &config.servers {
        if server.definition.is_disabled() {
            findings.push(Finding::of(name, Fault::Disabled));
            continue;
        }
        let faults = values(&server.definition, with).into_iter();
        findings.extend(faults.map(|fault| Finding::of(name, fault)));
    }
    findings
}

pub(super) fn code(kind: &DiagnosticKind) -> &'static str {
    code_and_server(kind).0
}

/// The stable code of a problem. The server's name is added if the problem concerns exactly one
/// server.
fn code_and_server(kind: &DiagnosticKind) -> (&'static str, Option<&String>) {
    match kind {
        DiagnosticKind::Syntax { .. } | DiagnosticKind::Empty => ("config_syntax", None),
        DiagnosticKind::Unreadable { .. } | DiagnosticKind::FileTooLarge { .. } => {
            ("config_unreadable", None)
        }
        DiagnosticKind::UnknownKey { .. } | DiagnosticKind::MisspeltRule { .. } => {
            ("unknown_key", None)
        }
        DiagnosticKind::NoEffect { .. } => ("no_effect", None),
        DiagnosticKind::Unused { server, .. } => ("no_effect", Some(server)),
        DiagnosticKind::DuplicateKey { .. } | DiagnosticKind::GivenTwice { .. } => {
            ("duplicate_key", None)
        }
        DiagnosticKind::ForbiddenInProject { .. } => ("forbidden_key", None),
        DiagnosticKind::NoEndpoint { server } => ("no_endpoint", Some(server)),
        DiagnosticKind::SeveralEndpoints { server } => ("several_endpoints", Some(server)),
        DiagnosticKind::InvalidProtocol { server } => ("unsupported_scheme", Some(server)),
        DiagnosticKind::BadName { .. } => ("bad_name", None),
        DiagnosticKind::InvalidMcpConfig { problem } => (code(problem), None),
        DiagnosticKind::OnlyInHost { .. } => ("only_in_host", None),
        DiagnosticKind::InheritedDespiteOtherArguments { server, .. } => {
            ("other_arguments", Some(server))
        }
        DiagnosticKind::Gateway { server }
        | DiagnosticKind::OpenQuote { server }
        | DiagnosticKind::TooMuchToApprove { server, .. }
        | DiagnosticKind::TypeMismatch { server, .. } => ("bad_value", Some(server)),
        DiagnosticKind::TooManyProblems { .. }
        | DiagnosticKind::TooManyEntries { .. }
        | DiagnosticKind::WrongType { .. }
        | DiagnosticKind::NotAChoice { .. }
        | DiagnosticKind::NotAnAuth { .. }
        | DiagnosticKind::OutOfRange { .. }
        | DiagnosticKind::MissingKey { .. }
        | DiagnosticKind::BadId { .. }
        | DiagnosticKind::DuplicateId { .. }
        | DiagnosticKind::FileOfVariables { .. } => ("bad_value", None),
    }
}

fn names(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let pending = config.pending.iter().map(|pending| pending.name.as_str());
    for name in config.servers.keys().map(String::as_str).chain(pending) {
        let other = *seen.entry(look(name)).or_insert(name);
        if other != name {
            let other = other.to_owned();
            findings.push(Finding::of(name, Fault::CollidingNames { other }));
        }
    }
    findings
}

/// The variables that are not set. Each is reported once, with the first field that needs it.
fn values(entry: &ServerEntry, with: &Surroundings<'_>) -> Vec<Fault> {
    let plain =
        |field: &str, value: &Template| (field.to_owned(), expand::expand(value, with).map(drop));
    let secret =
        |field: String, value: &Template| (field, expand::expand_value(value, with).map(drop));
    let mut results: Vec<(String, Result<(), ExpandError>)> = Vec::new();
    results.extend(entry.command.iter().map(|command| plain("command", command)));
    results.extend(entry.cwd.iter().map(|cwd| plain("cwd", cwd)));
    results.extend(entry.args.iter().flatten().map(|arg| plain("args", arg)));
    let url = entry.url.iter().map(|url| expand::expand_url(url, with).map(drop));
    results.extend(url.map(|result| ("url".to_owned(), result)));
    for (field, map) in [("env", &entry.env), ("headers", &entry.headers)] {
        let pairs = map.iter().flat_map(TemplateMap::iter);
        results.extend(pairs.map(|(name, value)| secret(format!("{field}.{name}"), value)));
    }
    results.extend(entry.bearer_token.iter().map(|value| secret("bearerToken".into(), value)));
    if let Some(name) = &entry.bearer_token_env
        && (with.variable)(name).is_none()
    {
        let missing = ExpandError::MissingVariable { name: name.clone() };
        results.push(("bearerTokenEnv".to_owned(), Err(missing)));
    }
    let mut missing = Vec::new();
    let mut faults = Vec::new();
    for (field, result) in results {
        match result {
            Ok(()) => {}
            Err(ExpandError::MissingVariable { name }) if missing.contains(&name) => {}
            Err(ExpandError::MissingVariable { name }) => {
                missing.push(name.clone());
                faults.push(Fault::MissingVariable { field, name });
            }
            Err(cause) => faults.push(Fault::BadValue { field, cause }),
        }
    }
    faults
}
