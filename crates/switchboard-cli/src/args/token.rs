//! The commands about tokens of servers at a URL.

use clap::Subcommand;

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Store a token for a server whose entry has `bearerTokenStore`
    #[command(
        after_help = "Type the token without echo, or pass it on standard input; as an argument, \
        others could read it. It is stored in the keyring of the system, or else in a file that \
        only you can read, and is sent only to the server's URL.\n\n\
        Examples:\n  switchboard token set github\n  \
        pass show github | switchboard token set github"
    )]
    Set {
        /// The name of the server
        server: String,
    },
    /// Show which tokens are stored, and where
    #[command(after_help = "No token is shown.\n\n\
        Examples:\n  switchboard token status\n  switchboard token status github --json")]
    Status {
        /// Show only the token of this server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Remove the token of a server
    #[command(after_help = "Example:\n  switchboard token remove github")]
    Remove {
        /// The name of the server, or the URL of one that is no longer configured
        server: String,
    },
}
