//! Failures as a person reads them: what went wrong, why, and what to type next.

use std::fmt::Write;

use switchboard::failure::{Failure, Hint};
use switchboard::name::ServerName;
use switchboard::render::words::{clean_block, clean_line, duration, list, plural};

use crate::exit::Exit;
use crate::style::Palette;

const MESSAGE: usize = 2_000;
const NAMES: usize = 8;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// Nobody reads standard output any more, or it cannot be written.
    Output(std::io::Error),
    /// Whoever was asked went away.
    Left(Exit),
}

/// How a command ends.
pub(crate) type Outcome = Result<Exit, Stop>;

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failed(failure)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

/// The report of a failure.
pub(crate) fn text(failure: &Failure, palette: Palette) -> String {
    let mut out = String::new();
    for (index, cause) in failure.chain().iter().enumerate() {
        let cause = clean_line(cause, MESSAGE);
        let _ = match index {
            0 => writeln!(out, "{} {cause}", palette.error("error:")),
            _ => writeln!(out, "  caused by: {cause}"),
        };
    }
    if !failure.hints.is_empty() {
        out.push('\n');
    }
    for hint in &failure.hints {
        let _ = writeln!(out, "{}", self::hint(hint, palette));
    }
    out
}

/// A remedy on a line of its own.
pub(crate) fn hint(hint: &Hint, palette: Palette) -> String {
    format!("{} {}", palette.heading("hint:"), wording(hint, palette))
}

/// One line about a server that failed beside others.
pub(crate) fn line(failure: &Failure) -> String {
    clean_line(&failure.to_string(), MESSAGE).into_owned()
}

/// A remedy in the verbs of the command line.
pub(crate) fn wording(hint: &Hint, palette: Palette) -> String {
    let command = |words: &str| palette.command(format!("`switchboard {words}`")).to_string();
    let on = |verb: &str, name: &str| command(&format!("{verb} {}", word(name)));
    match hint {
        Hint::DidYouMean(names) => format!("did you mean {}?", alternatives(names)),
        Hint::Choose(names) => format!("it could be {}", alternatives(names)),
        Hint::Expected(parameters) => format!("it takes:\n{}", indented(parameters)),
        Hint::Search(words) => {
            let words: Vec<String> = words.split_whitespace().map(word).collect();
            format!("find it with {}", command(&format!("search {}", words.join(" "))))
        }
        Hint::NotListedYet(servers) => not_listed(servers, palette),
        Hint::ListServers => format!("see the servers with {}", command("status")),
        Hint::ListTools(server) => format!("see its tools with {}", on("tools", server.as_str())),
        Hint::Connect(server) => format!("connect it with {}", on("connect", server.as_str())),
        Hint::Trust(server) => {
            let trust = on("trust", server.as_str());
            format!("look at its definition and approve it with {trust}")
        }
        Hint::SignIn(server) => format!("sign in with {}", on("auth", server.as_str())),
        Hint::SignInAt(link) => format!("sign in at {link}, then try again"),
        Hint::VisitFirst(link) => format!("nothing was done; open {link}, then call it again"),
        Hint::GiveToken(server) => format!(
            "give the entry of `{server}` a `bearerTokenEnv`, or `headers` that the server knows"
        ),
        Hint::SetToken(server) => {
            format!("give it its token with {}", on("token set", server.as_str()))
        }
        Hint::Unlock => "unlock the keyring, or set another `oauthCredentialStore`".to_owned(),
        Hint::Enable(server) => format!("use it again with {}", on("enable", server.as_str())),
        Hint::Disable(server) => format!("turn it off with {}", on("disable", server.as_str())),
        Hint::Configure => format!(
            "use what other hosts have with {}, or add a server with {}",
            command("import"),
            command("add")
        ),
        Hint::Replace => "replace it with `--replace`".to_owned(),
        Hint::RetryAfter(wait) => format!("wait for {}", duration(*wait)),
        Hint::Stderr(lines) => format!("its last words:\n{}", indented(&lines.join("\n"))),
        Hint::ReadLog(server) => format!("read its log with {}", on("logs", server.as_str())),
        Hint::Setting(name) => format!("raise the setting `{name}`"),
        Hint::AskUser => "say yes on a terminal, or beforehand with `--yes`".to_owned(),
        Hint::Allow(pattern) => format!("allow it for good with {}", on("allow", pattern)),
        Hint::Accept(server) => {
            let (look, accept) = (on("pins", server.as_str()), on("pins accept", server.as_str()));
            format!("see what changed with {look} and accept it with {accept}")
        }
        Hint::LiftDenial(pattern) => {
            let lift = on("deny --remove", pattern);
            format!("if it should run after all, lift the rule with {lift}")
        }
        Hint::UseArgs => format!("for example {}", command("call demo_add a=2 b=40")),
        Hint::CheckCommand(program) => {
            format!("check that `{}` is installed and can be run", clean_line(program, 200))
        }
        Hint::MakeExecutable(path) => format!(
            "make it executable with {}",
            palette.command(format!("`chmod +x {}`", word(path)))
        ),
        Hint::Install(product) => format!("install {product}"),
        Hint::SetVariable(name) => {
            format!("set the environment variable `{}`", clean_line(name, 200))
        }
        Hint::PassOn(names) => pass_on(names),
        Hint::LinkProgram => "put a link to it named `switchboard` on your `PATH`".to_owned(),
        Hint::ChoosePort => format!("take a free port with {}", command("serve --http 0")),
        Hint::ListFiles => format!("see the files that are read with {}", command("config path")),
        Hint::Edit { path, line } => {
            format!("correct line {line} of `{}`", clean_line(path, MESSAGE))
        }
        Hint::CheckConfig => format!("see every mistake with {}", command("config check")),
        Hint::Correct(field) => format!("correct `{}` of its entry", clean_line(field, 200)),
        Hint::Rename => "give it another name".to_owned(),
        Hint::MoveAway(path) => format!("move `{}` away", clean_line(path, MESSAGE)),
        Hint::MakePrivate(path) => {
            let chmod = palette.command(format!("`chmod 700 {}`", word(path)));
            format!("keep others out with {chmod}")
        }
        Hint::CheckOutcome => "it may have taken effect: check before you call it again".to_owned(),
    }
}

