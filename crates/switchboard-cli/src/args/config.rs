//! The commands about the configuration files.

use clap::{Subcommand, ValueEnum};

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Print the configuration files that are looked for, lowest layer first
    Path {
        #[command(flatten)]
        format: Format,
    },
    /// Print the effective servers and settings, without secrets
    #[command(after_help = "Examples:\n  switchboard config show --origin\n  \
        switchboard config show --json")]
    Show {
        /// Show the file and line of each value; JSON always does
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Check the configuration files
    Check {
        #[command(flatten)]
        format: Format,
    },
    /// Set one key in your own file
    #[command(after_help = "Examples:\n  switchboard config set toolPrefix short\n  \
        switchboard config set passEnv '[\"HTTPS_PROXY\", \"NODE_EXTRA_CA_CERTS\"]'\n  \
        switchboard config set --server github env.LOG_LEVEL debug\n  \
        switchboard config set --server github idleTimeout --unset")]
    Set {
        /// A setting, or with `--server` a field of the server's entry; `env.NAME` is a key in
        /// `env`
        key: String,
        /// The value, as JSON or as text
        #[arg(required_unless_present = "unset", allow_hyphen_values = true)]
        value: Option<String>,
        /// The server whose entry is changed
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Remove the key
        #[arg(long, conflicts_with = "value")]
        unset: bool,
    },
    /// Open your own file in your editor, and check it afterwards
    #[command(after_help = "The editor is $VISUAL, $EDITOR, or vi.\n\n\
        Example:\n  EDITOR='code --wait' switchboard config edit")]
    Edit,
    /// Print the JSON Schema of a configuration file
    #[command(after_help = "Examples:\n  switchboard config schema > mcp.schema.json\n  \
        switchboard config schema --form mcp-servers")]
    Schema {
        /// The file format: `mcp.json`, or Pi's `mcp-servers.json`
        #[arg(long, value_name = "FORM", default_value = "mcp")]
        form: SchemaForm,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaForm {
    Mcp,
    McpServers,
}
