//! The command line: every command, every flag, and an example for each that takes arguments.

pub(crate) mod call;
pub(crate) mod config;
pub(crate) mod edit;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod token;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use self::call::{AdHoc, Call, Printed};
use self::config::Config;
use self::edit::Edit;
use self::inspect::Inspect;
use self::install::{HostName, Install};
use self::serve::Serve;
use self::status::Status;
use self::token::Token;

/// Every MCP server, one tool
///
/// Without a command, the status of all servers is shown.
#[derive(Debug, Parser)]
#[command(name = "switchboard", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// Applies to the status, if there is no command.
    #[command(flatten)]
    pub(crate) format: Format,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl Cli {
    /// The command to run. Options of the status are not valid before another command.
    pub(crate) fn resolved(self) -> Result<(Globals, Command), clap::Error> {
        let Cli { globals, format, command } = self;
        match command {
            None => Ok((
                globals,
                Command::Server(ServerCommand::Status(Status { format, ..Status::default() })),
            )),
            Some(_) if format.json => Err(Cli::command().error(
                ErrorKind::ArgumentConflict,
                "`--json` must follow the command that it applies to",
            )),
            Some(command) => Ok((globals, command)),
        }
    }

    /// Whether an invalid command line requests JSON output.
    pub(crate) fn wants_json(args: &[OsString]) -> bool {
        let given = Cli::command().ignore_errors(true).try_get_matches_from(args);
        // The `--json` of `add` takes a snippet.
        let adds = given.is_ok_and(|given| given.subcommand_name() == Some("add"));
        let options = args.iter().take_while(|arg| *arg != "--");
        !adds && options.into_iter().any(|arg| arg == "--json")
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
    /// Connect a server afresh, list its tools and close it again
    #[command(
        after_help = "The connection ends with the command; its listing stays cached. Without \
        a name, asks on the terminal for a server to add.\n\n\
        Example:\n  switchboard connect github"
    )]
    Connect {
        /// Its name
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
        /// Only these
        #[arg(value_name = "SERVER")]
        servers: Vec<String>,
        // Accepted only to explain why it has no effect.
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
        /// The host
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
        /// The shell
        shell: Shell,
    },
}

