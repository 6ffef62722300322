//! The secrets of a sign-in are in the token store only: not in output at any verbosity, not in
//! `/proc` of a running process, and not in files that a crash leaves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use serde_json::{Value, json};
use switchboard_it::authority::{Authority, Manner, Registration, Setup, redirect_of, visit};
use switchboard_it::client::Client;
use switchboard_it::processes::{children, send_signal};
use switchboard_it::program::Installed;
use tokio::process::Command;

use super::far::config;
use crate::PROGRAMS;

/// Prefix of every token, code and secret of the authorization server.
const CANARY: &str = "CANARY4711";

/// Runs programs with full logging, and records everything that they print or show.
struct Witness {
    authority: Authority,
    installed: Installed,
    recorded: Vec<(String, Vec<u8>)>,
}

impl Witness {
    async fn new() -> Witness {
        let setup = Setup {
            canary: CANARY.to_owned(),
            // This registration also issues a client secret.
            registration: Registration::ExpiringSecret,
            ..Setup::default()
        };
        let authority = Authority::start(setup).await;
        let installed = Installed::with(PROGRAMS, &config(&authority));
        fs::create_dir(installed.home().join("tmp")).unwrap();
        Witness { authority, installed, recorded: Vec::new() }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.installed.command();
        command
            .env("TMPDIR", self.installed.home().join("tmp"))
            .env("RUST_LOG", "trace")
            .env("RUST_BACKTRACE", "full")
            .arg("-vvv")
            .args(line.split(' '));
        command
    }

    fn record(&mut self, who: &str, what: impl Into<Vec<u8>>) {
        self.recorded.push((who.to_owned(), what.into()));
    }

    /// Runs a command and returns its exit code.
    async fn run(&mut self, line: &str) -> Option<i32> {
        let output = self.command(line).stdin(Stdio::null()).output().await.unwrap();
        self.record(&format!("stdout of {line}"), output.stdout);
        self.record(&format!("stderr of {line}"), output.stderr);
        output.status.code()
    }

    /// Signs in without a terminal.
    async fn sign_in(&mut self) {
        let mut auth = Client::start(&mut self.command("auth far"));
        let link = auth.line().await;
        self.record_process(auth.pid());
        self.record("the link", link.clone());
        assert_eq!(visit(link.trim_end()).await, 200);
        let ended = auth.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self.record("stderr of auth", ended.stderr);
    }

    /// Starts `serve` and connects a client.
    async fn serve(&self) -> Client {
        let mut client = Client::start(&mut self.command("serve"));
        client.initialize("2025-11-25", json!({})).await;
        client
    }

    async fn ask(&mut self, client: &mut Client, arguments: Value) -> String {
        let answer = client.mcp(arguments).await;
        self.record_process(client.pid());
        self.record("an answer", answer.clone());
        answer
    }

    async fn echo(&mut self, client: &mut Client) -> String {
        self.ask(client, json!({ "tool": "far_echo", "args": { "text": "heard" } })).await
    }

    /// Ends the process of a client by a signal, and records its output.
    async fn end_by_signal(&mut self, client: Client, signal: Signal) {
        send_signal(client.pid(), signal);
        let ended = client.ended().await;
        assert_eq!(ended.code, None);
        assert!(ended.stderr.contains("TRACE"), "{}", ended.stderr);
        self.record("stderr of serve", ended.stderr);
        self.record("frames of serve", format!("{:?}", ended.frames));
    }

    /// Records what other processes can read in `/proc` about a process and its children.
    fn record_process(&mut self, pid: u32) {
        for pid in family(pid) {
            for file in ["cmdline", "environ"] {
                // The process may have ended meanwhile.
                let shown = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                self.record(&format!("{file} of {pid}"), shown);
            }
        }
    }

    /// The recorded outputs and the files that contain a secret.
    fn leaks(&self) -> (Vec<&str>, Vec<PathBuf>) {
        let outputs = self.recorded.iter().filter(|(_, what)| has_secret(what));
        let outputs = outputs.map(|(who, _)| who.as_str()).collect();
        let home = self.installed.home();
        let files = files(home).into_iter().filter(|file| has_secret(&fs::read(file).unwrap()));
        let files = files.map(|file| file.strip_prefix(home).unwrap().to_owned()).collect();
        (outputs, files)
    }
}

