//! The table of settings, with the defaults that the program has.

use std::fmt::Write;
use std::time::Duration;

use switchboard_core::config::settings::{Settings, SettingsEntry};
use switchboard_core::config::values::{DirectTools, IdleTimeout, OutputGuard, ToolRule};

use super::config::{Effect, project_may};
use super::{DocsError, covers};

struct Setting {
    key: &'static str,
    effect: Effect,
    default: fn(&Settings) -> String,
    about: &'static str,
}

const fn now(key: &'static str, default: fn(&Settings) -> String, about: &'static str) -> Setting {
    Setting { key, effect: Effect::Now, default, about }
}

const fn later(
    key: &'static str,
    default: fn(&Settings) -> String,
    about: &'static str,
) -> Setting {
    Setting { key, effect: Effect::Later, default, about }
}

const SETTINGS: &[Setting] = &[
    now(
        "toolPrefix",
        |s| word(s.tool_prefix),
        "what stands before the names of tools: `server`, `short`, `none`, `mcp`",
    ),
    now(
        "idleTimeout",
        |s| idle(s.idle_timeout),
        "minutes until an idle `lazy` server is stopped; 0 means never",
    ),
    now(
        "requestTimeoutMs",
        |s| millis(s.request_timeout),
        "how long a call may take without progress",
    ),
    now(
        "startTimeoutMs",
        |s| millis(s.start_timeout),
        "how long a start may take, from 1000 to 300000",
    ),
    now(
        "directTools",
        |s| direct(&s.direct_tools),
        "which tools stand beside `mcp` under their own names, where a server's entry says nothing",
    ),
    now(
        "freezeDirectTools",
        |s| word(s.freeze_direct_tools),
        "keep what a client was shown first for as long as it stays",
    ),
    now(
        "warnOnLargeDirectTools",
        |s| word(s.warn_on_large_direct_tools),
        "say so when `serve` starts with 75 tools or more beside `mcp`",
    ),
    now(
        "toolset",
        |s| word(s.toolset),
        "what hosts are shown: `auto`, `mcp` or the pair `mcp` and `mcp_write` as the [host](hosts.md) has it; `proxy`, `mcp` alone; `pair`; `direct`, all tools beside it; or `granular`, a tool for each step",
    ),
    now(
        "searchCalls",
        |s| word(s.search_calls),
        "let a search that comes with arguments call the tool that it clearly means, if that only reads",
    ),
    now(
        "digest",
        |s| word(s.digest),
        "name servers and tools in the `instructions` that a host gives its model",
    ),
    now(
        "advertiseResources",
        |s| word(s.advertise_resources),
        "offer resources to hosts: `auto`, unless the [host](hosts.md) adds tools of its own for them; `on`, `off`",
    ),
    now(
        "firstListing",
        |s| word(s.first_listing),
        "connect servers without a cached listing once, in the background",
    ),
    now(
        "approve",
        |s| word(s.approve),
        "which tools need a yes: `destructive`, `writes` (the default of the granular toolset), \
         `all`, `none`",
    ),
    now(
        "approveTools",
        |s| rule(&s.approve_tools),
        "globs of tools that need a yes besides, or `true` for all",
    ),
    now(
        "allow",
        |s| list(&s.allow),
        "patterns of tools that run unasked; the lists of all files add up",
    ),
    now("deny", |s| list(&s.deny), "patterns of tools that never run, whatever else is said"),
    now(
        "adHocConnections",
        |s| word(s.ad_hoc_connections),
        "connections that a model asks for: `ask`, `allow`, `off`",
    ),
    now(
        "pins",
        |s| word(s.pins),
        "what happens to a tool that is not what was accepted: `off`, `warn`, `block`",
    ),
    now(
        "autoAuth",
        |s| word(s.auto_auth),
        "let a `call` on a terminal begin to sign in by itself where its server wants that",
    ),
    now(
        "oauthCredentialStore",
        |s| word(s.oauth_credential_store),
        "where tokens are kept: `auto`, the keyring of the system or else a file; `keyring`; `file`; `encrypted-file`",
    ),
    now("sampling", |s| word(s.sampling), "pass sampling requests of servers on"),
    now("elicitation", |s| word(s.elicitation), "pass questions of servers on"),
    later("daemon", |s| word(s.daemon), "share one process among all hosts"),
    now(
        "mcpFooterStatus",
        |s| word(s.footer),
        "what Pi shows of the servers in its footer: `off`, `compact` or `full`",
    ),
    now("showStatusIcon", |s| word(s.status_icon), "an icon before it"),
    now(
        "notifyOnStartupConnect",
        |s| word(s.startup_notice),
        "say in Pi which servers were connected at the start",
    ),
    now(
        "toolResultRendering",
        |s| word(s.result_rendering),
        "how Pi shows what a tool gave: `compact` or `boxed`",
    ),
    now(
        "collapsedResultLines",
        |s| word(s.shown_lines()),
        "how many lines of it, from 1 to 3, until it is expanded; 3 where it is `boxed`",
    ),
    now(
        "env",
        |_| "none".to_owned(),
        "variables for every program that is started: servers, and launchers such as `npx`",
    ),
    now(
        "passEnv",
        |_| "none".to_owned(),
        "names of variables that every program gets from the environment of Switchboard, for example `HTTPS_PROXY`, `NODE_EXTRA_CA_CERTS`",
    ),
    now(
        "outputGuard",
        |s| guard(s.output_guard),
        "how much text of a result a model sees; `false` turns it off; `detailsMaxBytes` has no effect yet",
    ),
    now(
        "maxFrameBytes",
        |s| word(s.max_frame_bytes),
        "the largest message that is read; also the limit for all lists of one server together",
    ),
    now("maxTools", |s| word(s.max_tools), "the most tools of one server"),
    now("maxPages", |s| word(s.max_pages), "the most pages of one list"),
];

