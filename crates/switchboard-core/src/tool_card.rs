//! The definition of the `mcp` tool: what every context pays for, so every token is counted.

use crate::request::Kind;
use crate::request::{Parameter, card_parameters};

/// The name of the tool.
pub const NAME: &str = "mcp";

const DESCRIPTION: &str = "All MCP servers behind one tool. \
    First mcp({search: \"create issue\"}), then mcp({tool: \"github_create_issue\", args: {…}}). \
    mcp({}) shows servers and more options.";

/// The whole definition as JSON. A constant, so it is the same in every session and after every
/// restart, and the host's prompt cache holds.
pub fn definition() -> String {
    let mut card = String::from("{\"name\":\"mcp\",\"description\":");
    card.push_str(&quoted(DESCRIPTION));
    card.push_str(",\"inputSchema\":{\"type\":\"object\",\"properties\":{");
    for (index, parameter) in card_parameters().enumerate() {
        if index > 0 {
            card.push(',');
        }
        card.push_str(&property(parameter));
    }
    card.push_str("}}}");
    card
}

fn property(parameter: &Parameter) -> String {
    let kind = match parameter.kind {
        Kind::Text => "string",
        Kind::Flag => "boolean",
        Kind::Count => "integer",
        Kind::Arguments => "object",
    };
    format!(
        "\"{}\":{{\"type\":\"{kind}\",\"description\":{}}}",
        parameter.name,
        quoted(parameter.about)
    )
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a host may put into a model's context, in o200k tokens.
    const BUDGET: usize = 200;

    #[test]
    fn the_card_costs_at_most_two_hundred_tokens() {
        let tokens = bpe_openai::o200k_base().count(&definition());
        assert!(tokens <= BUDGET, "{tokens} tokens");
    }

    #[test]
    fn the_card_is_valid_json_with_an_object_schema() {
        let card: serde_json::Value = serde_json::from_str(&definition()).unwrap();
        assert_eq!(card["name"], NAME);
        assert_eq!(card["inputSchema"]["type"], "object");
        insta::assert_snapshot!(definition());
    }
}
