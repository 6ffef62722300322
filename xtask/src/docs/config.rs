//! The page about configuration files: every field of a server, then every setting.

use std::fmt::Write;

use switchboard_core::config::diagnostic::DiagnosticKind;
use switchboard_core::config::layers::{ConfigSource, Tier};
use switchboard_core::config::parse::parse;
use switchboard_core::config::server::ServerEntry;

use super::{DocsError, covers, settings};

/// Each field of a server: its key, its values, and its meaning.
const FIELDS: &[(&str, &str, &str)] = &[
    ("command", "text", "the program of a stdio server"),
    ("args", "list of texts", "its arguments, as they are: there is no shell"),
    ("env", "map of texts", "environment variables of the program, added to the default ones"),
    ("inheritEnv", "boolean", "pass it the whole environment"),
    (
        "confine",
        "boolean",
        "`false` lets it signal and debug other processes, and use `sudo`; see the [guide](../guide/lifecycle.md#confinement)",
    ),
    (
        "cwd",
        "text",
        "its working directory, relative to the project; by default the project itself",
    ),
    (
        "resolveLauncher",
        "boolean",
        "`false` keeps `npx`, `uvx` and other launchers running; by default, the program that they install runs without them",
    ),
    (
        "url",
        "text",
        "the URL of a server: `http(s)://`, `ws(s)://`, `sse://`, `http+sse://`, `https+sse://`; any other text is a command line, which is split into words and run",
    ),
    ("headers", "map of texts", "headers of every request to a server at a `url`"),
    (
        "socket",
        "text",
        "the path of a Unix socket on which a server listens, with one message per line",
    ),
    (
        "type",
        "`stdio`, `http`, `streamable-http`, `sse`, `ws`",
        "the transport; takes precedence over the form of `url`",
    ),
    (
        "auth",
        "`false`, text or object",
        "the kind of authentication: `bearer`, `basic`, `api-key`, `oauth`, `custom` (only the `headers`), `false`",
    ),
    ("bearerToken", "text", "a token, sent as `Authorization: Bearer`"),
    ("bearerTokenEnv", "text", "the environment variable that contains the token"),
    (
        "bearerTokenStore",
        "boolean",
        "use the token that `switchboard token set` stored for the URL, if the entry has no other",
    ),
    (
        "account",
        "text",
        "a name for one of several accounts at the `url`; each has its own sign-in and token",
    ),
    ("oauth", "`false` or object", "details of the OAuth sign-in"),
    ("requestHeadersCommand", "object", "a program that returns the headers of each request"),
    ("caFile", "text", "certificates in PEM that replace those of the system"),
    (
        "lifecycle",
        "`lazy`, `eager`, `keep-alive`, `lazy-keep-alive`",
        "when it runs; `lazy` by default",
    ),
    (
        "idleTimeout",
        "minutes",
        "how long it may be idle; 0 means without limit; takes precedence over the setting",
    ),
    ("requestTimeoutMs", "milliseconds", "how long a call may take without progress"),
    (
        "startTimeoutMs",
        "milliseconds, 1000 to 300000",
        "how long its start may take; `timeout` is an alias",
    ),
    (
        "protocolVersion",
        "`legacy`, `auto`, `2026-07-28`",
        "the era of the protocol to try first; `auto`, the default, detects it",
    ),
    ("exposeResources", "boolean", "`false` hides its resources from the list of tools"),
    (
        "directTools",
        "boolean, `\"search\"` or list of names",
        "its tools that are shown beside `mcp` under their own names",
    ),
    ("toolPrefix", "`server`, `short`, `none`, `mcp`", "the prefix of the names of its tools"),
    ("includeTools", "list of globs", "only these tools, and only the resources whose tools match"),
    ("excludeTools", "list of globs", "not these tools, and not the resources that they read"),
    ("roots", "boolean", "`false` does not tell it the directories that the host works on"),
    ("searchKeywords", "map of lists of words", "additional words by which a search finds a tool"),
    (
        "approveTools",
        "boolean or list of globs",
        "its tools that require approval; `false` requires it for none",
    ),
    (
        "autoApprove",
        "boolean or list of globs",
        "its tools that run without approval, unless its `approveTools` lists them",
    ),
    (
        "debug",
        "boolean",
        "`true` logs its messages to standard error, secrets masked; see the [guide](../guide/server-authors.md#watch-a-server)",
    ),
    ("disabled", "boolean", "`true` lists it, but never starts it; the same as `enabled: false`"),
    (
        "enabled",
        "boolean",
        "in `.pi/mcp-servers.json`: `true` connects it at the start, without it the server connects on explicit request; in all other files `false` is `disabled: true`",
    ),
    ("name", "text", "a display name; shown in the status and searched"),
    ("description", "text", "shown beside its name in the status, and searched"),
];

pub(super) fn page() -> Result<String, DocsError> {
    let rows: Vec<&str> = FIELDS.iter().map(|(key, ..)| *key).collect();
    covers("config.rs", &rows, ServerEntry::KEYS)?;
    let mut out = String::from(
        "# Configuration\n\n\
         JSON with comments and trailing commas.\n\
         The root has `mcpServers` (or `mcp-servers`), `settings` and `imports` (hosts whose files are read, too; not in a project). `$schema`, `version`, `name` and `description` are accepted.\n\
         The same as a JSON Schema: [mcp.schema.json](../mcp.schema.json), and [mcp-servers.schema.json](../mcp-servers.schema.json) for `.pi/mcp-servers.json`; `switchboard config schema` prints both.\n\
         [The guide](../guide/configuration.md) lists the files, their precedence, and what a project may set.\n\n\
         ## A server\n\n\
         An entry needs one of `command`, `url` and `socket`.\n\n\
         | field | values | in a project | meaning |\n|---|---|---|---|\n",
    );
    for (key, values, about) in FIELDS {
        let allowed = project_may(&format!(r#"{{"mcpServers":{{"x":{{"{key}":null}}}}}}"#));
        let _ = writeln!(out, "| `{key}` | {values} | {allowed} | {about} |");
    }
    settings::table(&mut out)?;
    Ok(out)
}

/// Whether the parser accepts the key of `text` in a project file, whatever its value.
pub(super) fn project_may(text: &str) -> &'static str {
    let source = ConfigSource { path: ".mcp.json".into(), tier: Tier::Project };
    let forbidden =
        |kind: &DiagnosticKind| matches!(kind, DiagnosticKind::ForbiddenInProject { .. });
    match parse(text, &source).diagnostics.iter().any(|found| forbidden(&found.kind)) {
        true => "no",
        false => "yes",
    }
}
