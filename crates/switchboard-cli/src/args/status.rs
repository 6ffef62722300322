//! The arguments of `status`.

use clap::Args;

use super::Format;

#[derive(Debug, Default, Args)]
pub(crate) struct Status {
    /// Show only the server with this name
    #[arg(conflicts_with_all = ["check", "tokens", "http_token"])]
    pub(crate) server: Option<String>,
    /// Connect every server that may be used, and print each result as it arrives
    #[arg(long, conflicts_with_all = ["tokens", "http_token"])]
    pub(crate) check: bool,
    /// Show how many tokens the tools cost a model: as served, and if all were direct tools
    #[arg(long)]
    pub(crate) tokens: bool,
    /// Print the bearer token of `switchboard serve --http` instead
    #[arg(long, conflicts_with_all = ["tokens", "json"])]
    pub(crate) http_token: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}
