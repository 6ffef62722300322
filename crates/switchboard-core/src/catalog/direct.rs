//! Direct tools, which hosts get beside `mcp`: their selection, order and definitions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::pin::Pin;
use super::{Catalog, Resolved};
use crate::config::values::{DirectTools, Pins};
use crate::hidden::strip;
use crate::name::{ServerName, ToolId};
use crate::nesting::{is_deep, shallow};
use crate::render::words::{clean_block, clean_line};
use crate::schema::as_parameters;
use crate::tool_card;

/// The maximum number of direct tools of all servers together. Further tools are found only with
/// `mcp`.
const MOST_TOOLS: usize = 1_000;
const MOST_BYTES: usize = 1024 * 1024;

/// The maximum number of bytes of a definition. A tool with a larger definition is found only with
/// `mcp`.
const LARGEST_DEFINITION: usize = 64 * 1024;

/// The maximum number of bytes of a direct tool's title, and of its description. Longer texts are
/// cut.
const LONGEST_DESCRIPTION: usize = 16 * 1024;
const LONGEST_TITLE: usize = 200;

/// The settings and state that decide which tools are shown.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The setting `directTools`, for servers without a `directTools` of their own.
    pub otherwise: &'a DirectTools,
    /// The tools that searches in this session have found.
    pub found: &'a BTreeSet<ToolId>,
    pub pins: Pins,
}

/// A tool that hosts get under its own name, beside `mcp`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectTool {
    pub id: ToolId,
    pub shown: Arc<str>,
    /// The definition of the tool, as an element of `tools/list`.
    pub definition: String,
    /// Whether the definition declares the tool read-only.
    pub only_reads: bool,
}

/// Direct tools, sorted by server, and within a server in listing order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectList {
    pub tools: Vec<DirectTool>,
    /// How many direct tools are omitted because the list is full.
    pub left_out: usize,
}

impl Catalog {
    /// The direct tools of all servers under these settings.
    pub fn direct(&self, choice: Choice<'_>) -> DirectList {
        let mut list = DirectList::default();
        let mut room = MOST_BYTES;
        for tool in self.tools().filter(|tool| self.is_chosen(tool, choice)) {
            let definition = definition(tool);
            let fits = definition.len() <= LARGEST_DEFINITION.min(room);
            if !fits || list.tools.len() >= MOST_TOOLS {
                list.left_out += 1;
                continue;
            }
            room -= definition.len();
            list.tools.push(DirectTool {
                id: tool.id(),
                shown: Arc::clone(&tool.shown),
                definition,
                only_reads: tool.entry.annotations.only_reads(),
            });
        }
        list
    }

    /// The tools of this server that `directTools` selects.
    pub fn direct_tools_of<'a>(
        &'a self,
        server: &ServerName,
        otherwise: &'a DirectTools,
    ) -> &'a DirectTools {
        self.shelf(server).and_then(|shelf| shelf.direct()).unwrap_or(otherwise)
    }

    fn is_chosen(&self, tool: &Resolved, choice: Choice<'_>) -> bool {
        // A tool that `pins: block` refuses until the user accepts it is not listed either.
        let blocked = choice.pins == Pins::Block && tool.pin != Pin::Same;
        if blocked || is_ours(&tool.shown) {
            return false;
        }
        match self.direct_tools_of(&tool.server, choice.otherwise) {
            DirectTools::None => false,
            DirectTools::All => true,
            DirectTools::Named(names) => {
                let spellings = tool.id().spellings();
                names.iter().any(|name| spellings.contains(name))
            }
            DirectTools::Search => choice.found.contains(&tool.id()),
        }
    }
}

/// Whether Switchboard reserves the name for its own tools in some toolset, such as `mcp_connect`.
/// Names that begin with `mcp__` are not reserved.
fn is_ours(shown: &str) -> bool {
    let shown = shown.to_ascii_lowercase();
    match shown.strip_prefix(tool_card::NAME) {
        Some(rest) => rest.is_empty() || rest.starts_with('_') && !rest.starts_with("__"),
        None => false,
    }
}

impl Resolved {
    /// The definition of the tool as an element of `tools/list`, under its original name.
    pub fn own_definition(&self) -> String {
        let shown = Arc::from(strip(self.entry.name.as_str()));
        definition(&Resolved { shown, ..self.clone() })
    }
}

/// The schema of tools whose own schema nests too deep for hosts.
const ANY_ARGUMENTS: &str = r#"{"type":"object"}"#;

/// The definition under the shown name, with the annotations as the server wrote them, and with the
/// schema if hosts can parse it. The output schema is omitted, because a shortened result would
/// violate it.
fn definition(tool: &Resolved) -> String {
    let Resolved { shown, entry, .. } = tool;
    let annotations = entry.raw_annotations().filter(|raw| raw.starts_with('{'));
    let claimed = annotations.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
    let claimed = claimed.as_ref().and_then(|claimed| claimed.get("title")?.as_str());
    let title = entry.title.as_deref().or(claimed).unwrap_or(entry.name.as_str());
    let about = clean_block(&entry.description, LONGEST_DESCRIPTION);
    let too_deep = is_deep(entry.input_schema());
    let too_deep_to_show = too_deep
        .then(|| "its schema nests too deep and is left out; any arguments pass".to_owned());
    let cautions = tool.cautions().into_iter().chain(too_deep_to_show);
    let cautions: String = cautions.map(|caution| format!("({caution}) ")).collect();
    let description = format!("{cautions}{about}").trim_end().to_owned();
    let mut out = format!(
        "{{\"name\":{},\"title\":{},\"description\":{},\"inputSchema\":{}",
        Value::from(&**shown),
        Value::from(&*clean_line(title, LONGEST_TITLE)),
        Value::from(description),
        if too_deep { Cow::Borrowed(ANY_ARGUMENTS) } else { as_parameters(entry.input_schema()) },
    );
    if let Some(annotations) = annotations {
        out.push_str(",\"annotations\":");
        out.push_str(&shallow(annotations));
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests;
