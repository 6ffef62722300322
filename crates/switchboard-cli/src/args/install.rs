//! The commands that change the files of hosts.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args, Command, Error};
use switchboard::config::install::Target;

/// A host whose file is YAML, of which we change nothing.
pub(crate) const GOOSE: &str = "goose";

#[derive(Debug, Args)]
pub(crate) struct Install {
    /// The host; any other name gets the entry to paste
    #[arg(value_parser = HostName)]
    pub(crate) host: String,
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

/// The name of a host. The known ones are shown; another one is no mistake of the command line.
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
