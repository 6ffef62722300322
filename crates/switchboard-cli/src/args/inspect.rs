//! The arguments of `inspect`, which sends one raw request to one server.

use clap::Args;

use super::Format;

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// The name of the server
    pub(crate) server: String,
    /// The method to send; without one, the server's `initialize` or discover result is printed
    pub(crate) method: Option<String>,
    /// The parameters as a JSON object, or from a file, or from standard input
    #[arg(value_name = "JSON|@FILE|-", allow_hyphen_values = true)]
    pub(crate) params: Option<String>,
    /// Approve the call in advance, if a rule requires approval
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) format: Format,
}
