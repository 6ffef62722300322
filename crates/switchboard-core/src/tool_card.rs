//! The definitions of `mcp` and `mcp_write`. They are in the context of every request to a model,
//! so every token matters.

use serde_json::Value;

use crate::host_profile::{HostProfile, ToolMeta, UNKNOWN};
use crate::request::ParameterKind;
use crate::request::{Parameter, card_parameters};

/// The name of the single tool, and of the read-only tool of a pair.
pub const NAME: &str = "mcp";

/// The name of the second tool of a pair, which calls the tools that are not read-only.
pub const WRITE_NAME: &str = "mcp_write";

/// The title that a host shows to users instead of the name.
const TITLE: &str = "MCP servers";

/// The description of `mcp`. It contains everyday words, because the tool searches of hosts find
/// `mcp` by them.
const DESCRIPTION: &str = "Find and call tools of all MCP servers: read a file, send a message, \
    sum two numbers, query data. \
    First mcp({search: \"create issue\"}), then mcp({tool: \"github_create_issue\", args}). \
    mcp({}) shows servers and more.";

const READ_DESCRIPTION: &str = "Find tools of all MCP servers (read a file, send a message, \
    sum two numbers) and call those that only read. \
    First mcp({search: \"list issues\"}), then mcp({tool: \"github_list_issues\", args}). \
    mcp({}) shows more.";

const WRITE_TITLE: &str = "MCP servers: write";

const WRITE_DESCRIPTION: &str = "Call any tool that mcp found.";

/// The parameters of `mcp_write`. They have no descriptions, because `mcp`, which is always listed
/// too, has the same parameters.
const WRITE_PROPERTIES: &str = "\"tool\":{\"type\":\"string\"},\"args\":{\"type\":\"object\"}";

/// Which tools give a host access to all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cards {
    /// The single tool `mcp`.
    One,
    /// Two tools: `mcp`, which calls only tools that are declared read-only, and `mcp_write` for
    /// all other tools.
    Pair,
}

/// The definition of `mcp` as a single tool, for an unknown host.
pub fn definition() -> String {
    definitions(Cards::One, &UNKNOWN).concat()
}

/// The definitions as JSON. They are the same in every session and after every restart, so that the
/// prompt cache of the host stays valid.
pub fn definitions(cards: Cards, host: &HostProfile) -> Vec<String> {
    let properties: Vec<String> = card_parameters().map(property).collect();
    let (properties, meta) = (properties.join(","), tool_meta(host));
    let one = |description, hints| card((NAME, TITLE, description), &properties, hints, &meta);
    match cards {
        Cards::One => vec![one(DESCRIPTION, "")],
        Cards::Pair => vec![
            one(READ_DESCRIPTION, ",\"annotations\":{\"readOnlyHint\":true}"),
            card(
                (WRITE_NAME, WRITE_TITLE, WRITE_DESCRIPTION),
                WRITE_PROPERTIES,
                ",\"annotations\":{\"destructiveHint\":true}",
                &meta,
            ),
        ],
    }
}

fn card(
    (name, title, description): (&str, &str, &str),
    properties: &str,
    annotations: &str,
    meta: &str,
) -> String {
    format!(
        "{{\"name\":\"{name}\",\"title\":{},\"description\":{},\
         \"inputSchema\":{{\"type\":\"object\",\"properties\":{{{properties}}}}}\
         {annotations}{meta}}}",
        quoted(title),
        quoted(description),
    )
}

/// The `_meta` of a definition, with the members that the host supports.
fn tool_meta(host: &HostProfile) -> String {
    let members: Vec<String> = host
        .tool_meta
        .iter()
        .map(|member| match member {
            ToolMeta::AlwaysLoad => "\"anthropic/alwaysLoad\":true".to_owned(),
            ToolMeta::MaxResultChars(most) => {
                format!("\"anthropic/maxResultSizeChars\":{most}")
            }
        })
        .collect();
    if members.is_empty() {
        return String::new();
    }
    format!(",\"_meta\":{{{}}}", members.join(","))
}

fn property(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        ParameterKind::Text => "string",
        ParameterKind::Flag => "boolean",
        ParameterKind::Count => "integer",
        ParameterKind::Arguments => "object",
    };
    let about = match parameter.name {
        // The example in the description of the tool explains these two parameters.
        "tool" | "args" => String::new(),
        _ => format!(",\"description\":{}", quoted(parameter.about)),
    };
    format!("\"{}\":{{\"type\":\"{kind}\"{about}}}", parameter.name)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_profile::PROFILES;

    /// The maximum size of the definition, in `o200k` tokens.
    const BUDGET: usize = 200;
    const PAIR_BUDGET: usize = 260;

    fn tokens(cards: &[String]) -> usize {
        cards.iter().map(|card| bpe_openai::o200k_base().count(card)).sum()
    }

    #[test]
    fn mcp_definition_costs_at_most_200_tokens() {
        let tokens = tokens(&[definition()]);
        assert!(tokens <= BUDGET, "{tokens} tokens");
    }

    #[test]
    fn mcp_and_mcp_write_cost_at_most_260_tokens() {
        let tokens = tokens(&definitions(Cards::Pair, &UNKNOWN));
        assert!(tokens <= PAIR_BUDGET, "{tokens} tokens");
    }

    #[test]
    fn tool_definitions_are_json_with_an_object_schema() {
        for cards in [Cards::One, Cards::Pair] {
            for host in PROFILES.iter().chain([&UNKNOWN]) {
                for card in definitions(cards, host) {
                    let card: Value = serde_json::from_str(&card).unwrap();
                    assert_eq!(card["inputSchema"]["type"], "object");
                }
            }
        }
        insta::assert_snapshot!(definition());
    }

    #[test]
    fn in_toolset_pair_only_mcp_is_declared_read_only() {
        let cards = definitions(Cards::Pair, HostProfile::named("claude-code"));
        insta::assert_snapshot!(cards.join("\n"));
        assert!(!definition().contains("readOnlyHint"));
    }

    /// The tool searches of hosts compare words, so the description must contain them.
    #[test]
    fn mcp_description_contains_words_of_everyday_queries() {
        for description in [DESCRIPTION, READ_DESCRIPTION] {
            for word in ["read", "file", "send", "message", "sum", "two", "numbers", "issue"] {
                assert!(description.contains(word), "{word}");
            }
        }
    }
}
