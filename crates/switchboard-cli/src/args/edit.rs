//! The commands that change configuration files.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use switchboard::config::hosts::Host;

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Edit {
    /// Add a server to a configuration file
    #[command(after_help = "Options of the program itself come after `--`.\n\n\
        Examples:\n  switchboard add files -- npx -y @modelcontextprotocol/server-filesystem ~\n  \
        switchboard add github https://api.example.com/mcp --header 'Authorization: Bearer ${TOKEN}'\n  \
        switchboard add tracker tracker-mcp --env TRACKER_TOKEN --scope project\n  \
        switchboard add --json '{ \"mcpServers\": { \"files\": { \"command\": \"files-mcp\" } } }'")]
    Add(Add),
    /// Remove a server from the configuration file that has it
    #[command(after_help = "Example:\n  switchboard remove github")]
    Remove {
        /// The name of the server
        server: String,
        /// The configuration file to remove the server from, if both files have it
        #[arg(long, value_name = "SCOPE")]
        scope: Option<Scope>,
    },
    /// Turn a disabled server on again
    #[command(after_help = "Example:\n  switchboard enable github")]
    Enable {
        /// The name of the server
        server: String,
    },
    /// Turn a server off and keep its entry
    #[command(after_help = "A server of another program's file is turned off in our own file.\n\n\
        Example:\n  switchboard disable github")]
    Disable {
        /// The name of the server
        server: String,
    },
    /// Allow tools to run without approval, or list the patterns
    #[command(after_help = "Examples:\n  switchboard allow 'github_list_*'\n  \
        switchboard allow files/read_file\n  switchboard allow --remove 'github_list_*'")]
    Allow(Rule),
    /// Deny tools, whatever else allows them, or list the patterns
    #[command(after_help = "Examples:\n  switchboard deny '*_delete_*'\n  \
        switchboard deny 'payments/*'\n  switchboard deny --remove 'payments/*'")]
    Deny(Rule),
    /// Use the servers of other hosts, read from their own files
    #[command(after_help = "Nothing is copied and nothing is started. Without names, every host \
        that has servers of yours is imported.\n\n\
        Examples:\n  switchboard import --dry-run\n  switchboard import cursor claude-code")]
    Import(Import),
}

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name of the server
    #[arg(required_unless_present = "json")]
    pub(crate) name: Option<String>,
    /// The program to run, or the address to connect to
    #[arg(value_name = "COMMAND|URL", required_unless_present = "json", conflicts_with = "json")]
    pub(crate) endpoint: Option<String>,
    /// The program's arguments
    #[arg(value_name = "ARGS")]
    pub(crate) args: Vec<String>,
    /// The transport, if the endpoint does not determine it
    #[arg(long, value_name = "KIND", conflicts_with = "json")]
    pub(crate) transport: Option<AddTransport>,
    /// An environment variable for the program; without a value, it is read from the environment at
    /// each start
    #[arg(long, value_name = "NAME[=VALUE]", conflicts_with = "json")]
    pub(crate) env: Vec<String>,
    /// An HTTP header for the URL
    #[arg(long, value_name = "NAME: VALUE", conflicts_with = "json")]
    pub(crate) header: Vec<String>,
    /// Add the servers of this JSON snippet, in the format of any host; `-` reads standard input
    #[arg(long, value_name = "JSON|-", allow_hyphen_values = true)]
    pub(crate) json: Option<String>,
    /// The configuration file to add the server to
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    pub(crate) scope: Scope,
    /// Replace a server of the same name
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not check the connection
    #[arg(long)]
    pub(crate) no_check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddTransport {
    Stdio,
    Http,
    Sse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// Your own configuration file
    User,
    /// The `.mcp.json` of this project
    Project,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    /// Import from these hosts only
    #[arg(value_name = "HOST", value_parser = hosts())]
    pub(crate) hosts: Vec<Host>,
    /// Show the servers and the changes, and write nothing
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
    /// Write without confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

fn hosts() -> impl TypedValueParser<Value = Host> {
    PossibleValuesParser::new(Host::WORDS).try_map(|word| Host::from_word(&word).ok_or("no host"))
}

#[derive(Debug, Args)]
pub(crate) struct Rule {
    /// A glob over the shown names of tools, or `SERVER/TOOL`
    pub(crate) pattern: Option<String>,
    /// Remove the pattern from the list
    #[arg(long, requires = "pattern")]
    pub(crate) remove: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}
