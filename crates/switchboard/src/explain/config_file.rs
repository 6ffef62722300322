//! Failures about refused entries, and about configuration files of Switchboard or a host that
//! cannot be changed.

use std::path::Path;

use switchboard_core::catalog::ResolveError;
use switchboard_core::config::edit;
use switchboard_core::failure::{Code, Failure, Hint, Subject};

use super::{did_you_mean, of_request, of_server, resolve, with_hints};
use crate::edit::error::EditError;
use crate::install::error::InstallError;
use crate::load::{LoadError, RefusedEntry};

/// The failure for a server whose entry is refused.
pub fn refused_entry(refused: RefusedEntry) -> Failure {
    let RefusedEntry { path, line, .. } = &refused;
    let (path, line) = (path.clone(), *line);
    Failure::new(Code::Config, Subject::Config { path: path.clone() }, refused)
        .hint(Hint::Edit { path, line })
}

/// The failure for a configuration file that was not changed.
pub fn edit(error: EditError) -> Failure {
    match error {
        EditError::Unknown { name, suggestions } => {
            resolve(ResolveError::UnknownServer { name, suggestions })
        }
        EditError::RefusedEntry(refused) => refused_entry(*refused),
        EditError::Exists { ref path, .. } => {
            Failure::new(Code::Config, of_file(path), error).hint(Hint::Replace)
        }
        EditError::Elsewhere { ref path, ref server } => {
            let (subject, hint) = (of_file(path), Hint::Disable(server.clone()));
            Failure::new(Code::Config, subject, error).hint(hint)
        }
        EditError::Refused { ref path, ref cause } | EditError::Unread { ref path, ref cause } => {
            let subject = of_file(path);
            let hint = match cause {
                edit::EditError::Syntax { line, .. } => Some(Hint::Edit {
                    path: path.display().to_string(),
                    line: u32::try_from(*line).unwrap_or(u32::MAX),
                }),
                edit::EditError::WrongType { .. } => None,
            };
            let hints = hint.into_iter().chain([Hint::CheckConfig]);
            with_hints(Failure::new(Code::Config, subject, error), hints)
        }
        EditError::NotText { ref path } | EditError::LeadsOut { ref path } => {
            Failure::new(Code::Config, of_file(path), error)
        }
        EditError::Load(LoadError::Missing { ref path }) => {
            Failure::new(Code::Config, of_file(path), error).hint(Hint::ListFiles)
        }
        EditError::BadDefinition { ref server, .. } => {
            of_server(Code::Config, &server.clone(), error)
        }
        EditError::UnknownKey { ref suggestions, .. }
        | EditError::NoRule { ref suggestions, .. } => {
            let hint = did_you_mean(suggestions);
            with_hints(of_request(Code::BadRequest, error), hint)
        }
        EditError::BadValue { .. } => of_request(Code::BadRequest, error),
        EditError::BadPattern { .. } => of_request(Code::BadPattern, error),
        EditError::Io { ref path, .. } => Failure::new(Code::Storage, of_file(path), error),
        EditError::Trust(_) => of_request(Code::Storage, error),
    }
}

/// The failure for an installation or uninstallation that failed.
pub fn install(error: InstallError) -> Failure {
    match error {
        InstallError::Edit(error) => edit(error),
        InstallError::NameTaken { ref path } => Failure::new(Code::Config, of_file(path), error),
        InstallError::Changed { ref path } | InstallError::Record { ref path, .. } => {
            Failure::new(Code::Storage, of_file(path), error)
        }
        InstallError::Linked { ref path } | InstallError::Foreign { ref path } => {
            let hint = Hint::MoveAway(path.display().to_string());
            Failure::new(Code::Storage, of_file(path), error).hint(hint)
        }
        InstallError::NoProgram => of_request(Code::BadRequest, error),
        InstallError::Renamed { .. } => of_request(Code::BadRequest, error).hint(Hint::LinkProgram),
    }
}

fn of_file(path: &Path) -> Subject {
    Subject::Config { path: path.display().to_string() }
}
