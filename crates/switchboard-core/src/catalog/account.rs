//! Estimates how many tokens tool definitions cost a model before its first call: the definitions
//! that the host gets, and those of all tools if they were listed directly.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Catalog, Entry, EntryKind};
use crate::config::values::Toolset;
use crate::name::ServerName;
use crate::{tokens, tool_card};

/// Token costs of definitions: [estimates](tokens::about) for the tokenizer `o200k`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The tokens of the definition of `mcp`.
    pub card: usize,
    pub toolset: Toolset,
    /// The cost of all definitions that the host gets with this toolset.
    pub shown: Cost,
    /// The cost of the tools of each active server that was listed.
    pub servers: BTreeMap<ServerName, Cost>,
    /// Active servers that were never listed.
    pub not_listed: Vec<ServerName>,
}

/// A number of tools, and the tokens that their definitions cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    pub tools: usize,
    pub tokens: usize,
}

impl Account {
    /// Computes the costs. `shown` are the definitions that the host gets with this toolset.
    pub fn of(catalog: &Catalog, toolset: Toolset, shown: &[String]) -> Account {
        let listed = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let listed = listed.filter_map(|(server, shelf)| Some((server, shelf.listing()?)));
        let costs = listed.map(|(server, listing)| {
            // Resources are not counted: without Switchboard, a host gets no tools for them.
            let tools = listing.entries.iter().filter(|entry| entry.kind == EntryKind::Tool);
            (server.clone(), tools.map(|entry| tokens_of_entry(entry)).collect())
        });
        Account {
            card: tokens_of_definition(&tool_card::definition()),
            toolset,
            shown: shown.iter().map(|definition| tokens_of_definition(definition)).collect(),
            servers: costs.collect(),
            not_listed: catalog.not_listed_yet(),
        }
    }

    /// The cost if a host lists all tools directly.
    pub fn direct(&self) -> Cost {
        self.servers.values().fold(Cost::default(), |sum, cost| Cost {
            tools: sum.tools + cost.tools,
            tokens: sum.tokens + cost.tokens,
        })
    }

    /// The tokens that the toolset saves compared with listing all tools directly. The number is
    /// negative if the toolset costs more, and `None` if no server was listed.
    pub fn saved(&self) -> Option<i64> {
        let tokens = |cost: Cost| i64::try_from(cost.tokens).unwrap_or(i64::MAX);
        (!self.servers.is_empty()).then(|| tokens(self.direct()) - tokens(self.shown))
    }
}

impl FromIterator<usize> for Cost {
    /// Adds up the token counts of single tools.
    fn from_iter<T: IntoIterator<Item = usize>>(tools: T) -> Cost {
        tools.into_iter().fold(Cost::default(), |sum, tokens| Cost {
            tools: sum.tools + 1,
            tokens: sum.tokens + tokens,
        })
    }
}

fn tokens_of_entry(entry: &Entry) -> usize {
    tokens_of(entry.name.as_str(), &entry.description, entry.input_value())
}

fn tokens_of_definition(definition: &str) -> usize {
    let mut tool: Value = serde_json::from_str(definition).unwrap_or_default();
    let schema = tool.get_mut("inputSchema").map(Value::take).unwrap_or_default();
    let text = |key: &str| tool.get(key).and_then(Value::as_str).unwrap_or_default();
    tokens_of(text("name"), text("description"), schema)
}

/// The estimated tokens of a tool: its name, description and schema as compact JSON, which hosts
/// pass on to the model.
fn tokens_of(name: &str, description: &str, schema: Value) -> usize {
    let sent = json!({ "name": name, "description": description, "inputSchema": schema });
    tokens::about(&sent.to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;
    use crate::catalog::{Listing, ListingPolicy, RawListing, Shelf, Standing};
    use crate::config::values::ToolPrefix;

    /// A listing with one tool and one resource.
    fn listing(server: &ServerName) -> Arc<Listing> {
        let raw = |value: Value| RawValue::from_string(value.to_string()).unwrap();
        let tool = json!({
            "name": "read_file",
            "title": "This is not sent",
            "description": "Read the complete contents of a file.",
            "inputSchema": { "type": "object", "properties": { "path": { "type": "string" } } },
            "annotations": { "readOnlyHint": true },
        });
        let resource = json!({ "uri": "demo://notes", "name": "notes" });
        let raw = RawListing {
            tools: vec![raw(tool)],
            resources: vec![raw(resource)],
            ..RawListing::default()
        };
        let policy = ListingPolicy { max_tools: 10, ..ListingPolicy::default() };
        Arc::new(Listing::build(server.clone(), &raw, &policy))
    }

    #[test]
    fn token_costs_are_known_only_for_listed_servers() {
        let name = |name: &str| ServerName::new(name).unwrap();
        let shelf = |standing| Shelf::new(ToolPrefix::default(), standing);
        let files = name("files");
        let catalog = Catalog::new(BTreeMap::from([
            (files.clone(), shelf(Standing::Active).with_listing(listing(&files))),
            (name("off"), shelf(Standing::Disabled).with_listing(listing(&name("off")))),
            (name("new"), shelf(Standing::Active)),
        ]));
        let sent = r#"{"name":"read_file","description":"Read the complete contents of a file.","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}"#;
        let expected = Cost { tools: 1, tokens: tokens::about(sent) };
        let account = Account::of(&catalog, Toolset::Proxy, &[tool_card::definition()]);
        assert_eq!(account.servers, BTreeMap::from([(files, expected)]));
        assert_eq!(account.not_listed, [name("new")]);
        assert_eq!(account.direct(), expected);
        assert_eq!(account.shown, Cost { tools: 1, tokens: account.card });
        assert_eq!(account.saved(), Some(expected.tokens as i64 - account.card as i64));
        assert!(account.saved() < Some(0), "one small tool is cheaper than the card");
    }
}
