//! Expands variables, `~` and `!command` in the values of a definition.
//!
//! Values are expanded once: if the value of a variable contains another variable, the latter is
//! not expanded.

use std::fmt;

use super::values::Template;
use super::words;
use crate::spelled::spelled_enum;

const MAX_EXPANDED_BYTES: usize = 64 * 1024;

/// The environment and paths that replace the variables in a template.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub home: Option<&'a str>,
    /// The value of `${workspaceFolder}`; `None` outside of a project.
    pub project: Option<&'a str>,
}

/// An expanded value, or the command that prints it.
#[derive(Clone, PartialEq, Eq)]
pub enum Expanded {
    Text(String),
    /// The program and arguments of a `!command`. It is run without a shell.
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

/// Why a template cannot be expanded. The error texts name variables, but never show their values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    #[error("the environment variable `{name}` is not set")]
    MissingVariable { name: String },
    #[error("the home directory is unknown")]
    NoHome,
    #[error("`${{workspaceFolder}}` is used outside of a project")]
    NoProject,
    #[error(
        "`{name}` is used in the scheme, user, host or port of a URL; \
        variables are allowed only after the host"
    )]
    InOrigin { name: String },
    #[error("the expanded value is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("a quote of the command is not closed")]
    OpenQuote,
    #[error("there is no command after `!`")]
    EmptyCommand,
}

/// Expands a command, argument or path, in which `!` has no special meaning.
pub fn expand(template: &Template, with: &Surroundings<'_>) -> Result<String, ExpandError> {
    expand_text(template.source(), with)
}

/// Expands a URL. Scheme, user, host and port must not contain a variable, so that no variable can
/// redirect a request with its credentials.
pub fn expand_url(template: &Template, with: &Surroundings<'_>) -> Result<String, ExpandError> {
    let source = template.source();
    let segments = segments(source);
    let before_first = match segments.first() {
        Some(Segment::Text(text)) => *text,
        Some(Segment::Variable { .. } | Segment::FolderVariable(_)) | None => "",
    };
    let first = segments.iter().find_map(|segment| match segment {
        Segment::Text(_) => None,
        Segment::Variable { name, .. } => Some(*name),
        Segment::FolderVariable(place) => Some(place.as_str()),
    });
    match first {
        Some(name) if !has_whole_origin(before_first) => {
            Err(ExpandError::InOrigin { name: name.to_owned() })
        }
        Some(_) | None => fill_in(&segments, String::new(), with),
    }
}

/// Whether `text` begins with a complete scheme and host. URL parsers skip white space and empty
/// hosts and read a backslash as a slash, so a host that contains one of these is rejected.
fn has_whole_origin(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let Some(end) = rest.find(['/', '?', '#']) else { return false };
    let (authority, _) = rest.split_at(end);
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    !authority.is_empty() && !authority.contains(odd)
}

/// Expands a value of `env` or `headers`, a token or a client secret. In such a value, `!` begins a
/// command, and `!!` is a literal `!`. A command is split into words before its variables are
/// expanded, so that a variable cannot add arguments.
pub fn expand_value(template: &Template, with: &Surroundings<'_>) -> Result<Expanded, ExpandError> {
    let Some(line) = template.command_line() else {
        let source = template.source();
        return expand_text(source.strip_prefix('!').unwrap_or(source), with).map(Expanded::Text);
    };
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

/// The names of the variables in a template, in their order.
pub fn variables_in(template: &Template) -> Vec<&str> {
    segments(template.source())
        .into_iter()
        .filter_map(|segment| match segment {
            Segment::Text(_) | Segment::FolderVariable(_) => None,
            Segment::Variable { name, .. } => Some(name),
        })
        .collect()
}

/// Whether a template contains no variable, `~` or command.
pub fn is_literal(template: &Template) -> bool {
    segments(template.source()).iter().all(|segment| matches!(segment, Segment::Text(_)))
}

fn expand_text(text: &str, with: &Surroundings<'_>) -> Result<String, ExpandError> {
    match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = with.home.ok_or(ExpandError::NoHome)?;
            fill_in(&segments(rest), home.to_owned(), with)
        }
        _ => fill_in(&segments(text), String::new(), with),
    }
}

/// Appends the segments to `expanded`, with each variable replaced by its value.
fn fill_in(
    segments: &[Segment<'_>],
    mut expanded: String,
    with: &Surroundings<'_>,
) -> Result<String, ExpandError> {
    for segment in segments {
        match segment {
            Segment::Text(text) => expanded.push_str(text),
            Segment::FolderVariable(FolderVariable::Home) => {
                expanded.push_str(with.home.ok_or(ExpandError::NoHome)?);
            }
            Segment::FolderVariable(FolderVariable::Project) => {
                expanded.push_str(with.project.ok_or(ExpandError::NoProject)?);
            }
            Segment::Variable { name, default } => {
                // As in a shell, `:-` also replaces an empty variable.
                let value =
                    (with.variable)(name).filter(|value| default.is_none() || !value.is_empty());
                match (&value, default) {
                    (Some(value), _) => expanded.push_str(value),
                    (None, Some(default)) => expanded.push_str(default),
                    (None, None) => {
                        return Err(ExpandError::MissingVariable { name: (*name).to_owned() });
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
    FolderVariable(FolderVariable),
}

spelled_enum! {
    /// The directories for which editors define variables.
    enum FolderVariable {
        Home = "userHome",
        Project = "workspaceFolder",
    }
}

impl FolderVariable {
    fn named(name: &str) -> Option<FolderVariable> {
        FolderVariable::ALL.iter().copied().find(|folder| folder.as_str() == name)
    }
}

/// Splits a template into text and variables. A malformed variable is text.
fn segments(text: &str) -> Vec<Segment<'_>> {
    let mut segments = Vec::new();
    let mut plain = text;
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (_, candidate) = rest.split_at(at);
        let Some((segment, after)) = place(candidate).or_else(|| variable(candidate)) else {
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

fn place(text: &str) -> Option<(Segment<'_>, &str)> {
    let (name, after) = text.strip_prefix("${")?.split_once('}')?;
    Some((Segment::FolderVariable(FolderVariable::named(name)?), after))
}

/// The variable at the beginning of `text`, and the text after it.
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
mod tests;
