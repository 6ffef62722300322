//! The configuration files that are looked for, and how each is read.

use std::path::{Path, PathBuf};

use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::hosts::{self, Host};
use switchboard_core::config::layers::{ConfigSource, Layer, Tier};
use switchboard_core::config::parse::{self, ParsedFile};
use switchboard_core::config::pi_servers;

use crate::paths::{self, Paths};

/// A place where a configuration file may exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    pub(crate) tier: Tier,
    pub(crate) form: FileFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    Ours,
    /// The format of Pi's server list.
    PiServers,
    Host(Host),
}

/// The files of Switchboard's own layers, lowest precedence first. `config` replaces the user's
/// files of Pi and Switchboard.
pub(crate) fn own(paths: &Paths, project: &Path, config: Option<PathBuf>) -> Vec<Candidate> {
    let user = |path: PathBuf| Candidate { path, tier: Tier::User, form: FileFormat::Ours };
    let shared = &paths.others;
    let named = config.clone();
    let mut files = vec![
        user(shared.config.join("mcp/mcp.json")),
        user(shared.home.join(".agents/mcp.json")),
        user(shared.home.join(".agents/mcp/mcp.json")),
    ];
    match config {
        Some(config) => files.push(user(config)),
        None => files.extend([user(shared.pi.join("mcp.json")), user(paths.user_config())]),
    }
    let in_project = [
        (".mcp.json", FileFormat::Ours),
        (".pi/mcp.json", FileFormat::Ours),
        (".pi/mcp-servers.json", FileFormat::PiServers),
        (".switchboard/mcp.json", FileFormat::Ours),
    ];
    let in_project = in_project.into_iter().map(|(path, form)| Candidate {
        path: project.join(path),
        tier: Tier::Project,
        form,
    });
    // A project file that is named with `config` is listed once, as the user's.
    files.extend(in_project.filter(|file| named.as_ref() != Some(&file.path)));
    files
}

const ROO: &str = "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json";

/// The files of a host. If two of them define the same name, the first takes precedence.
pub(crate) fn of_host(paths: &Paths, project: &Path, host: Host) -> Vec<Candidate> {
    let others = &paths.others;
    let home = &others.home;
    let (users, projects): (Vec<PathBuf>, &[&str]) = match host {
        Host::ClaudeCode => (
            vec![
                others.claude_state.clone(),
                others.claude.join("mcp.json"),
                others.claude.join("claude_desktop_config.json"),
            ],
            &[],
        ),
        Host::ClaudeDesktop => (others.desktop("Claude/claude_desktop_config.json"), &[]),
        Host::Cursor => (vec![home.join(".cursor/mcp.json")], &[".cursor/mcp.json"]),
        Host::VsCode => (others.desktop("Code/User/mcp.json"), &[".vscode/mcp.json"]),
        Host::Codex => (vec![others.codex.join("config.toml")], &[".codex/config.toml"]),
        Host::OpenCode => (
            vec![others.opencode.join("opencode.json"), others.opencode.join("opencode.jsonc")],
            &["opencode.json", "opencode.jsonc"],
        ),
        Host::Windsurf => (
            vec![home.join(".codeium/windsurf/mcp_config.json"), home.join(".windsurf/mcp.json")],
            &[],
        ),
        Host::Zed => (vec![others.config.join("zed/settings.json")], &[".zed/settings.json"]),
        Host::GeminiCli => {
            (vec![others.gemini_home.join(".gemini/settings.json")], &[".gemini/settings.json"])
        }
        Host::CopilotCli => (vec![others.copilot.join("mcp-config.json")], &[]),
        Host::QwenCode => (vec![others.qwen.join("settings.json")], &[".qwen/settings.json"]),
        Host::Cline => (vec![others.cline_servers.clone()], &[]),
        Host::Vibe => (vec![others.vibe.join("config.toml")], &[".vibe/config.toml"]),
        Host::Kiro => (vec![home.join(".kiro/settings/mcp.json")], &[".kiro/settings/mcp.json"]),
        Host::Amp => (
            vec![others.config.join("amp/settings.json"), others.config.join("amp/settings.jsonc")],
            &[".amp/settings.json"],
        ),
        Host::Crush => {
            (vec![others.config.join("crush/crush.json")], &[".crush.json", "crush.json"])
        }
        Host::Roo => (others.desktop(ROO), &[".roo/mcp.json"]),
    };
    let form = FileFormat::Host(host);
    let users = users.into_iter().map(|path| Candidate { path, tier: Tier::User, form });
    let mut files: Vec<Candidate> = users.collect();
    for path in projects {
        let path = project.join(path);
        // If the project is the home directory, the user's file can also be a project file. The
        // file is listed once, as the user's.
        if files.iter().all(|known| known.path != path) {
            files.push(Candidate { path, tier: Tier::Project, form });
        }
    }
    files
}

impl Candidate {
    /// Reads and parses the file; `None` if it does not exist.
    pub(crate) fn read(&self, project: &Path) -> Option<Layer> {
        let unreadable = |reason: &str| Some(self.unreadable(reason));
        let bytes = match paths::read(&self.path) {
            Ok(Some(bytes)) => bytes,
            Ok(None) if self.path.ancestors().any(leads_nowhere) => {
                return unreadable("its path contains a broken symbolic link");
            }
            Ok(None) => return None,
            Err(error) => return unreadable(&error.to_string()),
        };
        Some(self.parse(bytes, project))
    }

