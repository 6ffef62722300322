//! The real program `switchboard` in its own home: one command, or a running server.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::pty::OpenptFlags;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::authority::visit;
use crate::client::{Client, Ended};
use crate::harness::Home;
use crate::http_client::HttpClient;
use crate::terminal::Typist;

/// The limit for a command of a test, generous for a busy machine.
const DEADLINE: Duration = Duration::from_secs(50);

/// The paths of the built programs; cargo passes them only to tests of this package.
#[derive(Debug, Clone, Copy)]
pub struct Programs {
    pub switchboard: &'static str,
    pub fixture_server: &'static str,
}

/// An installed and configured `switchboard`. Clones share the home.
#[derive(Debug, Clone)]
pub struct Installed {
    programs: Programs,
    home: Home,
}

/// A finished command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The exit code; `None` if a signal ended the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Programs {
    /// The programs in the directory of the running program.
    pub fn beside_this_one() -> io::Result<Programs> {
        let this = std::env::current_exe()?;
        let folder = this.parent().unwrap_or(Path::new("."));
        let beside = |name: &str| -> &'static str {
            folder.join(name).to_string_lossy().into_owned().leak()
        };
        Ok(Programs {
            switchboard: beside("switchboard-dup"),
            fixture_server: beside("fixture-server"),
        })
    }
}

impl Installed {
    /// A home with `config` as the user's file. `fixture-server` in it is on the `PATH`.
    pub fn with(programs: Programs, config: &str) -> Self {
        let installed = Self { programs, home: Home::new() };
        installed.write("switchboard/mcp.json", config);
        installed
    }

    /// A home without any configuration.
    pub fn bare(programs: Programs) -> Self {
        Self { programs, home: Home::new() }
    }

    /// A home with one server of this name, which runs `script` and logs each start in
    /// [`Self::spawn_log`].
    pub fn with_fixture(programs: Programs, server: &str, script: &str) -> Self {
        let installed = Self::bare(programs);
        let script = installed.write(&format!("{server}.toml"), script);
        let config = installed.fixture_config(server, &script.to_string_lossy());
        installed.write("switchboard/mcp.json", &config);
        installed
    }

    fn fixture_config(&self, server: &str, script: &str) -> String {
        let log = self.spawn_log();
        let entry = serde_json::json!({
            "command": "fixture-server",
            "args": [script, "--spawn-log", log],
        });
        serde_json::json!({ "mcpServers": { server: entry } }).to_string()
    }

    /// Writes a file below the home, which is also the working directory.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(path);
        let parent = path.parent().expect("a file below the home");
        fs::create_dir_all(parent).expect("a directory can be made");
        fs::write(&path, text).expect("a file can be written");
        path
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn spawn_log(&self) -> PathBuf {
        self.home.path().join("spawns")
    }

    /// The process ids in [`Self::spawn_log`], including grandchildren.
    pub fn spawned(&self) -> Vec<u32> {
        let log = fs::read_to_string(self.spawn_log()).unwrap_or_default();
        log.split_whitespace().map(|id| id.parse().expect("a process id")).collect()
    }

