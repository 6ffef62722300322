//! The page about environment variables.

use std::fmt::Write;

use super::DocsError;

/// Variables that change what Switchboard does.
const HONOURED: &[(&str, &str)] = &[
    (
        "SWITCHBOARD_HOME",
        "moves everything that is Switchboard's: `mcp.json`, `cache/` and `state/` lie below it",
    ),
    (
        "SWITCHBOARD_LAUNCHER",
        "`off` keeps `npx`, `uvx` and the like running, as `resolveLauncher: false` does for one server",
    ),
    (
        "SWITCHBOARD_TOKEN_KEY",
        "32 bytes in base64, with which tokens in files are encrypted; no server gets it",
    ),
    (
        "SWITCHBOARD_TOKEN_COMMAND_TTL_MS",
        "how long the value of a `!command` in `headers`, `bearerToken` or `auth` counts before it is asked for again, 300000 if not set",
    ),
    (
        "MCP_DIRECT_TOOLS",
        "the tools that stand beside `mcp`, whatever `directTools` says: `SERVER` or `SERVER/TOOL`, with commas between them; `__none__` for none",
    ),
    ("HOME", "the home directory, of `~` in values too"),
    (
        "XDG_CONFIG_HOME",
        "instead of `~/.config`, for `switchboard/mcp.json`, `mcp/mcp.json` and the files of hosts",
    ),
    ("PI_CODING_AGENT_DIR", "instead of `~/.pi/agent`, for Pi's `mcp.json` and `settings.json`"),
    ("CLAUDE_CONFIG_DIR", "where Claude Code keeps its files, for `imports` and `install`"),
    ("CODEX_HOME", "instead of `~/.codex`, for `imports` and `install`"),
    ("GEMINI_CLI_HOME", "the directory with `.gemini`, for `imports` and `install`"),
    ("OPENCODE_CONFIG_DIR", "instead of `~/.config/opencode`, for `imports` and `install`"),
    ("QWEN_HOME", "instead of `~/.qwen`, for `imports` and `install`"),
    ("COPILOT_HOME", "instead of `~/.copilot`, for `imports` and `install`"),
    ("CLINE_DIR", "instead of `~/.cline`, for `imports` and `install`"),
    ("CLINE_DATA_DIR", "instead of `~/.cline/data`, for `imports` and `install`"),
    ("CLINE_MCP_SETTINGS_PATH", "the file with Cline's servers, for `imports` and `install`"),
    ("VIBE_HOME", "instead of `~/.vibe`, for `imports` and `install`"),
    ("APPDATA", "where desktop programs keep their files on Windows, for `imports` and `install`"),
    ("XDG_CACHE_HOME", "instead of `~/.cache`, for listings and stored results"),
    ("XDG_STATE_HOME", "instead of `~/.local/state`, for approvals, tokens and logs"),
    ("XDG_DATA_HOME", "instead of `~/.local/share`, for the package that Pi loads"),
    (
        "DBUS_SESSION_BUS_ADDRESS",
        "where the keyring of the desktop is asked for; `$XDG_RUNTIME_DIR/bus` if it is not set",
    ),
    (
        "HTTP_PROXY",
        "the proxy to servers at `http://`; this and the next three in small letters, too",
    ),
    ("HTTPS_PROXY", "the proxy to servers at `https://`"),
    ("ALL_PROXY", "the proxy where those two say nothing"),
    ("NO_PROXY", "the hosts that are reached without one; this machine always is"),
    (
        "BROWSER",
        "the program that opens the page of a sign-in, by its name or full path; else `xdg-open`",
    ),
    ("DISPLAY", "without it, and without `WAYLAND_DISPLAY`, no browser is opened on Linux"),
    ("SSH_CONNECTION", "no browser is opened: it would be on the wrong machine"),
    ("NO_COLOR", "no colours, if it is set to anything"),
    ("CLICOLOR", "`0` means no colours"),
    ("CLICOLOR_FORCE", "colours also where no terminal is"),
    ("TERM", "`dumb` means no colours"),
];

/// What a server gets besides the `env` of its entry.
const PASSED_ON: &str = "`HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`, `LANG`, `LANGUAGE`, \
    `TMPDIR`, `TZ` and every `LC_*`";

pub(super) fn page() -> Result<String, DocsError> {
    let mut out = String::from(
        "# Environment variables\n\n\
         A variable that is empty counts as not set; so does an XDG variable that is not an absolute path.\n\n\
         | variable | effect |\n|---|---|\n",
    );
    for (name, effect) in HONOURED {
        let _ = writeln!(out, "| `{name}` | {effect} |");
    }
    let _ = write!(
        out,
        "\n`--color` beats the variables about colours.\n\n\
         ## What servers see\n\n\
         A server starts with {PASSED_ON}, and with the `env` of its entry on top.\n\
         `inheritEnv: true` passes everything instead.\n\
         Functions that a shell exported are never passed on.\n\
         A server of yours that is `python -m NAME` and has no `cwd` also gets `PYTHONSAFEPATH=1`, which Python heeds since 3.11.\n\n\
         Proxies (`HTTPS_PROXY` and the like), `SSL_CERT_FILE`, `SSL_CERT_DIR` and `NODE_EXTRA_CA_CERTS` are not among them: \
         a proxy's address can hold a password.\n\
         That holds for launchers such as `npx` and `uvx` too, which run what they install.\n\
         Where they need one to reach their registry, name it in the `env` of the entry, \
         `\"HTTPS_PROXY\": \"${{HTTPS_PROXY}}\"`, or say it in the launcher's own settings, such as `~/.npmrc`; \
         an installation that fails says which ones are set and were not passed on.\n\n\
         ## In values\n\n\
         `${{VAR}}`, `${{VAR:-default}}`, `${{env:VAR}}`, `$env:VAR` and `{{env:VAR}}` are replaced when a server starts; \
         [configuration](../guide/configuration.md) says where.\n",
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::PASSED_ON;

    #[test]
    fn env_page_names_every_passed_variable() {
        let source = include_str!("../../../crates/switchboard/src/env.rs");
        let (_, list) = source.split_once("const PASSED_ON").unwrap();
        let (list, _) = list.split_once(';').unwrap();
        let passed_on: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let named = PASSED_ON.split('`').skip(1).step_by(2);
        let named: Vec<&str> = named.filter(|name| *name != "LC_*").collect();
        assert_eq!(named, passed_on);
    }
}