    /// Parses these bytes as the content of the file.
    pub(crate) fn parse(&self, bytes: Vec<u8>, project: &Path) -> Layer {
        // Lossy decoding could change a rule, so it is not used.
        let Ok(text) = String::from_utf8(bytes) else {
            return self.unreadable("it is not UTF-8");
        };
        let source = self.source();
        let file = match self.form {
            FileFormat::Ours => parse::parse(&text, &source),
            FileFormat::PiServers => pi_servers::parse(&text, &source),
            FileFormat::Host(host) => {
                hosts::parse(host, &text, &source, &project.to_string_lossy())
            }
        };
        Layer { source, file }
    }

    /// The layer of a file that exists but cannot be read.
    pub(crate) fn unreadable(&self, reason: &str) -> Layer {
        let source = self.source();
        let diagnostics = vec![Diagnostic::unreadable(&source.path, reason)];
        Layer { source, file: ParsedFile { diagnostics, ..ParsedFile::default() } }
    }

    fn source(&self) -> ConfigSource {
        ConfigSource { path: self.path.to_string_lossy().into(), tier: self.tier }
    }

    /// Whether the file is one of the user's files in Switchboard's own format.
    pub(crate) fn is_the_users(&self) -> bool {
        self.tier == Tier::User && self.form == FileFormat::Ours
    }

    pub(crate) fn host(&self) -> Option<Host> {
        match self.form {
            FileFormat::Host(host) => Some(host),
            FileFormat::Ours | FileFormat::PiServers => None,
        }
    }
}

fn leads_nowhere(path: &Path) -> bool {
    path.is_symlink() && !path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Environment;

    fn check<const N: usize>(variables: [(&str, &str); N], host: Host, expected: &[&str]) {
        let paths = Paths::of(&Environment::made_of(variables, "/p"));
        let found = of_host(&paths, Path::new("/p"), host);
        let shown = found.iter().map(|file| {
            let tier = match file.tier {
                Tier::User => "user",
                Tier::Project => "project",
            };
            format!("{tier} {}", file.path.display())
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn desktop_host_file_is_found_on_each_system() {
        check(
            [("HOME", "/h"), ("APPDATA", "/h/AppData/Roaming")],
            Host::ClaudeDesktop,
            &[
                "user /h/.config/Claude/claude_desktop_config.json",
                "user /h/Library/Application Support/Claude/claude_desktop_config.json",
                "user /h/AppData/Roaming/Claude/claude_desktop_config.json",
            ],
        );
        check(
            [("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("SWITCHBOARD_HOME", "/s")],
            Host::VsCode,
            &[
                "user /c/Code/User/mcp.json",
                "user /h/Library/Application Support/Code/User/mcp.json",
                "project /p/.vscode/mcp.json",
            ],
        );
    }

    #[test]
    fn host_configuration_relocated_by_a_variable_is_found() {
        check(
            [("HOME", "/h"), ("CODEX_HOME", "~/x")],
            Host::Codex,
            &["user /h/x/config.toml", "project /p/.codex/config.toml"],
        );
        check(
            [("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/x")],
            Host::ClaudeCode,
            &["user /x/.claude.json", "user /x/mcp.json", "user /x/claude_desktop_config.json"],
        );
    }

    #[test]
    fn home_directory_as_project_lists_user_file_once() {
        check([("HOME", "/p")], Host::Cursor, &["user /p/.cursor/mcp.json"]);
    }

    #[test]
    fn switchboard_configuration_files_are_ordered_by_precedence() {
        let environment = Environment::made_of(
            [("HOME", "/h"), ("SWITCHBOARD_HOME", "/s"), ("PI_CODING_AGENT_DIR", "/pi")],
            "/p",
        );
        let paths = Paths::of(&environment);
        let check = |config: Option<PathBuf>, users: &[&str]| {
            let found = own(&paths, Path::new("/p"), config);
            let shown: Vec<String> = found.iter().map(|f| f.path.display().to_string()).collect();
            let shared =
                ["/h/.config/mcp/mcp.json", "/h/.agents/mcp.json", "/h/.agents/mcp/mcp.json"];
            let project = [
                "/p/.mcp.json",
                "/p/.pi/mcp.json",
                "/p/.pi/mcp-servers.json",
                "/p/.switchboard/mcp.json",
            ];
            let expected: Vec<&str> = shared.iter().chain(users).chain(&project).copied().collect();
            assert_eq!(shown, expected);
        };
        check(None, &["/pi/mcp.json", "/s/mcp.json"]);
        check(Some("/x.json".into()), &["/x.json"]);
        let found = own(&paths, Path::new("/p"), Some("/p/.mcp.json".into()));
        let tiers = found.iter().filter(|file| file.path.ends_with(".mcp.json"));
        assert_eq!(tiers.map(|file| file.tier).collect::<Vec<_>>(), [Tier::User]);
    }
}
