//! The text of the form that requests approval of a call.
//!
//! Claude Code shows three lines of a form, each truncated at the width of the terminal. The first
//! three lines of this form name the tool and the arguments. Arguments that do not fit are repeated
//! in full below these lines.

use serde_json::Value;
use switchboard::catalog::{EntryKind, Resolved};
use switchboard::exact::Args;
use switchboard::render::words::{bytes, clean_block, clean_line, visible, visible_json};

/// The maximum number of bytes of a call's arguments that are shown.
const SHOWN_ARGUMENTS: usize = 2_000;

/// The maximum length of a line in characters: the 80 columns of a terminal without the frame of a
/// dialog.
const COLUMNS: usize = 74;

/// The number of lines for the arguments, below the question.
const ARGUMENT_LINES: usize = 2;

/// The maximum length of a tool, server or argument name in the summary, in characters.
const NAME: usize = 24;

pub(super) fn approval_message(target: &Resolved, args: &Args) -> String {
    let mut message = format!(
        "Allow `{}` of `{}`?",
        clean_line(target.entry.name.as_str(), NAME),
        clean_line(target.server.as_str(), NAME),
    );
    for caution in target.cautions() {
        message.push_str(&format!(" Attention: {caution}."));
    }
    if let EntryKind::Resource { uri, .. } = &target.entry.kind {
        message.push_str(&format!("\nIt reads {}", clean_line(&visible(uri), SHOWN_ARGUMENTS)));
    }
    let Summary { text, is_whole } = Summary::of(args);
    message.push_str(&format!("\n{text}"));
    let long_name = |name: &str| name.chars().count() > NAME;
    if is_whole && !long_name(target.entry.name.as_str()) && !long_name(target.server.as_str()) {
        return message;
    }
    let arguments = serde_json::to_string_pretty(args).unwrap_or_default();
    let arguments = visible_json(&arguments);
    message.push_str(&format!(
        "\n\nTool: {}\nServer: {}\nArguments:\n{}",
        clean_line(target.entry.name.as_str(), 200),
        clean_line(target.server.as_str(), 200),
        clean_block(&arguments, SHOWN_ARGUMENTS)
    ));
    if arguments.len() > SHOWN_ARGUMENTS {
        message.push_str(&format!("\n({}, not all are shown)", bytes(arguments.len())));
    }
    message
}

/// The arguments in two lines: every name, and as much of each value as fits.
struct Summary {
    text: String,
    /// Whether the summary shows all arguments, complete and unchanged.
    is_whole: bool,
}

impl Summary {
    fn of(args: &Args) -> Summary {
        // The arguments exactly as they are sent to the server: numbers keep their digits.
        let mut exact = args.clone();
        let written = args.values().keys().map(|name| {
            let value = exact.take(name).and_then(|value| serde_json::to_string(&value).ok());
            (written_name(name), visible_json(&value.unwrap_or_default()).into_owned())
        });
        let written: Vec<(String, String)> = written.collect();
        if written.is_empty() {
            return Summary { text: "It takes no arguments.".to_owned(), is_whole: true };
        }
        let room = COLUMNS * ARGUMENT_LINES;
        let cleaned: Vec<(String, String)> = written
            .iter()
            .map(|(name, value)| {
                let value = clean_line(value, SHOWN_ARGUMENTS).into_owned();
                (clipped_name(name), value)
            })
            .collect();
        let names: usize = cleaned.iter().map(|(name, _)| name.chars().count() + 4).sum();
        let needs = cleaned.iter().map(|(_, value)| value.chars().count()).collect();
        let widths = shared(room.saturating_sub(names), needs);
        let shown = cleaned.into_iter().zip(widths);
        let shown: Vec<(String, String)> =
            shown.map(|((name, value), width)| (name, clipped(&value, width))).collect();
        // Arguments that are shortened or changed here are repeated in full below.
        let is_whole = written == shown;
        let parts: Vec<String> =
            shown.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let text = parts.join(", ");
        let is_whole = is_whole && text.chars().count() <= room;
        Summary { text: wrapped(&clipped(&text, room)), is_whole }
    }
}

/// The name of an argument as it is shown. A name that is no plain identifier is a JSON string,
/// because a name such as `a, b: "c"` would look like two arguments.
fn written_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    if !name.is_empty() && name.chars().all(is_plain) {
        return name.to_owned();
    }
    let quoted = Value::from(name).to_string();
    visible_json(&quoted).into_owned()
}

/// The shown name, truncated to [`NAME`] characters. A quoted name keeps its closing quote.
fn clipped_name(name: &str) -> String {
    if name.chars().count() <= NAME || !name.ends_with('"') {
        return clipped(name, NAME);
    }
    format!("{}\"", clipped(name, NAME - 1))
}

