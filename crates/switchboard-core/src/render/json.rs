//! Replies and failures as JSON for programs. The structure is stable.

use serde_json::{Map, Value, json};

use crate::catalog::Catalog;
use crate::catalog::account::Account;
use crate::catalog::pin::DriftCount;
use crate::failure::{Failure, Hint};
use crate::hidden;
use crate::reply::{
    Description, Output, Overview, Reply, SearchHit, ServerLine, ToolLine, ToolPage,
};

/// A reply as JSON.
pub fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Status(overview) => status(overview),
        Reply::Tools(page) | Reply::Connected(page) => {
            tool_page(page, page.tools.iter().map(tool).collect())
        }
        Reply::Disconnected { servers } => json!({ "disconnected": servers }),
        Reply::SignInBegun { server, link } => {
            json!({ "server": server, "url": link.as_str() })
        }
        Reply::SignedIn { server, scopes } => {
            json!({ "server": server, "signedIn": true, "scopes": scopes })
        }
        Reply::Found(page) => json!({
            "total": page.total,
            "offset": page.offset,
            "next": page.next,
            "hits": page.hits.iter().map(hit).collect::<Vec<_>>(),
            "denied": page.denied,
            "notListed": page.not_listed,
            "pending": page.pending,
        }),
        Reply::Described(description) => Value::Object(described(description)),
        Reply::Instructions { server, text } => {
            json!({ "server": server, "instructions": text })
        }
        Reply::Output(output) => called(output),
        Reply::Stored { id, page } => json!({
            "result": id,
            "text": page.text(),
            "total": page.total,
            "next": page.next,
        }),
        Reply::Resources(resources) => {
            let rows = resources.iter().map(|(server, resource)| {
                json!({
                    "server": server,
                    "uri": resource.uri,
                    "name": resource.name,
                    "description": resource.description,
                    "mimeType": resource.mime_type,
                })
            });
            json!({ "resources": rows.collect::<Vec<_>>() })
        }
        Reply::Prompts(prompts) => {
            let rows = prompts.iter().map(|(server, prompt)| {
                let arguments = prompt.arguments.iter().map(|argument| {
                    json!({
                        "name": argument.name,
                        "description": argument.description,
                        "required": argument.required,
                    })
                });
                json!({
                    "server": server,
                    "name": prompt.name,
                    "description": prompt.description,
                    "arguments": arguments.collect::<Vec<_>>(),
                })
            });
            json!({ "prompts": rows.collect::<Vec<_>>() })
        }
    }
}

/// A page of tools as JSON, each tool with the fields of `describe`.
pub fn described_tools(page: &ToolPage, catalog: &Catalog) -> Value {
    let row = |line: &ToolLine| match catalog.shown(&line.shown) {
        Some(known) => described(&known.describe()),
        None => tool(line),
    };
    tool_page(page, page.tools.iter().map(row).collect())
}

fn tool_page(page: &ToolPage, tools: Vec<Map<String, Value>>) -> Value {
    json!({
        "tools": tools,
        "denied": page.denied,
        "total": page.total,
        "offset": page.offset,
        "next": page.next,
        "notListed": page.not_listed,
        "pending": page.pending,
    })
}

fn described(description: &Description) -> Map<String, Value> {
    let mut value = tool(&description.line);
    value.insert("title".into(), json!(description.title));
    value.insert("signature".into(), json!(description.signature));
    value.insert("inputSchema".into(), parsed(Some(&description.input_schema)));
    value.insert("outputSchema".into(), parsed(description.output_schema.as_deref()));
    value.insert("annotations".into(), parsed(description.annotations.as_deref()));
    if let Some(pattern) = &description.denied {
        value.insert("deniedBy".into(), json!(pattern));
    }
    value
}

