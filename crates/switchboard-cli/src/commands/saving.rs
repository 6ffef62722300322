//! `--save`: decides where images, audio and blobs are written, and how the files are named.
//! Nothing is overwritten.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use switchboard::content::{BlobError, CallOutput, MediaForm, ResultForm, Spacing, Spill};
use switchboard::failure::{Code, Failure, Subject};

use crate::boot::App;

/// The maximum number of files with the same stem in a directory.
const MAX_SAME_STEM: usize = 10_000;

/// The maximum length of a file's stem, in characters.
const LONGEST_STEM: usize = 64;

/// The form of results in which images and audio can be saved as files too.
const STORED: ResultForm = ResultForm {
    max_bytes: None,
    images: MediaForm::Stored,
    audio: MediaForm::Stored,
    spacing: Spacing::AsWritten,
};

#[derive(Debug, thiserror::Error)]
enum SaveError {
    #[error("`{}` exists already, and `--save` does not overwrite it", path.display())]
    Exists { path: PathBuf },
    #[error("cannot write `{}`", path.display())]
    Io {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot save part {part} of the result")]
    Blob {
        part: usize,
        #[source]
        cause: BlobError,
    },
}

impl From<SaveError> for Failure {
    fn from(error: SaveError) -> Failure {
        Failure::new(Code::BadRequest, Subject::Request, error)
    }
}

/// The target of `--save`.
#[derive(Debug)]
pub(super) enum Destination {
    /// A directory, in which files are named after the tool, resource or prompt.
    Directory { path: PathBuf, stem: String },
    /// A file for the first part of the result; the files of later parts are numbered.
    File(PathBuf),
}

/// A part of a result that was saved.
#[derive(Debug)]
pub(super) struct Saved {
    pub(super) block: usize,
    pub(super) path: PathBuf,
}

impl Destination {
    /// Refuses an unusable target before the call is made.
    pub(super) fn check(
        app: &App,
        wanted: Option<&Path>,
        name: &str,
    ) -> Result<Option<Destination>, Failure> {
        let Some(wanted) = wanted else { return Ok(None) };
        let path = app.typed_in.join(wanted);
        let is_named_as_directory = wanted.as_os_str().as_encoded_bytes().ends_with(b"/");
        if is_named_as_directory {
            let made = std::fs::create_dir_all(&path);
            made.map_err(|cause| SaveError::Io { path: path.clone(), cause })?;
        }
        if path.is_dir() {
            return Ok(Some(Destination::Directory { path, stem: stem(name) }));
        }
        if path.symlink_metadata().is_ok() {
            return Err(SaveError::Exists { path }.into());
        }
        match path.parent() {
            Some(parent) if !parent.is_dir() => {
                let path = parent.to_owned();
                Err(SaveError::Io { path, cause: Errno::NOENT.into() }.into())
            }
            Some(_) | None => Ok(Some(Destination::File(path))),
        }
    }

    /// Writes all parts that are not text. Stops at the first failure, and returns it.
    pub(super) fn write(&self, content: &CallOutput<'_>) -> (Vec<Saved>, Option<Failure>) {
        let mut saved = Vec::new();
        for spill in content.spills(&STORED) {
            match self.write_part(&spill, saved.len()) {
                Ok(path) => saved.push(Saved { block: spill.block, path }),
                Err(error) => return (saved, Some(error.into())),
            }
        }
        (saved, None)
    }

    fn write_part(&self, spill: &Spill<'_>, before: usize) -> Result<PathBuf, SaveError> {
        let part = before + 1;
        let bytes = spill.decode_whole().map_err(|cause| SaveError::Blob { part, cause })?;
        let (mut file, path) = match self {
            Destination::Directory { path, stem } => free(path, stem, spill.extension)?,
            Destination::File(path) if part == 1 => (create(path)?, path.clone()),
            Destination::File(path) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let path = path.with_file_name(format!("{stem}-{part}.{}", spill.extension));
                (create(&path)?, path)
            }
        };
        match file.write_all(&bytes) {
            Ok(()) => Ok(path),
            Err(cause) => Err(SaveError::Io { path, cause }),
        }
    }
}

/// Creates `stem.png`, or the first of `stem-2.png`, `stem-3.png` and so on that does not exist.
fn free(directory: &Path, stem: &str, extension: &str) -> Result<(File, PathBuf), SaveError> {
    let mut path = directory.join(format!("{stem}.{extension}"));
    for number in 2..MAX_SAME_STEM {
        match create(&path) {
            Err(SaveError::Exists { .. }) => {
                path = directory.join(format!("{stem}-{number}.{extension}"));
            }
            created => return Ok((created?, path)),
        }
    }
    Err(SaveError::Exists { path })
}

fn create(path: &Path) -> Result<File, SaveError> {
    File::create_new(path).map_err(|cause| match cause.kind() {
        io::ErrorKind::AlreadyExists => SaveError::Exists { path: path.to_owned() },
        _ => SaveError::Io { path: path.to_owned(), cause },
    })
}

/// A stem without characters that are unsafe in file names.
fn stem(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let stem: String = plain.take(LONGEST_STEM).collect();
    if stem.is_empty() { "result".to_owned() } else { stem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_file_stem_has_no_separators_and_bounded_length() {
        let check = |name: &str, expected: &str| assert_eq!(stem(name), expected, "{name}");
        check("browser_take-shot", "browser_take-shot");
        check("../etc/passwd", "___etc_passwd");
        check("", "result");
        assert_eq!(stem(&"x".repeat(500)).len(), LONGEST_STEM);
    }
}
