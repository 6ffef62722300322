//! Parses the arguments of a call: `key=value` typed by the tool's schema, and JSON.

mod source;

use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value};
use switchboard::exact::{Args, Exact, ReadError};
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::request::{RequestError, parse_args};
use switchboard::schema::{self, List, Word};

pub(crate) use self::source::{ArgSource, Input};

/// Why arguments cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArgsError {
    #[error("`{word}` is not of the form `key=value`")]
    NotAPair { word: String },
    #[error("`{key}` is given twice, but does not accept a list")]
    Twice { key: String },
    #[error(
        "`{key}` takes a list: repeat the key (`{key}=A {key}=B`), or write JSON (`{key}:='[…]'`)"
    )]
    Commas { key: String },
    #[error("the value of `{key}` is invalid")]
    Value {
        key: String,
        #[source]
        cause: ReadError,
    },
    #[error("the value of `--args` is invalid")]
    Args(#[source] RequestError),
    #[error("the parameters of the request are invalid")]
    Params(#[source] ReadError),
    #[error("cannot read `{}`", path.display())]
    File {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot use the file for `{key}` (to pass the text `@x`, write `{key}=@@x`)")]
    FileOf {
        key: String,
        #[source]
        cause: Box<ArgsError>,
    },
    #[error("cannot read standard input")]
    Stdin(#[source] io::Error),
    #[error("only one argument can be `-`: standard input is read once")]
    StdinTwice,
}

impl From<ArgsError> for Failure {
    fn from(error: ArgsError) -> Failure {
        let is_no_pair = matches!(error, ArgsError::NotAPair { .. });
        let failure = Failure::new(Code::BadArguments, Subject::Request, error);
        if is_no_pair { failure.hint(Hint::UseArgs) } else { failure }
    }
}

impl ArgsError {
    /// Adds the key of the argument to the error about its file.
    fn of(self, key: &str) -> ArgsError {
        match self {
            ArgsError::File { .. } => {
                ArgsError::FileOf { key: key.to_owned(), cause: Box::new(self) }
            }
            other => other,
        }
    }
}

/// An argument of the command line, split at its `=`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair<V> {
    key: String,
    value: V,
}

/// The text after the `=`, before its file or standard input is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Typed {
    source: ArgSource,
    form: ValueForm,
}

/// How the value of an argument is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    /// `key=text`: parsed by the tool's input schema.
    BySchema,
    /// `key:=json`: parsed as JSON.
    Json,
}

/// The value of an argument, by its source.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Given {
    /// A value that was typed on the command line.
    Word(String),
    /// A value that was read from a file or from standard input.
    Text(String),
    Json(Exact),
}

/// Splits the arguments at their `=`. Their values are parsed later, by the tool's input schema.
pub(crate) fn pairs(words: &[String]) -> Result<Vec<Pair<Typed>>, ArgsError> {
    words.iter().map(|word| pair(word)).collect()
}

fn pair(word: &str) -> Result<Pair<Typed>, ArgsError> {
    let (key, text) = word.split_once('=').unwrap_or_default();
    let (key, form) = match key.strip_suffix(':') {
        None => (key, ValueForm::BySchema),
        Some(key) => (key, ValueForm::Json),
    };
    if key.is_empty() {
        return Err(ArgsError::NotAPair { word: word.to_owned() });
    }
    Ok(Pair { key: key.to_owned(), value: Typed { source: ArgSource::of(text), form } })
}

/// Reads the files and the standard input that the pairs name.
pub(crate) fn read(
    pairs: Vec<Pair<Typed>>,
    input: &mut Input,
) -> Result<Vec<Pair<Given>>, ArgsError> {
    let mut read = Vec::new();
    for Pair { key, value: Typed { source, form } } in pairs {
        let is_typed = matches!(source, ArgSource::Word(_));
        let text = input.text(source).map_err(|error| error.of(&key))?;
        let value = match form {
            ValueForm::BySchema if is_typed => Given::Word(text),
            ValueForm::BySchema => Given::Text(text),
            ValueForm::Json => {
                let unread = |cause| ArgsError::Value { key: key.clone(), cause };
                Given::Json(Exact::parse(&text).map_err(unread)?)
            }
        };
        read.push(Pair { key, value });
    }
    Ok(read)
}

