//! One row for each host: where its file lists servers, what the keys mean, and how our entry is
//! written.

use std::collections::HashSet;

use jsonc_parser::ast::Value;

use super::draft::Meaning;
use super::variables::Dialect;
use super::{Host, HostFile};
use crate::config::install::format::{
    EntryFormat, Extra, Grant, Launch, Needs, Off, Passing, ServerList, Word,
};
use crate::config::syntax::Syntax;
use crate::config::values::TransportType;

/// How the configuration file of one host differs from those of other hosts.
pub(super) struct HostRow {
    pub(super) title: &'static str,
    pub(super) syntax: Syntax,
    pub(super) dialect: Dialect,
    /// The keys of an entry whose meaning differs from that in most hosts.
    pub(super) keys: &'static [(&'static str, Meaning)],
    /// Reads the servers from the root of the file.
    pub(super) read: fn(&mut HostFile<'_, '_>, &Value<'_>),
    pub(super) install: EntryFormat,
}

impl HostRow {
    /// The row with the values that most hosts have in common.
    const USUAL: HostRow = HostRow {
        title: "",
        syntax: Syntax::Jsonc,
        dialect: Dialect::Ours,
        keys: &[],
        read: |file, root| file.servers(root, file.host.format().holder),
        install: EntryFormat::USUAL,
    };
}

impl Host {
    pub(super) fn row(self) -> &'static HostRow {
        match self {
            Host::ClaudeCode => &CLAUDE_CODE,
            Host::ClaudeDesktop => &CLAUDE_DESKTOP,
            Host::Cursor => &CURSOR,
            Host::VsCode => &VS_CODE,
            Host::Codex => &CODEX,
            Host::OpenCode => &OPEN_CODE,
            Host::Windsurf => &WINDSURF,
            Host::Zed => &ZED,
            Host::GeminiCli => &GEMINI_CLI,
            Host::CopilotCli => &COPILOT_CLI,
            Host::QwenCode => &QWEN_CODE,
            Host::Cline => &CLINE,
            Host::Vibe => &VIBE,
            Host::Kiro => &KIRO,
            Host::Amp => &AMP,
            Host::Crush => &CRUSH,
            Host::Roo => &ROO,
        }
    }
}

