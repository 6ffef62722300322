//! Shell completions: the script of the shell calls this program, which completes servers, tools
//! and prompts.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::sync::{Arc, OnceLock};

use anstream::ColorChoice;
use clap::{CommandFactory, FromArgMatches};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};
use clap_complete::env::{EnvCompleter, Shells};
use switchboard::Environment;
use switchboard::capabilities::CapabilitySet;
use switchboard::catalog::{Catalog, Resolved};
use tokio::runtime::Builder;

use crate::args::{Cli, Globals};
use crate::boot::App;
use crate::printer::Printer;

/// The environment variable with the name of the shell; the script of the shell sets it.
const VARIABLE: &str = "SWITCHBOARD_COMPLETE";

/// The script that a shell runs at its start. `program` is the command that starts this program.
pub(crate) fn script(shell: Shell, program: &str) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(&shell.to_string()) {
        shell.write_registration(VARIABLE, "switchboard", "switchboard", program, &mut script)?;
    }
    Ok(script)
}

/// The completions that the script of a shell requests; `None` if no script runs this command.
pub(crate) fn answer(environment: &Environment, args: &[OsString]) -> Option<io::Result<Vec<u8>>> {
    let shells = Shells::builtins();
    let shell = shells.completer(environment.variable(VARIABLE)?)?;
    let words = args.iter().position(|arg| arg == "--")? + 1;
    Some(complete(shell, environment, args[words..].to_vec()))
}

fn complete(
    shell: &dyn EnvCompleter,
    environment: &Environment,
    words: Vec<OsString>,
) -> io::Result<Vec<u8>> {
    let known = Known { words: words.clone(), names: OnceLock::new() };
    let mut command = with_completions(Cli::command(), &Arc::new(known));
    command.build();
    let mut answer = Vec::new();
    shell.write_complete(&mut command, words, Some(&environment.cwd), &mut answer)?;
    Ok(answer)
}

/// Adds completions to a command: names from the configuration and the cached listings.
fn with_completions(command: clap::Command, known: &Arc<Known>) -> clap::Command {
    let is_prompt = command.get_name() == "prompt";
    let command = command.mut_args(|arg| {
        let names: fn(&Names) -> &BTreeSet<String> = match arg.get_id().as_str() {
            "server" | "servers" => |names| &names.servers,
            "tool" => |names| &names.tools,
            "pattern" => |names| &names.patterns,
            "name" if is_prompt => |names| &names.prompts,
            _ => return arg,
        };
        let known = Arc::clone(known);
        arg.add(ArgValueCandidates::new(move || {
            names(known.names()).iter().map(CompletionCandidate::new).collect()
        }))
    });
    command.mut_subcommands(|command| with_completions(command, known))
}

/// The names that can be completed, looked up on first use.
struct Known {
    words: Vec<OsString>,
    names: OnceLock<Names>,
}

#[derive(Default)]
struct Names {
    servers: BTreeSet<String>,
    /// The shown names of all listed tools.
    tools: BTreeSet<String>,
    /// The tools as rules name them: `SERVER/TOOL`.
    patterns: BTreeSet<String>,
    prompts: BTreeSet<String>,
}

impl Known {
    fn names(&self) -> &Names {
        self.names.get_or_init(|| self.look_up().unwrap_or_default())
    }

    /// Looks up all names without starting a server; `None` if the configuration cannot be read.
    fn look_up(&self) -> Option<Names> {
        let typed = Cli::command().ignore_errors(true).try_get_matches_from(&self.words).ok()?;
        let globals = Globals::from_arg_matches(&typed).ok()?;
        let app = App::new(&globals, Printer::new(ColorChoice::Never)).ok()?;
        let config = app.load().ok()?.config;
        let runtime = Builder::new_current_thread().enable_all().build().ok()?;
        let mut names = Names::default();
        // A server may list other tools for a client on a terminal, which has more capabilities.
        for capabilities in [CapabilitySet::TERMINAL, CapabilitySet::NONE] {
            runtime.block_on(async {
                let builder = app.gateway(config.clone()).capabilities(capabilities);
                let gateway = builder.on_demand().build();
                names.add(&gateway.catalog());
                gateway.shutdown().await;
            });
        }
        Some(names)
    }
}

impl Names {
    fn add(&mut self, catalog: &Catalog) {
        let pattern = |tool: &Resolved| format!("{}/{}", tool.server, tool.entry.name);
        self.servers.extend(plain(catalog.shelves().map(|(server, _)| server.to_string())));
        self.tools.extend(plain(catalog.tools().map(|tool| tool.shown.to_string())));
        self.patterns.extend(plain(catalog.all_tools().map(pattern)));
        self.prompts.extend(plain(catalog.prompts().map(|prompt| prompt.shown.to_string())));
    }
}

/// Keeps only names that are safe without quotes, because shells insert candidates unquoted.
fn plain(names: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    names.filter(move |name| !name.starts_with('-') && name.chars().all(is_plain))
}
