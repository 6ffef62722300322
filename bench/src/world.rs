//! An empty home for one measurement, with a configuration and the programs that use it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::BenchResult;
use crate::client::Client;

/// The programs under measurement.
pub(crate) struct World {
    pub(crate) switchboard: PathBuf,
    pub(crate) fixture: PathBuf,
}

/// A home directory with a configuration.
pub(crate) struct Home {
    directory: tempfile::TempDir,
    switchboard: PathBuf,
}

impl World {
    pub(crate) fn new(switchboard: PathBuf, fixture: PathBuf) -> World {
        World { switchboard, fixture }
    }

    /// A home with `count` fixture servers that run the script `script`.
    pub(crate) fn home(&self, count: usize, script: &str, settings: Value) -> BenchResult<Home> {
        let directory = tempfile::tempdir()?;
        let script_file = directory.path().join("script.toml");
        fs::write(&script_file, script)?;
        let servers: serde_json::Map<String, Value> = (0..count)
            .map(|n| {
                let server = json!({ "command": self.fixture, "args": [script_file] });
                (format!("server{n}"), server)
            })
            .collect();
        self.home_of(directory, &json!({ "mcpServers": servers, "settings": settings }))
    }

    /// A home with one server: the minimal echo server.
    pub(crate) fn echo_home(&self) -> BenchResult<Home> {
        let server = json!({ "command": self.fixture, "args": ["--bench"] });
        self.home_of(tempfile::tempdir()?, &json!({ "mcpServers": { "fixture": server } }))
    }

    /// A home with one server on standard streams, without a limit on results.
    pub(crate) fn stdio_home(&self) -> BenchResult<Home> {
        self.unguarded_home(&json!({ "command": self.fixture, "args": ["--bench"] }))
    }

    /// A home with one server at a URL, without a limit on results.
    pub(crate) fn url_home(&self, url: &str) -> BenchResult<Home> {
        self.unguarded_home(&json!({ "url": url }))
    }

    fn unguarded_home(&self, server: &Value) -> BenchResult<Home> {
        let settings = json!({ "outputGuard": false });
        let config = json!({ "mcpServers": { "fixture": server }, "settings": settings });
        self.home_of(tempfile::tempdir()?, &config)
    }

    fn home_of(&self, directory: tempfile::TempDir, config: &Value) -> BenchResult<Home> {
        fs::write(directory.path().join("mcp.json"), config.to_string())?;
        Ok(Home { directory, switchboard: self.switchboard.clone() })
    }

    /// A command that starts the fixture server over HTTP.
    pub(crate) fn http_fixture(&self) -> Command {
        let mut command = command(&self.fixture);
        command.arg("--bench-http");
        command
    }

    /// A home with this configuration file.
    pub(crate) fn home_with(&self, config: &Value) -> BenchResult<Home> {
        self.home_of(tempfile::tempdir()?, config)
    }

    /// A command that starts a program of this machine.
    pub(crate) fn program(&self, name: &str) -> Command {
        command(Path::new(name))
    }

    /// A direct connection to a fixture.
    pub(crate) fn direct(&self, args: &[&str]) -> BenchResult<Client> {
        Client::start(command(&self.fixture).args(args))
    }
}

impl Home {
    pub(crate) fn serve(&self) -> BenchResult<Client> {
        Client::start(self.command().arg("serve"))
    }

    /// The token that `serve --http` requires.
    pub(crate) fn http_token(&self) -> BenchResult<String> {
        let file = self.directory.path().join("state/http-token");
        Ok(fs::read_to_string(file)?.trim().to_owned())
    }

    /// A command that starts `switchboard` with this home.
    pub(crate) fn command(&self) -> Command {
        let mut command = command(&self.switchboard);
        command
            .env("HOME", self.directory.path())
            .env("SWITCHBOARD_HOME", self.directory.path())
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// The path of the script of this home's servers.
    pub(crate) fn script(&self) -> String {
        self.directory.path().join("script.toml").display().to_string()
    }

    /// Lists every server once, so that all listings are cached.
    pub(crate) fn fill_cache(&self) -> BenchResult<()> {
        let status = self.command().args(["tools", "--json"]).stdout(Stdio::null()).status()?;
        if status.success() { Ok(()) } else { Err("`switchboard tools` failed".into()) }
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench starts the programs that it measures")]
fn command(program: &Path) -> Command {
    Command::new(program)
}