/// The status of all servers as JSON.
pub fn status(overview: &Overview) -> Value {
    json!({
        "servers": overview.servers.iter().map(server).collect::<Vec<_>>(),
        "tools": overview.tools,
        "connected": overview.connected,
        "stale": overview.stale,
        "mistakes": overview.mistakes,
    })
}

/// The status as JSON, with token costs. A server whose tools are unknown has no cost.
pub fn status_with_tokens(overview: &Overview, account: &Account) -> Value {
    let mut value = status(overview);
    let lines = value.get_mut("servers").and_then(Value::as_array_mut);
    for (line, server) in lines.into_iter().flatten().zip(&overview.servers) {
        line["tokens"] = json!(account.servers.get(&server.name).map(|cost| cost.tokens));
    }
    value["tokens"] = json!({
        "card": account.card,
        "toolset": account.toolset.as_str(),
        "shown": account.shown.tokens,
        "direct": account.direct().tokens,
        "saved": account.saved(),
        "notListed": account.not_listed,
        "encoding": "o200k",
        "estimated": true,
    });
    value
}

fn server(line: &ServerLine) -> Value {
    let mut value = json!({
        "name": line.name,
        "status": line.status.as_str(),
        "tools": line.tools,
        "resources": line.resources,
        "lifecycle": line.lifecycle.as_str(),
        "trust": line.trust.as_str(),
    });
    if let Some(failure) = &line.failure {
        value["failure"] = json!({ "agoMs": failure.ago.as_millis() as u64, "cause": hidden::strip(&failure.cause) });
    }
    if let Some(underway) = line.underway {
        let since = underway.since.as_millis() as u64;
        value["stage"] = json!({ "name": underway.stage.as_str(), "forMs": since });
    }
    if line.denied > 0 {
        value["denied"] = json!(line.denied);
    }
    if !line.drift.is_none() {
        let DriftCount { changed, new, unknown } = line.drift;
        value["drift"] = json!({ "changed": changed, "new": new, "unverified": unknown });
    }
    value
}

fn tool(line: &ToolLine) -> Map<String, Value> {
    let mut value = Map::new();
    value.insert("name".into(), json!(line.shown));
    value.insert("server".into(), json!(line.server));
    value.insert("tool".into(), json!(line.tool));
    value.insert("description".into(), json!(line.description));
    if let Some(mark) = line.pin.mark() {
        value.insert("pin".into(), json!(mark));
    }
    if let Some(server) = &line.claims {
        value.insert("prefixOf".into(), json!(server));
    }
    value
}

fn hit(hit: &SearchHit) -> Value {
    let mut value = tool(&hit.line);
    let description = value.shift_remove("description");
    value.insert("score".into(), json!(hit.score));
    value.insert("signature".into(), json!(hit.signature));
    value.insert("description".into(), description.unwrap_or_default());
    Value::Object(value)
}

fn called(output: &Output) -> Value {
    let mut content = String::new();
    output.content.write_content(&mut content);
    let mut value = json!({
        "content": parsed(Some(&content)),
        "isError": output.content.is_error(),
        "server": output.server,
        "tool": output.name,
    });
    if let Some(structured) = output.content.structured()
        && output.content.selected().is_none()
    {
        value["structuredContent"] = parsed(Some(structured));
    }
    if let Some(result) = &output.result {
        value["result"] = json!(result);
    }
    value
}

/// A failure as JSON.
pub fn failure(failure: &Failure) -> Value {
    json!({
        "error": {
            "code": failure.code.as_str(),
            "message": hidden::strip(&failure.to_string()),
            "hints": failure.hints.iter().map(hint).collect::<Vec<_>>(),
        }
    })
}

fn hint(hint: &Hint) -> Value {
    match hint {
        Hint::Unlock => json!({ "unlock": "keyring" }),
        Hint::Replace => json!({ "replace": true }),
        hint => json!(hint),
    }
}

/// The value of a JSON text; null if the text cannot be parsed.
fn parsed(json: Option<&str>) -> Value {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}
