//! One reader function for each type of field.

use std::ops::RangeInclusive;
use std::time::Duration;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;

use super::diagnostic::DiagnosticKind;
use super::reader::{ConfigReader, KeyedValue, MAX_ENTRIES, Read, join};
use super::values::{
    CollapsedLines, DirectTools, IdleTimeout, OutputGuard, Template, TemplateMap, ToolRule,
};
use crate::pattern::is_glob;

/// The size limit of a template. The time of expansion grows with the square of the length.
const MAX_TEMPLATE_BYTES: usize = 32 * 1024;

/// The largest whole number that a JSON number represents exactly.
const MAX_WHOLE: f64 = 9_007_199_254_740_992.0;
// Upper limits for times, so that adding a time to an `Instant` never overflows.
const MAX_MILLISECONDS: f64 = 86_400_000.0;
const MAX_IDLE_MINUTES: f64 = 525_600.0;

/// An enum of the words that a field may have, defined with the `choice!` macro.
pub(super) trait Choice: Sized {
    const WORDS: &'static [&'static str];
    fn from_word(word: &str) -> Option<Self>;
}

pub(super) fn string(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<String> {
    match input.value {
        Value::StringLit(literal) => Ok(literal.value.to_string()),
        _ => Err(reader.wrong_type(input, "a string")),
    }
}

pub(super) fn template(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Template> {
    let text = string(reader, input)?;
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(reader.out_of_range(input, "at most 32 KiB long"));
    }
    Ok(Template::new(text))
}

/// Reads a token like any text. `config show` never shows its value.
pub(super) use self::template as secret;

/// Reads a command, URL or path, which must not be empty.
pub(super) fn endpoint(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Template> {
    let text = string(reader, input)?;
    if text.trim().is_empty() {
        return Err(reader.out_of_range(input, "a string that is not empty"));
    }
    Ok(Template::new(text))
}

/// Reads a URL like any endpoint. `config show` omits its query.
pub(super) use self::endpoint as url;

/// Reads the name of an account. It must be short and without lookalike characters.
pub(super) fn account(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<String> {
    let name = string(reader, input)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(plain) {
        return Ok(name);
    }
    let expected = "1 to 64 of the letters A to Z, digits and `._@+-`";
    Err(reader.out_of_range(input, expected))
}

pub(super) fn boolean(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<bool> {
    match input.value {
        Value::BooleanLit(literal) => Ok(literal.value),
        _ => Err(reader.wrong_type(input, "a boolean")),
    }
}

pub(super) fn choice<C: Choice>(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<C> {
    let word = string(reader, input)?;
    C::from_word(&word).ok_or_else(|| {
        let (key, found) = (input.key.to_owned(), join("", &word));
        let kind = DiagnosticKind::NotAChoice { key, choices: C::WORDS, found };
        reader.error(input.value.start(), kind)
    })
}

pub(super) fn choices<C: Choice>(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Vec<C>> {
    list(reader, input, choice)
}

pub(super) fn list<T>(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
    element: fn(&mut ConfigReader<'_>, KeyedValue<'_>) -> Read<T>,
) -> Read<Vec<T>> {
    let Value::Array(array) = input.value else {
        return Err(reader.wrong_type(input, "an array of strings"));
    };
    if array.elements.len() > MAX_ENTRIES {
        return Err(reader.too_many_entries(input));
    }
    let read = array.elements.iter().enumerate();
    let key = |index| format!("{}[{index}]", input.key);
    read.map(|(index, value)| element(reader, KeyedValue { key: &key(index), value })).collect()
}

pub(super) fn strings(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Vec<String>> {
    list(reader, input, string)
}

/// Reads a list of names of environment variables.
pub(super) fn variable_names(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Vec<String>> {
    list(reader, input, |reader, input| {
        let name = string(reader, input)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = name.starts_with(|c: char| !c.is_ascii_digit());
        if begins && name.chars().all(is_name) {
            return Ok(name);
        }
        Err(reader.out_of_range(input, "the name of an environment variable"))
    })
}

/// Reads globs for tool names. A malformed glob is an error, because it would match no tool without
/// notice.
pub(super) fn patterns(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Vec<String>> {
    list(reader, input, |reader, input| {
        let pattern = string(reader, input)?;
        if is_glob(&pattern) {
            return Ok(pattern);
        }
        let expected = "a glob over tool names without `\\`, a leading `!` or blanks at its ends; a literal `[` is written `[[]`";
        Err(reader.out_of_range(input, expected))
    })
}

pub(super) fn templates(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Vec<Template>> {
    list(reader, input, template)
}

pub(super) fn template_map(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<TemplateMap> {
    let mut pairs = Vec::new();
    for member in reader.members(input)? {
        pairs.push((member.name.to_owned(), template(reader, member.input())?));
    }
    Ok(TemplateMap(pairs))
}

pub(super) fn keywords(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Vec<(String, Vec<String>)>> {
    let mut keywords = Vec::new();
    for member in reader.members(input)? {
        keywords.push((member.name.to_owned(), strings(reader, member.input())?));
    }
    Ok(keywords)
}

pub(super) fn tool_rule(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<ToolRule> {
    match input.value {
        Value::BooleanLit(literal) if literal.value => Ok(ToolRule::All),
        Value::BooleanLit(_) => Ok(ToolRule::None),
        Value::Array(_) => patterns(reader, input).map(ToolRule::Matching),
        _ => Err(reader.wrong_type(input, "a boolean or an array of strings")),
    }
}

pub(super) fn direct_tools(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<DirectTools> {
    match input.value {
        Value::BooleanLit(literal) if literal.value => Ok(DirectTools::All),
        Value::BooleanLit(_) => Ok(DirectTools::None),
        Value::StringLit(literal) if literal.value == "search" => Ok(DirectTools::Search),
        Value::Array(_) => strings(reader, input).map(DirectTools::Named),
        _ => Err(reader.wrong_type(input, "a boolean, `\"search\"` or an array of strings")),
    }
}

fn number(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<f64> {
    let Value::NumberLit(literal) = input.value else {
        return Err(reader.wrong_type(input, "a number"));
    };
    match literal.value.parse::<f64>() {
        Ok(number) if (0.0..=MAX_WHOLE).contains(&number) => Ok(number),
        _ => Err(reader.out_of_range(input, "a number that is not negative")),
    }
}

fn number_within(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
    range: RangeInclusive<f64>,
    expected: &'static str,
) -> Read<f64> {
    let number = number(reader, input)?;
    if range.contains(&number) { Ok(number) } else { Err(reader.out_of_range(input, expected)) }
}

/// Reads a limit. Zero is an error, because it would refuse everything.
pub(super) fn count(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<usize> {
    let number = number(reader, input)?;
    if number < 1.0 || number.fract() != 0.0 {
        return Err(reader.out_of_range(input, "a whole number from 1"));
    }
    Ok(number as usize)
}

pub(super) fn collapsed_lines(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<CollapsedLines> {
    match number(reader, input)? {
        lines @ 1.0..=3.0 if lines.fract() == 0.0 => Ok(CollapsedLines::Exactly(lines as u8)),
        _ => Err(reader.out_of_range(input, "a whole number from 1 to 3")),
    }
}

pub(super) fn milliseconds(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Duration> {
    let expected = "from 1 to 86400000 (milliseconds)";
    let number = number_within(reader, input, 1.0..=MAX_MILLISECONDS, expected)?;
    Ok(Duration::from_millis(number as u64))
}

/// Reads a time in seconds, which may have a fraction. Hosts write times in this form.
pub(super) fn seconds(reader: &mut ConfigReader<'_>, input: KeyedValue<'_>) -> Read<Duration> {
    let range = 0.001..=MAX_MILLISECONDS / 1_000.0;
    number_within(reader, input, range, "from 0.001 to 86400 (seconds)")
        .map(Duration::from_secs_f64)
}

pub(super) fn start_timeout(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<Duration> {
    let expected = "from 1000 to 300000 (milliseconds)";
    let number = number_within(reader, input, 1_000.0..=300_000.0, expected)?;
    Ok(Duration::from_millis(number as u64))
}

pub(super) fn idle_timeout(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<IdleTimeout> {
    let expected = "from 0 to 525600 (minutes)";
    let minutes = number_within(reader, input, 0.0..=MAX_IDLE_MINUTES, expected)?;
    match Duration::from_secs_f64(minutes * 60.0) {
        Duration::ZERO => Ok(IdleTimeout::Never),
        time => Ok(IdleTimeout::After(time)),
    }
}

pub(super) fn output_guard(
    reader: &mut ConfigReader<'_>,
    input: KeyedValue<'_>,
) -> Read<OutputGuard> {
    let mut limits = OutputGuard::DEFAULT;
    let OutputGuard::Limits { max_bytes, max_lines } = &mut limits else {
        return Ok(limits);
    };
    match input.value {
        Value::BooleanLit(literal) if literal.value => return Ok(limits),
        Value::BooleanLit(_) => return Ok(OutputGuard::Off),
        Value::Object(_) => {}
        _ => return Err(reader.wrong_type(input, "a boolean or an object")),
    }
    for member in reader.members(input)? {
        let limit = match member.name {
            "maxBytes" => &mut *max_bytes,
            "maxLines" => &mut *max_lines,
            // `pi-mcp-adapter` has this key, which has no effect here.
            "detailsMaxBytes" => {
                reader.ignored_key(&member);
                continue;
            }
            _ => {
                reader.unknown_key(&member, &["maxBytes", "maxLines"]);
                continue;
            }
        };
        *limit = count(reader, member.input())?;
    }
    Ok(limits)
}