    /// The program in this home, with a minimal environment.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test, which no Spawner may own"
    )]
    pub fn command(&self) -> Command {
        let fixtures = Path::new(self.programs.fixture_server)
            .parent()
            .expect("the program is in a directory");
        let mut command = Command::new(self.programs.switchboard);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .env("SWITCHBOARD_HOME", self.home.path().join("switchboard"))
            .env("PATH", format!("{}:/usr/bin:/bin", fixtures.display()))
            // An editor that changes nothing and exits.
            .env("EDITOR", "true")
            .current_dir(self.home.path())
            .kill_on_drop(true);
        command
    }

    /// Runs one command to its end, without a terminal.
    pub async fn run<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Ran {
        self.run_with_input(args, "").await
    }

    /// Runs one command with this standard input.
    pub async fn run_with_input<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        input: &str,
    ) -> Ran {
        let mut command = self.command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        // A command that does not read its input may have ended already.
        let _unread = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
        let output = output.expect("the command ends in time").expect("its output can be read");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("a program writes text");
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs one command on a terminal with this typed input. Its output there is returned as
    /// standard error.
    pub async fn run_on_terminal<'a>(
        &self,
        args: impl IntoIterator<Item = &'a str>,
        typed: &str,
    ) -> Ran {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = rustix::pty::openpt(flags).expect("a pseudo-terminal is available");
        rustix::pty::unlockpt(&ours).expect("the terminal is new");
        let name = rustix::pty::ptsname(&ours, Vec::new()).expect("the terminal has a name");
        let name = Path::new(OsStr::from_bytes(name.as_bytes())).to_owned();
        let open = || {
            File::options().read(true).write(true).open(&name).expect("the terminal can be opened")
        };
        let mut command = self.command();
        command.args(args).stdin(open()).stderr(open()).stdout(Stdio::piped());
        let child = command.spawn().expect("the program starts");
        // Closes our copies of the terminal, so that it ends with the program.
        drop(command);
        let mut ours = File::from(ours);
        let keyboard = ours.try_clone().expect("a descriptor can be copied");
        let mut typist = Typist::new(child.id().expect("the program runs"), keyboard, typed, b"");
        let watched = tokio::task::spawn_blocking(move || {
            let (mut shown, mut part) = (Vec::new(), [0; 4096]);
            // Reading from a terminal without a process fails.
            while let Ok(length @ 1..) = ours.read(&mut part) {
                shown.extend_from_slice(&part[..length]);
                typist.look(&shown);
            }
            String::from_utf8(shown).expect("a program writes text").replace('\r', "")
        });
        let output = tokio::time::timeout(DEADLINE, child.wait_with_output()).await;
        let output = output.expect("the command ends in time").expect("its output can be read");
        let stdout = String::from_utf8(output.stdout).expect("a program writes text");
        let stderr = watched.await.expect("a terminal can be read");
        Ran { code: output.status.code(), stdout, stderr }
    }

    /// Signs in to a server without a terminal: opens the URL on standard output in a browser.
    pub async fn sign_in(&self, server: &str) -> Ended {
        let mut auth = Client::start(self.command().args(["auth", server]));
        let link = auth.line().await;
        assert_eq!(visit(link.trim_end()).await, 200);
        auth.ended().await
    }

    /// Starts `serve` without sending `initialize`.
    pub fn serve(&self, flags: &[&str]) -> Client {
        Client::start(self.command().arg("serve").args(flags))
    }

    /// Starts `serve --http` on a free port.
    pub async fn serve_http(&self) -> HttpServer {
        let mut command = self.command();
        command.args(["serve", "--http", "0"]).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut words = BufReader::new(child.stderr.take().expect("stderr is piped")).lines();
        let address = loop {
            let line = tokio::time::timeout(DEADLINE, words.next_line()).await;
            let line = line
                .expect("a line in time")
                .expect("UTF-8")
                .expect("the server listens before it ends");
            if let Some(url) = line.strip_prefix("Serving MCP at http://") {
                break url.strip_suffix("/mcp").expect("a URL").parse().expect("an address");
            }
        };
        // Ends when the child closes the pipe.
        let stderr = tokio::spawn(async move {
            let mut text = String::new();
            while let Ok(Some(line)) = words.next_line().await {
                text.push_str(&line);
                text.push('\n');
            }
            text
        });
        let token = self.home.path().join("switchboard/state/http-token");
        let token =
            fs::read_to_string(token).expect("`serve --http` wrote its token").trim().to_owned();
        HttpServer { child, address, token, stderr }
    }

    /// Starts `serve` with an initialized client of these capabilities.
    pub async fn connect(&self, capabilities: Value) -> Client {
        let mut client = self.serve(&[]);
        client.initialize("2025-11-25", capabilities).await;
        client
    }
}

/// A running `serve --http`, killed when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    pub address: SocketAddr,
    pub token: String,
    stderr: JoinHandle<String>,
}

impl HttpServer {
    /// An initialized client.
    pub async fn connect(&self, capabilities: Value) -> HttpClient {
        let mut client = HttpClient::new(self.address, &self.token).await;
        client.initialize("2025-11-25", capabilities).await;
        client
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("the program runs")
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        let pid = self.pid();
        let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("a process id");
        rustix::process::kill_process(pid, Signal::TERM).expect("the program runs");
    }

    /// Waits until the server ends; returns its exit code, and its standard error since it listens.
    pub async fn ended(mut self) -> (Option<i32>, String) {
        let status = tokio::time::timeout(DEADLINE, self.child.wait()).await;
        let status = status.expect("the server ends in time").expect("a child can be waited for");
        (status.code(), self.stderr.await.expect("reading cannot panic"))
    }
}

impl Ran {
    /// Exit code, standard output and standard error, with the home replaced.
    pub fn transcript(&self, home: &Path) -> String {
        let code = self.code.map_or("killed".to_owned(), |code| code.to_string());
        let text = format!(
            "exit {code}\n--- stdout\n{}--- stderr\n{}",
            terminated(&self.stdout),
            terminated(&self.stderr)
        );
        text.replace(&*home.to_string_lossy(), "[HOME]")
    }
}

fn terminated(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}
