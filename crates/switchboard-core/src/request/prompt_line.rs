//! Parses the words that a user types after a prompt command into the prompt's arguments.

use serde_json::{Map, Value};

use crate::catalog::Prompt;
use crate::config::words;
use crate::exact::Args;

/// Why a line cannot be parsed into the arguments of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    #[error("the required argument `{0}` is missing")]
    Missing(String),
    #[error("unexpected extra argument `{0}`")]
    NoPlace(String),
    #[error("a quote is not closed")]
    OpenQuote,
}

/// Parses the words after a prompt command. `key=value` sets the declared argument `key`. Every
/// other word sets the next argument in order.
pub fn prompt_args(prompt: &Prompt, line: &str) -> Result<Args, LineError> {
    let words = words::split(line).map_err(|_| LineError::OpenQuote)?;
    let known = |name: &str| prompt.arguments.iter().any(|argument| argument.name == name);
    let mut given = Map::new();
    let mut positional = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) if known(key) => {
                given.insert(key.to_owned(), Value::from(value));
            }
            Some(_) | None => positional.push(word),
        }
    }
    let mut positional = positional.into_iter();
    for argument in &prompt.arguments {
        if given.contains_key(&argument.name) {
            continue;
        }
        match positional.next() {
            Some(word) => drop(given.insert(argument.name.clone(), Value::from(word))),
            None if argument.required => return Err(LineError::Missing(argument.name.clone())),
            None => {}
        }
    }
    match positional.next() {
        Some(word) => Err(LineError::NoPlace(word)),
        None => Ok(given.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::PromptArgument;

    /// A prompt with these arguments. Those in brackets are optional.
    fn prompt(arguments: &[&str]) -> Prompt {
        let argument = |name: &&str| PromptArgument {
            name: name.trim_matches(['[', ']']).to_owned(),
            description: None,
            required: !name.starts_with('['),
        };
        let arguments = arguments.iter().map(argument).collect();
        Prompt {
            name: "p".to_owned(),
            description: None,
            arguments,
            hidden: None,
            original: None,
            raw: "{}".into(),
        }
    }

    fn check(arguments: &[&str], line: &str, expected: &str) {
        let read = match prompt_args(&prompt(arguments), line) {
            Ok(args) => args.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(read, expected, "{line}");
    }

    #[test]
    fn prompt_words_fill_arguments_in_order_or_by_name() {
        let both = &["topic", "[style]"];
        check(both, "cats", r#"{"topic":"cats"}"#);
        check(both, "  cats   short ", r#"{"topic":"cats","style":"short"}"#);
        check(
            both,
            r#""big cats" 'so "to" say'"#,
            r#"{"topic":"big cats","style":"so \"to\" say"}"#,
        );
        check(both, r"big\ cats", r#"{"topic":"big cats"}"#);
        check(both, "style=short cats", r#"{"style":"short","topic":"cats"}"#);
        check(both, r#"topic="a = b""#, r#"{"topic":"a = b"}"#);
        // `key=value` with an undeclared key sets the next argument in order.
        check(both, "x=1", r#"{"topic":"x=1"}"#);
        check(both, "topic=", r#"{"topic":""}"#);
        check(&["[a]", "b"], "1 2", r#"{"a":"1","b":"2"}"#);
        check(&[], "", "{}");
    }

    #[test]
    fn missing_or_extra_prompt_arguments_are_named() {
        let both = &["topic", "[style]"];
        check(both, "", "the required argument `topic` is missing");
        check(both, "style=short", "the required argument `topic` is missing");
        check(both, "cats short more", "unexpected extra argument `more`");
        check(both, "topic=a short more", "unexpected extra argument `more`");
        check(both, "\"cats", "a quote is not closed");
        check(&[], "word", "unexpected extra argument `word`");
    }
}
