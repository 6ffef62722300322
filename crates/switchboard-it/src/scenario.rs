//! Scenarios as data: parses a scenario file, runs it on a face, and records the outcome.

use std::fmt::Write as _;
use std::time::Duration;

use switchboard::approval::ApprovalAnswer;

use crate::faces::Face;
use crate::harness::{filtered, stored_id};
use crate::program::Programs;

/// One file: a title, the faces that it runs on, and its steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    pub title: String,
    pub faces: Vec<String>,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// `--- config`: starts the gateway with this configuration, in a new home.
    Config(String),
    /// `--- host`: the user's next answers, one per line: `once`, `tool`, `server` or `no`.
    Host(Vec<ApprovalAnswer>),
    /// `--- advance 10m 1s`, on in-process faces only.
    Advance(Duration),
    /// `--- restart`: ends the gateway and starts another one in the same home.
    Restart,
    /// `--- expect asked`: every approval question so far.
    Asked(String),
    /// `>>> {…}` and the result. `ID` in the arguments stands for the last stored result, and a
    /// line `...` in the result for any number of lines.
    Ask { arguments: String, answer: String },
}

#[derive(Debug, thiserror::Error)]
pub enum StoryError {
    #[error("line {line}: a scenario begins with `# title` and `faces: …`")]
    Opening { line: usize },
    #[error("line {line}: `{directive}` is not a directive")]
    Directive { line: usize, directive: String },
    #[error("line {line}: `{word}` is not a duration")]
    Time { line: usize, word: String },
    #[error("line {line}: `{word}` is not an answer of the user")]
    Answer { line: usize, word: String },
}

impl Story {
    pub fn parse(text: &str) -> Result<Self, StoryError> {
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line)).peekable();
        let mut opening = |start: &str| match lines.next() {
            Some((_, line)) if line.starts_with(start) => Ok(line[start.len()..].trim().to_owned()),
            Some((line, _)) => Err(StoryError::Opening { line }),
            None => Err(StoryError::Opening { line: 0 }),
        };
        let title = opening("#")?;
        let faces = opening("faces:")?.split_whitespace().map(str::to_owned).collect();
        let mut steps = Vec::new();
        while let Some((number, head)) = lines.next() {
            if head.trim().is_empty() {
                continue;
            }
            let mut body = String::new();
            while let Some((_, line)) = lines.next_if(|(_, line)| !opens_step(line)) {
                let _ = writeln!(body, "{line}");
            }
            steps.push(step(number, head, body.trim().to_owned())?);
        }
        Ok(Self { title, faces, steps })
    }

    /// The text of the scenario file.
    pub fn text(&self) -> String {
        let mut out = format!("# {}\nfaces: {}\n", self.title, self.faces.join(" "));
        for step in &self.steps {
            let (head, body) = match step {
                Step::Config(text) => ("--- config".to_owned(), text.clone()),
                Step::Host(answers) => {
                    let words: Vec<&str> = answers.iter().map(|answer| word(*answer)).collect();
                    ("--- host".to_owned(), words.join("\n"))
                }
                Step::Advance(time) => (format!("--- advance {}", spoken(*time)), String::new()),
                Step::Restart => ("--- restart".to_owned(), String::new()),
                Step::Asked(text) => ("--- expect asked".to_owned(), text.clone()),
                Step::Ask { arguments, answer } => (format!(">>> {arguments}"), answer.clone()),
            };
            let _ = writeln!(out, "\n{head}");
            if !body.is_empty() {
                let _ = writeln!(out, "{body}");
            }
        }
        out
    }
}

/// Runs the scenario and returns it with the actual results: equal to `story` if all match.
pub async fn play<F: Face>(story: &Story, programs: Programs) -> Story {
    let mut told = story.clone();
    let mut face: Option<F> = None;
    let mut id = String::new();
    for step in &mut told.steps {
        if let Step::Config(config) = step {
            face = Some(F::open(programs, config).await);
            continue;
        }
        let mut playing = face.take().expect("a scenario begins with its configuration");
        match step {
            Step::Config(_) => {}
            Step::Host(answers) => playing.will_answer(answers),
            Step::Advance(time) => playing.advance(*time).await,
            Step::Restart => playing = playing.restart().await,
            Step::Asked(questions) => *questions = playing.asked().join("\n"),
            Step::Ask { arguments, answer } => {
                let seen = playing.ask(&arguments.replace("\"ID\"", &format!("\"{id}\""))).await;
                if let Some(stored) = stored_id(&seen) {
                    id = stored.to_owned();
                }
                let seen = filtered(&seen);
                // Lines that differ between faces are no mismatch.
                if !fits(answer, &seen) && !fits(&seen, answer) {
                    *answer = seen.trim().to_owned();
                }
            }
        }
        face = Some(playing);
    }
    told
}

