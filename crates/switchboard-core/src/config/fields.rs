//! One reader for each field type.

use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::diagnostic::DiagnosticKind;
use super::reader::{MAX_ENTRIES, Read, Reader, join};
use super::values::{
    CollapsedLines, DirectTools, IdleTimeout, OutputGuard, Template, TemplateMap, ToolRule,
};
use crate::pattern::is_glob;

/// Expansion scans ahead from each variable, so its time is quadratic in the length.
const MAX_TEMPLATE_BYTES: usize = 32 * 1024;

/// JSON numbers above this lose precision.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
// Upper bounds that never overflow when added to an `Instant`.
const MAX_MILLISECONDS: f64 = 86_400_000.0;
const MAX_IDLE_MINUTES: f64 = 525_600.0;

/// Implemented by the `choice!` macro.
pub(super) trait Choice: Sized {
    const WORDS: &'static [&'static str];
    fn from_word(word: &str) -> Option<Self>;
}

pub(super) fn string(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<String> {
    match value {
        Value::StringLit(literal) => Ok(literal.value.to_string()),
        _ => Err(reader.wrong_type(key, value, "a string")),
    }
}

pub(super) fn template(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Template> {
    let text = string(reader, key, value)?;
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(reader.out_of_range(key, value, "at most 32 KiB long"));
    }
    Ok(Template::new(text))
}

/// A token: parsed like any text, but never shown.
pub(super) use self::template as secret;

/// A command, URL or path. An empty one is an error.
pub(super) fn endpoint(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Template> {
    let text = string(reader, key, value)?;
    if text.trim().is_empty() {
        return Err(reader.out_of_range(key, value, "a string that is not empty"));
    }
    Ok(Template::new(text))
}

/// Parsed like any endpoint, shown without its query.
pub(super) use self::endpoint as url;

/// The name of an account: short, and without lookalike characters.
pub(super) fn account(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<String> {
    let name = string(reader, key, value)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(plain) {
        return Ok(name);
    }
    let expected = "1 to 64 of the letters A to Z, digits and `._@+-`";
    Err(reader.out_of_range(key, value, expected))
}

pub(super) fn boolean(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<bool> {
    match value {
        Value::BooleanLit(literal) => Ok(literal.value),
        _ => Err(reader.wrong_type(key, value, "a boolean")),
    }
}

pub(super) fn choice<C: Choice>(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<C> {
    let word = string(reader, key, value)?;
    C::from_word(&word).ok_or_else(|| {
        let (key, found) = (key.to_owned(), join("", &word));
        let kind = DiagnosticKind::NotAChoice { key, choices: C::WORDS, found };
        reader.error(value.start(), kind)
    })
}

pub(super) fn choices<C: Choice>(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Vec<C>> {
    list(reader, key, value, choice)
}

fn list<T>(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
    element: fn(&mut Reader<'_>, &str, &Value<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let Value::Array(array) = value else {
        return Err(reader.wrong_type(key, value, "an array of strings"));
    };
    if array.elements.len() > MAX_ENTRIES {
        return Err(reader.too_many_entries(key, value));
    }
    let read = array.elements.iter().enumerate();
    read.map(|(index, value)| element(reader, &format!("{key}[{index}]"), value)).collect()
}

pub(super) fn strings(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Vec<String>> {
    list(reader, key, value, string)
}

/// Names of environment variables.
pub(super) fn variable_names(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Vec<String>> {
    list(reader, key, value, |reader, key, value| {
        let name = string(reader, key, value)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = name.starts_with(|c: char| !c.is_ascii_digit());
        if begins && name.chars().all(is_name) {
            return Ok(name);
        }
        Err(reader.out_of_range(key, value, "the name of an environment variable"))
    })
}

/// Globs over tool names. A malformed one is an error, because it would silently match nothing.
pub(super) fn patterns(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Vec<String>> {
    list(reader, key, value, |reader, key, value| {
        let pattern = string(reader, key, value)?;
        if is_glob(&pattern) {
            return Ok(pattern);
        }
        let expected = "a glob over tool names without `\\`, a leading `!` or blanks at its ends; a literal `[` is written `[[]`";
        Err(reader.out_of_range(key, value, expected))
    })
}

pub(super) fn templates(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Vec<Template>> {
    list(reader, key, value, template)
}

pub(super) fn template_map(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<TemplateMap> {
    let mut pairs = Vec::new();
    for member in reader.members(key, value)? {
        pairs.push((member.name.to_owned(), template(reader, &member.key, member.value)?));
    }
    Ok(TemplateMap(pairs))
}

pub(super) fn keywords(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Vec<(String, Vec<String>)>> {
    let mut keywords = Vec::new();
    for member in reader.members(key, value)? {
        keywords.push((member.name.to_owned(), strings(reader, &member.key, member.value)?));
    }
    Ok(keywords)
}

pub(super) fn tool_rule(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<ToolRule> {
    match value {
        Value::BooleanLit(literal) if literal.value => Ok(ToolRule::All),
        Value::BooleanLit(_) => Ok(ToolRule::None),
        Value::Array(_) => patterns(reader, key, value).map(ToolRule::Matching),
        _ => Err(reader.wrong_type(key, value, "a boolean or an array of strings")),
    }
}

pub(super) fn direct_tools(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<DirectTools> {
    match value {
        Value::BooleanLit(literal) if literal.value => Ok(DirectTools::All),
        Value::BooleanLit(_) => Ok(DirectTools::None),
        Value::StringLit(literal) if literal.value == "search" => Ok(DirectTools::Search),
        Value::Array(_) => strings(reader, key, value).map(DirectTools::Named),
        _ => Err(reader.wrong_type(key, value, "a boolean, `\"search\"` or an array of strings")),
    }
}

fn number(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<f64> {
    let Value::NumberLit(literal) = value else {
        return Err(reader.wrong_type(key, value, "a number"));
    };
    match literal.value.parse::<f64>() {
        Ok(number) if (0.0..=MAX_WHOLE).contains(&number) => Ok(number),
        _ => Err(reader.out_of_range(key, value, "a number that is not negative")),
    }
}

/// A limit. Zero is an error, because it would refuse everything.
pub(super) fn count(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<usize> {
    let number = number(reader, key, value)?;
    if number < 1.0 || number.fract() != 0.0 {
        return Err(reader.out_of_range(key, value, "a whole number from 1"));
    }
    Ok(number as usize)
}

pub(super) fn collapsed_lines(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<CollapsedLines> {
    match number(reader, key, value)? {
        lines @ 1.0..=3.0 if lines.fract() == 0.0 => Ok(CollapsedLines::Exactly(lines as u8)),
        _ => Err(reader.out_of_range(key, value, "a whole number from 1 to 3")),
    }
}

pub(super) fn milliseconds(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Duration> {
    let number = number(reader, key, value)?;
    if !(1.0..=MAX_MILLISECONDS).contains(&number) {
        return Err(reader.out_of_range(key, value, "from 1 to 86400000 (milliseconds)"));
    }
    Ok(Duration::from_millis(number as u64))
}

/// Hosts give times in seconds, with fractions.
pub(super) fn seconds(reader: &mut Reader<'_>, key: &str, value: &Value<'_>) -> Read<Duration> {
    let number = number(reader, key, value)?;
    if !(0.001..=MAX_MILLISECONDS / 1_000.0).contains(&number) {
        return Err(reader.out_of_range(key, value, "from 0.001 to 86400 (seconds)"));
    }
    Ok(Duration::from_secs_f64(number))
}

pub(super) fn start_timeout(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<Duration> {
    let number = number(reader, key, value)?;
    if !(1_000.0..=300_000.0).contains(&number) {
        return Err(reader.out_of_range(key, value, "from 1000 to 300000 (milliseconds)"));
    }
    Ok(Duration::from_millis(number as u64))
}

pub(super) fn idle_timeout(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<IdleTimeout> {
    let minutes = number(reader, key, value)?;
    if minutes > MAX_IDLE_MINUTES {
        return Err(reader.out_of_range(key, value, "from 0 to 525600 (minutes)"));
    }
    match Duration::from_secs_f64(minutes * 60.0) {
        Duration::ZERO => Ok(IdleTimeout::Never),
        time => Ok(IdleTimeout::After(time)),
    }
}

pub(super) fn output_guard(
    reader: &mut Reader<'_>,
    key: &str,
    value: &Value<'_>,
) -> Read<OutputGuard> {
    let mut limits = OutputGuard::DEFAULT;
    let OutputGuard::Limits { max_bytes, max_lines } = &mut limits else {
        return Ok(limits);
    };
    match value {
        Value::BooleanLit(literal) if literal.value => return Ok(limits),
        Value::BooleanLit(_) => return Ok(OutputGuard::Off),
        Value::Object(_) => {}
        _ => return Err(reader.wrong_type(key, value, "a boolean or an object")),
    }
    for member in reader.members(key, value)? {
        let limit = match member.name {
            "maxBytes" => &mut *max_bytes,
            "maxLines" => &mut *max_lines,
            // A key of the older program for Pi.
            "detailsMaxBytes" => {
                reader.ignored_key(&member);
                continue;
            }
            _ => {
                reader.unknown_key(&member, &["maxBytes", "maxLines"]);
                continue;
            }
        };
        *limit = count(reader, &member.key, member.value)?;
    }
    Ok(limits)
}
