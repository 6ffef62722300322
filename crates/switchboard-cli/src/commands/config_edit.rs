//! Changing the user's own configuration file: one key, or all of it in an editor.

use std::path::Path;
use std::process::{Command, ExitStatus};

use serde_json::Value;
use switchboard::config::words;
use switchboard::edit::Scope;
use switchboard::explain;
use switchboard::failure::{Code, Failure, Subject};
use switchboard::render::words::clean_line;

use super::config;
use super::edit::{conclude, named, shown};
use crate::args::Format;
use crate::boot::{App, diagnostic_line};
use crate::exit::Exit;
use crate::printer::is_yes;
use crate::report::CommandResult;

#[derive(Debug, thiserror::Error)]
enum EditorError {
    #[error("`{0}` is not a valid editor command: correct `VISUAL` or `EDITOR`")]
    NotWords(String),
    #[error("cannot start the editor `{program}`: set `EDITOR` to one that is installed")]
    NotStarted {
        program: String,
        #[source]
        cause: std::io::Error,
    },
    #[error("the editor `{program}` failed ({status}), so the file was not checked")]
    Failed { program: String, status: ExitStatus },
}

/// Sets a key of the configuration; removes it if there is no value.
pub(super) fn set(
    app: &App,
    key: &str,
    value: Option<&str>,
    server: Option<&str>,
) -> CommandResult {
    let server = server.map(named).transpose()?;
    // Text that is not JSON becomes a string, so that `short` needs no quotes.
    let value = value
        .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())));
    let unsets = value.is_none();
    let known = app.load()?.config.diagnostics;
    let edited = app.editor().set(server.as_ref(), key, value).map_err(explain::edit)?;
    let of = server.map(|server| format!(" of `{}`", shown(&server))).unwrap_or_default();
    let key = format!("`{}`{of}", clean_line(key, 200));
    match unsets {
        true if edited.is_changed() => conclude(app, &edited, &format!("{key} is no longer set")),
        true => app.printer.note(&format!("{key} is not set, nothing was changed")),
        false => conclude(app, &edited, &format!("{key} is set")),
    }
    // The change may have made another key invalid, for example the entry of a server.
    for new in app.load()?.config.diagnostics {
        if !known.iter().any(|old| old.kind == new.kind) {
            app.printer.note(&diagnostic_line(&new, app.printer.err));
        }
    }
    Ok(Exit::Done)
}

/// Opens the file in an editor, and checks it afterwards.
pub(super) fn edit(app: &App) -> CommandResult {
    let path = app.editor().file(Scope::User);
    if !path.exists() {
        app.editor().create().map_err(explain::edit)?;
    }
    loop {
        open(app, &path)
            .map_err(|error| Failure::new(Code::BadRequest, Subject::Request, error))?;
        let exit = config::check(app, Format::default())?;
        let mistakes = exit != Exit::Done;
        let again = || app.printer.ask(&app.printer.yes_or_no("Edit it again?"));
        if !(mistakes && app.printer.can_ask() && is_yes(&again()?)) {
            return Ok(exit);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the user's own editor, on their terminal")]
fn open(app: &App, path: &Path) -> Result<(), EditorError> {
    let variable = |name| app.environment.variable(name);
    let line = variable("VISUAL").or(variable("EDITOR")).unwrap_or("vi");
    let shown = || clean_line(line, 200).into_owned();
    // The text is split without a shell: `code --wait` is a program and an argument.
    let words = words::split(line).map_err(|_| EditorError::NotWords(shown()))?;
    let Some((program, args)) = words.split_first() else {
        return Err(EditorError::NotWords(shown()));
    };
    let status = Command::new(program).args(args).arg(path).status();
    let program = || clean_line(program, 200).into_owned();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(EditorError::Failed { program: program(), status }),
        Err(cause) => Err(EditorError::NotStarted { program: program(), cause }),
    }
}
