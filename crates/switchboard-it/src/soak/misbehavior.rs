//! Misbehaving servers, and their effect on clients and on other servers.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::client::{Client, text};
use crate::http_client::mcp_call;
use crate::processes::{peak_memory, send_signal};
use crate::program::{Installed, Programs};

/// One call in twenty crashes the server, and invalid bytes precede each response.
const FLAKY: &str = "
[[tools]]
name = 'echo'

[faults]
crash_percent = 5
garbage_between = true
";

const COMMITS: &str = "
[[tools]]
name = 'die'
behaviour = { kind = 'commit', then = 'die' }
";

const STEADY: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'wait'
behaviour = 'wait'
";

/// The results of the calls of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers {
    /// Calls with the right result.
    pub right: usize,
    /// Calls that failed because the server ended, by error code.
    pub failed: BTreeMap<String, usize>,
    /// Calls with any other result, such as that of another call.
    pub wrong: usize,
}

/// Many sessions with the same request ids call a server that crashes often. Panics if a response
/// is missing.
pub async fn answers(programs: Programs, sessions: usize, calls: usize) -> Answers {
    let installed = Installed::with_fixture(programs, "flaky", FLAKY);
    let served = installed.serve_http().await;
    let mut clients = JoinSet::new();
    for session in 0..sessions {
        let mut client = served.connect(json!({})).await;
        clients.spawn(async move {
            let mut answers = Answers::default();
            for call in 0..calls {
                let nonce = format!("nonce-{session}-{call}.");
                let args = json!({ "tool": "flaky_echo", "args": { "text": nonce } });
                let answer = client.post(&mcp_call(json!(1), args)).await.json();
                answers.count(&answer, &json!(1), &nonce);
            }
            answers
        });
    }
    let mut answers = Answers::default();
    for some in clients.join_all().await {
        answers.right += some.right;
        answers.wrong += some.wrong;
        for (code, count) in some.failed {
            *answers.failed.entry(code).or_default() += count;
        }
    }
    served.terminate();
    served.ended().await;
    answers
}

impl Answers {
    /// Counts the response to a call whose text has the nonce as its first line, after the id of a
    /// stored result.
    pub(crate) fn count(&mut self, answer: &Value, id: &Value, nonce: &str) {
        let said = text(answer);
        let failed = answer["result"]["isError"] == true || answer.get("error").is_some();
        let code = said.split(':').next().unwrap_or_default();
        let counter = match answer["id"] == *id {
            true if !failed && first_line(&said) == Some(nonce) => &mut self.right,
            true if failed && !said.replace(nonce, "").contains("nonce-") => {
                self.failed.entry(code.to_owned()).or_default()
            }
            _ => &mut self.wrong,
        };
        *counter += 1;
    }
}

/// The first line of the tool's own text.
fn first_line(said: &str) -> Option<&str> {
    said.lines().find(|line| !line.starts_with("[result: "))
}

/// The outcome of calls with an effect whose server exits before it responds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Commits {
    /// Calls with the failure `outcome_unknown`.
    pub unknown: usize,
    /// Effects that happened more than once.
    pub twice: usize,
}

pub async fn commits(programs: Programs, trials: usize) -> Commits {
    let installed = Installed::with_fixture(programs, "bank", COMMITS);
    let ledger = installed.home().join("ledger");
    let mut client = installed.connect(json!({})).await;
    let mut commits = Commits::default();
    for trial in 0..trials {
        // An explicit connect ends the backoff of a server that crashes.
        client.mcp(json!({ "connect": "bank" })).await;
        let args = json!({ "key": trial.to_string(), "ledger": ledger });
        let said = client.mcp(json!({ "tool": "bank_die", "args": args })).await;
        commits.unknown += usize::from(said.starts_with("outcome_unknown"));
    }
    client.end().await;
    let mut done: HashMap<String, usize> = HashMap::new();
    for key in fs::read_to_string(ledger).unwrap_or_default().lines() {
        *done.entry(key.to_owned()).or_default() += 1;
    }
    commits.twice = done.values().filter(|times| **times > 1).count();
    commits
}

/// The p50 and p99 latency of calls.
#[derive(Debug, Clone, Copy)]
pub struct Latency {
    pub p50: Duration,
    pub p99: Duration,
}

