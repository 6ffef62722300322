//! The table of the parameters of `mcp`, from which parsing, the tool card and the help are made.

use ParameterKind::{Arguments, Count, Flag, Text};
use ParameterPlace::{Card, OffCard};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    Text,
    Flag,
    Count,
    Arguments,
}

/// Whether the input schema of the `mcp` tool contains a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterPlace {
    Card,
    /// The schema does not contain the parameter, but calls may use it. Only the status reply and
    /// errors mention it.
    OffCard,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: ParameterKind,
    pub place: ParameterPlace,
    pub about: &'static str,
}

const fn row(
    name: &'static str,
    kind: ParameterKind,
    place: ParameterPlace,
    about: &'static str,
) -> Parameter {
    Parameter { name, kind, place, about }
}

/// All parameters, in the order in which the tool card shows them.
pub const PARAMETERS: &[Parameter] = &[
    row("search", Text, Card, "words"),
    row("tool", Text, Card, "tool to call"),
    row("args", Arguments, Card, "its arguments"),
    row("describe", Text, Card, "tool to describe"),
    row("server", Text, Card, "list its tools, or narrow to it"),
    row("result", Text, Card, "read on in a stored result"),
    row("offset", Count, Card, "where the page begins"),
    row("limit", Count, OffCard, "size of the page"),
    row("select", Text, OffCard, "jq filter on the JSON of a call or a stored result"),
    row("grep", Text, OffCard, "regular expression over the lines of a stored result"),
    row("connect", Text, OffCard, "connect a server, or refresh its tools"),
    row("instructions", Text, OffCard, "usage instructions of a server"),
    row("regex", Flag, OffCard, "take the search as a regular expression"),
    row("includeSchemas", Flag, OffCard, "false leaves signatures out of a search"),
    row("action", Text, OffCard, "`auth-start` or `auth-complete`, for the sign-in to `server`"),
];

/// The parameters that the tool card shows.
pub fn card_parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().filter(|parameter| parameter.place == Card)
}

/// The parameter of which `name` is probably a misspelling.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let distance = |parameter: &Parameter| {
        strsim::damerau_levenshtein(&parameter.name.to_lowercase(), &name.to_lowercase())
    };
    PARAMETERS
        .iter()
        .map(|parameter| (distance(parameter), parameter.name))
        .min()
        .filter(|(distance, _)| *distance <= name.len() / 3)
        .map(|(_, name)| name)
}

/// The parameter of `mcp` for which other programs use the name `name`.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    match name {
        "query" | "q" => Some("search"),
        "name" => Some("tool"),
        "arguments" | "params" => Some("args"),
        _ => None,
    }
}
