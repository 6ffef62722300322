//! The commands about tokens of servers at a URL.

use clap::Subcommand;

use super::Format;

#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    /// Keep a token for a server whose entry says `bearerTokenStore`
    #[command(
        after_help = "The token is typed unseen, or comes on standard input; as an argument, \
        others could read it. It goes into the keyring of the system, or else into a file that \
        nobody but you can read, and to the server's address alone.\n\n\
        Examples:\n  switchboard token set github\n  \
        pass show github | switchboard token set github"
    )]
    Set {
        /// Its name
        server: String,
    },
    /// Show which tokens are kept, and where
    #[command(after_help = "No token is shown.\n\n\
        Examples:\n  switchboard token status\n  switchboard token status github --json")]
    Status {
        /// Only of this server
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Forget the token that was given for a server
    #[command(after_help = "Example:\n  switchboard token remove github")]
    Remove {
        /// Its name, or the address of one that is no longer configured
        server: String,
    },
}

impl Token {
    pub(super) fn format(&self) -> Format {
        match self {
            Token::Status { format, .. } => *format,
            Token::Set { .. } | Token::Remove { .. } => Format::default(),
        }
    }
}
