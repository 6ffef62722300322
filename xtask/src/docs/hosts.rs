//! The page about hosts: the table of profiles that the program uses.

use std::fmt::Write;

use switchboard_core::content::MediaForm;
use switchboard_core::host_profile::{
    ClientName, HeadlessAnswer, HostProfile, PROFILES, ToolLoading, ToolMeta, UNKNOWN,
};
use switchboard_core::render::words::thousands;

use super::DocsError;

pub(super) fn page() -> Result<String, DocsError> {
    let mut out = String::from(
        "# Host profiles\n\n\
         Switchboard recognises a host by `clientInfo.name`, or by `switchboard serve --host NAME`, which takes \
         precedence.\n\
         [The guide](../guide/hosts.md) describes how to connect a host, and the behaviour of each host that \
         Switchboard cannot change.\n\n\
         | host | version tried | `clientInfo.name` | tools shown | loaded | page of a result | \
         resources offered | headless elicitation | other |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for profile in PROFILES.iter().chain([&UNKNOWN]) {
        let _ = writeln!(out, "{}", row(profile));
    }
    out.push_str(
        "\n*Tools shown*: hosts that allow or refuse calls by `readOnlyHint` get two tools. `mcp` calls only tools \
         that declare `readOnlyHint: true`; `mcp_write` calls all tools.\n\
         Clients of revision 2026-07-28 over HTTP share one session and get `mcp` alone, unless \
         `toolset` is `pair`.\n\
         *Loaded*: when the definitions are in the model's prompt.\n\
         *Page of a result*: the number of bytes up to which the text of a result is not cut; `outputGuard.maxBytes` \
         takes precedence if you set it to another value than 51,200.\n\
         *Resources offered*: Switchboard offers no resources to a host that adds its own tools for resources, \
         because `mcp` can read resources, too; `advertiseResources` takes precedence.\n",
    );
    Ok(out)
}

fn row(profile: &HostProfile) -> String {
    let client = match profile.client {
        ClientName::Exactly(name) => format!("`{name}`"),
        ClientName::StartsWith(name) => format!("`{name}…`"),
        ClientName::None => "–".to_owned(),
    };
    let tools = if profile.wants_pair() { "`mcp`, `mcp_write`" } else { "`mcp`" };
    let loaded = match profile.loading {
        ToolLoading::FromTheStart => "from the start",
        ToolLoading::DeferredUnlessMarked => "from the start, by `anthropic/alwaysLoad`",
        ToolLoading::Deferred => "by the host's tool search",
    };
    let page = profile.result_bytes.map_or("51,200".to_owned(), thousands);
    let resources = match profile.resource_tools {
        None => "yes".to_owned(),
        Some(tokens) => format!("no: {tokens} tokens"),
    };
    let elicitation = match profile.headless_elicitation {
        HeadlessAnswer::Cancel => "cancelled",
        HeadlessAnswer::Decline => "declined",
        HeadlessAnswer::CannotAsk => "not offered",
    };
    let HostProfile { name, title, evidence, .. } = profile;
    format!(
        "| `{name}` ({title}) | {evidence} | {client} | {tools} | {loaded} | {page} | {resources} | \
         {elicitation} | {} |",
        other(profile)
    )
}

fn other(profile: &HostProfile) -> String {
    let mut facts: Vec<String> = profile
        .tool_meta
        .iter()
        .filter_map(|meta| match meta {
            ToolMeta::AlwaysLoad => None,
            ToolMeta::MaxResultChars(most) => {
                Some(format!("`anthropic/maxResultSizeChars: {most}`"))
            }
        })
        .collect();
    let further = [
        (profile.preselects, "approval forms preselect Allow once"),
        (profile.images == MediaForm::Stored, "images go to files"),
        (profile.audio == MediaForm::Stored, "audio goes to files"),
        (profile.closes_schemas, "adds `additionalProperties: false`"),
    ];
    facts.extend(further.iter().filter(|(holds, _)| *holds).map(|(_, fact)| (*fact).to_owned()));
    if facts.is_empty() { "–".to_owned() } else { facts.join("; ") }
}