const CLAUDE_CODE: HostRow = HostRow {
    title: "Claude Code",
    read: read_claude_code,
    install: EntryFormat {
        first: &[("type", Word::Text("stdio"))],
        then: &[Extra {
            key: "alwaysLoad",
            value: Word::True,
            why: "Claude Code shows the tool in its first request, not only after a tool search",
        }],
        settings: &[Grant::item(
            &["permissions", "allow"],
            "mcp__switchboard",
            "Claude Code does not ask for approval: Switchboard asks before destructive calls",
        )],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

/// Reads the servers of Claude Code: those for this directory in `projects`, which take precedence,
/// and those at the top level.
fn read_claude_code(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    let project = file.project;
    let section = root
        .as_object()
        .and_then(|root| root.get_object("projects"))
        .and_then(|projects| projects.get(project))
        .map(|property| &property.value);
    if let Some(section) = section {
        file.servers(section, "mcpServers");
    }
    file.servers(root, "mcpServers");
    if let Some((offset, off)) = section.and_then(|section| names(section, "disabledMcpServers")) {
        file.disable(offset, |name| off.contains(name));
    }
}

const CLAUDE_DESKTOP: HostRow = HostRow {
    title: "Claude Desktop",
    install: EntryFormat { passing: Passing::Literals, ..EntryFormat::USUAL },
    ..HostRow::USUAL
};

const CURSOR: HostRow = HostRow { title: "Cursor", dialect: Dialect::Editor, ..HostRow::USUAL };

const VS_CODE: HostRow = HostRow {
    title: "VS Code",
    dialect: Dialect::Editor,
    read: |file, root| {
        file.servers(root, "servers");
        // `mcpServers` is read too, because users copy servers from other hosts.
        file.servers(root, "mcpServers");
    },
    install: EntryFormat {
        holder: "servers",
        first: &[("type", Word::Text("stdio"))],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const CODEX: HostRow = HostRow {
    title: "Codex",
    syntax: Syntax::Toml,
    keys: &[
        ("env_vars", Meaning::PassedOn),
        ("bearer_token_env_var", Meaning::BearerVariable),
        ("http_headers", Meaning::Headers),
        ("env_http_headers", Meaning::HeadersFromVariables),
        ("startup_timeout_sec", Meaning::StartSeconds),
        ("startup_timeout_ms", Meaning::StartMilliseconds),
        ("tool_timeout_sec", Meaning::RequestSeconds),
        ("enabled_tools", Meaning::Field("includeTools")),
        ("disabled_tools", Meaning::Field("excludeTools")),
    ],
    install: EntryFormat {
        holder: "mcp_servers",
        off: Off::Flag("enabled", false),
        then: &[Extra {
            key: "default_tools_approval_mode",
            value: Word::Text("approve"),
            why: "Codex does not ask for approval: Switchboard asks before destructive calls",
        }],
        passing: Passing::Listed("env_vars"),
        // Grants for code mode, in which Codex shows the model only the tools of the servers in
        // this table. Codex before 0.142 rejects a file with this table.
        grants: &[Grant {
            needs: Needs::Version([0, 142]),
            ..Grant::item(
                &["features", "code_mode", "direct_only_tool_namespaces"],
                "mcp__switchboard",
                "in code mode, Codex shows the tool in its first request",
            )
        }],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const OPEN_CODE: HostRow = HostRow {
    title: "OpenCode",
    dialect: Dialect::Braces,
    keys: &[("environment", Meaning::Env), ("oauth", Meaning::Field("oauth"))],
    install: EntryFormat {
        holder: "mcp",
        off: Off::Flag("enabled", false),
        first: &[("type", Word::Text("local"))],
        launch: Launch::OneList,
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const WINDSURF: HostRow = HostRow {
    title: "Windsurf",
    dialect: Dialect::Editor,
    keys: &[
        ("serverUrl", Meaning::Field("url")),
        ("disabledTools", Meaning::Field("excludeTools")),
    ],
    install: EntryFormat { off: Off::Flag("disabled", true), ..EntryFormat::USUAL },
    ..HostRow::USUAL
};

/// Zed. The servers of Zed's extensions have no command and are ignored.
const ZED: HostRow = HostRow {
    title: "Zed",
    install: EntryFormat {
        holder: "context_servers",
        off: Off::Flag("enabled", false),
        first: &[("source", Word::Text("custom"))],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const GEMINI_CLI: HostRow = HostRow {
    title: "Gemini CLI",
    dialect: Dialect::Dollar,
    keys: &[
        ("httpUrl", Meaning::UrlOf(TransportType::StreamableHttp)),
        ("url", Meaning::UrlOf(TransportType::Sse)),
        ("timeout", Meaning::RequestMilliseconds),
        ("includeTools", Meaning::Field("includeTools")),
        ("excludeTools", Meaning::Field("excludeTools")),
    ],
    read: read_gemini_cli,
    install: EntryFormat {
        then: &[Extra {
            key: "trust",
            value: Word::True,
            why: "Gemini CLI does not ask for approval: Switchboard asks before destructive calls",
        }],
        passing: Passing::Named { key: "env", opening: "$", closing: "" },
        grants: &[GEMINI_ALLOWED],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

/// The grant to add our server to the list `mcp.allowed`. If the list exists, Gemini CLI uses only
/// the servers in it.
const GEMINI_ALLOWED: Grant = Grant {
    needs: Needs::Present,
    ..Grant::item(&["mcp", "allowed"], "switchboard", "only servers in this list are started")
};

fn read_gemini_cli(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers");
    let Some(lists) = root.as_object().and_then(|root| root.get("mcp")) else {
        return;
    };
    if let Some((offset, allowed)) = names(&lists.value, "allowed") {
        file.disable(offset, |name| !allowed.contains(name));
    }
    if let Some((offset, excluded)) = names(&lists.value, "excluded") {
        file.disable(offset, |name| excluded.contains(name));
    }
}

/// Qwen Code, a fork of Gemini CLI.
const QWEN_CODE: HostRow = HostRow {
    title: "Qwen Code",
    install: EntryFormat {
        then: &[Extra {
            key: "trust",
            value: Word::True,
            why: "Qwen Code does not ask for approval: Switchboard asks before destructive calls",
        }],
        grants: &[GEMINI_ALLOWED],
        ..EntryFormat::USUAL
    },
    ..GEMINI_CLI
};

const COPILOT_CLI: HostRow = HostRow {
    title: "Copilot CLI",
    dialect: Dialect::Dollar,
    keys: &[("timeout", Meaning::RequestMilliseconds)],
    install: EntryFormat {
        first: &[("type", Word::Text("local"))],
        then: &[Extra {
            key: "tools",
            value: Word::Texts(&["*"]),
            why: "Copilot CLI uses only the tools that this key lists",
        }],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const CLINE: HostRow = HostRow {
    title: "Cline",
    dialect: Dialect::Editor,
    // In older files, `transport` is an object with the endpoint.
    keys: &[("transport", Meaning::Nested), ("timeout", Meaning::RequestSeconds)],
    install: EntryFormat {
        off: Off::Flag("disabled", true),
        launch: Launch::Nested("transport"),
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const VIBE: HostRow = HostRow {
    title: "Mistral Vibe",
    syntax: Syntax::Toml,
    keys: &[
        ("disabled_tools", Meaning::Field("excludeTools")),
        ("startup_timeout_sec", Meaning::StartSeconds),
        ("tool_timeout_sec", Meaning::RequestSeconds),
        ("api_key_env", Meaning::BearerVariable),
    ],
    install: EntryFormat {
        holder: "mcp_servers",
        listing: ServerList::Array,
        off: Off::Flag("disabled", true),
        first: &[("transport", Word::Text("stdio"))],
        passing: Passing::Literals,
        grants: &[
            vibe_permission(&["tools", "switchboard_mcp", "permission"]),
            vibe_permission(&["tools", "switchboard_mcp_write", "permission"]),
        ],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const fn vibe_permission(at: &'static [&'static str]) -> Grant {
    let why = "Mistral Vibe does not ask for approval: Switchboard asks before destructive calls";
    Grant::value(at, Word::Text("always"), why)
}

const KIRO: HostRow = HostRow {
    title: "Kiro",
    keys: &[("disabledTools", Meaning::Field("excludeTools"))],
    install: EntryFormat { off: Off::Flag("disabled", true), ..EntryFormat::USUAL },
    ..HostRow::USUAL
};

/// Amp. The key `amp.mcpServers` contains a dot and is not a path.
const AMP: HostRow = HostRow {
    title: "Amp",
    keys: &[("includeTools", Meaning::Field("includeTools"))],
    install: EntryFormat { holder: "amp.mcpServers", ..EntryFormat::USUAL },
    ..HostRow::USUAL
};

const CRUSH: HostRow = HostRow {
    title: "Crush",
    dialect: Dialect::Shell,
    keys: &[
        ("disabled_tools", Meaning::Field("excludeTools")),
        ("timeout", Meaning::RequestSeconds),
    ],
    install: EntryFormat {
        holder: "mcp",
        off: Off::Flag("disabled", true),
        first: &[("type", Word::Text("stdio"))],
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

const ROO: HostRow = HostRow {
    title: "Roo Code",
    dialect: Dialect::Editor,
    keys: &[
        ("disabledTools", Meaning::Field("excludeTools")),
        ("timeout", Meaning::RequestSeconds),
    ],
    install: EntryFormat {
        off: Off::Flag("disabled", true),
        passing: Passing::Named { key: "env", opening: "${env:", closing: "}" },
        ..EntryFormat::USUAL
    },
    ..HostRow::USUAL
};

/// The offset and the strings of the array `key` in `object`; `None` if it is not an array.
fn names<'v>(object: &'v Value<'_>, key: &str) -> Option<(usize, HashSet<&'v str>)> {
    let property = object.as_object()?.get(key)?;
    let elements = property.value.as_array()?.elements.iter();
    let names = elements.filter_map(|name| Some(&*name.as_string_lit()?.value)).collect();
    Some((property.range.start, names))
}
