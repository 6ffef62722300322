//! The page about configuration files: every field of a server, then every setting.

use std::fmt::Write;

use switchboard_core::config::diagnostic::DiagnosticKind;
use switchboard_core::config::layers::{ConfigSource, Tier};
use switchboard_core::config::parse::parse;
use switchboard_core::config::server::ServerEntry;

use super::{DocsError, covers, settings};

/// Whether a key does something in this version.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Now,
    /// Read and checked, for a later version.
    Later,
}

impl Effect {
    pub(super) fn mark(self) -> &'static str {
        match self {
            Effect::Now => "",
            Effect::Later => "*no effect yet:* ",
        }
    }
}

struct Field {
    key: &'static str,
    holds: &'static str,
    effect: Effect,
    about: &'static str,
}

const fn now(key: &'static str, holds: &'static str, about: &'static str) -> Field {
    Field { key, holds, effect: Effect::Now, about }
}

const fn later(key: &'static str, holds: &'static str, about: &'static str) -> Field {
    Field { key, holds, effect: Effect::Later, about }
}

const FIELDS: &[Field] = &[
    now("command", "text", "the program of a stdio server"),
    now("args", "list of texts", "its arguments, as they are: there is no shell"),
    now("env", "map of texts", "variables for it, on top of the few that every server gets"),
    now("inheritEnv", "boolean", "pass it the whole environment"),
    now(
        "confine",
        "boolean",
        "`false` lets it signal and debug other processes, and use `sudo`; see the [guide](../guide/lifecycle.md#confinement)",
    ),
    now("cwd", "text", "where it runs, relative to the project; the project itself by default"),
    now(
        "resolveLauncher",
        "boolean",
        "`false` keeps `npx`, `uvx` and the like running; without it, the program that they install runs instead of them",
    ),
    now(
        "url",
        "text",
        "the address of a server: `http(s)://`, `sse://`, `http+sse://`, `https+sse://`; `ws(s)://` is understood and not spoken yet; anything else is a command line, split into words and run",
    ),
    now("headers", "map of texts", "headers of every request to a server at a `url`"),
    now(
        "socket",
        "text",
        "the path of a Unix socket on which a server listens, one message a line",
    ),
    now("type", "`stdio`, `http`, `streamable-http`, `sse`, `ws`", "beats the form of `url`"),
    now(
        "auth",
        "`false`, text or object",
        "how to say who is asking: `bearer`, `basic`, `api-key`, `custom` (the `headers` are all), `false`; `oauth` has no effect yet",
    ),
    now("bearerToken", "text", "a token, sent as `Authorization: Bearer`"),
    now("bearerTokenEnv", "text", "the variable that has the token"),
    now(
        "bearerTokenStore",
        "boolean",
        "take the token that `switchboard token set` keeps for its address, if the entry has no other",
    ),
    now(
        "account",
        "text",
        "which account at the `url`, where you have several: each keeps its own sign-in and token",
    ),
    later("oauth", "`false` or object", "details of signing in with OAuth"),
    now("requestHeadersCommand", "object", "a program that makes the headers of each request"),
    now("caFile", "text", "certificates to trust instead of those of the system, in PEM"),
    now(
        "lifecycle",
        "`lazy`, `eager`, `keep-alive`, `lazy-keep-alive`",
        "when it runs; `lazy` by default",
    ),
    now("idleTimeout", "minutes", "how long it may be idle; 0 means for ever; beats the setting"),
    now("requestTimeoutMs", "milliseconds", "how long a call may take without progress"),
    now(
        "startTimeoutMs",
        "milliseconds, 1000 to 300000",
        "how long its start may take; also written `timeout`",
    ),
    now(
        "protocolVersion",
        "`legacy`, `auto`, `2026-07-28`",
        "which era of the protocol to try first; `auto`, the default, finds out",
    ),
    now("exposeResources", "boolean", "`false` hides its resources from the list of tools"),
    now(
        "directTools",
        "boolean, `\"search\"` or list of names",
        "which of its tools stand beside `mcp` under their own names",
    ),
    now(
        "toolPrefix",
        "`server`, `short`, `none`, `mcp`",
        "what stands before the names of its tools",
    ),
    now(
        "includeTools",
        "list of globs",
        "only these tools, and of its resources those whose tools are among them",
    ),
    now(
        "excludeTools",
        "list of globs",
        "not these tools; a resource goes with the tool that reads it",
    ),
    now("roots", "boolean", "`false` does not tell it the directories that the host works on"),
    now("searchKeywords", "map of lists of words", "words that a tool is found by besides its own"),
    now(
        "approveTools",
        "boolean or list of globs",
        "which of its tools need a yes; `false` asks for none",
    ),
    now(
        "autoApprove",
        "boolean or list of globs",
        "which of its tools run unasked, unless its `approveTools` names them",
    ),
    now(
        "debug",
        "boolean",
        "`true` logs its messages to standard error, secrets masked; see the [guide](../guide/server-authors.md#watch-a-server)",
    ),
    later("trace", "boolean", "accepted"),
    now("disabled", "boolean", "listed and never started; also written `enabled: false`"),
    now(
        "enabled",
        "boolean",
        "in `.pi/mcp-servers.json`: `true` connects it at the start, a missing one waits until it is named; in all other files `false` is `disabled: true`",
    ),
    now("name", "text", "a name for people; shown in the status and searched"),
    now("description", "text", "shown beside its name in the status, and searched"),
];

pub(super) fn page() -> Result<String, DocsError> {
    let rows: Vec<&str> = FIELDS.iter().map(|field| field.key).collect();
    covers("config.rs", &rows, ServerEntry::KEYS)?;
    let mut out = String::from(
        "# Configuration\n\n\
         JSON with comments and trailing commas.\n\
         The root has `mcpServers` (or `mcp-servers`), `settings`, `imports` (the hosts whose files are read, too; not in a project), and `$schema`, `version`, `name` and `description`, which are accepted.\n\
         The same as a JSON Schema: [mcp.schema.json](../mcp.schema.json), and [mcp-servers.schema.json](../mcp-servers.schema.json) for `.pi/mcp-servers.json`; `switchboard config schema` prints both.\n\
         [The guide](../guide/configuration.md) says where the files lie, which one wins and what a project may say.\n\n\
         ## A server\n\n\
         One of `command`, `url` and `socket` is needed.\n\n\
         | field | holds | in a project | meaning |\n|---|---|---|---|\n",
    );
    for field in FIELDS {
        let allowed = project_may(&format!(r#"{{"mcpServers":{{"x":{{"{}":null}}}}}}"#, field.key));
        let _ = writeln!(
            out,
            "| `{}` | {} | {allowed} | {}{} |",
            field.key,
            field.holds,
            field.effect.mark(),
            field.about
        );
    }
    settings::table(&mut out)?;
    Ok(out)
}

/// Whether the parser lets a project file have the key that `text` has, whatever its value.
pub(super) fn project_may(text: &str) -> &'static str {
    let source = ConfigSource { path: ".mcp.json".into(), tier: Tier::Project };
    let forbidden =
        |kind: &DiagnosticKind| matches!(kind, DiagnosticKind::ForbiddenInProject { .. });
    match parse(text, &source).diagnostics.iter().any(|found| forbidden(&found.kind)) {
        true => "no",
        false => "yes",
    }
}
