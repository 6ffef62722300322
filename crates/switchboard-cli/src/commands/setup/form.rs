//! The questions about a new server, and the parsing of the answers.

use std::borrow::Cow;

use switchboard::config::snippet::{self, SnippetError};
use switchboard::config::transport::{is_address, looks_like_a_url};
use switchboard::config::words::{self, OpenQuote};
use switchboard::name::{NameError, ServerName};

use super::super::edit::shown;
use crate::args::edit::{Add, AddTransport, Scope};

/// The size limit of pasted JSON.
const LONGEST_JSON: usize = 64 * 1024;

/// The questions about a new server, and the answers so far.
pub(super) struct ServerForm<'a> {
    next: Option<ServerField>,
    add: Add,
    /// The command line or URL as the user typed it, offered again for a correction.
    endpoint: String,
    is_taken: &'a dyn Fn(&ServerName) -> bool,
}

#[derive(Clone, Copy, Debug)]
enum ServerField {
    Transport,
    /// Further lines of a pasted JSON text.
    Json,
    /// The name for a pasted server whose JSON has no name.
    NameOfJson,
    Name,
    CommandLine,
    Address,
    Variables,
    Scope,
}

/// One question, with its possible answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) text: &'static str,
    pub(super) choices: Cow<'static, str>,
    /// Whether input that was typed before the question is part of the answer.
    pub(super) continues: bool,
}

/// The answer is invalid, so the question is repeated.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("enter one of {choices}")]
    NoChoice { choices: &'static str },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Quote(#[from] OpenQuote),
    #[error("a name has only letters, digits, `-`, `_` and `.`")]
    OddName,
    #[error("a server is called `{name}` already: choose another name")]
    Taken { name: String },
    #[error(transparent)]
    Snippet(SnippetError),
    #[error("enter a program")]
    NoProgram,
    #[error("enter a program, not a URL")]
    NotAProgram,
    #[error("a URL begins with a scheme, such as `https://`")]
    NotAnAddress,
    #[error("enter names of variables, separated by spaces: their values are read at each start")]
    NotNames,
}

impl<'a> ServerForm<'a> {
    pub(super) fn new(is_taken: &'a dyn Fn(&ServerName) -> bool) -> ServerForm<'a> {
        let add = Add {
            name: None,
            endpoint: None,
            args: Vec::new(),
            transport: None,
            env: Vec::new(),
            header: Vec::new(),
            json: None,
            scope: Scope::User,
            replace: false,
            no_check: false,
        };
        let endpoint = String::new();
        ServerForm { next: Some(ServerField::Transport), add, endpoint, is_taken }
    }

    /// The next question; `None` when all are answered.
    pub(super) fn question(&self) -> Option<Question> {
        let (text, choices) = match self.next? {
            ServerField::Transport => (
                "Which transport does it use?",
                "[stdio, http, sse, or its command line, URL or JSON; Enter: stdio]",
            ),
            ServerField::Json => ("", "…"),
            ServerField::NameOfJson | ServerField::Name => ("What is its name?", ""),
            ServerField::CommandLine => ("What is its command line?", "[quotes work, no shell]"),
            ServerField::Address => ("What is its URL?", ""),
            ServerField::Variables => {
                ("Which environment variables does it need?", "[names; Enter: none]")
            }
            ServerField::Scope => ("Which file does it go to?", "[user, project; Enter: user]"),
        };
        let choices = self.last_answer().map_or(choices.into(), Cow::Owned);
        let continues = matches!(self.next, Some(ServerField::Json));
        Some(Question { text, choices, continues })
    }

    /// The choices of a question that was answered before, and is asked again for a correction.
    fn last_answer(&self) -> Option<String> {
        let last = match self.next? {
            ServerField::CommandLine | ServerField::Address => self.endpoint.clone(),
            ServerField::Variables => self.add.env.join(" "),
            ServerField::Transport
            | ServerField::Json
            | ServerField::NameOfJson
            | ServerField::Name
            | ServerField::Scope => return None,
        };
        (!last.is_empty()).then(|| format!("[Enter: {last}]"))
    }

    /// Parses the answer to [`ServerForm::question`].
    pub(super) fn answer(&mut self, typed: &str) -> Result<(), BadAnswer> {
        let Some(field) = self.next else { return Ok(()) };
        let typed = typed.trim();
        let next = match field {
            ServerField::Transport => Some(self.take_transport(typed)?),
            ServerField::Json => {
                let text = self.add.json.get_or_insert_default();
                text.push('\n');
                text.push_str(typed);
                Some(self.next_after_json()?)
            }
            ServerField::NameOfJson => {
                self.add.name = Some(self.free_name(typed)?);
                Some(ServerField::Scope)
            }
            ServerField::Name => {
                self.add.name = Some(self.free_name(typed)?);
                let is_known = self.add.endpoint.is_some();
                Some(match self.add.transport {
                    Some(AddTransport::Http | AddTransport::Sse) if is_known => ServerField::Scope,
                    Some(AddTransport::Http | AddTransport::Sse) => ServerField::Address,
                    Some(AddTransport::Stdio) | None if is_known => ServerField::Variables,
                    Some(AddTransport::Stdio) | None => ServerField::CommandLine,
                })
            }
            ServerField::CommandLine if typed.is_empty() && !self.endpoint.is_empty() => {
                Some(ServerField::Variables)
            }
            ServerField::CommandLine => {
                self.take_command_line(typed)?;
                Some(ServerField::Variables)
            }
            ServerField::Address if typed.is_empty() && !self.endpoint.is_empty() => {
                Some(ServerField::Scope)
            }
            ServerField::Address if !is_address(typed) => return Err(BadAnswer::NotAnAddress),
            ServerField::Address => {
                self.endpoint = typed.to_owned();
                self.add.endpoint = Some(typed.to_owned());
                Some(ServerField::Scope)
            }
            ServerField::Variables if typed.is_empty() => Some(ServerField::Scope),
            ServerField::Variables => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let names = typed.split_whitespace();
                if !names.clone().all(|name| name.chars().all(is_name)) {
                    return Err(BadAnswer::NotNames);
                }
                self.add.env = names.map(str::to_owned).collect();
                Some(ServerField::Scope)
            }
            ServerField::Scope => {
                self.add.scope = match typed {
                    "" | "user" => Scope::User,
                    "project" => Scope::Project,
                    _ => return Err(BadAnswer::NoChoice { choices: "user or project" }),
                };
                None
            }
        };
        self.next = next;
        Ok(())
    }

