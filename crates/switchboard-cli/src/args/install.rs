//! The commands that change the files of hosts.

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use switchboard::config::install::Target;

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The host
    pub(crate) host: HostName,
    /// Also copy its servers into your own file and switch them off in the host
    #[arg(long = "move")]
    pub(crate) move_servers: bool,
    /// Show what would change and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change the files without a question
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The name of a host, as it is typed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostName(pub(crate) Target);

impl ValueEnum for HostName {
    fn value_variants<'a>() -> &'a [HostName] {
        const {
            &[
                HostName(Target::ClaudeCode),
                HostName(Target::Cursor),
                HostName(Target::VsCode),
                HostName(Target::Codex),
                HostName(Target::ClaudeDesktop),
                HostName(Target::Zed),
                HostName(Target::GeminiCli),
                HostName(Target::Windsurf),
                HostName(Target::Pi),
            ]
        }
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.as_str()))
    }
}
