//! A gateway under load for a long time, with servers that crash, hang and flood it.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Map, Value, json};
use tokio::time::{MissedTickBehavior, interval};

use crate::client::Client;
use crate::grove::{Grove, Role};
use crate::processes::until;
use crate::program::{Installed, Programs};
use crate::soak::misbehavior::Answers;
use crate::soak::vitals::Vitals;

/// The plan of a soak test. The seed selects the faults and their servers, not their timing.
#[derive(Debug, Clone, Copy)]
pub struct LoadPlan {
    pub length: Duration,
    pub servers: usize,
    pub seed: u64,
}

/// The figures of a soak test.
#[derive(Debug)]
pub struct LoadFigures {
    pub calls: usize,
    pub answers: Answers,
    /// Calls without a response.
    pub lost: usize,
    /// Second responses to a call.
    pub twice: usize,
    pub faults: BTreeMap<Fault, usize>,
    /// The measurements while no server runs, before and after the load.
    pub at_rest: [Vitals; 2],
    /// The measurements at regular times during the load.
    pub under_load: Vec<Vitals>,
    /// Processes that outlived the gateway.
    pub left: usize,
}

/// A fault that is injected into a server, apart from the faults of its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The server crashes in a call.
    Crash,
    /// The server never answers a call.
    Hang,
    /// The server responds with a line over the frame limit.
    HugeLine,
    /// The result of a call is larger than the output limit.
    LargeResult,
    /// The test kills the server.
    Kill,
    /// The server is not called for a while, until the idle timeout stops it.
    Rest,
}

/// The faults to choose from; `Rest` has its own timer.
const FAULTS: [Fault; 5] =
    [Fault::Crash, Fault::Hang, Fault::HugeLine, Fault::LargeResult, Fault::Kill];

const TOOLS: &str = "
[[tools]]
name = 'echo'
[[tools]]
name = 'hang'
behaviour = 'wait'
[[tools]]
name = 'crash'
behaviour = 'crash'
[[tools]]
name = 'huge_line'
behaviour = { kind = 'huge_line', bytes = 3_000_000 }
";

/// The scripted faults of the servers, in turn.
const CHARACTERS: [(&str, &str); 4] = [
    ("steady", ""),
    ("babbling", "garbage_between = true\n"),
    ("loud", "stderr_flood_bytes = 1_000_000\n"),
    ("deaf", "stop_reading_after = 500\n"),
];

/// The frame limit of the gateway, less than the length of a huge line.
const MAX_FRAME_BYTES: usize = 1024 * 1024;

/// The number of concurrent calls in all, and at one server.
const IN_FLIGHT: usize = 32;
const AT_ONE: usize = 4;

const FAULT_EVERY: Duration = Duration::from_millis(50);
const REST_EVERY: Duration = Duration::from_secs(4);
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The limit for the last responses after the last call.
const LAST_ANSWERS: Duration = Duration::from_secs(20);

pub async fn run_load(programs: Programs, plan: LoadPlan) -> LoadFigures {
    let grove = Grove { installed: configured(programs, plan.servers) };
    let mut client = grove.installed.connect(json!({})).await;
    // The first call starts the reaper and loads everything that servers need.
    client.mcp(json!({ "tool": "server-0_echo", "args": { "text": "up" } })).await;
    let started = Instant::now();
    let before = at_rest(&grove, &client, started).await;
    let mut load = Load::new(client, plan);
    let under_load = load.run(&grove, started, plan.length).await;
    load.last_answers().await;
    let after = at_rest(&grove, &load.client, started).await;
    for frame in load.client.end().await.frames {
        load.account.note(&frame);
    }
    let Account { calls, answers, waiting, twice, faults } = load.account;
    LoadFigures {
        calls,
        answers,
        lost: waiting.len(),
        twice,
        faults,
        at_rest: [before, after],
        under_load,
        left: grove.survivors().await.len(),
    }
}

fn configured(programs: Programs, servers: usize) -> Installed {
    let installed = Installed::bare(programs);
    let scripts = CHARACTERS.map(|(name, faults)| {
        installed.write(&format!("{name}.toml"), &format!("{TOOLS}\n[faults]\n{faults}"))
    });
    let entry = |server: usize| {
        let script = &scripts[server % scripts.len()];
        (format!("server-{server}"), json!({ "command": "fixture-server", "args": [script] }))
    };
    let servers: Map<String, Value> = (0..servers).map(entry).collect();
    let settings = json!({
        "firstListing": false,
        // An idle server is stopped after little more than a second.
        "idleTimeout": 0.02,
        "requestTimeoutMs": 1500,
        // The limit is low, because large lines in flight would hide a leak.
        "maxFrameBytes": MAX_FRAME_BYTES,
    });
    let config = json!({ "settings": settings, "mcpServers": servers });
    installed.write("switchboard/mcp.json", &config.to_string());
    installed
}