/// The commands that use servers.
#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Show all servers; connects nothing without `--check`
    #[command(after_help = "Tokens are estimated, usually within 3 %, from cached listings. \
        `--check` exits with 5 if a server failed.\n\n\
        Examples:\n  switchboard status\n  switchboard status --check\n  \
        switchboard status --tokens --json\n  switchboard status --http-token")]
    Status(Status),
    /// Send one request to a server and print the raw response
    #[command(after_help = "For server authors. A tool call needs the same approval as any other \
        call. Exits with 1 if the server answers with an error.\n\n\
        Examples:\n  switchboard inspect demo\n  switchboard inspect demo tools/list\n  \
        switchboard inspect demo tools/call '{\"name\": \"add\", \"arguments\": {\"a\": 1, \"b\": 2}}'\n  \
        switchboard inspect -vvv demo ping")]
    Inspect(Inspect),
    /// List the tools of all servers, or of one
    #[command(after_help = "Examples:\n  switchboard tools\n  switchboard tools github --json\n  \
        switchboard tools --url https://mcp.example.com/mcp")]
    Tools {
        /// Only this server
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        format: Format,
    },
    /// Find tools by what they do, best match first
    #[command(after_help = "Examples:\n  switchboard search create issue\n  \
        switchboard search --regex '^list_' --server github")]
    Search(Search),
    /// Describe a tool and its parameters
    #[command(after_help = "Example:\n  switchboard describe demo_add")]
    Describe {
        /// Its name, with or without the prefix of its server
        tool: String,
        /// Look on this server only
        #[arg(long)]
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        format: Format,
    },
    /// Show the instructions of a server
    #[command(after_help = "Example:\n  switchboard instructions github")]
    Instructions {
        /// Its name
        server: String,
        #[command(flatten)]
        format: Format,
    },
    /// Call a tool and print its result whole
    #[command(after_help = "Values are typed by the tool's schema; `key:=JSON` is taken as JSON. \
        `key=@FILE` reads a file, `key=-` standard input; `key=@@x` is the text `@x`. A repeated \
        key is a list.\n\n\
        Examples:\n  switchboard call demo_add a=2 b=40\n  \
        switchboard call tracker_create_issue title=Crash body=@report.md label=bug label=ui\n  \
        switchboard call browser_take_screenshot --save shots/\n  \
        switchboard call --stdio 'uvx mcp-server-time' get_current_time timezone=UTC\n  \
        switchboard call files_write_file path=notes.md content='# Notes'\n  \
        switchboard call search --server docs --args '{\"query\": \"rust\", \"limit\": 5}'\n  \
        switchboard call tracker_list_issues --select '.issues[] | \"\\(.id) \\(.title)\"'\n  \
        jq '{query: .q}' in.json | switchboard call docs_search --args -")]
    Call(Call),
    /// Sign in to a server at a URL
    #[command(
        after_help = "Prints the address to open, opens it in the browser if this is a terminal \
        that has one, and waits up to ten minutes for the sign-in. If the browser is on \
        another machine, it ends at a page that does not load: paste the address of that page.\n\n\
        Without a terminal the address is a line on standard output. With `--json` there are two \
        lines: the URL to open, and the result of the sign-in.\n\n\
        Examples:\n  switchboard auth tracker\n  switchboard auth tracker --paste\n  \
        switchboard auth tracker --device"
    )]
    Auth(Auth),
    /// Sign out of a server: revoke its tokens and remove them
    #[command(after_help = "Example:\n  switchboard logout tracker")]
    Logout {
        /// Its name
        server: String,
    },
    /// List the resources of all servers, or of one
    #[command(after_help = "Example:\n  switchboard resources demo")]
    Resources {
        /// Only this server
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        format: Format,
    },
    /// Read a resource
    #[command(after_help = "A blob is written to a pipe or a file as its bytes.\n\n\
        Examples:\n  switchboard read demo://notes\n  \
        switchboard read file:///logo.png > logo.png")]
    Read {
        /// Its URI, as `switchboard resources` shows it
        uri: String,
        /// Ask this server, even if it does not list the resource
        #[arg(long)]
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        printed: Printed,
    },
    /// List the prompts of all servers, or of one
    #[command(after_help = "Example:\n  switchboard prompts demo")]
    Prompts {
        /// Only this server
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        format: Format,
    },
    /// Fill in a prompt and print its messages
    #[command(after_help = "Example:\n  switchboard prompt greet name=Ada")]
    Prompt {
        /// Its name, as `switchboard prompts` shows it
        name: String,
        /// The prompt's arguments
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// Look on this server only
        #[arg(long)]
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        printed: Printed,
    },
    /// List connections that can be closed; none outlasts a command
    #[command(
        after_help = "Each command starts the servers that it needs and stops them when it ends.\n\n\
        Example:\n  switchboard disconnect github"
    )]
    Disconnect {
        /// Its name
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        server: Option<String>,
        /// All servers
        #[arg(long)]
        all: bool,
    },
    /// Connect and list all servers afresh, or one, as `connect` does
    #[command(after_help = "Example:\n  switchboard reconnect github")]
    Reconnect {
        /// Only this server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Store bearer tokens for servers at a URL
    Token {
        #[command(subcommand)]
        command: Token,
    },
    /// Show which tools changed since they were pinned, and how
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "The first listing of a server is pinned automatically. Connects nothing.\n\n\
        Examples:\n  switchboard pins\n  switchboard pins github --json\n  \
        switchboard pins accept github create_issue"
    )]
    Pins {
        #[command(subcommand)]
        command: Option<Pins>,
        /// Only this server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Show what servers wrote to their standard error
    #[command(after_help = "Examples:\n  switchboard logs github -n 200\n  switchboard logs -f")]
    Logs {
        /// Only this server
        server: Option<String>,
        /// Continue as lines are written
        #[arg(short, long)]
        follow: bool,
        /// Number of lines from the end
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        lines: usize,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Only these
    #[arg(value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Also connect each server that may be used
    #[arg(long)]
    pub(crate) connect: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words that describe the tool; any of them may match
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// Maximum number of hits
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) limit: u16,
    /// Number of hits to skip
    #[arg(long, default_value_t = 0)]
    pub(crate) offset: usize,
    /// Take the words as a regular expression over names and descriptions
    #[arg(long)]
    pub(crate) regex: bool,
    /// Search this server only
    #[arg(long)]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) ad_hoc: AdHoc,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Auth {
    /// Its name
    pub(crate) server: String,
    /// Open no browser; paste the address that the browser ends at
    #[arg(long, conflicts_with = "device")]
    pub(crate) paste: bool,
    /// Sign in on another device with a short code, if the authorization server supports it
    #[arg(long)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pins {
    /// Pin the tools of a server as last listed
    #[command(after_help = "Examples:\n  switchboard pins accept github\n  \
        switchboard pins accept github create_issue list_issues")]
    Accept {
        /// Its name
        server: String,
        /// Only these; all of them by default
        #[arg(value_name = "TOOL")]
        tools: Vec<String>,
    },
}