/// Whether `seen` matches `expected`; a line `...` stands for any number of lines.
pub fn fits(expected: &str, seen: &str) -> bool {
    let expected: Vec<&str> = expected.lines().map(str::trim_end).collect();
    let seen: Vec<&str> = seen.trim().lines().map(str::trim_end).collect();
    fn from(expected: &[&str], seen: &[&str]) -> bool {
        match (expected, seen) {
            ([], []) => true,
            (["...", rest @ ..], _) => (0..=seen.len()).any(|skipped| from(rest, &seen[skipped..])),
            ([wanted, expected @ ..], [line, seen @ ..]) if wanted == line => from(expected, seen),
            _ => false,
        }
    }
    from(&expected, &seen)
}

fn opens_step(line: &str) -> bool {
    line.starts_with("--- ") || line.starts_with(">>> ")
}

fn step(line: usize, head: &str, body: String) -> Result<Step, StoryError> {
    if let Some(arguments) = head.strip_prefix(">>> ") {
        return Ok(Step::Ask { arguments: arguments.trim().to_owned(), answer: body });
    }
    let unknown = || StoryError::Directive { line, directive: head.to_owned() };
    let directive = head.strip_prefix("--- ").ok_or_else(unknown)?.trim();
    match directive.split_once(' ').unwrap_or((directive, "")) {
        ("config", "") => Ok(Step::Config(body)),
        ("host", "") => {
            let answers = body.split_whitespace().map(|word| answer(line, word));
            Ok(Step::Host(answers.collect::<Result<_, _>>()?))
        }
        ("advance", times) => {
            let times = times.split_whitespace().map(|word| time(line, word));
            Ok(Step::Advance(times.sum::<Result<Duration, _>>()?))
        }
        ("restart", "") => Ok(Step::Restart),
        ("expect", "asked") => Ok(Step::Asked(body)),
        _ => Err(unknown()),
    }
}

const ANSWERS: [(&str, ApprovalAnswer); 4] = [
    ("once", ApprovalAnswer::Once),
    ("tool", ApprovalAnswer::Tool),
    ("server", ApprovalAnswer::Server),
    ("no", ApprovalAnswer::No),
];

fn answer(line: usize, word: &str) -> Result<ApprovalAnswer, StoryError> {
    let found = ANSWERS.iter().find(|(name, _)| *name == word).map(|(_, answer)| *answer);
    found.ok_or_else(|| StoryError::Answer { line, word: word.to_owned() })
}

fn word(answer: ApprovalAnswer) -> &'static str {
    ANSWERS.iter().find(|(_, known)| *known == answer).map_or("", |(word, _)| word)
}

const UNITS: [(&str, u64); 3] = [("h", 3_600), ("m", 60), ("s", 1)];

fn time(line: usize, word: &str) -> Result<Duration, StoryError> {
    let found = UNITS.iter().find_map(|(unit, seconds)| {
        let count: u64 = word.strip_suffix(unit)?.parse().ok()?;
        Some(Duration::from_secs(count * seconds))
    });
    found.ok_or_else(|| StoryError::Time { line, word: word.to_owned() })
}

fn spoken(time: Duration) -> String {
    let mut left = time.as_secs();
    let mut words = Vec::new();
    for (unit, seconds) in UNITS {
        if left >= seconds {
            words.push(format!("{}{unit}", left / seconds));
            left %= seconds;
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scenario_file_is_unchanged_after_parsing_and_writing() {
        let text = "# a title\nfaces: library stdio\n\n--- config\n{}\n\n--- host\nonce\nno\n\n\
                    >>> {}\none\n\ntwo\n\n--- advance 10m 1s\n\n--- restart\n\n--- expect asked\na {}\n";
        let story = Story::parse(text).unwrap();
        assert_eq!(story.text(), text);
        assert_eq!(
            story.steps[2],
            Step::Ask { arguments: "{}".into(), answer: "one\n\ntwo".into() }
        );
        assert_eq!(story.steps[3], Step::Advance(Duration::from_secs(601)));
    }

    #[test]
    fn malformed_scenario_is_reported_with_its_line() {
        for (text, expected) in [
            ("", "line 0: a scenario begins with `# title` and `faces: …`"),
            ("# t\n", "line 0: a scenario begins with `# title` and `faces: …`"),
            ("# t\nfaces: a\n\n--- brake\n", "line 4: `--- brake` is not a directive"),
            ("# t\nfaces: a\n--- advance soon\n", "line 3: `soon` is not a duration"),
            ("# t\nfaces: a\n--- host\nmaybe\n", "line 3: `maybe` is not an answer of the user"),
        ] {
            assert_eq!(Story::parse(text).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn scenario_line_of_three_dots_matches_any_lines() {
        for (expected, seen, fit) in [
            ("a\nb", "a\nb\n", true),
            ("a", "a\nb", false),
            ("a\n...", "a\nb\nc", true),
            ("a\n...", "a", true),
            ("...\nc", "a\nb\nc", true),
            ("a\n...\nc", "a\nb\nd", false),
        ] {
            assert_eq!(fits(expected, seen), fit, "{expected:?} {seen:?}");
        }
    }
}
