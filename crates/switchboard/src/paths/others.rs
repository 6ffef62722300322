//! The locations of other programs' files that Switchboard reads.

use std::path::PathBuf;

use crate::env::Environment;

/// The directories of other programs whose files Switchboard reads.
#[derive(Clone, Debug)]
pub struct Others {
    pub(crate) home: PathBuf,
    /// `~/.config`, unless `XDG_CONFIG_HOME` moves it.
    pub(crate) config: PathBuf,
    /// The directory that `APPDATA` names, which replaces `~/.config` on Windows; `None` if
    /// `APPDATA` is not set.
    pub(crate) app_data: Option<PathBuf>,
    pub(crate) pi: PathBuf,
    pub(crate) claude: PathBuf,
    /// The state file of Claude Code.
    pub(crate) claude_state: PathBuf,
    pub(crate) codex: PathBuf,
    /// The directory that contains `.gemini`.
    pub(crate) gemini_home: PathBuf,
    pub(crate) opencode: PathBuf,
    pub(crate) copilot: PathBuf,
    pub(crate) qwen: PathBuf,
    /// The file with Cline's servers.
    pub(crate) cline_servers: PathBuf,
    pub(crate) vibe: PathBuf,
}

impl Others {
    pub(super) fn of(environment: &Environment, home: PathBuf, config: PathBuf) -> Others {
        let moved = |variable: &str| {
            let path = environment.variable(variable)?;
            Some(match path.strip_prefix("~/") {
                Some(below) => home.join(below),
                None => environment.cwd.join(path),
            })
        };
        let in_home =
            |variable: &str, default: &str| moved(variable).unwrap_or_else(|| home.join(default));
        let claude = moved("CLAUDE_CONFIG_DIR");
        let claude_state = claude.as_ref().unwrap_or(&home).join(".claude.json");
        let cline_data =
            moved("CLINE_DATA_DIR").unwrap_or_else(|| in_home("CLINE_DIR", ".cline").join("data"));
        Others {
            opencode: moved("OPENCODE_CONFIG_DIR").unwrap_or_else(|| config.join("opencode")),
            config,
            app_data: moved("APPDATA"),
            pi: in_home("PI_CODING_AGENT_DIR", ".pi/agent"),
            claude: claude.unwrap_or_else(|| home.join(".claude")),
            claude_state,
            codex: in_home("CODEX_HOME", ".codex"),
            gemini_home: moved("GEMINI_CLI_HOME").unwrap_or_else(|| home.clone()),
            copilot: in_home("COPILOT_HOME", ".copilot"),
            qwen: in_home("QWEN_HOME", ".qwen"),
            cline_servers: moved("CLINE_MCP_SETTINGS_PATH")
                .unwrap_or_else(|| cline_data.join("settings/cline_mcp_settings.json")),
            vibe: in_home("VIBE_HOME", ".vibe"),
            home,
        }
    }

    /// The possible paths of a desktop program's file on Linux, macOS and Windows.
    pub(crate) fn desktop(&self, file: &str) -> Vec<PathBuf> {
        let mac = self.home.join("Library/Application Support");
        let folders = [Some(&self.config), Some(&mac), self.app_data.as_ref()];
        folders.into_iter().flatten().map(|folder| folder.join(file)).collect()
    }
}
