//! Variables, `~` and `!command` in a definition's values.
//!
//! One pass: what a variable holds is never expanded again.

use std::fmt;

use super::values::Template;
use super::words;

const MAX_EXPANDED_BYTES: usize = 64 * 1024;

/// What templates are expanded with.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<&'a str>,
}

/// A value that may come from a program.
#[derive(Clone, PartialEq, Eq)]
pub enum Expanded {
    Text(String),
    /// The words of a `!command`, at least one, to be run without a shell.
    Command(Vec<String>),
}

impl fmt::Debug for Expanded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expanded::Text(_) => "Text(…)",
            Expanded::Command(_) => "Command(…)",
        })
    }
}

/// Names variables, never their values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("the environment variable `{name}` is not set")]
    MissingVariable { name: String },
    #[error("`~` is used, but the home directory is not known")]
    NoHome,
    #[error("the expanded value is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("a quote of the command is not closed")]
    OpenQuote,
    #[error("there is no command after `!`")]
    EmptyCommand,
}

/// Expands a command, argument, path or URL, where `!` means nothing.
pub fn expand(template: &Template, with: &Surroundings<'_>) -> Result<String, ExpandError> {
    expand_text(template.source(), with)
}

/// Expands a value of `env` or `headers`, a token or a client secret: `!` begins a command, `!!`
/// stands for `!`. A command is split first, so that a variable cannot add words to it.
pub fn expand_value(template: &Template, with: &Surroundings<'_>) -> Result<Expanded, ExpandError> {
    let Some(line) = template.source().strip_prefix('!') else {
        return expand_text(template.source(), with).map(Expanded::Text);
    };
    if line.starts_with('!') {
        return expand_text(line, with).map(Expanded::Text);
    }
    let words = words::split(line).map_err(|words::OpenQuote| ExpandError::OpenQuote)?;
    if words.first().is_none_or(String::is_empty) {
        return Err(ExpandError::EmptyCommand);
    }
    let expanded: Result<Vec<String>, ExpandError> =
        words.iter().map(|word| expand_text(word, with)).collect();
    let expanded = expanded?;
    bounded(expanded.iter().map(String::len).sum())?;
    Ok(Expanded::Command(expanded))
}

/// The names of the variables that a template reads, in order.
pub fn variables_in(template: &Template) -> Vec<&str> {
    segments(template.source())
        .into_iter()
        .filter_map(|segment| match segment {
            Segment::Text(_) => None,
            Segment::Variable { name, .. } => Some(name),
        })
        .collect()
}

fn expand_text(text: &str, with: &Surroundings<'_>) -> Result<String, ExpandError> {
    let mut expanded = String::new();
    let rest = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            expanded.push_str(with.home.ok_or(ExpandError::NoHome)?);
            rest
        }
        _ => text,
    };
    for segment in segments(rest) {
        match segment {
            Segment::Text(text) => expanded.push_str(text),
            Segment::Variable { name, default } => {
                // As in a shell, `:-` also stands in for an empty variable.
                let value =
                    (with.variable)(name).filter(|value| default.is_none() || !value.is_empty());
                match (&value, default) {
                    (Some(value), _) => expanded.push_str(value),
                    (None, Some(default)) => expanded.push_str(default),
                    (None, None) => {
                        return Err(ExpandError::MissingVariable { name: name.to_owned() });
                    }
                }
            }
        }
        bounded(expanded.len())?;
    }
    Ok(expanded)
}