/// Distributes `room` among texts of these lengths: short texts get their length, long ones share
/// the rest equally.
fn shared(room: usize, mut needs: Vec<usize>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..needs.len()).collect();
    order.sort_by_key(|index| needs.get(*index).copied());
    let (mut left, mut waiting) = (room, needs.len());
    for index in order {
        if let Some(need) = needs.get_mut(index) {
            *need = (*need).min(left / waiting.max(1));
            left -= *need;
            waiting -= 1;
        }
    }
    needs
}

/// The text, or its beginning and `…` if it is longer than `width`.
fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

fn wrapped(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let lines = characters.chunks(COLUMNS).map(|line| line.iter().collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use switchboard::hidden::is_hidden;

    use super::*;

    fn summary(args: &str) -> (String, bool) {
        let Summary { text, is_whole } = Summary::of(&Args::parse(args).unwrap());
        (text, is_whole)
    }

    #[test]
    fn approval_form_shows_short_arguments_in_full() {
        let (text, is_whole) = summary(r#"{"path":"/tmp/new.txt","content":"new","n":7}"#);
        assert_eq!(text, r#"path: "/tmp/new.txt", content: "new", n: 7"#);
        assert!(is_whole);
        assert_eq!(summary("{}").0, "It takes no arguments.");
    }

    /// The user must see exactly the arguments of the call that is approved.
    #[test]
    fn summary_that_alters_arguments_is_not_called_complete() {
        let (text, is_whole) = summary(r#"{"n":1.00,"id":12345678901234567890123}"#);
        assert_eq!(text, "n: 1.00, id: 12345678901234567890123");
        assert!(is_whole);
        assert!(!summary(r#"{"text":"two  blanks"}"#).1);
        assert!(!summary(r#"{"a_parameter_with_a_very_long_name":1}"#).1);
    }

    #[test]
    fn hidden_characters_in_arguments_are_shown_as_escapes() {
        let check = |args: &str, expected: &str| {
            assert_eq!(summary(args), (expected.to_owned(), true), "{args:?}");
        };
        check("{\"path\":\"no\u{2060}tes\u{3164}.txt\"}", r#"path: "no\u{2060}tes\u{3164}.txt""#);
        check(r#"{"path":"no\u2060tes"}"#, r#"path: "no\u{2060}tes""#);
        check(r#"{"path":"no\\u{2060}tes"}"#, r#"path: "no\\u{2060}tes""#);
        check("{\"pa\u{200b}th\":[\"\u{202e}\"]}", r#""pa\u{200b}th": ["\u{202e}"]"#);
        for c in ('\0'..=char::MAX).filter(|c| is_hidden(*c)).take(5_000) {
            let args = serde_json::json!({ format!("k{c}"): format!("v{c}") }).to_string();
            let (text, is_whole) = summary(&args);
            assert!(is_whole && !text.contains(is_hidden) && text != r#""k": "v""#, "{text}");
        }
    }

    #[test]
    fn argument_name_that_is_no_identifier_is_quoted() {
        let check = |args: &str, expected: &str| {
            assert_eq!(summary(args), (expected.to_owned(), true), "{args:?}");
        };
        check(r#"{"a, b: \"c\"":1}"#, r#""a, b: \"c\"": 1"#);
        check(r#"{"":1,"x-y.z_1":2}"#, r#""": 1, x-y.z_1: 2"#);
        let (text, is_whole) = summary(r#"{"a b c d e f g h i j k l m n":1}"#);
        assert_eq!(text, r#""a b c d e f g h i j k…": 1"#);
        assert!(!is_whole);
    }

    #[test]
    fn long_argument_does_not_hide_other_arguments() {
        let args = format!(r#"{{"content":"{}","path":"/etc/passwd"}}"#, "x".repeat(9_000));
        let (text, is_whole) = summary(&args);
        assert!(text.contains(r#"path: "/etc/passwd""#), "{text}");
        assert!(!is_whole);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= ARGUMENT_LINES, "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= COLUMNS), "{text}");
    }

    #[test]
    fn arguments_cannot_add_lines_or_control_characters() {
        let (text, _) = summary("{\"a\":\"x\\ny\",\"b\\nAllow\":\"\\u202e\u{202e}\"}");
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{202e}'), "{text}");
    }

    #[test]
    fn many_arguments_are_summarised_in_two_lines() {
        let members: Vec<String> =
            (0..60).map(|n| format!(r#""parameter_{n}":"{}""#, "v".repeat(n))).collect();
        let (text, is_whole) = summary(&format!("{{{}}}", members.join(",")));
        assert!(text.lines().count() <= ARGUMENT_LINES, "{text}");
        assert!(!is_whole);
    }
}
