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
    ("args", "list of texts", "the arguments of the program, without a shell"),
    ("env", "map of texts", "environment variables of the program, added to the default variables"),
    ("inheritEnv", "boolean", "`true` passes the whole environment of Switchboard to the server"),
    (
        "confine",
        "boolean",
        "`false` lets the server signal and debug other processes, and use `sudo`; see the [guide](../guide/lifecycle.md#confinement)",
    ),
    (
        "cwd",
        "text",
        "the working directory of the server, relative to the project; by default the project's directory",
    ),
    (
        "resolveLauncher",
        "boolean",
        "`false` runs the server through its launcher, such as `npx` or `uvx`; by default, the program that the launcher installed runs without it",
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
        "`true` uses the token that `switchboard token set` stored for the URL, if the entry has no other token",
    ),
    (
        "account",
        "text",
        "a name for one of several accounts at the `url`; each has its own sign-in and token",
    ),
    (
        "oauth",
        "`false` or object",
        "`false` turns the OAuth sign-in off; an object has its [details](../guide/sign-in.md#with-your-own-client-registration)",
    ),
    ("requestHeadersCommand", "object", "a program that returns the headers of each request"),
    ("caFile", "text", "a PEM file with the certificates to trust instead of those of the system"),
    (
        "lifecycle",
        "`lazy`, `eager`, `keep-alive`, `lazy-keep-alive`",
        "when the server runs; `lazy` by default",
    ),
    (
        "idleTimeout",
        "minutes",
        "how long the server may be idle before it is stopped; 0 means without limit; takes precedence over the setting",
    ),
    ("requestTimeoutMs", "milliseconds", "how long a call may take without progress"),
    (
        "startTimeoutMs",
        "milliseconds, 1000 to 300000",
        "how long the start of the server may take; `timeout` is an alias",
    ),
    (
        "protocolVersion",
        "`legacy`, `auto`, `2026-07-28`",
        "the era of the protocol to try first; `auto`, the default, detects it",
    ),
    ("exposeResources", "boolean", "`false` hides the server's resources from the list of tools"),
    (
        "directTools",
        "boolean, `\"search\"` or list of names",
        "the server's tools that are shown beside `mcp` under their own names",
    ),
    ("toolPrefix", "`server`, `short`, `none`, `mcp`", "the prefix of the server's tool names"),
    (
        "includeTools",
        "list of globs",
        "use only these tools, and only the resources whose `read_` tools match",
    ),
    (
        "excludeTools",
        "list of globs",
        "do not use these tools, nor the resources whose `read_` tools match",
    ),
    ("roots", "boolean", "`false` hides the directories that the host works on from the server"),
    ("searchKeywords", "map of lists of words", "additional words by which a search finds a tool"),
    (
        "approveTools",
        "boolean or list of globs",
        "the server's tools that require approval; with `false`, none does",
    ),
    (
        "autoApprove",
        "boolean or list of globs",
        "the server's tools that run without approval, unless its `approveTools` matches them",
    ),
    (
        "debug",
        "boolean",
        "`true` logs the server's messages to standard error, with secrets masked; see the [guide](../guide/server-authors.md#watch-a-server)",
    ),
    (
        "disabled",
        "boolean",
        "`true` shows the server, but never starts it; the same as `enabled: false`",
    ),
    (
        "enabled",
        "boolean",
        "in `.pi/mcp-servers.json`, `true` connects the server at the start, and without `enabled` the server connects on explicit request; in all other files `false` is the same as `disabled: true`",
    ),
    ("name", "text", "a display name of the server; shown in the status and searched"),
    ("description", "text", "a description of the server; shown in the status and searched"),
];

pub(super) fn page() -> Result<String, DocsError> {
    let rows: Vec<&str> = FIELDS.iter().map(|(key, ..)| *key).collect();
    covers("config.rs", &rows, ServerEntry::KEYS)?;
    let mut out = String::from(
        "# Configuration\n\n\
         A configuration file is JSON with comments and trailing commas.\n\
         The root object has `mcpServers` (or `mcp-servers`), `settings` and `imports` (hosts whose files are read, too; not in a project).\n\
         The keys `$schema`, `version`, `name` and `description` of the root are accepted and have no effect.\n\
         JSON Schemas describe the same format: [mcp.schema.json](../mcp.schema.json), and [mcp-servers.schema.json](../mcp-servers.schema.json) for `.pi/mcp-servers.json`; `switchboard config schema` prints both.\n\
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
