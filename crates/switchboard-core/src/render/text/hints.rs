//! Remedies for a model, as calls of the `mcp` tool or as requests to the user.

use super::{LINE, NAMES, not_listed};
use crate::failure::Hint;
use crate::render::remedy::word;
use crate::render::words::{clean_line, duration, list};
use crate::tool_card::WRITE_NAME;

/// A remedy as one line for a model.
#[expect(clippy::too_many_lines, reason = "a table, with a line for each remedy")]
pub fn hint_line(hint: &Hint) -> String {
    match hint {
        Hint::DidYouMean(names) => format!("Did you mean: {}", list(names, NAMES)),
        Hint::Choose(names) => format!("Choose one of: {}", list(names, NAMES)),
        Hint::Expected(parameters) => format!("Expected parameters:\n{parameters}"),
        Hint::Search(words) => {
            format!("Find it: mcp({{ search: \"{}\" }})", clean_line(words, LINE))
        }
        Hint::NotListedYet(servers) => {
            let mut out = String::new();
            not_listed(&mut out, servers);
            out.trim_end().to_owned()
        }
        Hint::ListServers => "See the servers: mcp({})".to_owned(),
        Hint::ListTools(server) => format!("See its tools: mcp({{ server: \"{server}\" }})"),
        Hint::ListResources => "See the list of resources".to_owned(),
        Hint::ListPrompts => "See the list of prompts".to_owned(),
        Hint::Connect(server) => format!("Try again: mcp({{ connect: \"{server}\" }})"),
        Hint::Trust(server) => format!(
            "Ask the user to look at its definition and to trust it: switchboard trust {}",
            word(server.as_str())
        ),
        Hint::SignIn(server) => format!(
            "Begin a sign-in: mcp({{ action: \"auth-start\", server: \"{server}\" }}), or ask the user \
             to run: switchboard auth {}",
            word(server.as_str())
        ),
        Hint::SignInAt(link) => format!("Ask the user to sign in, then try again: {link}"),
        Hint::VisitFirst(link) => {
            format!("Nothing was done. Ask the user to open this page, then call it again: {link}")
        }
        Hint::GiveToken(server) => format!("Ask the user to give `{server}` a token that it takes"),
        Hint::SetToken(server) => format!("Ask the user to give `{server}` its token"),
        Hint::Unlock => "Ask the user to unlock the keyring".to_owned(),
        Hint::Enable(server) => format!("Ask the user to enable `{server}`"),
        Hint::Disable(server) => format!("Ask the user to disable `{server}`"),
        Hint::Configure => "Ask the user to configure a server".to_owned(),
        Hint::Replace => "Ask the user whether to replace it".to_owned(),
        Hint::RetryAfter(wait) => format!("Try again in {}", duration(*wait)),
        Hint::Stderr(lines) => format!("Its stderr:\n  {}", lines.join("\n  ")),
        Hint::ReadLog(server) => format!("The log of `{server}` may say more"),
        Hint::Setting(name) => format!("The user can raise the setting `{name}`"),
        Hint::AskUser => "Ask the user; this host cannot ask for you".to_owned(),
        Hint::Allow(pattern) => {
            format!("The user can allow it with this command: switchboard allow {}", word(pattern))
        }
        Hint::UseWriteTool(Some(tool)) => format!(
            "Call it with {WRITE_NAME}({{ tool: \"{}\", args: {{…}} }})",
            clean_line(tool, LINE)
        ),
        Hint::UseWriteTool(None) => format!("Use {WRITE_NAME} with the same parameters"),
        Hint::Accept(server) => {
            let name = word(server.as_str());
            format!(
                "Ask the user to look at what changed (switchboard pins {name}) and to accept it \
                 (switchboard pins accept {name})"
            )
        }
        Hint::LiftDenial(pattern) => format!(
            "The user decided so; only they can lift the rule: switchboard deny --remove {}",
            word(pattern)
        ),
        Hint::UseArgs => {
            "Example: mcp({ tool: \"demo_add\", args: { \"a\": 2, \"b\": 40 } })".to_owned()
        }
        Hint::ReadResult(id) => {
            format!("Kept as result: {id}, to be read with result and select, grep or offset")
        }
        Hint::CallAgain => {
            "Call the tool again: a result is kept while its session lasts, the newest longest"
                .to_owned()
        }
        Hint::CheckCommand(command) => {
            format!("Check that `{}` is installed and can be run", clean_line(command, LINE))
        }
        Hint::SplitCommand(program) => format!(
            "Ask the user to keep only `{}` in `command` and to move the arguments to `args`",
            clean_line(program, LINE)
        ),
        Hint::MakeExecutable(path) => {
            format!("Ask the user to make {} executable", clean_line(path, LINE * 2))
        }
        Hint::Install(product) => format!("Ask the user to install {product}"),
        Hint::InstallIn(host) => format!("Ask the user to install us in {}", host.title()),
        Hint::SetVariable(name) => {
            format!("Ask the user to set the environment variable `{}`", clean_line(name, LINE))
        }
        Hint::PassOn(names) => {
            format!("If it needs {}, the user can name that in its `env`", list(names, NAMES))
        }
        Hint::LinkProgram => "Ask the user to call this program `switchboard`".to_owned(),
        Hint::ChoosePort => "Ask the user to choose another port".to_owned(),
        Hint::ListFiles => "Ask the user which configuration file is meant".to_owned(),
        Hint::Edit { path, line } => {
            format!("Ask the user to correct {}, line {line}", clean_line(path, LINE * 2))
        }
        Hint::CheckConfig => "Ask the user to check the configuration files".to_owned(),
        Hint::Correct(field) => format!("Ask the user to correct `{}`", clean_line(field, LINE)),
        Hint::CheckUrl => "Ask the user to check that the server is running".to_owned(),
        Hint::Rename => "Ask the user to give it another name".to_owned(),
        Hint::MoveAway(path) => format!("Ask the user to move {} away", clean_line(path, LINE * 2)),
        Hint::MakePrivate(path) => {
            format!("Ask the user to make {} private", clean_line(path, LINE * 2))
        }
        Hint::CheckOutcome => "It may have taken effect: check before you call it again".to_owned(),
    }
}
