//! The text that asks whether a call may be made.
//!
//! Claude Code shows three lines of it, each cut at the width of the terminal: tool and arguments
//! stand there, and everything that is not whole there follows below.

use switchboard::catalog::{Kind, Resolved};
use switchboard::exact::Args;
use switchboard::render::text::about_pin;
use switchboard::render::words::{bytes, clean_block, clean_line};

/// How much of a call's arguments is shown in all.
const SHOWN_ARGUMENTS: usize = 2_000;

/// What a line may have, in characters: a terminal of 80 columns less the frame of a dialog.
const COLUMNS: usize = 74;

/// Lines for the arguments, below the question.
const ARGUMENT_LINES: usize = 2;

/// Characters of a name in the first line.
const NAME: usize = 24;

pub(super) fn approval_message(target: &Resolved, args: &Args) -> String {
    let mut message = format!(
        "Allow `{}` of `{}`?",
        clean_line(target.entry.name.as_str(), NAME),
        clean_line(target.server.as_str(), NAME),
    );
    if let Some(about) = about_pin(target.pin) {
        message.push_str(&format!(" Attention: {about}."));
    }
    if let Kind::Resource { uri } = &target.entry.kind {
        message.push_str(&format!("\nIt reads {}", clean_line(uri, SHOWN_ARGUMENTS)));
    }
    let Summary { text, is_whole } = Summary::of(args);
    message.push_str(&format!("\n{text}"));
    let long_name = |name: &str| name.chars().count() > NAME;
    if is_whole && !long_name(target.entry.name.as_str()) && !long_name(target.server.as_str()) {
        return message;
    }
    let arguments = serde_json::to_string_pretty(args).unwrap_or_default();
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

/// The arguments in two lines: every name, and of each value as much as there is room for.
struct Summary {
    text: String,
    /// Nothing was left out.
    is_whole: bool,
}

impl Summary {
    fn of(args: &Args) -> Summary {
        let members: Vec<(String, String)> = args
            .values()
            .iter()
            .map(|(name, value)| {
                let value = value.to_string();
                (clean_line(name, NAME).into_owned(), clean_line(&value, SHOWN_ARGUMENTS).into())
            })
            .collect();
        if members.is_empty() {
            return Summary { text: "It takes no arguments.".to_owned(), is_whole: true };
        }
        let room = COLUMNS * ARGUMENT_LINES;
        let names: usize = members.iter().map(|(name, _)| name.chars().count() + 4).sum();
        let widths = shared(
            room.saturating_sub(names),
            members.iter().map(|(_, value)| value.chars().count()).collect(),
        );
        let mut is_whole = args.values().values().all(|v| v.to_string().len() <= SHOWN_ARGUMENTS);
        let mut parts = Vec::new();
        for ((name, value), width) in members.iter().zip(widths) {
            let shown = clipped(value, width);
            is_whole &= shown == *value && args.values().contains_key(name);
            parts.push(format!("{name}: {shown}"));
        }
        let text = clipped(&parts.join(", "), room);
        is_whole &= text.chars().count() < room;
        Summary { text: wrapped(&text), is_whole }
    }
}

/// Shares `room` out: short values get what they need, long ones the same part of the rest.
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

/// The text, or its beginning and `…`.
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
    use super::*;

    fn summary(args: &str) -> (String, bool) {
        let Summary { text, is_whole } = Summary::of(&Args::parse(args).unwrap());
        (text, is_whole)
    }

    #[test]
    fn short_arguments_are_whole() {
        let (text, is_whole) = summary(r#"{"path":"/tmp/new.txt","content":"new","n":7}"#);
        assert_eq!(text, r#"path: "/tmp/new.txt", content: "new", n: 7"#);
        assert!(is_whole);
        assert_eq!(summary("{}").0, "It takes no arguments.");
    }

    #[test]
    fn long_argument_does_not_hide_the_others() {
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
    fn many_arguments_stay_within_two_lines() {
        let members: Vec<String> =
            (0..60).map(|n| format!(r#""parameter_{n}":"{}""#, "v".repeat(n))).collect();
        let (text, is_whole) = summary(&format!("{{{}}}", members.join(",")));
        assert!(text.lines().count() <= ARGUMENT_LINES, "{text}");
        assert!(!is_whole);
    }
}
