//! The source of an argument's text: the command line, a file, or standard input.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use switchboard::paths::open_regular;

use super::ArgsError;

/// The size limit of a file or of standard input in bytes: that of one MCP message.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ArgSource {
    Word(String),
    File(String),
    Stdin,
}

impl ArgSource {
    /// Parses the text of an argument: `@file`, `-` for standard input, `@@text` for a text that
    /// begins with `@`, or any other text.
    pub(crate) fn of(word: &str) -> ArgSource {
        match word.strip_prefix('@') {
            None if word == "-" => ArgSource::Stdin,
            None | Some("") => ArgSource::Word(word.to_owned()),
            Some(rest) if rest.starts_with('@') => ArgSource::Word(rest.to_owned()),
            Some(path) => ArgSource::File(path.to_owned()),
        }
    }
}

/// Reads the files and the standard input that arguments name. Standard input is read only once.
pub(crate) struct Input {
    directory: PathBuf,
    home: Option<PathBuf>,
    stdin: Option<io::Stdin>,
}

impl Input {
    /// Files are relative to `directory`. `~/` is expanded to `home`, because shells do not expand
    /// it after an `=`.
    pub(crate) fn new(directory: &Path, home: Option<&Path>) -> Input {
        let (directory, home) = (directory.to_owned(), home.map(Path::to_owned));
        Input { directory, home, stdin: Some(io::stdin()) }
    }

    pub(crate) fn text(&mut self, source: ArgSource) -> Result<String, ArgsError> {
        match source {
            ArgSource::Word(text) => Ok(text),
            ArgSource::File(path) => {
                let path = self.place(&path);
                let file =
                    open_regular(&path).and_then(|file| file.ok_or_else(|| Errno::NOENT.into()));
                let text = file.and_then(bounded);
                text.map_err(|cause| ArgsError::File { path, cause })
            }
            ArgSource::Stdin => {
                let stdin = self.stdin.take().ok_or(ArgsError::StdinTwice)?;
                bounded(stdin.lock()).map_err(ArgsError::Stdin)
            }
        }
    }

    fn place(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(path), Some(home)) => home.join(path),
            (Some(_), None) | (None, _) => self.directory.join(path),
        }
    }
}

/// Reads the whole source as text, up to the size limit.
fn bounded(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    source.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 16 MiB"));
    }
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text");
    String::from_utf8(bytes).map_err(not_text)
}
