//! The page about the `mcp` tool: its parameters, its definition, and what that costs.

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
         The highest parameter that is given decides what is asked: \
         `tool`, `result`, `connect`, `describe`, `instructions`, `search`, `server`, and without any of them the status.\n\
         Parameters of a lower one are passed over, and the answer says so.\n\
         [Search and call](../guide/search-and-call.md) shows each by example.\n\n\
         | parameter | holds | where | meaning |\n|---|---|---|---|\n",
    );
    for parameter in PARAMETERS {
        let kind = match parameter.kind {
            ParameterKind::Text => "string",
            ParameterKind::Flag => "boolean",
            ParameterKind::Count => "integer",
            ParameterKind::Arguments => "object, or a string that holds one",
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
        "\n*Card*: in the definition that a host puts into the model's context.\n\
         *Accepted*: not in the definition; `mcp({{}})` and errors tell of it.\n\
         \n\
         A page has {DEFAULT_LIMIT} tools unless `limit` says otherwise, and at most {MAX_LIMIT}; \
         a page of a stored result is bounded by the output guard.\n\n\
         ## The card\n\n\
         The whole definition costs {tokens} tokens (o200k), however many servers are configured, \
         and is the same in every session.\n\n\
         ```json\n{pretty}\n```\n\n\
         ## The pair\n\n\
         A host that looks at `readOnlyHint` gets two tools ([which ones](hosts.md)), together \
         {pair} tokens (o200k).\n\
         `mcp` takes the same parameters and reaches only tools that declare `readOnlyHint: true`; \
         any other call fails with `not_read_only` and names `mcp_write`, which reaches all.\n\
         Answers of `mcp` mark the tools that `mcp_write` calls.\n",
    );
    Ok(out)
}

/// In o200k tokens.
fn tokens(text: &str) -> usize {
    bpe_openai::o200k_base().count(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readme_states_the_token_cost_of_the_card() {
        let figure = format!("{} tokens (o200k)", tokens(&tool_card::definition()));
        assert!(include_str!("../../../README.md").contains(&figure), "{figure}");
    }
}
