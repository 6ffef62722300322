//! The definitions of the granular tools, each a row of one table.

use serde_json::{Map, Value, json};

use self::ParameterKind::{Count, Flag, Object, Text, Texts};

/// One of the granular tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    Connect,
    Disconnect,
    ListConnections,
    ListTools,
    Call,
    ListResources,
    ReadResource,
    ReloadConfig,
    RegisterHandler,
    Search,
}

pub(super) struct Card {
    pub(super) tool: Tool,
    pub(super) name: &'static str,
    about: &'static str,
    pub(super) parameters: &'static [Parameter],
}

pub(super) struct Parameter {
    pub(super) name: &'static str,
    kind: ParameterKind,
    need: ParameterNeed,
    about: &'static str,
}

enum ParameterKind {
    Text,
    Count,
    Flag,
    Object,
    Texts,
}

#[derive(PartialEq, Eq)]
enum ParameterNeed {
    Required,
    Optional,
}

const fn required(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, kind, need: ParameterNeed::Required, about }
}

const fn optional(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, kind, need: ParameterNeed::Optional, about }
}

pub(super) const CARDS: &[Card] = &[
    Card {
        tool: Tool::Connect,
        name: "mcp_connect",
        about: "Connect an MCP server. One that is not configured needs the user's approval.",
        parameters: &[
            required("id", Text, "Letters, digits, _ and -"),
            required("url", Text, "http://, https:// or sse:// address, or a command line"),
            optional("type", Text, "stdio, http, streamable-http, sse or ws"),
            optional("timeout", Count, "Milliseconds, 1000 to 300000"),
        ],
    },
    Card {
        tool: Tool::Disconnect,
        name: "mcp_disconnect",
        about: "Close a connection.",
        parameters: &[required("id", Text, "Connection")],
    },
    Card {
        tool: Tool::ListConnections,
        name: "mcp_list_connections",
        about: "List the connections, and the servers that could be connected.",
        parameters: &[],
    },
    Card {
        tool: Tool::ListTools,
        name: "mcp_list_tools",
        about: "List the tools of a connection, or of all that are up.",
        parameters: &[optional("id", Text, "Connection")],
    },
    Card {
        tool: Tool::Call,
        name: "mcp_call_tool",
        about: "Call a tool of a connection.",
        parameters: &[
            required("connection_id", Text, "Connection"),
            required("tool_name", Text, "Tool"),
            optional("arguments", Object, "Arguments of the tool"),
        ],
    },
    Card {
        tool: Tool::ListResources,
        name: "mcp_list_resources",
        about: "List the resources of a connection.",
        parameters: &[required("id", Text, "Connection")],
    },
    Card {
        tool: Tool::ReadResource,
        name: "mcp_read_resource",
        about: "Read a resource of a connection.",
        parameters: &[
            required("connection_id", Text, "Connection"),
            required("uri", Text, "Resource"),
        ],
    },
    Card {
        tool: Tool::ReloadConfig,
        name: "mcp_reload_config",
        about: "Read the configuration files again and connect the servers that they turn on.",
        parameters: &[optional("disconnect_existing", Flag, "Close the present connections first")],
    },
    Card {
        tool: Tool::RegisterHandler,
        name: "mcp_register_notification_handler",
        about: "Be told of notifications of servers, with the next answers.",
        parameters: &[
            optional("connection_id", Text, "Only of this connection"),
            optional(
                "types",
                Texts,
                "Only of these: tools/list_changed, resources/list_changed, prompts/list_changed, \
                 logging/setLevel, progress, cancelled, resources/updated",
            ),
            optional("description", Text, "What it is for"),
        ],
    },
    Card {
        tool: Tool::Search,
        name: "mcp_search",
        about: "Find tools of all servers by what they do.",
        parameters: &[
            required("query", Text, "Words"),
            optional("limit", Count, "Hits of a page"),
            optional("offset", Count, "Hits to skip"),
        ],
    },
];

impl Card {
    /// The definition of this granular tool, as JSON.
    pub(super) fn definition(&self) -> String {
        let properties: Map<String, Value> =
            self.parameters.iter().map(Parameter::schema).collect();
        let required = self.parameters.iter().filter(|known| known.need == ParameterNeed::Required);
        let required: Vec<&str> = required.map(|known| known.name).collect();
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        json!({ "name": self.name, "description": self.about, "inputSchema": schema }).to_string()
    }
}

impl Parameter {
    fn schema(&self) -> (String, Value) {
        let mut schema = match self.kind {
            Text => json!({ "type": "string" }),
            Count => json!({ "type": "integer" }),
            Flag => json!({ "type": "boolean" }),
            Object => json!({ "type": "object" }),
            Texts => json!({ "type": "array", "items": { "type": "string" } }),
        };
        schema["description"] = self.about.into();
        (self.name.to_owned(), schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granular_tools_list_their_parameters() {
        let shown = CARDS.iter().map(|card| {
            let parameters = card.parameters.iter().map(|known| match known.need {
                ParameterNeed::Required => known.name.to_owned(),
                ParameterNeed::Optional => format!("{}?", known.name),
            });
            format!("{}({})", card.name, parameters.collect::<Vec<_>>().join(", "))
        });
        insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"), @r"
        mcp_connect(id, url, type?, timeout?)
        mcp_disconnect(id)
        mcp_list_connections()
        mcp_list_tools(id?)
        mcp_call_tool(connection_id, tool_name, arguments?)
        mcp_list_resources(id)
        mcp_read_resource(connection_id, uri)
        mcp_reload_config(disconnect_existing?)
        mcp_register_notification_handler(connection_id?, types?, description?)
        mcp_search(query, limit?, offset?)
        ");
    }

    #[test]
    fn granular_tool_definition_has_an_object_input_schema() {
        let card = CARDS.iter().find(|card| card.tool == Tool::Call).unwrap();
        insta::assert_snapshot!(card.definition(), @r#"{"name":"mcp_call_tool","description":"Call a tool of a connection.","inputSchema":{"type":"object","properties":{"connection_id":{"type":"string","description":"Connection"},"tool_name":{"type":"string","description":"Tool"},"arguments":{"type":"object","description":"Arguments of the tool"}},"required":["connection_id","tool_name"]}}"#);
    }
}
