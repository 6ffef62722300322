//! Prompts of servers as commands of Pi: their names, usage texts and results.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::catalog::{Prompt, PromptArgument};
use crate::content::{CallOutput, Part};
use crate::name::ServerName;
use crate::render::words::{clean_block, clean_line};
use crate::request::LineError;

const DESCRIPTION: usize = 200;
const USAGE: usize = 200;
const WORD: usize = 60;
/// The maximum length of a command's name. Prompts with longer names get no command.
const LONGEST_COMMAND: usize = 128;
const MOST_COMMANDS: usize = 500;
/// The maximum length in bytes of the text with which a command is replaced.
const LONGEST_TEXT: usize = 256 * 1024;

/// A prompt in the form of a Pi command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptCommand<'a> {
    /// The command without its slash. It consists of letters, digits, `_` and `-`.
    pub command: String,
    pub server: &'a str,
    pub prompt: &'a str,
    pub description: String,
    /// The usage of the arguments, such as `<topic> [style]`.
    pub usage: String,
}

/// The commands for these prompts. If two would have the same name, the first prompt gets it. A
/// prompt with hidden characters in its name gets no command.
pub fn commands(prompts: &[(ServerName, Prompt)]) -> Vec<PromptCommand<'_>> {
    let mut taken = BTreeSet::new();
    let commands = prompts.iter().filter_map(|(server, prompt)| {
        let command = command(server.as_str(), &prompt.name);
        let is_plain = clean_line(&prompt.name, LONGEST_COMMAND) == prompt.name;
        let counts = is_plain && command.len() <= LONGEST_COMMAND && taken.insert(command.clone());
        counts.then(|| PromptCommand {
            command,
            server: server.as_str(),
            prompt: &prompt.name,
            description: about(prompt),
            usage: usage(prompt),
        })
    });
    commands.take(MOST_COMMANDS).collect()
}

fn command(server: &str, prompt: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    format!("mcp__{server}__{prompt}").chars().map(plain).collect()
}

fn about(prompt: &Prompt) -> String {
    clean_line(prompt.description.as_deref().unwrap_or_default(), DESCRIPTION).into_owned()
}

fn usage(prompt: &Prompt) -> String {
    let argument = |argument: &PromptArgument| {
        let name = clean_line(&argument.name, WORD);
        if argument.required { format!("<{name}>") } else { format!("[{name}]") }
    };
    let arguments: Vec<String> = prompt.arguments.iter().map(argument).collect();
    clean_line(&arguments.join(" "), USAGE).into_owned()
}

/// The text that lists all prompt commands, one per line.
pub fn list(commands: &[PromptCommand<'_>]) -> String {
    if commands.is_empty() {
        return "No prompts.".to_owned();
    }
    let line = |one: &PromptCommand<'_>| {
        let mut line = format!("/{} {}", one.command, one.usage).trim_end().to_owned();
        if !one.description.is_empty() {
            let _ = write!(line, ": {}", one.description);
        }
        line
    };
    commands.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The error text for unsuitable arguments after a command.
pub fn line_error(error: &LineError, server: &ServerName, prompt: &Prompt) -> String {
    let problem = match error {
        LineError::Missing(name) => {
            format!("Missing required argument: {}.", clean_line(name, WORD))
        }
        LineError::NoPlace(word) => format!("Unexpected argument: {}.", clean_line(word, WORD)),
        LineError::OpenQuote => "A quote is not closed.".to_owned(),
    };
    let command = command(server.as_str(), &prompt.name);
    format!("{problem}\nUsage: /{command} {}", usage(prompt)).trim_end().to_owned()
}

/// The messages of a prompt as one text. Content that is not text is replaced by its kind.
pub fn text(output: &CallOutput<'_>) -> String {
    let part = |part: Part<'_>| match part {
        Part::Text(text) => text.into_owned(),
        Part::Image(image) => format!("[Image: {}]", image.mime),
        Part::Audio(audio) => format!("[Audio: {}]", audio.mime),
    };
    let text = output.parts().map(part).collect::<Vec<_>>().join("\n");
    clean_block(&text, LONGEST_TEXT).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: &str, name: &str, description: &str) -> (ServerName, Prompt) {
        let prompt = Prompt {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            arguments: Vec::new(),
            hidden: None,
            original: None,
            raw: "{}".into(),
        };
        (ServerName::new(server).unwrap(), prompt)
    }

    #[test]
    fn prompt_command_names_are_ascii_and_unique() {
        let prompts = [
            of("git-hub", "review.pr", "Reviews."),
            of("git-hub", "review/pr", "Another that would have the name."),
            of("git-hub", "grüße", ""),
            of("git-hub", "\u{202e}hidden", "Reordered."),
            of("git-hub", "\u{1b}]0;x\u{7}", "Obeyed by a terminal."),
            of("git-hub", &"x".repeat(200), "Long."),
            of("git-hub", "last", &"words \u{1b}[31m\u{200b}".repeat(1_000)),
        ];
        let commands = commands(&prompts);
        let names: Vec<&str> = commands.iter().map(|one| one.command.as_str()).collect();
        let expected = ["mcp__git-hub__review_pr", "mcp__git-hub__gr__e", "mcp__git-hub__last"];
        assert_eq!(names, expected);
        let shown = list(&commands);
        assert!(shown.len() < 600 && !shown.contains(['\u{1b}', '\u{200b}']), "{shown}");
    }
}