pub(super) fn table(out: &mut String) -> Result<(), DocsError> {
    let rows: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    covers("settings.rs", &rows, SettingsEntry::KEYS)?;
    out.push_str(
        "\n## Settings\n\n\
         | setting | default | in a project | meaning |\n|---|---|---|---|\n",
    );
    let defaults = Settings::default();
    for setting in SETTINGS {
        let allowed = project_may(&format!(r#"{{"settings":{{"{}":null}}}}"#, setting.key));
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {allowed} | {}{} |",
            setting.key,
            (setting.default)(&defaults),
            setting.effect.mark(),
            setting.about
        );
    }
    Ok(())
}

fn word(value: impl ToString) -> String {
    value.to_string()
}

fn millis(time: Duration) -> String {
    time.as_millis().to_string()
}

fn idle(time: IdleTimeout) -> String {
    match time {
        IdleTimeout::Never => "0".to_owned(),
        IdleTimeout::After(time) => (time.as_secs() / 60).to_string(),
    }
}

fn direct(tools: &DirectTools) -> String {
    match tools {
        DirectTools::None => "false".to_owned(),
        DirectTools::All => "true".to_owned(),
        DirectTools::Search => "\"search\"".to_owned(),
        DirectTools::Named(names) => format!("{names:?}"),
    }
}

fn list(patterns: &[String]) -> String {
    format!("{patterns:?}")
}

fn rule(rule: &ToolRule) -> String {
    match rule {
        ToolRule::None => "false".to_owned(),
        ToolRule::All => "true".to_owned(),
        ToolRule::Matching(globs) => format!("{globs:?}"),
    }
}

fn guard(guard: OutputGuard) -> String {
    match guard {
        OutputGuard::Off => "false".to_owned(),
        OutputGuard::Limits { max_bytes, max_lines, details_max_bytes } => format!(
            "{{ \"maxBytes\": {max_bytes}, \"maxLines\": {max_lines}, \"detailsMaxBytes\": {details_max_bytes} }}"
        ),
    }
}
