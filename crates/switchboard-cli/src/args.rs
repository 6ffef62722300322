//! The command line: every command, every flag, and an example for each that takes arguments.

pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod edit;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod serve;
pub(crate) mod server;
pub(crate) mod status;
pub(crate) mod token;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use self::config::Config;
use self::edit::Edit;
use self::install::{HostName, Install};
use self::serve::Serve;
use self::server::ServerCommand;
use self::status::Status;

/// Every MCP server, one tool
///
/// Without a command, the status of all servers is shown.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// The output format of the status, if the command line has no command.
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// Parses a command line. Options of the status are refused before another command.
    pub(crate) fn read(args: &[OsString]) -> Result<(Globals, Command, Format), clap::Error> {
        let matches = Cli::command().try_get_matches_from(args)?;
        let applying = Format { json: prints_json(&matches) };
        let Cli { globals, format, command } = Cli::from_arg_matches(&matches)?;
        let command = match command {
            None => Command::Server(ServerCommand::Status(Status { format, ..Status::default() })),
            Some(_) if format.json => {
                return Err(Cli::command().error(
                    ErrorKind::ArgumentConflict,
                    "`--json` must follow the command that it applies to",
                ));
            }
            Some(command) => command,
        };
        Ok((globals, command, applying))
    }

    /// Whether an invalid command line requests JSON output.
    pub(crate) fn wants_json(args: &[OsString]) -> bool {
        let given = Cli::command().ignore_errors(true).try_get_matches_from(args);
        // The `--json` of `add` does not request JSON output: it takes a snippet.
        let adds = given.is_ok_and(|given| given.subcommand_name() == Some("add"));
        !adds && args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")
    }
}

/// Whether the innermost command has the flag `--json`. The option `--json` of `add` takes a
/// snippet and is no flag.
fn prints_json(matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((_, inner)) => prints_json(inner),
        None => matches!(matches.try_get_one("json"), Ok(Some(true))),
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Globals {
    /// Read this file instead of the user's `mcp.json`
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Work as if started in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// Log to standard error: servers, requests (-vv), messages without secrets (-vvv)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// The output format of a reading command.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct Format {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the `mcp` tool to a host on standard input and output, or to many over HTTP
    #[command(after_help = "Over HTTP every client must send the bearer token that \
        `switchboard status --http-token` prints.\n\n\
        Examples:\n  switchboard serve --toolset direct\n  switchboard serve --http\n  \
        switchboard serve --http 127.0.0.1:9000\n\n\
        In the configuration of a host:\n  \
        { \"mcpServers\": { \"switchboard\": { \"command\": \"switchboard\", \"args\": [\"serve\"] } } }")]
    Serve(Serve),
    #[command(flatten)]
    Server(ServerCommand),
    /// Check the configuration and the servers, and suggest fixes
    #[command(
        after_help = "Starts nothing without `--connect`. Exits with 1 if there is a problem.\n\n\
        Examples:\n  switchboard doctor\n  switchboard doctor github --connect"
    )]
    Doctor(Doctor),
    /// Connect a server, list its tools, and close the connection
    #[command(
        after_help = "The connection ends with the command; its listing stays cached. Without \
        a name, asks on the terminal for a server to add.\n\n\
        Example:\n  switchboard connect github"
    )]
    Connect {
        /// The name of the server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Choose interactively what to import and which server to add
    #[command(after_help = "Each change is shown first, and only a `y` writes it.\n\n\
        Example:\n  switchboard setup")]
    Setup,
    /// Take a short tour on the built-in server
    Demo,
    /// Review the servers of this project and approve them, one by one
    #[command(after_help = "Example:\n  switchboard trust github")]
    Trust {
        /// Review only these servers
        #[arg(value_name = "SERVER")]
        servers: Vec<String>,
        // `--yes` is accepted, and hidden, only so that a message explains why it has no effect.
        #[arg(long, hide = true)]
        yes: bool,
    },
    /// Revoke the approval of servers of this project
    #[command(after_help = "Example:\n  switchboard untrust github")]
    Untrust {
        #[arg(value_name = "SERVER", required = true)]
        servers: Vec<String>,
    },
    #[command(flatten)]
    Edit(Edit),
    /// Add Switchboard to the configuration of a host
    #[command(
        after_help = "Changes are shown first. `uninstall` restores the files byte for byte.\n\n\
        Examples:\n  switchboard install claude-code\n  \
        switchboard install codex --move --dry-run\n  switchboard install pi"
    )]
    Install(Install),
    /// Remove Switchboard from a host, and restore the servers that were moved
    #[command(after_help = "Example:\n  switchboard uninstall claude-code")]
    Uninstall {
        /// The host to remove Switchboard from
        #[arg(value_parser = HostName)]
        host: String,
        /// Change the files without confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Show, check and change the configuration files
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Print the script that completes commands, servers, tools and prompts in a shell
    #[command(
        after_help = "The script asks `switchboard` for each completion; no server is started.\n\n\
        Examples:\n  switchboard completions bash > ~/.local/share/bash-completion/completions/switchboard\n  \
        switchboard completions zsh > ~/.zfunc/_switchboard\n  \
        switchboard completions fish > ~/.config/fish/completions/switchboard.fish"
    )]
    Completions {
        /// The shell that the script is for
        shell: Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Check only these servers
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Also connect each server that may be used
    #[arg(long)]
    pub(crate) connect: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clap_command_definition_is_valid() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_with_arguments_has_an_example() {
        for command in Cli::command().get_subcommands() {
            let has_example = command.get_after_help().is_some();
            let takes_values = command.get_positionals().next().is_some();
            assert!(has_example || !takes_values, "{} has no example", command.get_name());
        }
    }
}
