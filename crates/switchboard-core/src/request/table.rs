//! The parameters of the `mcp` tool: one table for parsing, for the card and for help.

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Flag,
    Count,
    Arguments,
}

/// Whether the input schema of `mcp` contains the parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Card,
    /// Accepted, but documented only in the status reply and in errors.
    OffCard,
}

#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub kind: Kind,
    pub place: Place,
    pub about: &'static str,
}

const fn row(name: &'static str, kind: Kind, place: Place, about: &'static str) -> Parameter {
    Parameter { name, kind, place, about }
}

/// Every parameter, in the order in which the card shows them.
pub const PARAMETERS: &[Parameter] = &[
    row("search", Kind::Text, Place::Card, "words"),
    row("tool", Kind::Text, Place::Card, "tool to call"),
    row("args", Kind::Arguments, Place::Card, "its arguments"),
    row("describe", Kind::Text, Place::Card, "tool to describe"),
    row("server", Kind::Text, Place::Card, "list its tools, or narrow to it"),
    row("result", Kind::Text, Place::Card, "read on in a stored result"),
    row("offset", Kind::Count, Place::Card, "where the page begins"),
    row("limit", Kind::Count, Place::OffCard, "size of the page"),
    row("select", Kind::Text, Place::OffCard, "jq filter on the JSON of a call or a stored result"),
    row("grep", Kind::Text, Place::OffCard, "regular expression over the lines of a stored result"),
    row("connect", Kind::Text, Place::OffCard, "connect a server, or refresh its tools"),
    row("instructions", Kind::Text, Place::OffCard, "usage instructions of a server"),
    row("regex", Kind::Flag, Place::OffCard, "take the search as a regular expression"),
    row("includeSchemas", Kind::Flag, Place::OffCard, "false leaves signatures out of a search"),
    row(
        "action",
        Kind::Text,
        Place::OffCard,
        "`auth-start` or `auth-complete`, for the sign-in to `server`",
    ),
];

/// The parameters that the card shows.
pub fn card_parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().filter(|parameter| parameter.place == Place::Card)
}

/// The parameter of which this is probably a misspelling.
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

/// The parameter that has this name in other tools.
pub(super) fn elsewhere(name: &str) -> Option<&'static str> {
    match name {
        "query" | "q" => Some("search"),
        "name" => Some("tool"),
        "arguments" | "params" => Some("args"),
        _ => None,
    }
}
