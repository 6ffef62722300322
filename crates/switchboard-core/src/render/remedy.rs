//! Remedies for users, with commands that the user can type.

use super::words::{clean_block, clean_line, duration, list, plural};
use crate::failure::Hint;
use crate::name::ServerName;

const MESSAGE: usize = 2_000;
const NAMES: usize = 8;

/// How a face writes commands that the user can type.
pub trait CommandSyntax {
    /// The text of a Switchboard command, such as `connect github`.
    fn command(&self, words: &str) -> String;
    /// The text of a command line for the shell.
    fn shell(&self, line: &str) -> String;
    /// The remedy for a call that needs approval although the user cannot be asked.
    fn approve(&self) -> String;
}

/// A remedy as a clause.
#[expect(clippy::too_many_lines, reason = "a table, with a line for each remedy")]
pub fn wording(hint: &Hint, syntax: &dyn CommandSyntax) -> String {
    let command = |words: &str| syntax.command(words);
    let on = |verb: &str, name: &str| command(&format!("{verb} {}", word(name)));
    match hint {
        Hint::DidYouMean(names) => format!("did you mean {}?", alternatives(names)),
        Hint::Choose(names) => format!("it could be {}", alternatives(names)),
        Hint::Expected(parameters) => format!("it takes:\n{}", indented(parameters)),
        Hint::Search(words) => {
            let words: Vec<String> = words.split_whitespace().map(word).collect();
            format!("find it with {}", command(&format!("search {}", words.join(" "))))
        }
        Hint::NotListedYet(servers) => not_listed(servers, syntax),
        Hint::ListServers => format!("see the servers with {}", command("status")),
        Hint::ListTools(server) => format!("see its tools with {}", on("tools", server.as_str())),
        Hint::ListResources => format!("see the resources with {}", command("resources")),
        Hint::ListPrompts => format!("see the prompts with {}", command("prompts")),
        Hint::Connect(server) => format!("connect it with {}", on("connect", server.as_str())),
        Hint::Trust(server) => {
            let trust = on("trust", server.as_str());
            format!("look at its definition and approve it with {trust}")
        }
        Hint::SignIn(server) => format!("sign in with {}", on("auth", server.as_str())),
        Hint::SignInAt(link) => format!("sign in at {link}, then try again"),
        Hint::VisitFirst(link) => format!("nothing was done; open {link}, then call it again"),
        Hint::GiveToken(server) => format!(
            "give the entry of `{server}` a `bearerTokenEnv`, or `headers` that the server accepts"
        ),
        Hint::SetToken(server) => {
            format!("give it its token with {}", on("token set", server.as_str()))
        }
        Hint::Unlock => "unlock the keyring, or set another `oauthCredentialStore`".to_owned(),
        Hint::Enable(server) => format!("enable it with {}", on("enable", server.as_str())),
        Hint::Disable(server) => format!("disable it with {}", on("disable", server.as_str())),
        Hint::Configure => format!(
            "import servers of other hosts with {}, or add a server with {}",
            command("import"),
            command("add")
        ),
        Hint::Replace => "replace it with `--replace`".to_owned(),
        Hint::RetryAfter(wait) => format!("wait for {}", duration(*wait)),
        Hint::Stderr(lines) => {
            format!("end of its standard error:\n{}", indented(&lines.join("\n")))
        }
        Hint::ReadLog(server) => format!("read its log with {}", on("logs", server.as_str())),
        Hint::Setting(name) if name.ends_with("TimeoutMs") => {
            format!("if the server needs longer, raise the setting `{name}`")
        }
        Hint::Setting(name) => format!("raise the setting `{name}`"),
        Hint::AskUser => syntax.approve(),
        Hint::UseWriteTool(_) => "use `mcp_write` in its place".to_owned(),
        Hint::Allow(pattern) => format!("allow it for good with {}", on("allow", pattern)),
        Hint::Accept(server) => {
            let (look, accept) = (on("pins", server.as_str()), on("pins accept", server.as_str()));
            format!("see what changed with {look} and accept it with {accept}")
        }
        Hint::LiftDenial(pattern) => {
            let lift = on("deny --remove", pattern);
            format!("to allow the call, remove the rule with {lift}")
        }
        Hint::ReadResult(id) => format!("its result is kept under `{id}`"),
        Hint::CallAgain => {
            "call the tool again: results are kept while their session lasts".to_owned()
        }
        Hint::UseArgs => format!("for example {}", command("call demo_add a=2 b=40")),
        Hint::CheckCommand(program) => {
            format!("check that `{}` is installed and can be run", clean_line(program, 200))
        }
        Hint::SplitCommand(program) => format!(
            "keep only `{}` in `command`, and move the arguments to `args`",
            clean_line(program, 200)
        ),
        Hint::MakeExecutable(path) => {
            let chmod = syntax.shell(&format!("chmod +x {}", word(path)));
            format!("make it executable with {chmod}")
        }
        Hint::InstallIn(host) => format!("change that with {}", on("install", host.as_str())),
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
        Hint::CheckConfig => format!("list all errors with {}", command("config check")),
        Hint::Correct(field) => format!("correct `{}` of its entry", clean_line(field, 200)),
        Hint::CheckUrl => {
            "check that the server is running, and that the `url` of its entry is correct"
                .to_owned()
        }
        Hint::Rename => "give it another name".to_owned(),
        Hint::MoveAway(path) => format!("move `{}` away", clean_line(path, MESSAGE)),
        Hint::MakePrivate(path) => {
            let chmod = syntax.shell(&format!("chmod 700 {}", word(path)));
            format!("make it private with {chmod}")
        }
        Hint::CheckOutcome => "it may have taken effect: check before you call it again".to_owned(),
    }
}

/// The remedy about environment variables that a server does not get: how to pass them on.
fn pass_on(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let example = names.first().map(|name| format!("`\"{name}\": \"${{{name}}}\"`"));
    format!(
        "it does not see {}: if it needs that, put {} into its `env`",
        list(&quoted, NAMES),
        example.unwrap_or_default()
    )
}

/// The line about servers that were never listed: how to list them.
pub fn not_listed(servers: &[ServerName], syntax: &dyn CommandSyntax) -> String {
    let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
    let first = servers.first().map(|first| word(first.as_str())).unwrap_or_default();
    format!(
        "{} not listed yet: {} (try {})",
        plural(servers.len(), "server"),
        clean_line(&list(&names, NAMES), MESSAGE),
        syntax.command(&format!("connect {first}")),
    )
}

/// The line about pending servers of the project: how to review them.
pub fn pending(servers: &[ServerName], syntax: &dyn CommandSyntax) -> String {
    let names: Vec<&str> = servers.iter().map(ServerName::as_str).collect();
    format!(
        "{} pending: {} ({} shows what they run)",
        plural(servers.len(), "server"),
        clean_line(&list(&names, NAMES), MESSAGE),
        syntax.command("trust"),
    )
}

/// The names as `a`, `b` or `c`. A long list is shortened.
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

/// The text quoted as one word of a shell. It is never shortened, because a part of it would have
/// another meaning.
pub fn word(text: &str) -> String {
    let text = clean_line(text, MESSAGE);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    if text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