/// Variables that a server does not see, and how one is passed on.
fn pass_on(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let example = names.first().map(|name| format!("`\"{name}\": \"${{{name}}}\"`"));
    format!(
        "it does not see {}: if it needs that, put {} into its `env`",
        list(&quoted, NAMES),
        example.unwrap_or_default()
    )
}

/// Servers whose tools nobody knows yet, and how to learn them.
pub(crate) fn not_listed(servers: &[ServerName], palette: Palette) -> String {
    let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
    let first = servers.first().map(|first| word(first.as_str())).unwrap_or_default();
    format!(
        "{} not listed yet: {} (try {})",
        plural(servers.len(), "server"),
        clean_line(&list(&names, NAMES), MESSAGE),
        palette.command(format!("`switchboard connect {first}`")),
    )
}

/// Servers of the project that nobody approved yet, and how to look at them.
pub(crate) fn pending(servers: &[ServerName], palette: Palette) -> String {
    let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
    format!(
        "{} pending: {} ({} shows what they want to run)",
        plural(servers.len(), "server"),
        clean_line(&list(&names, NAMES), MESSAGE),
        palette.command("`switchboard trust`"),
    )
}

/// `a`, `b` or `c`; more than a few are cut.
fn alternatives(names: &[String]) -> String {
    let quoted: Vec<String> =
        names.iter().take(NAMES).map(|name| format!("`{}`", clean_line(name, 100))).collect();
    match &quoted[..] {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

fn indented(block: &str) -> String {
    let block = clean_block(block, 64 * 1024);
    block.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

/// Text as one word of a shell; a word that was cut would mean something else.
fn word(text: &str) -> String {
    let text = clean_line(text, MESSAGE);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests;