impl Command {
    /// The output format, which also applies to failures.
    pub(crate) fn format(&self) -> Format {
        match self {
            Command::Server(talk) => talk.format(),
            Command::Config {
                command:
                    Config::Path { format } | Config::Show { format, .. } | Config::Check { format },
            } => *format,
            Command::Edit(edit) => edit.format(),
            Command::Doctor(Doctor { format, .. }) | Command::Connect { format, .. } => *format,
            Command::Config {
                command: Config::Schema { .. } | Config::Set { .. } | Config::Edit,
            }
            | Command::Serve(_)
            | Command::Setup
            | Command::Demo
            | Command::Trust { .. }
            | Command::Untrust { .. }
            | Command::Install(_)
            | Command::Uninstall { .. }
            | Command::Completions { .. } => Format::default(),
        }
    }
}

impl ServerCommand {
    /// The ad-hoc server of the command, if there is one.
    pub(crate) fn ad_hoc(&self) -> Option<&AdHoc> {
        match self {
            ServerCommand::Tools { ad_hoc, .. }
            | ServerCommand::Search(Search { ad_hoc, .. })
            | ServerCommand::Describe { ad_hoc, .. }
            | ServerCommand::Call(Call { ad_hoc, .. })
            | ServerCommand::Resources { ad_hoc, .. }
            | ServerCommand::Read { ad_hoc, .. }
            | ServerCommand::Prompts { ad_hoc, .. }
            | ServerCommand::Prompt { ad_hoc, .. } => {
                Some(ad_hoc).filter(|ad_hoc| ad_hoc.is_given())
            }
            ServerCommand::Status(_)
            | ServerCommand::Inspect(_)
            | ServerCommand::Instructions { .. }
            | ServerCommand::Auth(_)
            | ServerCommand::Logout { .. }
            | ServerCommand::Disconnect { .. }
            | ServerCommand::Reconnect { .. }
            | ServerCommand::Token { .. }
            | ServerCommand::Pins { .. }
            | ServerCommand::Logs { .. } => None,
        }
    }

    fn format(&self) -> Format {
        match self {
            ServerCommand::Status(Status { format, .. })
            | ServerCommand::Inspect(Inspect { format, .. })
            | ServerCommand::Tools { format, .. }
            | ServerCommand::Search(Search { format, .. })
            | ServerCommand::Describe { format, .. }
            | ServerCommand::Instructions { format, .. }
            | ServerCommand::Auth(Auth { format, .. })
            | ServerCommand::Resources { format, .. }
            | ServerCommand::Prompts { format, .. }
            | ServerCommand::Pins { format, .. }
            | ServerCommand::Reconnect { format, .. } => *format,
            ServerCommand::Call(Call { printed, .. })
            | ServerCommand::Read { printed, .. }
            | ServerCommand::Prompt { printed, .. } => printed.format,
            ServerCommand::Token { command } => command.format(),
            ServerCommand::Logout { .. }
            | ServerCommand::Disconnect { .. }
            | ServerCommand::Logs { .. } => Format::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_definition_is_valid() {
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
