//! The commands that change the files of hosts.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, Error};
use switchboard::config::install::Target;

/// A host with a YAML configuration file, which we do not edit.
pub(crate) const GOOSE: &str = "goose";

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The host to install into; for an unknown name, prints the entry to paste
    #[arg(value_parser = HostName)]
    pub(crate) host: Option<String>,
    /// Also move the servers of the host into your own file, and turn them off in the host
    #[arg(long = "move")]
    pub(crate) move_servers: bool,
    /// Show what would change and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Change the files without confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// The name of a host, as a type of argument. Known names are offered as completions; other names
/// are accepted.
#[derive(Clone, Debug)]
pub(crate) struct HostName;

impl TypedValueParser for HostName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Target::all().map(Target::as_str).chain([GOOSE]);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}
