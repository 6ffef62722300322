//! The programs that the suite connects to: the fixture, and the gateway in front of it.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};

use crate::command::{command, target};

/// How long a program may take until it listens.
const START: Duration = Duration::from_secs(30);

#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("cannot prepare `{}`", path.display())]
    Prepare {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot start `{program}`")]
    Spawn {
        program: &'static str,
        #[source]
        cause: io::Error,
    },
    #[error("`{program}` does not print its URL")]
    NoUrl { program: &'static str },
    #[error("the gateway does not listen at {address}; its log is `{}`", log.display())]
    NotListening { address: SocketAddr, log: PathBuf },
}

/// The command that the suite starts for each scenario of a client.
pub(crate) fn client() -> String {
    built("conformance-client").display().to_string()
}

/// The eras that the fixture supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Eras {
    Legacy,
    Modern,
    Both,
}

impl Eras {
    fn word(self) -> Option<&'static str> {
        match self {
            Self::Legacy => Some("legacy"),
            Self::Modern => Some("modern"),
            Self::Both => None,
        }
    }
}

/// The fixture server by itself.
pub(crate) struct Fixture {
    pub(crate) url: String,
    _process: Process,
}

impl Fixture {
    pub(crate) fn start(eras: Eras) -> Result<Self, StartError> {
        let args: Vec<&str> = ["0"].into_iter().chain(eras.word()).collect();
        let (url, process) = announced("conformance-server", &args)?;
        Ok(Self { url, _process: process })
    }

    /// The fixture's entry in a configuration.
    pub(crate) fn entry(&self) -> Value {
        json!({ "url": self.url })
    }
}

/// The configuration entry of a fixture that the gateway starts itself.
pub(crate) fn fixture_on_stdio() -> Value {
    json!({ "command": built("conformance-server"), "args": ["stdio"] })
}

/// The gateway as a user runs it, with the relay in front of it.
pub(crate) struct Gateway {
    url: String,
    // The fields are dropped in this order.
    _relay: Process,
    _gateway: Process,
}

impl Gateway {
    /// Starts the gateway with one server. Its files are below `out`.
    pub(crate) fn start(server: &Value, out: &Path) -> Result<Self, StartError> {
        const PROGRAM: &str = "switchboard";
        let home = out.join("home");
        let prepare = |cause| StartError::Prepare { path: home.clone(), cause };
        fs::create_dir_all(&home).map_err(prepare)?;
        let config = json!({ "mcpServers": { "fixture": server } });
        fs::write(home.join("mcp.json"), config.to_string()).map_err(prepare)?;
        let log = out.join("gateway.txt");
        let words = fs::File::create(&log).map_err(prepare)?;

        let address = free_address().map_err(prepare)?;
        let mut serve = command(built(PROGRAM));
        serve.args(["serve", "--transparent", "fixture", "--http", &address.to_string()]);
        // Neither the user's servers nor those of a project are part of the test.
        serve.env("SWITCHBOARD_HOME", &home).env("HOME", &home).current_dir(&home);
        serve.stdout(Stdio::null()).stderr(words);
        let gateway = Process::spawn(PROGRAM, &mut serve)?;
        if !listens(address) {
            return Err(StartError::NotListening { address, log });
        }

        let token = home.join("state/http-token").display().to_string();
        let (url, relay) = announced("conformance-relay", &[&address.to_string(), &token])?;
        Ok(Self { url, _relay: relay, _gateway: gateway })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// A child process that is killed on drop.
struct Process(Child);

impl Process {
    fn spawn(program: &'static str, command: &mut Command) -> Result<Self, StartError> {
        let child = command.stdin(Stdio::null()).spawn();
        child.map(Self).map_err(|cause| StartError::Spawn { program, cause })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program of ours that prints its URL on its first line.
fn announced(program: &'static str, args: &[&str]) -> Result<(String, Process), StartError> {
    let mut command = command(built(program));
    let mut process = Process::spawn(program, command.args(args).stdout(Stdio::piped()))?;
    let mut url = String::new();
    let stdout = process.0.stdout.take().expect("stdout is piped");
    let read = BufReader::new(stdout).read_line(&mut url);
    match read {
        Ok(read) if read > 0 => Ok((url.trim_end().to_owned(), process)),
        Ok(_) | Err(_) => Err(StartError::NoUrl { program }),
    }
}

/// An address whose port was free just now; the kernel does not assign the same port again soon.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Waits until a program accepts connections, and returns whether it does.
fn listens(address: SocketAddr) -> bool {
    let started = Instant::now();
    while TcpStream::connect(address).is_err() {
        if started.elapsed() > START {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}

fn built(program: &str) -> PathBuf {
    target().join("debug").join(program)
}