/// Reads the text of `--args`, which holds a JSON object.
pub(crate) fn object(text: &str) -> Result<Args, ArgsError> {
    parse_args(text).map_err(ArgsError::Args)
}

/// Reads the parameters of a request, a JSON object.
pub(crate) fn params(text: &str) -> Result<Args, ArgsError> {
    Args::parse(text).map_err(ArgsError::Params)
}

/// Adds the pairs to `base`. Each value is converted to the type that the tool's input schema
/// declares.
pub(crate) fn typed(
    mut base: Args,
    pairs: Vec<Pair<Given>>,
    schema: &Value,
) -> Result<Args, ArgsError> {
    let mut by_key: Vec<(String, Vec<Given>)> = Vec::new();
    for Pair { key, value } in pairs {
        match by_key.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => by_key.push((key, vec![value])),
        }
    }
    for (key, mut values) in by_key {
        let value = match (values.pop(), values.is_empty()) {
            (Some(only), true) => single(&key, only, schema)?,
            (last, _) => {
                values.extend(last);
                several(&key, values, schema)?
            }
        };
        base.insert(&key, value);
    }
    Ok(base)
}

/// The value of a key that occurs once.
fn single(key: &str, value: Given, schema: &Value) -> Result<Exact, ArgsError> {
    let value = match value {
        Given::Json(value) => return Ok(value),
        Given::Text(text) => return Ok(value_of(text, schema::word(schema, key))),
        Given::Word(text) => value_of(text, schema::word(schema, key)),
    };
    // Commas are refused here, because the argument check would accept the text as a list with one
    // string.
    let is_joined = matches!(value.value(), Value::String(text) if text.contains(','));
    if is_joined && matches!(schema::list(schema, key), List::Required(_)) {
        return Err(ArgsError::Commas { key: key.to_owned() });
    }
    Ok(value)
}

/// The list of all values of a repeated key.
fn several(key: &str, values: Vec<Given>, schema: &Value) -> Result<Exact, ArgsError> {
    let item = match schema::list(schema, key) {
        List::Refused => return Err(ArgsError::Twice { key: key.to_owned() }),
        List::Admitted(item) | List::Required(item) => item,
    };
    let item = |value| match value {
        Given::Json(value) => value,
        Given::Word(text) | Given::Text(text) => value_of(text, item),
    };
    Ok(values.into_iter().map(item).collect())
}

/// Parses the arguments of a prompt. All values are strings, even if they look like numbers.
pub(crate) fn texts(words: &[String], input: &mut Input) -> Result<Args, ArgsError> {
    let mut texts = Map::new();
    for word in words {
        let (key, text) = word.split_once('=').unwrap_or_default();
        if key.is_empty() {
            return Err(ArgsError::NotAPair { word: word.to_owned() });
        }
        let text = input.text(ArgSource::of(text)).map_err(|error| error.of(key))?;
        if texts.insert(key.to_owned(), Value::from(text)).is_some() {
            return Err(ArgsError::Twice { key: key.to_owned() });
        }
    }
    Ok(texts.into())
}

fn value_of(text: String, word: Word) -> Exact {
    let parsed = match word {
        Word::Text => None,
        // A text that does not parse stays a string, so that the argument check reports it.
        Word::Json => Exact::parse(&text).ok(),
        Word::Anything => Exact::parse(&text).ok().filter(|exact| match exact.value() {
            // A number that parsing would change is probably an id or a version: it stays text.
            Value::Number(number) => number.to_string() == text,
            Value::Bool(_) | Value::Array(_) | Value::Object(_) => true,
            Value::Null | Value::String(_) => false,
        }),
    };
    parsed.unwrap_or_else(|| Value::String(text).into())
}

#[cfg(test)]
mod tests;
