//! The page about environment variables.

use std::fmt::Write;

use super::DocsError;

/// The variables that Switchboard reads.
const HONOURED: &[(&str, &str)] = &[
    (
        "SWITCHBOARD_HOME",
        "the directory of all files of Switchboard: `mcp.json`, `cache/` and `state/`",
    ),
    (
        "SWITCHBOARD_LAUNCHER",
        "`off` runs every server through its launcher, such as `npx` or `uvx`, as `resolveLauncher: false` does for one server",
    ),
    ("SWITCHBOARD_TOKEN_KEY", "32 bytes in base64 that encrypt tokens in files; no server gets it"),
    (
        "SWITCHBOARD_TOKEN_COMMAND_TTL_MS",
        "how long the value of a `!command` in `headers`, `bearerToken` or `auth` is used before the command runs again; 300000 by default",
    ),
    (
        "MCP_DIRECT_TOOLS",
        "the direct tools, in place of `directTools`: `SERVER` or `SERVER/TOOL`, separated by commas; `__none__` for none",
    ),
    ("HOME", "the home directory, also for `~` in values"),
    (
        "XDG_CONFIG_HOME",
        "instead of `~/.config`, for `switchboard/mcp.json`, `mcp/mcp.json` and the files of hosts",
    ),
    ("PI_CODING_AGENT_DIR", "instead of `~/.pi/agent`, for Pi's `mcp.json` and `settings.json`"),
    ("CLAUDE_CONFIG_DIR", "the directory of Claude Code's files, for `imports` and `install`"),
    ("CODEX_HOME", "instead of `~/.codex`, for `imports` and `install`"),
    ("GEMINI_CLI_HOME", "the directory with `.gemini`, for `imports` and `install`"),
    ("OPENCODE_CONFIG_DIR", "instead of `~/.config/opencode`, for `imports` and `install`"),
    ("QWEN_HOME", "instead of `~/.qwen`, for `imports` and `install`"),
    ("COPILOT_HOME", "instead of `~/.copilot`, for `imports` and `install`"),
    ("CLINE_DIR", "instead of `~/.cline`, for `imports` and `install`"),
    ("CLINE_DATA_DIR", "instead of `~/.cline/data`, for `imports` and `install`"),
    ("CLINE_MCP_SETTINGS_PATH", "the file with Cline's servers, for `imports` and `install`"),
    ("VIBE_HOME", "instead of `~/.vibe`, for `imports` and `install`"),
    ("APPDATA", "the files of desktop programs on Windows, for `imports` and `install`"),
    ("XDG_CACHE_HOME", "instead of `~/.cache`, for listings and stored results"),
    ("XDG_STATE_HOME", "instead of `~/.local/state`, for approvals, tokens and logs"),
    ("XDG_DATA_HOME", "instead of `~/.local/share`, for the package that Pi loads"),
    (
        "DBUS_SESSION_BUS_ADDRESS",
        "the address of the desktop's keyring; `$XDG_RUNTIME_DIR/bus` if it is not set",
    ),
    (
        "HTTP_PROXY",
        "the proxy for servers at `http://`; this variable and the next three are also read in lower case",
    ),
    ("HTTPS_PROXY", "the proxy for servers at `https://`"),
    ("ALL_PROXY", "the proxy if the variable for `http://` or `https://` is not set"),
    (
        "NO_PROXY",
        "the hostnames that are reached without a proxy; this machine is always reached without one",
    ),
    (
        "BROWSER",
        "the program that opens the page of a sign-in, by name or full path; by default `xdg-open`",
    ),
    ("DISPLAY", "without it, and without `WAYLAND_DISPLAY`, no browser is opened on Linux"),
    ("SSH_CONNECTION", "if set, no browser is opened, because it would open on the remote machine"),
    ("NO_COLOR", "if set, output has no colours"),
    ("CLICOLOR", "`0`: output has no colours"),
    ("CLICOLOR_FORCE", "if set, output has colours also without a terminal"),
    ("TERM", "`dumb`: output has no colours"),
];

/// The default variables of a server, besides the `env` of its entry.
const PASSED_ON: &str = "`HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`, `LANG`, `LANGUAGE`, \
    `TMPDIR`, `TZ` and every `LC_*`";

pub(super) fn page() -> Result<String, DocsError> {
    let mut out = String::from(
        "# Environment variables\n\n\
         An empty variable is treated as not set, and so is an XDG variable that is not an absolute path.\n\n\
         | variable | effect |\n|---|---|\n",
    );
    for (name, effect) in HONOURED {
        let _ = writeln!(out, "| `{name}` | {effect} |");
    }
    let _ = write!(
        out,
        "\n`--color` takes precedence over the variables about colours.\n\n\
         ## Variables of servers\n\n\
         A server starts with {PASSED_ON}, and with the `env` of its entry.\n\
         `inheritEnv: true` passes all variables instead.\n\
         Shell functions that are exported as variables are never passed on.\n\
         A server of yours that is `python -m NAME` and has no `cwd` also gets `PYTHONSAFEPATH=1`, which Python supports since 3.11.\n\n\
         Variables for proxies and certificates, such as `HTTPS_PROXY`, `SSL_CERT_FILE`, `SSL_CERT_DIR` and `NODE_EXTRA_CA_CERTS`, are not passed to servers by default, \
         because the URL of a proxy can contain a password.\n\
         These variables are not passed to launchers either, such as `npx` and `uvx`, because launchers run the packages that they install.\n\
         If a launcher needs a proxy to reach its registry, name the variable in the setting `passEnv`, in the `env` of the entry, \
         `\"HTTPS_PROXY\": \"${{HTTPS_PROXY}}\"`, or set the proxy in the launcher's own settings, such as `~/.npmrc`. \
         The error of a failed installation names the variables that are set and were not passed on.\n\n\
         ## In values\n\n\
         `${{VAR}}`, `${{VAR:-default}}`, `${{env:VAR}}`, `$env:VAR` and `{{env:VAR}}` are replaced when a server starts; \
         [configuration](../guide/configuration.md) lists the fields.\n",
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::PASSED_ON;

    #[test]
    fn env_page_names_every_variable_passed_to_servers() {
        let source = include_str!("../../../crates/switchboard/src/env.rs");
        let (_, list) = source.split_once("const PASSED_ON").unwrap();
        let (list, _) = list.split_once(';').unwrap();
        let passed_on: Vec<&str> = list.split('"').skip(1).step_by(2).collect();
        let named = PASSED_ON.split('`').skip(1).step_by(2);
        let named: Vec<&str> = named.filter(|name| *name != "LC_*").collect();
        assert_eq!(named, passed_on);
    }
}