fn family(pid: u32) -> Vec<u32> {
    let below = children(pid).into_iter().flat_map(family);
    std::iter::once(pid).chain(below).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&entry.path()),
            kind if kind.is_file() => vec![entry.path()],
            _ => Vec::new(),
        })
        .collect()
}

/// Whether the secret is in these bytes: as plain text, or in base64 at any alignment.
fn has_secret(bytes: &[u8]) -> bool {
    let encoded = (0..3).map(|before| {
        let whole = STANDARD.encode(format!("{}{CANARY}", "x".repeat(before)));
        // The characters at both ends depend on the neighbouring bytes.
        whole[4..whole.len() - 4].to_owned()
    });
    let mut spellings = encoded.chain([CANARY.to_owned()]);
    spellings.any(|spelling| bytes.windows(spelling.len()).any(|at| at == spelling.as_bytes()))
}

#[test]
fn canary_secret_is_recognized_in_every_encoding() {
    for text in [CANARY.to_owned(), format!("Bearer {CANARY}access-1")] {
        assert!(has_secret(text.as_bytes()), "{text}");
        for before in ["", "a", "ab", "client-1:"] {
            let encoded = STANDARD.encode(format!("{before}{text}"));
            assert!(has_secret(encoded.as_bytes()), "{before}{text}");
        }
    }
    assert!(!has_secret(b"CANARY"));
}

#[tokio::test]
async fn secrets_appear_only_in_the_token_store() {
    // Core dumps are allowed, so that a crash leaves as many files as it can.
    let most = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: most, maximum: most }).unwrap();
    let mut witness = Witness::new().await;
    assert_eq!(witness.run("call far_echo text=heard").await, Some(3));
    witness.sign_in().await;
    assert_eq!(witness.run("call far_echo text=heard").await, Some(0));

    let mut client = witness.serve().await;
    assert_eq!(witness.echo(&mut client).await, "heard");
    witness.authority.expire_tokens();
    assert_eq!(witness.echo(&mut client).await, "heard");
    for manner in [Manner::Html, Manner::Status(500), Manner::Error("invalid_request".into())] {
        witness.authority.alter(|setup| setup.token_answers.push_back(manner));
        witness.authority.expire_tokens();
        witness.echo(&mut client).await;
    }
    paste(&mut witness, &mut client).await;
    assert_eq!(witness.echo(&mut client).await, "heard");
    witness.end_by_signal(client, Signal::ABORT).await;

    let mut client = witness.serve().await;
    witness.authority.expire_tokens();
    witness.authority.alter(|setup| setup.token_answers.push_back(Manner::Late));
    let before = witness.authority.ledger().now().redemptions;
    client.call(json!({ "tool": "far_echo", "args": { "text": "lost" } })).await;
    witness.authority.ledger().until(|record| record.redemptions > before).await;
    witness.end_by_signal(client, Signal::KILL).await;

    // The last refreshed token is lost with the killed process. The authorization server rejects
    // the stored refresh token as stolen, because it was used already.
    assert_eq!(witness.run("call far_echo text=heard").await, Some(3));
    witness.sign_in().await;
    for line in REPORTS {
        witness.run(line).await;
    }
    let (outputs, files) = witness.leaks();
    assert_eq!(outputs, [""; 0]);
    let kept = |file: &PathBuf| file.starts_with("switchboard/state/tokens");
    assert!(!files.is_empty() && files.iter().all(kept), "{files:?}");

    assert_eq!(witness.run("logout far").await, Some(0));
    assert_eq!(witness.leaks(), (Vec::new(), Vec::new()));
}

/// Commands that report on servers and their sign-ins.
const REPORTS: [&str; 7] = [
    "config show",
    "config show --json",
    "status --json",
    "doctor --json",
    "logs far",
    "list --json",
    "token status --json",
];

/// Signs in through the client with the pasted callback address, which contains the code.
async fn paste(witness: &mut Witness, client: &mut Client) {
    let answer = witness.ask(client, json!({ "action": "auth-start", "server": "far" })).await;
    let link = answer.split_whitespace().find(|word| word.starts_with("http")).unwrap();
    let address = redirect_of(link).await.unwrap();
    assert!(has_secret(address.as_bytes()), "{address}");
    let complete = json!({ "action": "auth-complete", "server": "far", "args": address });
    let answer = witness.ask(client, complete).await;
    assert!(answer.contains("Signed in"), "{answer}");
}
