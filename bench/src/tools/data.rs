//! Reads tools and judged queries from folders: `*.jsonl` files have one tool or query per line,
//! and `*.json` files the response of a server to `tools/list`, named after the server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::catalog::Annotations;

use crate::BenchResult;

/// The folder of everyday queries over nine servers.
#[cfg(test)]
pub(crate) const NATURAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/natural");

/// The folder of the project's own data, which is public.
const OWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/search");

pub(crate) struct ToolData {
    /// The tools by the name of their server, in the order of its list.
    pub(crate) servers: BTreeMap<String, Vec<Tool>>,
    pub(crate) queries: Vec<Query>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tool {
    /// The id of the tool; its server and name if the file has no id.
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) server: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(rename = "inputSchema")]
    pub(crate) input_schema: Value,
    #[serde(default, rename = "annotations")]
    declared: Declared,
}

/// The annotations of a tool; many lists have none.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Declared {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Query {
    pub(crate) query: String,
    /// The ids of the right tools.
    pub(crate) relevant: Vec<String>,
    pub(crate) kind: String,
    /// The arguments that a search would have for the first right tool; `None` if the query has
    /// none.
    #[serde(default)]
    pub(crate) args: Option<Value>,
}

#[derive(Deserialize)]
struct Listed {
    tools: Vec<Tool>,
}

impl ToolData {
    /// Reads these folders, or the project's own data without a folder. A server that is in several
    /// folders is read from the first.
    pub(crate) fn read(folders: &[PathBuf]) -> BenchResult<ToolData> {
        let own = [PathBuf::from(OWN)];
        let mut data = ToolData { servers: BTreeMap::new(), queries: Vec::new() };
        for folder in if folders.is_empty() { &own } else { folders } {
            data.read_folder(folder)?;
        }
        Ok(data)
    }

    fn read_folder(&mut self, folder: &Path) -> BenchResult<()> {
        let mut files: Vec<PathBuf> = fs::read_dir(folder)?
            .map(|file| file.map(|file| file.path()))
            .collect::<Result<_, _>>()?;
        files.sort();
        let known: BTreeSet<String> = self.servers.keys().cloned().collect();
        for file in files {
            let of = |cause| format!("cannot understand `{}`: {cause}", file.display());
            match file.extension().and_then(|ending| ending.to_str()) {
                Some("jsonl") => {
                    for line in fs::read_to_string(&file)?.lines() {
                        self.take_line(line, &known).map_err(of)?;
                    }
                }
                Some("json") => {
                    let listed: Listed =
                        serde_json::from_str(&fs::read_to_string(&file)?).map_err(of)?;
                    let server = file.file_stem().unwrap_or_default().to_string_lossy();
                    for tool in listed.tools {
                        self.take_tool(
                            Tool { server: server.clone().into_owned(), ..tool },
                            &known,
                        );
                    }
                }
                Some(_) | None => {}
            }
        }
        Ok(())
    }

    fn take_line(&mut self, line: &str, known: &BTreeSet<String>) -> serde_json::Result<()> {
        let value: Value = serde_json::from_str(line)?;
        if value.get("query").is_some() {
            self.queries.push(serde_json::from_value(value)?);
        } else {
            self.take_tool(serde_json::from_value(value)?, known);
        }
        Ok(())
    }

    fn take_tool(&mut self, mut tool: Tool, known: &BTreeSet<String>) {
        if known.contains(&tool.server) {
            return;
        }
        if tool.id.is_empty() {
            tool.id = format!("{}/{}", tool.server, tool.name);
        }
        self.servers.entry(tool.server.clone()).or_default().push(tool);
    }

    pub(crate) fn tool_count(&self) -> usize {
        self.servers.values().map(Vec::len).sum()
    }
}

impl Tool {
    pub(crate) fn description(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    pub(crate) fn annotations(&self) -> Annotations {
        Annotations {
            read_only: self.declared.read_only_hint,
            destructive: self.declared.destructive_hint,
            ..Annotations::default()
        }
    }

    /// The definition that a host sends to its model if it lists the tool itself.
    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description(),
            "inputSchema": self.input_schema,
        })
    }

    /// The definition that the server lists, with `readOnlyHint`. If its list has no annotations,
    /// the name of the tool decides whether it is read-only.
    pub(crate) fn listed(&self) -> Value {
        let mut definition = self.definition();
        if self.declared.read_only_hint.unwrap_or_else(|| self.only_looks()) {
            definition["annotations"] = json!({ "readOnlyHint": true });
        } else if let Some(destructive) = self.declared.destructive_hint {
            definition["annotations"] = json!({ "destructiveHint": destructive });
        }
        definition
    }

    /// Whether the name of the tool suggests that it is read-only, for lists without annotations.
    fn only_looks(&self) -> bool {
        const LOOKING: [&str; 7] = ["get", "list", "search", "read", "find", "describe", "show"];
        let lower = self.name.to_ascii_lowercase();
        let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| LOOKING.contains(&word))
    }
}
