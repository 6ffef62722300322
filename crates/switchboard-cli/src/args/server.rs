//! The commands that use servers.

use clap::{Args, Subcommand};

use super::Format;
use super::call::{AdHoc, CallOptions, Printed};
use super::inspect::Inspect;
use super::status::Status;
use super::token::Token;

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
        /// List only the tools of this server
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
        /// The name of the tool, with or without the prefix of its server
        tool: String,
        /// Look up the tool on this server only
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
        /// The name of the server
        server: String,
        #[command(flatten)]
        format: Format,
    },
    /// Call a tool and print its whole result
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
    Call(CallOptions),
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
        /// The name of the server
        server: String,
    },
    /// List the resources of all servers, or of one
    #[command(after_help = "Example:\n  switchboard resources demo")]
    Resources {
        /// List only the resources of this server
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
        /// The URI of the resource, as `switchboard resources` shows it
        uri: String,
        /// Read from this server, even if it does not list the resource
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
        /// List only the prompts of this server
        server: Option<String>,
        #[command(flatten)]
        ad_hoc: AdHoc,
        #[command(flatten)]
        format: Format,
    },
    /// Fill in a prompt and print its messages
    #[command(after_help = "Example:\n  switchboard prompt greet name=Ada")]
    Prompt {
        /// The name of the prompt, as `switchboard prompts` shows it
        name: String,
        /// The prompt's arguments
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// Look up the prompt on this server only
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
        /// The name of the server
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        server: Option<String>,
        /// Disconnect all servers
        #[arg(long)]
        all: bool,
    },
    /// Connect and list one server or all servers again, as `connect` does
    #[command(after_help = "Example:\n  switchboard reconnect github")]
    Reconnect {
        /// Reconnect only this server
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
        /// Show only the tools of this server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Show what servers wrote to their standard error
    #[command(after_help = "Examples:\n  switchboard logs github -n 200\n  switchboard logs -f")]
    Logs(Logs),
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
    /// The name of the server
    pub(crate) server: String,
    /// Open no browser; you paste the final URL of a browser elsewhere
    #[arg(long, conflicts_with = "device")]
    pub(crate) paste: bool,
    /// Sign in on another device with a short code, if the authorization server supports it
    #[arg(long)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}

#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Show only the log of this server
    pub(crate) server: Option<String>,
    /// Keep printing lines as they are written
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Number of lines to print from the end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) lines: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Pins {
    /// Pin the tools of a server as last listed
    #[command(after_help = "Examples:\n  switchboard pins accept github\n  \
        switchboard pins accept github create_issue list_issues")]
    Accept {
        /// The name of the server
        server: String,
        /// Pin only these tools; without names, all tools
        #[arg(value_name = "TOOL")]
        tools: Vec<String>,
    },
}

impl ServerCommand {
    /// The ad-hoc server of the command; `None` if the command uses the configured servers.
    pub(crate) fn ad_hoc(&self) -> Option<&AdHoc> {
        match self {
            ServerCommand::Tools { ad_hoc, .. }
            | ServerCommand::Search(Search { ad_hoc, .. })
            | ServerCommand::Describe { ad_hoc, .. }
            | ServerCommand::Call(CallOptions { ad_hoc, .. })
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
            | ServerCommand::Logs(_) => None,
        }
    }
}