impl Latency {
    pub fn of(mut times: Vec<Duration>) -> Latency {
        times.sort_unstable();
        let at = |percent: usize| times.get(times.len() * percent / 100).copied();
        Latency { p50: at(50).unwrap_or_default(), p99: at(99).unwrap_or_default() }
    }
}

/// How a server misbehaves beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misbehavior {
    Hangs,
    FloodsStderr,
    NeverEndsALine,
    StopsReading,
}

impl Misbehavior {
    pub const ALL: [Misbehavior; 4] =
        [Self::Hangs, Self::FloodsStderr, Self::NeverEndsALine, Self::StopsReading];

    fn script(self) -> &'static str {
        match self {
            Self::Hangs => "[[tools]]\nname = 'act'\nbehaviour = 'wait'\n",
            Self::FloodsStderr => {
                "[[tools]]\nname = 'act'\n[faults]\nstderr_flood_bytes = 1_073_741_824\n"
            }
            Self::NeverEndsALine => {
                "[[tools]]\nname = 'act'\n\
                 behaviour = { kind = 'huge_line', bytes = 4_294_967_296 }\n"
            }
            Self::StopsReading => "[[tools]]\nname = 'act'\n[faults]\nstop_reading_after = 3\n",
        }
    }
}

/// The effect of a misbehaving server on another server.
#[derive(Debug, Clone, Copy)]
pub struct MisbehaviorEffect {
    pub quiet: Latency,
    pub beside: Latency,
    /// The growth of the gateway's peak memory, in bytes.
    pub grew: u64,
}

pub async fn measure_beside(
    programs: Programs,
    misbehavior: Misbehavior,
    calls: usize,
) -> MisbehaviorEffect {
    let installed = Installed::bare(programs);
    let script = |name: &str, text: &str| json!({ "command": "fixture-server", "args": [installed.write(name, text)] });
    let servers = json!({
        "steady": script("steady.toml", STEADY),
        "nuisance": script("nuisance.toml", misbehavior.script()),
    });
    let config = json!({ "mcpServers": servers, "settings": { "firstListing": false } });
    installed.write("switchboard/mcp.json", &config.to_string());
    let mut client = installed.connect(json!({})).await;
    measure(&mut client, calls / 4).await;
    let quiet = measure(&mut client, calls).await;
    let before = peak_memory(client.pid());
    // More than the server reads and its pipe holds.
    for _ in 0..16 {
        let args = json!({ "padding": "x".repeat(16 * 1024) });
        let call = json!({ "name": "mcp", "arguments": { "tool": "nuisance_act", "args": args } });
        client.request("tools/call", call).await;
    }
    let beside = measure(&mut client, calls).await;
    let grew = peak_memory(client.pid()).saturating_sub(before);
    drop(client);
    MisbehaviorEffect { quiet, beside, grew }
}

async fn measure(client: &mut Client, calls: usize) -> Latency {
    let mut times = Vec::with_capacity(calls);
    for call in 0..calls {
        let nonce = call.to_string();
        let started = Instant::now();
        let said = client.mcp(json!({ "tool": "steady_echo", "args": { "text": nonce } })).await;
        times.push(started.elapsed());
        assert_eq!(said, nonce);
    }
    Latency::of(times)
}

/// The time until a call fails after its server was killed.
pub async fn time_to_report_exit(programs: Programs) -> Duration {
    let installed = Installed::with_fixture(programs, "steady", STEADY);
    let mut client = installed.connect(json!({})).await;
    client.mcp(json!({ "tool": "steady_echo", "args": { "text": "up" } })).await;
    let call = json!({ "name": "mcp", "arguments": { "tool": "steady_wait" } });
    let id = client.request("tools/call", call).await;
    // Requests are sent in order, so the server has the first call now.
    client.mcp(json!({ "tool": "steady_echo", "args": { "text": "busy" } })).await;
    let server = installed.spawned().pop().expect("the server runs");
    let killed = Instant::now();
    send_signal(server, Signal::KILL);
    let answer = client.answer_to(&id).await;
    let took = killed.elapsed();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    client.end().await;
    took
}
