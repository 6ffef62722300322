//! The definitions of `mcp` and `mcp_write`: what every context pays for, so every token is counted.

use serde_json::Value;

use crate::host_profile::{HostProfile, ToolMeta, UNKNOWN};
use crate::request::Kind;
use crate::request::{Parameter, card_parameters};

/// The name of the tool; in a pair, of the one that only reads.
pub const NAME: &str = "mcp";

/// The other tool of the pair.
pub const WRITE_NAME: &str = "mcp_write";

/// What a host shows its user in place of the name.
const TITLE: &str = "MCP servers";

/// The everyday words are there for the tool searches of hosts: they find `mcp` by its description.
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

/// The parameters mean what they mean in `mcp`, beside which this card always stands.
const WRITE_PROPERTIES: &str = "\"tool\":{\"type\":\"string\"},\"args\":{\"type\":\"object\"}";

/// Which tools stand for all servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cards {
    /// `mcp` alone.
    One,
    /// `mcp`, through which only tools are reached that declare themselves read-only, and
    /// `mcp_write` for all others.
    Pair,
}

/// The definition of `mcp` alone, for a host of which nothing is known.
pub fn definition() -> String {
    definitions(Cards::One, &UNKNOWN).concat()
}

/// The definitions as JSON. The same in every session and after every restart, so that the host's
/// prompt cache holds.
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

/// The members of `_meta` that the host honours, as a further member of the definition.
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
        Kind::Text => "string",
        Kind::Flag => "boolean",
        Kind::Count => "integer",
        Kind::Arguments => "object",
    };
    let about = match parameter.name {
        // The example in the description of the tool says it.
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

    /// What a host may put into a model's context, in o200k tokens.
    const BUDGET: usize = 200;
    const PAIR_BUDGET: usize = 260;

    fn tokens(cards: &[String]) -> usize {
        cards.iter().map(|card| bpe_openai::o200k_base().count(card)).sum()
    }

    #[test]
    fn one_card_costs_at_most_two_hundred_tokens() {
        let tokens = tokens(&[definition()]);
        assert!(tokens <= BUDGET, "{tokens} tokens");
    }

    #[test]
    fn both_cards_of_a_pair_cost_at_most_260_tokens() {
        let tokens = tokens(&definitions(Cards::Pair, &UNKNOWN));
        assert!(tokens <= PAIR_BUDGET, "{tokens} tokens");
    }

    #[test]
    fn cards_are_json_with_an_object_schema() {
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
    fn only_mcp_of_a_pair_claims_to_be_read_only() {
        let cards = definitions(Cards::Pair, HostProfile::named("claude-code"));
        insta::assert_snapshot!(cards.join("\n"));
        assert!(!definition().contains("readOnlyHint"));
    }

    /// Tool searches of hosts compare words, so the words have to be there.
    #[test]
    fn everyday_queries_share_words_with_the_description() {
        for description in [DESCRIPTION, READ_DESCRIPTION] {
            for word in ["read", "file", "send", "message", "sum", "two", "numbers", "issue"] {
                assert!(description.contains(word), "{word}");
            }
        }
    }
}