/// Waits until no server runs and the reaper has no child left.
async fn at_rest(grove: &Grove, client: &Client, started: Instant) -> Vitals {
    let vitals = || Vitals::of(grove, client.pid(), started.elapsed());
    until("every server is stopped", || {
        grove.having(Role::Server).is_empty()
            && grove.having(Role::Keeper).is_empty()
            && vitals().children == 0
    })
    .await;
    vitals()
}

struct Load {
    client: Client,
    random: fastrand::Rng,
    servers: Vec<Server>,
    account: Account,
}

#[derive(Clone, Copy, Default)]
struct Server {
    in_flight: usize,
    rests: bool,
}

/// The calls without a response, and the counts of all others.
#[derive(Default)]
struct Account {
    calls: usize,
    answers: Answers,
    /// Keyed by request id: the server of the call, and the nonce of the call.
    waiting: HashMap<u64, (usize, String)>,
    twice: usize,
    faults: BTreeMap<Fault, usize>,
}

impl Account {
    /// Counts a response, and returns its server.
    fn note(&mut self, frame: &Value) -> Option<usize> {
        if frame.get("method").is_some() {
            return None;
        }
        let Some((server, nonce)) = frame["id"].as_u64().and_then(|id| self.waiting.remove(&id))
        else {
            self.twice += 1;
            return None;
        };
        self.answers.count(frame, &frame["id"], &nonce);
        Some(server)
    }
}

impl Load {
    fn new(client: Client, plan: LoadPlan) -> Load {
        Load {
            client,
            random: fastrand::Rng::with_seed(plan.seed),
            servers: vec![Server::default(); plan.servers],
            account: Account::default(),
        }
    }

    async fn run(&mut self, grove: &Grove, started: Instant, length: Duration) -> Vec<Vitals> {
        let [mut faults, mut rests, mut looks] = [FAULT_EVERY, REST_EVERY, LOOK_EVERY].map(ticks);
        let mut seen = Vec::new();
        while started.elapsed() < length {
            while self.account.waiting.len() < IN_FLIGHT
                && let Some(server) = self.awake(AT_ONE)
            {
                self.call(server, "echo", "").await;
            }
            tokio::select! {
                frame = self.client.next() => self.answered(&frame),
                _ = faults.tick() => self.fault(grove).await,
                _ = rests.tick() => self.shuffle(),
                _ = looks.tick() => {
                    seen.push(Vitals::of(grove, self.client.pid(), started.elapsed()));
                }
            }
        }
        seen
    }

    /// A random server that is in use and has fewer calls than this.
    fn awake(&mut self, calls: usize) -> Option<usize> {
        let can = |(_, server): &(usize, &Server)| !server.rests && server.in_flight < calls;
        let ready: Vec<usize> =
            self.servers.iter().enumerate().filter(can).map(|(at, _)| at).collect();
        self.random.choice(ready)
    }

    async fn call(&mut self, server: usize, tool: &str, more: &str) {
        let nonce = format!("nonce-{}.", self.account.calls);
        let args = json!({ "text": format!("{nonce}\n{more}") });
        let call = json!({ "tool": format!("server-{server}_{tool}"), "args": args });
        let id = self.client.call(call).await.as_u64().expect("the kit counts its requests");
        self.account.calls += 1;
        self.account.waiting.insert(id, (server, nonce));
        self.servers[server].in_flight += 1;
    }

    fn answered(&mut self, frame: &Value) {
        if let Some(server) = self.account.note(frame) {
            self.servers[server].in_flight -= 1;
        }
    }

    async fn fault(&mut self, grove: &Grove) {
        let fault = self.random.choice(FAULTS).expect("there are some");
        match (fault, self.awake(usize::MAX)) {
            (Fault::Kill, _) => {
                let Some(pid) = self.random.choice(grove.having(Role::Server)) else { return };
                let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
                let _ended_already = rustix::process::kill_process(pid, Signal::KILL);
            }
            (Fault::Crash, Some(server)) => self.call(server, "crash", "").await,
            (Fault::Hang, Some(server)) => self.call(server, "hang", "").await,
            (Fault::HugeLine, Some(server)) => self.call(server, "huge_line", "").await,
            (Fault::LargeResult, Some(server)) => {
                self.call(server, "echo", &"another line\n".repeat(10_000)).await;
            }
            (Fault::Rest, _) | (_, None) => return,
        }
        *self.account.faults.entry(fault).or_default() += 1;
    }

    /// Selects the idle servers anew.
    fn shuffle(&mut self) {
        for server in &mut self.servers {
            let rested = std::mem::replace(&mut server.rests, self.random.u8(..3) == 0);
            *self.account.faults.entry(Fault::Rest).or_default() +=
                usize::from(server.rests && !rested);
        }
    }

    async fn last_answers(&mut self) {
        let answers = async {
            while !self.account.waiting.is_empty() {
                let frame = self.client.next().await;
                self.answered(&frame);
            }
        };
        // Responses that are missing now are lost.
        let _too_late = tokio::time::timeout(LAST_ANSWERS, answers).await;
    }
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