    /// The answer to the first question: a transport, or the whole endpoint or definition. Returns
    /// the next question.
    fn take_transport(&mut self, typed: &str) -> Result<ServerField, BadAnswer> {
        if is_json(typed) {
            self.add.json = Some(typed.to_owned());
            return self.next_after_json();
        }
        self.add.transport = match typed {
            "" | "stdio" => Some(AddTransport::Stdio),
            "http" => Some(AddTransport::Http),
            "sse" => Some(AddTransport::Sse),
            _ if is_address(typed) => {
                self.endpoint = typed.to_owned();
                self.add.endpoint = Some(typed.to_owned());
                Some(AddTransport::Http)
            }
            _ if typed.contains(char::is_whitespace) => {
                self.take_command_line(typed)?;
                Some(AddTransport::Stdio)
            }
            _ if looks_like_a_url(typed) => return Err(BadAnswer::NotAnAddress),
            _ => return Err(BadAnswer::NoChoice { choices: "stdio, http or sse" }),
        };
        Ok(ServerField::Name)
    }

    fn take_command_line(&mut self, typed: &str) -> Result<(), BadAnswer> {
        let mut words = words::split(typed)?.into_iter();
        let program = words.next().filter(|program| !program.is_empty());
        let program = program.ok_or(BadAnswer::NoProgram)?;
        if is_address(&program) {
            return Err(BadAnswer::NotAProgram);
        }
        self.endpoint = typed.to_owned();
        (self.add.endpoint, self.add.args) = (Some(program), words.collect());
        Ok(())
    }

    /// Checks a new name. It begins the names of the tools, so it has no blanks and slashes, which
    /// the name of an imported server may have.
    fn free_name(&self, typed: &str) -> Result<String, BadAnswer> {
        let name = ServerName::new(typed)?;
        if !typed.chars().all(|c| c.is_alphanumeric() || ['-', '_', '.'].contains(&c)) {
            return Err(BadAnswer::OddName);
        }
        if (self.is_taken)(&name) {
            return Err(BadAnswer::Taken { name: shown(&name) });
        }
        Ok(name.as_str().to_owned())
    }

    /// The next question after a line of pasted JSON. It asks for another line while a bracket or
    /// quote is open.
    fn next_after_json(&mut self) -> Result<ServerField, BadAnswer> {
        let text = self.add.json.as_deref().unwrap_or_default();
        match snippet::read(text, None) {
            Ok(_) => Ok(ServerField::Scope),
            Err(SnippetError::NoName) => Ok(ServerField::NameOfJson),
            Err(SnippetError::Syntax(_)) if is_open(text) && text.len() <= LONGEST_JSON => {
                Ok(ServerField::Json)
            }
            Err(problem) => {
                self.add.json = None;
                self.next = Some(ServerField::Transport);
                Err(BadAnswer::Snippet(problem))
            }
        }
    }

    /// Returns to the question about the endpoint, because the connection failed.
    pub(super) fn correct(&mut self) {
        self.next = Some(match self.add.transport {
            _ if self.add.json.take().is_some() => ServerField::Transport,
            Some(AddTransport::Http | AddTransport::Sse) => ServerField::Address,
            Some(AddTransport::Stdio) | None => ServerField::CommandLine,
        });
    }

    /// The answers, in the form of command line arguments.
    pub(super) fn filled(&self) -> &Add {
        &self.add
    }
}

/// Whether the answer is a server: its URL, its command line or the beginning of its JSON.
pub(super) fn is_server(typed: &str) -> bool {
    is_json(typed) || is_address(typed) || typed.contains(char::is_whitespace)
}

/// Whether the answer is the beginning of a pasted JSON text.
fn is_json(typed: &str) -> bool {
    typed.trim_start().starts_with(['{', '"'])
}

