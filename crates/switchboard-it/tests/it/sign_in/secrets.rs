//! The secrets of a sign-in are where they are kept and nowhere else: not in what anybody says at
//! any verbosity, and not in what a process shows while it runs or leaves when it crashes.

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

/// Every token, code and secret of the authority begins with it.
const CANARY: &str = "CANARY4711";

/// A program that says all it can, and everything that it and others like it said and showed.
struct Witness {
    authority: Authority,
    installed: Installed,
    heard: Vec<(String, Vec<u8>)>,
}

impl Witness {
    async fn new() -> Witness {
        let setup = Setup {
            canary: CANARY.to_owned(),
            // So that there is a secret of the client, too.
            registration: Registration::ExpiringSecret,
            ..Setup::default()
        };
        let authority = Authority::start(setup).await;
        let installed = Installed::with(PROGRAMS, &config(&authority));
        fs::create_dir(installed.home().join("tmp")).unwrap();
        Witness { authority, installed, heard: Vec::new() }
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

    fn hears(&mut self, who: &str, what: impl Into<Vec<u8>>) {
        self.heard.push((who.to_owned(), what.into()));
    }

    /// Runs a command to its end; its exit code.
    async fn run(&mut self, line: &str) -> Option<i32> {
        let output = self.command(line).stdin(Stdio::null()).output().await.unwrap();
        self.hears(&format!("stdout of {line}"), output.stdout);
        self.hears(&format!("stderr of {line}"), output.stderr);
        output.status.code()
    }

    /// Signs in without a terminal.
    async fn sign_in(&mut self) {
        let mut auth = Client::start(&mut self.command("auth far"));
        let link = auth.line().await;
        self.looks_at(auth.pid());
        self.hears("the link", link.clone());
        assert_eq!(visit(link.trim_end()).await, 200);
        let ended = auth.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        self.hears("stderr of auth", ended.stderr);
    }

    /// A client of `serve`.
    async fn serve(&self) -> Client {
        let mut client = Client::start(&mut self.command("serve"));
        client.initialize("2025-11-25", json!({})).await;
        client
    }

    async fn ask(&mut self, client: &mut Client, arguments: Value) -> String {
        let answer = client.mcp(arguments).await;
        self.looks_at(client.pid());
        self.hears("an answer", answer.clone());
        answer
    }

    async fn echo(&mut self, client: &mut Client) -> String {
        self.ask(client, json!({ "tool": "far_echo", "args": { "text": "heard" } })).await
    }

    /// Ends a client's process by a signal.
    async fn strikes(&mut self, client: Client, signal: Signal) {
        send_signal(client.pid(), signal);
        let ended = client.ended().await;
        assert_eq!(ended.code, None);
        assert!(ended.stderr.contains("TRACE"), "{}", ended.stderr);
        self.hears("stderr of serve", ended.stderr);
        self.hears("frames of serve", format!("{:?}", ended.frames));
    }

    /// What everybody on this machine can see of a process, or whoever is the same user.
    fn looks_at(&mut self, pid: u32) {
        for pid in family(pid) {
            for file in ["cmdline", "environ"] {
                // It may have ended meanwhile.
                let shown = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                self.hears(&format!("{file} of {pid}"), shown);
            }
        }
    }

    /// Where a secret was heard of, and the files that have one.
    fn found(&self) -> (Vec<&str>, Vec<PathBuf>) {
        let heard = self.heard.iter().filter(|(_, what)| has_secret(what));
        let heard = heard.map(|(who, _)| who.as_str()).collect();
        let home = self.installed.home();
        let files = files(home).into_iter().filter(|file| has_secret(&fs::read(file).unwrap()));
        let files = files.map(|file| file.strip_prefix(home).unwrap().to_owned()).collect();
        (heard, files)
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

/// As it is, or in base64, wherever it begins there.
fn has_secret(bytes: &[u8]) -> bool {
    let encoded = (0..3).map(|before| {
        let whole = STANDARD.encode(format!("{}{CANARY}", "x".repeat(before)));
        // What stands at the ends depends on what is beside it.
        whole[4..whole.len() - 4].to_owned()
    });
    let mut spellings = encoded.chain([CANARY.to_owned()]);
    spellings.any(|spelling| bytes.windows(spelling.len()).any(|at| at == spelling.as_bytes()))
}

#[test]
fn a_secret_is_recognized_however_it_is_written() {
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
async fn secrets_are_where_they_are_kept_and_nowhere_else() {
    // What a crash may leave, it leaves.
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
    witness.strikes(client, Signal::ABORT).await;

    let mut client = witness.serve().await;
    witness.authority.expire_tokens();
    witness.authority.alter(|setup| setup.token_answers.push_back(Manner::Late));
    let before = witness.authority.ledger().now().redemptions;
    client.call(json!({ "tool": "far_echo", "args": { "text": "lost" } })).await;
    witness.authority.ledger().until(|record| record.redemptions > before).await;
    witness.strikes(client, Signal::KILL).await;

    // What was granted last is lost with that process, and the authority takes it for theft.
    assert_eq!(witness.run("call far_echo text=heard").await, Some(3));
    witness.sign_in().await;
    for line in REPORTS {
        witness.run(line).await;
    }
    let (heard, files) = witness.found();
    assert_eq!(heard, [""; 0]);
    let kept = |file: &PathBuf| file.starts_with("switchboard/state/tokens");
    assert!(!files.is_empty() && files.iter().all(kept), "{files:?}");

    assert_eq!(witness.run("logout far").await, Some(0));
    assert_eq!(witness.found(), (Vec::new(), Vec::new()));
}

/// What tells about servers and their sign-ins.
const REPORTS: [&str; 7] = [
    "config show",
    "config show --json",
    "status --json",
    "doctor --json",
    "logs far",
    "list --json",
    "token status --json",
];

/// Signs in through the client, with the address at which the browser ended: it has the code.
async fn paste(witness: &mut Witness, client: &mut Client) {
    let answer = witness.ask(client, json!({ "action": "auth-start", "server": "far" })).await;
    let link = answer.split_whitespace().find(|word| word.starts_with("http")).unwrap();
    let address = redirect_of(link).await.unwrap();
    assert!(has_secret(address.as_bytes()), "{address}");
    let complete = json!({ "action": "auth-complete", "server": "far", "args": address });
    let answer = witness.ask(client, complete).await;
    assert!(answer.contains("Signed in"), "{answer}");
}
