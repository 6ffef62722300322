//! The features of the server as data: listings, constant results and server-to-client requests.

use std::collections::HashMap;

use rmcp::model::{
    CallToolResult, ElicitationSchema, Prompt, PromptMessage, Resource, ResourceContents,
    ResourceTemplate, Tool,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::dialogue::Dialogue;

#[derive(Debug, Deserialize)]
pub(crate) struct Fixtures {
    pub(crate) tools: Vec<Tool>,
    /// Constant results of tools.
    pub(crate) results: HashMap<String, CallToolResult>,
    /// Elicitations of tools in session-based revisions.
    pub(crate) forms: HashMap<String, ElicitationSchema>,
    /// Input requests of tools and prompts in the stateless revision.
    pub(crate) dialogues: HashMap<String, Dialogue>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    contents: HashMap<String, ResourceContents>,
    pub(crate) prompts: Vec<Prompt>,
    /// Messages in which `{name}` stands for an argument.
    messages: HashMap<String, Value>,
    completions: Vec<String>,
}

impl Fixtures {
    pub(crate) fn load() -> serde_json::Result<Self> {
        serde_json::from_str(include_str!("fixtures.json"))
    }

    pub(crate) fn content(&self, uri: &str) -> Option<ResourceContents> {
        if let Some(content) = self.contents.get(uri) {
            return Some(content.clone());
        }
        let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        let content = ResourceContents::text(data.to_string(), uri);
        Some(content.with_mime_type("application/json"))
    }

    pub(crate) fn filled_in(
        &self,
        prompt: &str,
        arguments: &Map<String, Value>,
    ) -> Option<Vec<PromptMessage>> {
        let mut messages = self.messages.get(prompt)?.clone();
        fill_in(&mut messages, arguments);
        serde_json::from_value(messages).ok()
    }

    pub(crate) fn completions(&self, typed: &str) -> Vec<String> {
        self.completions.iter().filter(|word| word.starts_with(typed)).cloned().collect()
    }
}

fn fill_in(value: &mut Value, arguments: &Map<String, Value>) {
    match value {
        Value::String(text) => {
            for (name, argument) in arguments {
                *text = text.replace(&format!("{{{name}}}"), argument.as_str().unwrap_or_default());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, arguments)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|field| fill_in(field, arguments));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
