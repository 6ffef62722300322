//! Why an installation or uninstallation failed.

use std::io;
use std::path::PathBuf;

use crate::edit::error::EditError;

/// Why an installation or uninstallation failed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum InstallError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("`{}` has another server named `switchboard`", path.display())]
    NameTaken { path: PathBuf },
    #[error("`{}` has changed in the meantime, so it was not written", path.display())]
    Changed { path: PathBuf },
    #[error("`{}` is a symbolic link; the extension is installed only into a real directory", path.display())]
    Linked { path: PathBuf },
    #[error("the path of the `switchboard` program is unknown or not UTF-8")]
    NoProgram,
    #[error("this program is named `{}`; a host's file can only start it under the name `switchboard`", program.display())]
    Renamed { program: PathBuf },
    #[error("cannot read or write the installation record `{}`", path.display())]
    Record {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// The record's content would be written into files, so only the user may be able to write it.
    #[error("the installation record `{}` is malformed, or other users can write it", path.display())]
    Foreign { path: PathBuf },
}