fn bounded(bytes: usize) -> Result<(), ExpandError> {
    match bytes {
        0..=MAX_EXPANDED_BYTES => Ok(()),
        _ => Err(ExpandError::TooLarge { limit: MAX_EXPANDED_BYTES }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Segment<'t> {
    Text(&'t str),
    Variable { name: &'t str, default: Option<&'t str> },
}

/// Anything that is not quite one of the forms is plain text.
fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut plain = text;
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (_, candidate) = rest.split_at(at);
        let Some((segment, after)) = variable(candidate) else {
            rest = candidate.get(1..).unwrap_or_default();
            continue;
        };
        let before = plain.len() - candidate.len();
        segments.extend(plain.get(..before).filter(|t| !t.is_empty()).map(Segment::Text));
        segments.push(segment);
        (plain, rest) = (after, after);
    }
    segments.extend(Some(plain).filter(|text| !text.is_empty()).map(Segment::Text));
    segments
}

/// The variable that `text` begins with, and what follows it.
fn variable(text: &str) -> Option<(Segment<'_>, &str)> {
    if let Some(rest) = text.strip_prefix("$env:") {
        let end = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        return (!name.is_empty()).then_some((Segment::Variable { name, default: None }, after));
    }
    let braced = match text.strip_prefix("${") {
        Some(rest) => rest.strip_prefix("env:").unwrap_or(rest),
        None => text.strip_prefix("{env:")?,
    };
    let (inner, after) = braced.split_once('}')?;
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let valid = !name.is_empty() && name.chars().all(is_name_char);
    valid.then_some((Segment::Variable { name, default }, after))
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("alpha".to_owned()),
            "EMPTY" => Some(String::new()),
            "NEST" => Some("${A} ~ !x $env:A {env:A}".to_owned()),
            "BIG" => Some("x".repeat(40_000)),
            _ => None,
        }
    }

    const WITH: Surroundings<'_> = Surroundings { variable: &lookup, home: Some("/h/u") };

    fn check(text: &str, expected: Result<&str, &str>) {
        let expanded = expand(&Template::new(text), &WITH).map_err(|error| error.to_string());
        assert_eq!(expanded.as_deref().map_err(String::as_str), expected, "{text}");
    }

    #[test]
    fn every_form_of_a_variable_is_expanded_once() {
        check("${A}-${env:A}-$env:A-{env:A}", Ok("alpha-alpha-alpha-alpha"));
        check("${X:-d}${A:-d}${EMPTY:-d}${EMPTY}${env:X:-}", Ok("dalphad"));
        check("${NEST}", Ok("${A} ~ !x $env:A {env:A}"));
        check("${X:-${A}}", Ok("${A}"));
        check("é${A}é", Ok("éalphaé"));
    }

    #[test]
    fn what_is_not_quite_a_variable_is_text() {
        for text in ["$A", "${", "${}", "${A", "${A b}", "$env:", "{env:}", "{A}", "$$", "{}", "!x"]
        {
            check(text, Ok(text));
        }
    }

    #[test]
    fn a_leading_tilde_is_the_home_directory() {
        check("~", Ok("/h/u"));
        check("~/x/~", Ok("/h/u/x/~"));
        check("~other", Ok("~other"));
        check(" ~", Ok(" ~"));
        let homeless = Surroundings { home: None, ..WITH };
        assert_eq!(expand(&Template::new("~"), &homeless), Err(ExpandError::NoHome));
    }

    #[test]
    fn a_missing_variable_is_named_and_a_flood_is_stopped() {
        check("a${X}", Err("the environment variable `X` is not set"));
        check("{env:Y}", Err("the environment variable `Y` is not set"));
        check("${BIG}${BIG}", Err("the expanded value is larger than 65536 bytes"));
    }

    #[test]
    fn a_value_that_begins_with_a_bang_is_a_command() {
        let check = |text: &str, expected: Result<Expanded, ExpandError>| {
            assert!(expand_value(&Template::new(text), &WITH) == expected, "{text}");
        };
        let command = |words: &[&str]| {
            Ok(Expanded::Command(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        check("!pass show 'a b'", command(&["pass", "show", "a b"]));
        check("!~/bin/get ${NEST}", command(&["/h/u/bin/get", "${A} ~ !x $env:A {env:A}"]));
        check("!!x ${A}", Ok(Expanded::Text("!x alpha".to_owned())));
        check("${NEST}", Ok(Expanded::Text("${A} ~ !x $env:A {env:A}".to_owned())));
        check("! ", Err(ExpandError::EmptyCommand));
        check("!a 'b", Err(ExpandError::OpenQuote));
        check("!a ${BIG} ${BIG}", Err(ExpandError::TooLarge { limit: 65_536 }));
    }

    #[test]
    fn the_variables_of_a_template_are_listed_without_reading_them() {
        let template = Template::new("${A}/{env:B}?${C:-${D}}$env:E.");
        assert_eq!(variables_in(&template), ["A", "B", "C", "E"]);
    }

    proptest! {
        #[test]
        fn what_a_variable_holds_is_never_expanded_again(value in "[$\\{\\}a-zA-Z:!~-]{0,30}") {
            let variable = |name: &str| (name == "V").then(|| value.clone());
            let with = Surroundings { variable: &variable, home: Some("/h") };
            let expanded = expand_value(&Template::new("${V}$env:V"), &with);
            let twice = value.repeat(2);
            prop_assert!(expanded == Ok(Expanded::Text(twice)));
        }

        #[test]
        fn no_template_panics(text in "\\PC{0,40}|[!~$\\{\\}env:A'\"\\\\ -]{0,40}") {
            expand_value(&Template::new(text.clone()), &WITH).ok();
            variables_in(&Template::new(text));
        }
    }
}
