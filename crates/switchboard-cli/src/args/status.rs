//! What of the status is wanted.

use clap::Args;

use super::Format;

#[derive(Debug, Default, Args)]
pub(crate) struct Status {
    /// Connect every server that may be used, and say how it went, as they come in
    #[arg(long, conflicts_with_all = ["tokens", "http_token"])]
    pub(crate) check: bool,
    /// Show what the tools cost a model: as hosts are shown them, and if all were listed directly
    #[arg(long)]
    pub(crate) tokens: bool,
    /// Print the bearer token of `switchboard serve --http` instead
    #[arg(long, conflicts_with_all = ["tokens", "json"])]
    pub(crate) http_token: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}
