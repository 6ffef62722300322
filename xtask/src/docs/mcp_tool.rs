//! The page about the `mcp` tool: its parameters, its definition, and its tokens.

use std::fmt::Write;

use switchboard_core::host_profile::UNKNOWN;
use switchboard_core::request::{
    DEFAULT_LIMIT, MAX_LIMIT, PARAMETERS, ParameterKind, ParameterPlace,
};
use switchboard_core::tool_card;

use super::{DocsError, cell};

pub(super) fn page() -> Result<String, DocsError> {
    let card = tool_card::definition();
    let pair = tool_card::definitions(tool_card::Cards::Pair, &UNKNOWN);
    let pair: usize = pair.iter().map(|card| tokens(card)).sum();
    let tokens = tokens(&card);
    let pretty = match serde_json::from_str::<serde_json::Value>(&card) {
        Ok(value) => format!("{value:#}"),
        Err(_) => card,
    };
    let mut out = String::from(
        "# The `mcp` tool\n\n\
         A call of `mcp` has one mode. The first of these parameters that is present selects it: \
         `action`, `tool`, `result`, `connect`, `describe`, `instructions`, `search`, `server`.\n\
         If none of them is present, `mcp` shows the status.\n\
         Parameters of other modes are ignored, and the result names them.\n\
         [Search and call](../guide/search-and-call.md) shows examples of the modes.\n\n\
         | parameter | values | where | meaning |\n|---|---|---|---|\n",
    );
    for parameter in PARAMETERS {
        let kind = match parameter.kind {
            ParameterKind::Text => "string",
            ParameterKind::Flag => "boolean",
            ParameterKind::Count => "integer",
            ParameterKind::Arguments => "object, or a string that contains one",
        };
        let place = match parameter.place {
            ParameterPlace::Card => "card",
            ParameterPlace::OffCard => "accepted",
        };
        let about = cell(parameter.about);
        let _ = writeln!(out, "| `{}` | {kind} | {place} | {about} |", parameter.name);
    }
    let _ = write!(
        out,
        "\n*Card*: the parameter is in the definition that the model sees.\n\
         *Accepted*: not in the definition; the status (`mcp({{}})`) and errors name the parameter.\n\
         \n\
         A page has {DEFAULT_LIMIT} tools by default, and at most {MAX_LIMIT}; \
         the setting `outputGuard` limits a page of a stored result.\n\n\
         ## The card\n\n\
         The whole definition costs {tokens} tokens (o200k), however many servers are configured, \
         and is the same in every session.\n\n\
         ```json\n{pretty}\n```\n\n\
         ## The pair\n\n\
         A host that allows or refuses calls by `readOnlyHint` gets two tools ([table of hosts](hosts.md)), which together cost \
         {pair} tokens (o200k).\n\
         `mcp` has the same parameters as above, and calls only tools that declare `readOnlyHint: true`. \
         A call of any other tool fails with `not_read_only` and names `mcp_write`, which calls all tools.\n\
         The results of `mcp` mark the tools that only `mcp_write` calls.\n",
    );
    Ok(out)
}

/// The number of tokens of a text, with the tokenizer of `o200k`.
fn tokens(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_states_the_token_cost_of_the_tool_card() {
        let figure = format!("{} tokens (o200k)", tokens(&tool_card::definition()));
        assert!(include_str!("../../../README.md").contains(&figure), "{figure}");
    }
}
