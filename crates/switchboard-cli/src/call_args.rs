//! Arguments of a call as people type them: `key=value` typed by the tool's schema, and JSON.

use std::path::PathBuf;

use serde_json::{Map, Value};
use switchboard::exact::{Args, Exact, ReadError};
use switchboard::failure::{Code, Failure, Subject};
use switchboard::request::{RequestError, parse_args};
use switchboard::schema::{self, Word};

/// Why arguments cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("`{word}` is not of the form `key=value`")]
    NotAPair { word: String },
    #[error("`{key}` is given twice")]
    Twice { key: String },
    #[error("the value of `{key}` cannot be used")]
    Value {
        key: String,
        #[source]
        cause: ReadError,
    },
    #[error("the value of `--args` cannot be used")]
    Args(#[source] RequestError),
    #[error("the parameters cannot be used")]
    Params(#[source] ReadError),
    #[error("cannot read the arguments from `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("cannot read the arguments from standard input")]
    Stdin(#[source] std::io::Error),
}

impl From<ArgsError> for Failure {
    fn from(error: ArgsError) -> Failure {
        Failure::new(Code::BadArguments, Subject::Request, error)
    }
}

/// A word of the command line, split at its `=`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    key: String,
    value: Typed,
}

#[derive(Clone, Debug, PartialEq)]
enum Typed {
    /// `key=text`: the schema says what it is.
    Text(String),
    /// `key:=json`.
    Json(Exact),
}

/// Splits the words; what a key's value means is left to the schema.
pub(crate) fn pairs(words: &[String]) -> Result<Vec<Pair>, ArgsError> {
    let mut pairs: Vec<Pair> = Vec::new();
    for word in words {
        let pair = pair(word)?;
        if pairs.iter().any(|known| known.key == pair.key) {
            return Err(ArgsError::Twice { key: pair.key });
        }
        pairs.push(pair);
    }
    Ok(pairs)
}

fn pair(word: &str) -> Result<Pair, ArgsError> {
    let (key, text) = word.split_once('=').unwrap_or_default();
    let (key, value) = match key.strip_suffix(':') {
        None => (key, Typed::Text(text.to_owned())),
        Some(key) => {
            let unread = |cause| ArgsError::Value { key: key.to_owned(), cause };
            (key, Typed::Json(Exact::parse(text).map_err(unread)?))
        }
    };
    if key.is_empty() {
        return Err(ArgsError::NotAPair { word: word.to_owned() });
    }
    Ok(Pair { key: key.to_owned(), value })
}

/// Reads the text of `--args`, which holds a JSON object.
pub(crate) fn object(text: &str) -> Result<Args, ArgsError> {
    parse_args(text).map_err(ArgsError::Args)
}

/// Reads the parameters of a request, a JSON object.
pub(crate) fn params(text: &str) -> Result<Args, ArgsError> {
    Args::parse(text).map_err(ArgsError::Params)
}

/// Lays the pairs over `base`, each value as the tool's input schema has it.
pub(crate) fn typed(mut base: Args, pairs: Vec<Pair>, schema: &Value) -> Args {
    for Pair { key, value } in pairs {
        let value = match value {
            Typed::Json(value) => value,
            Typed::Text(text) => value_of(text, schema::word(schema, &key)),
        };
        base.insert(&key, value);
    }
    base
}

/// Arguments of a prompt are texts, whatever they look like.
pub(crate) fn texts(words: &[String]) -> Result<Args, ArgsError> {
    let mut texts = Map::new();
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or_default();
        if key.is_empty() {
            return Err(ArgsError::NotAPair { word: word.to_owned() });
        }
        if texts.insert(key.to_owned(), Value::from(text)).is_some() {
            return Err(ArgsError::Twice { key: key.to_owned() });
        }
    }
    Ok(texts.into())
}

fn value_of(text: String, word: Word) -> Exact {
    let parsed = match word {
        Word::Text => None,
        // What does not parse stays a text, and the check of the arguments points at it.
        Word::Json => Exact::parse(&text).ok(),
        Word::Anything => Exact::parse(&text).ok().filter(|exact| match exact.value() {
            // Digits that a number would not keep are rather an id or a version.
            Value::Number(number) => number.to_string() == text,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
            Value::Null | Value::String(_) => false,
        }),
    };
    parsed.unwrap_or_else(|| Value::String(text).into())
}

#[cfg(test)]
mod tests;
