//! The table of settings, with the defaults that the program has.

use std::fmt::Write;

use serde_json::Value;
use switchboard_core::config::layers::Config;
use switchboard_core::config::settings::SettingsEntry;
use switchboard_core::config::show;

use super::config::project_may;
use super::{DocsError, covers};

/// Each setting: its key, and its meaning.
const SETTINGS: &[(&str, &str)] = &[
    ("toolPrefix", "the prefix of tool names: `server`, `short`, `none`, `mcp`"),
    ("idleTimeout", "minutes until an idle `lazy` server is stopped; 0 means never"),
    ("requestTimeoutMs", "how long a call may take without progress"),
    ("startTimeoutMs", "how long a start may take, from 1000 to 300000"),
    (
        "directTools",
        "the tools that are shown beside `mcp` under their own names; the entry of a server takes precedence",
    ),
    ("freezeDirectTools", "show a client the same direct tools until it disconnects"),
    ("warnOnLargeDirectTools", "warn when `serve` starts with 75 or more direct tools"),
    (
        "toolset",
        "the tools that hosts see: `auto`, `mcp` or the pair `mcp` and `mcp_write` by [host](hosts.md); `proxy`, `mcp` alone; `pair`; `direct`, also all tools of all servers; or `granular`, separate tools for connecting, listing, calling and reading",
    ),
    (
        "searchCalls",
        "let a search with arguments call the tool that clearly matches, if the tool only reads or only adds, or if you are asked and approve the call",
    ),
    ("digest", "name servers and tools in the `instructions` that a host passes to its model"),
    (
        "advertiseResources",
        "offer resources to hosts: `auto`, unless the [host](hosts.md) adds its own tools for resources; `on`; `off`",
    ),
    ("firstListing", "connect servers without a cached listing once, in the background"),
    (
        "approve",
        "which tools require approval: `destructive`, `writes` (the default of the granular toolset), `all`, `none`",
    ),
    (
        "approveTools",
        "globs of tools that also require approval, or `true` for all tools; a server's own `approveTools` replaces it",
    ),
    ("allow", "patterns of tools that run without approval; the lists of all files are combined"),
    (
        "deny",
        "patterns of tools that are never called; `deny` takes precedence over every other rule",
    ),
    ("adHocConnections", "connections that a model requests: `ask`, `allow`, `off`"),
    ("pins", "what happens to a tool that changed since it was pinned: `off`, `warn`, `block`"),
    ("autoAuth", "let a `call` on a terminal start the sign-in that its server requires"),
    (
        "oauthCredentialStore",
        "where tokens are stored: `auto`, the keyring of the system or else a file; `keyring`; `file`; `encrypted-file`",
    ),
    ("sampling", "pass sampling requests of servers to the host"),
    ("elicitation", "pass elicitation requests of servers to the host"),
    ("mcpFooterStatus", "what Pi shows of the servers in its footer: `off`, `compact` or `full`"),
    ("showStatusIcon", "show an icon before the servers in Pi's footer"),
    ("notifyOnStartupConnect", "show in Pi which servers were connected at the start"),
    ("toolResultRendering", "how Pi shows the result of a tool: `compact` or `boxed`"),
    (
        "collapsedResultLines",
        "how many lines of a result Pi shows until it is expanded, from 1 to 3; by default 1, or 3 if `boxed`",
    ),
    ("env", "environment variables that every server and every launcher, such as `npx`, gets"),
    (
        "passEnv",
        "environment variables of Switchboard that every server and launcher gets, for example `HTTPS_PROXY`, `NODE_EXTRA_CA_CERTS`",
    ),
    ("outputGuard", "how much text of a result a model sees; `false` turns the limit off"),
    (
        "maxFrameBytes",
        "the largest message that is read; also the limit for all lists of one server together",
    ),
    ("maxTools", "the maximum number of tools of one server"),
    ("maxPages", "the maximum number of pages of one `tools/list` or other list"),
];

pub(super) fn table(out: &mut String) -> Result<(), DocsError> {
    let rows: Vec<&str> = SETTINGS.iter().map(|(key, _)| *key).collect();
    covers("settings.rs", &rows, SettingsEntry::KEYS)?;
    out.push_str(
        "\n## Settings\n\n\
         | setting | default | in a project | meaning |\n|---|---|---|---|\n",
    );
    let shown = show::config(&Config::default());
    for (key, about) in SETTINGS {
        let default = match &shown["settings"][key] {
            Value::Null => "–".to_owned(),
            Value::String(word) => format!("`{word}`"),
            other => format!("`{other}`"),
        };
        let allowed = project_may(&format!(r#"{{"settings":{{"{key}":null}}}}"#));
        let _ = writeln!(out, "| `{key}` | {default} | {allowed} | {about} |");
    }
    Ok(())
}