/// Whether a brace, a bracket or a quote of the text is not closed yet.
fn is_open(text: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '{' | '[' if !quoted => depth += 1,
            '}' | ']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0 || quoted || text.trim_end().ends_with(':')
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;

    /// The questions and answers of a dialogue, and the resulting arguments.
    fn transcript(answers: &[&str]) -> String {
        let is_taken = |name: &ServerName| name.as_str() == "taken";
        let (mut form, mut out) = (ServerForm::new(&is_taken), String::new());
        for answer in answers {
            let question = form.question().map_or("(no more)", |question| question.text);
            let problem = form.answer(answer).err().map(|problem| format!(" ({problem})"));
            let line = format!("{question} {answer}{}", problem.unwrap_or_default());
            writeln!(out, "{}", line.trim_end()).unwrap();
        }
        let open = form.question().map(|question| question.text);
        let add = form.filled();
        let words = add.name.iter().chain(&add.endpoint).chain(&add.args);
        let words: Vec<&String> = words.collect();
        write!(out, "{words:?} {:?} {:?} {:?} {open:?}", add.transport, add.env, add.scope)
            .unwrap();
        out
    }

    #[test]
    fn setup_form_asks_for_program_and_variables() {
        insta::assert_snapshot!(transcript(&["", "files", "npx -y 'my files' ~/notes", "A B_2", ""]), @r#"
        Which transport does it use?
        What is its name? files
        What is its command line? npx -y 'my files' ~/notes
        Which environment variables does it need? A B_2
        Which file does it go to?
        ["files", "npx", "-y", "my files", "~/notes"] Some(Stdio) ["A", "B_2"] User None
        "#);
    }

    #[test]
    fn setup_form_for_a_url_asks_for_no_variables() {
        insta::assert_snapshot!(transcript(&["http", "web", "https://web.example/mcp", "project"]), @r#"
        Which transport does it use? http
        What is its name? web
        What is its URL? https://web.example/mcp
        Which file does it go to? project
        ["web", "https://web.example/mcp"] Some(Http) [] Project None
        "#);
    }

    #[test]
    fn invalid_setup_answer_is_explained_and_requested_again() {
        insta::assert_snapshot!(transcript(&[
            "smoke", "stdio", "", "taken", "x", "", "'open", "https://x", "x", "A=secret", "A", "moon", "user",
        ]), @r#"
        Which transport does it use? smoke (enter one of stdio, http or sse)
        Which transport does it use? stdio
        What is its name?  (the name is empty)
        What is its name? taken (a server is called `taken` already: choose another name)
        What is its name? x
        What is its command line?  (enter a program)
        What is its command line? 'open (a quote is not closed)
        What is its command line? https://x (enter a program, not a URL)
        What is its command line? x
        Which environment variables does it need? A=secret (enter names of variables, separated by spaces: their values are read at each start)
        Which environment variables does it need? A
        Which file does it go to? moon (enter one of user or project)
        Which file does it go to? user
        ["x", "x"] Some(Stdio) ["A"] User None
        "#);
        insta::assert_snapshot!(transcript(&["sse", "x", "not an address", "https://x"]), @r#"
        Which transport does it use? sse
        What is its name? x
        What is its URL? not an address (a URL begins with a scheme, such as `https://`)
        What is its URL? https://x
        ["x", "https://x"] Some(Sse) [] User Some("Which file does it go to?")
        "#);
    }

    #[test]
    fn endpoint_entered_at_first_setup_prompt_is_requested_once() {
        insta::assert_snapshot!(transcript(&["https://x.example/mcp", "my files", "x", ""]), @r#"
        Which transport does it use? https://x.example/mcp
        What is its name? my files (a name has only letters, digits, `-`, `_` and `.`)
        What is its name? x
        Which file does it go to?
        ["x", "https://x.example/mcp"] Some(Http) [] User None
        "#);
        insta::assert_snapshot!(transcript(&["npx -y 'my files'", "files", "A", ""]), @r#"
        Which transport does it use? npx -y 'my files'
        What is its name? files
        Which environment variables does it need? A
        Which file does it go to?
        ["files", "npx", "-y", "my files"] Some(Stdio) ["A"] User None
        "#);
    }

    #[test]
    fn empty_setup_answer_keeps_the_corrected_endpoint() {
        let is_taken = |_: &ServerName| false;
        let mut form = ServerForm::new(&is_taken);
        for answer in ["", "files", "npx 'my files'", "A B", ""] {
            form.answer(answer).unwrap();
        }
        form.correct();
        let choices = |form: &ServerForm<'_>| form.question().unwrap().choices.into_owned();
        assert_eq!(choices(&form), "[Enter: npx 'my files']");
        form.answer("").unwrap();
        assert_eq!(choices(&form), "[Enter: A B]");
        form.answer("").unwrap();
        form.answer("project").unwrap();
        let add = form.filled();
        assert_eq!(
            (add.endpoint.as_deref(), &*add.args),
            (Some("npx"), &["my files".to_owned()][..])
        );
        assert_eq!(add.env, ["A", "B"]);
    }
}
