//! Why nothing was installed, or not all of it taken back.

use std::io;
use std::path::PathBuf;

use crate::edit::error::EditError;

/// Why nothing was installed or removed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant documents it")]
pub enum InstallError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("`{}` has another server named `switchboard`", path.display())]
    NameTaken { path: PathBuf },
    #[error("`{}` was changed meanwhile and stays as it is", path.display())]
    Changed { path: PathBuf },
    #[error("`{}` is a link, and where it leads is not ours", path.display())]
    Linked { path: PathBuf },
    #[error("the path of this program cannot be written into a file")]
    NoProgram,
    #[error("this program is called `{}`, which a host's file cannot name", program.display())]
    Renamed { program: PathBuf },
    #[error("cannot use the record of what was installed in `{}`", path.display())]
    Record {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    /// What it says would be written into files, so it must be the user's own.
    #[error("the record in `{}` is not ours: it does not read, or others can write it", path.display())]
    Foreign { path: PathBuf },
}
