//! A gateway whose servers are process trees that ignore signals, and every way to kill it.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde_json::{Map, Value, json};

use crate::client::Client;
use crate::fixture::Helper;
use crate::processes::{children, is_alive, until, until_gone};
use crate::program::{Installed, Programs};

/// A home with servers: each is a launcher with a server and its helper.
pub struct Grove {
    pub installed: Installed,
}

/// How launchers, servers and helpers react to the end of input and to signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temper {
    /// Launcher and server end at the end of their input; the helper has no input.
    Obedient,
    /// All ignore the end of their input, SIGTERM, SIGHUP and SIGINT.
    Stubborn,
}

/// The processes that are killed at the same time, with SIGKILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    Gateway,
    Reaper,
    Keepers,
    GatewayAndReaper,
    GatewayAndKeepers,
    Everyone,
}

impl Victims {
    fn includes(self, role: Role) -> bool {
        match role {
            Role::Gateway => !matches!(self, Victims::Reaper | Victims::Keepers),
            Role::Reaper => {
                matches!(self, Victims::Reaper | Victims::GatewayAndReaper | Victims::Everyone)
            }
            Role::Keeper => {
                matches!(self, Victims::Keepers | Victims::GatewayAndKeepers | Victims::Everyone)
            }
            Role::Server => false,
        }
    }
}

/// The stage of a server start at which the kill happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    Asked,
    ReaperRuns,
    KeeperRuns,
    ServerRuns,
    TreeUp,
}

impl Moment {
    pub const ALL: [Moment; 5] =
        [Moment::Asked, Moment::ReaperRuns, Moment::KeeperRuns, Moment::ServerRuns, Moment::TreeUp];
}

/// The role of a process in the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Gateway,
    Reaper,
    Keeper,
    /// A server or a descendant of it.
    Server,
}

impl Grove {
    /// A home with this many servers, `tree-0` and so on.
    pub fn new(programs: Programs, trees: usize, helper: Helper, temper: Temper) -> Grove {
        let grove = Grove { installed: Installed::bare(programs) };
        let helper = match helper {
            Helper::Session => "session",
            Helper::Daemon => "daemon",
        };
        let (ignore_eof, trap) = match temper {
            Temper::Obedient => (false, ""),
            Temper::Stubborn => (true, "trap '' TERM HUP INT; "),
        };
        let script = format!(
            "[faults]\nignore_eof = {ignore_eof}\nhelper = '{helper}'\n[[tools]]\nname = 'echo'\n"
        );
        let script = grove.installed.write("tree.toml", &script);
        let launcher = format!("{trap}fixture-server '{}'; exit", script.display());
        grove.installed.write("launcher", &launcher);
        grove.plant(0..trees);
        grove
    }

    /// Configures exactly these servers.
    pub fn plant(&self, trees: impl Iterator<Item = usize>) {
        let launcher = self.installed.home().join("launcher");
        let entry = json!({ "command": "sh", "args": [launcher] });
        let servers: Map<String, Value> =
            trees.map(|tree| (format!("tree-{tree}"), entry.clone())).collect();
        let config = json!({ "settings": { "firstListing": false }, "mcpServers": servers });
        self.installed.write("switchboard/mcp.json", &config.to_string());
    }

    /// Starts a gateway and waits until the start of `tree-0` reaches this stage.
    pub async fn reach(&self, moment: Moment) -> Client {
        let mut client = self.installed.connect(json!({})).await;
        let start = client.call(json!({ "connect": "tree-0" })).await;
        match moment {
            Moment::Asked => {}
            Moment::ReaperRuns => self.until_there(Role::Reaper).await,
            Moment::KeeperRuns => self.until_there(Role::Keeper).await,
            Moment::ServerRuns => self.until_there(Role::Server).await,
            Moment::TreeUp => {
                client.answer_to(&start).await;
                assert_eq!(call(&mut client, 0, "up").await, "up");
            }
        }
        client
    }

    async fn until_there(&self, role: Role) {
        until(&format!("there is a {role:?}"), || !self.having(role).is_empty()).await;
    }

    /// Kills the running victims.
    pub fn kill(&self, victims: Victims) -> Instant {
        let mut processes = self.processes();
        // The kernel continues the stopped reaper and keepers when the gateway ends, so it is last.
        processes.sort_by_key(|(_, role)| match role {
            Role::Server => 0,
            Role::Keeper => 1,
            Role::Reaper => 2,
            Role::Gateway => 3,
        });
        // Stopped first, so that none of them reacts to the end of another.
        for signal in [Signal::STOP, Signal::KILL] {
            for (pid, _) in processes.iter().filter(|(_, role)| victims.includes(*role)) {
                let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw).expect("a process id");
                let _ended_already = rustix::process::kill_process(pid, signal);
            }
        }
        Instant::now()
    }

    /// Kills gateway, reaper and keepers, and waits until they have ended.
    pub async fn kill_all_roles(&self, client: Client) {
        let doomed = [self.having(Role::Reaper), self.having(Role::Keeper)].concat();
        self.kill(Victims::Everyone);
        client.ended().await;
        until_gone(&doomed).await;
    }

    /// All processes of this home, found by the variable `HOME` that they inherit.
    pub fn processes(&self) -> Vec<(u32, Role)> {
        let mark = format!("HOME={}", self.installed.home().display());
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").expect("a Linux machine").flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            if environment.split(|byte| *byte == 0).any(|one| one == mark.as_bytes()) {
                found.extend(role(pid).map(|role| (pid, role)));
            }
        }
        found
    }

    pub fn having(&self, role: Role) -> Vec<u32> {
        let having = |(pid, its): (u32, Role)| (its == role).then_some(pid);
        self.processes().into_iter().filter_map(having).collect()
    }

    /// Waits until no process of this home runs.
    pub async fn until_empty(&self) {
        until(&format!("nothing runs in {:?}", self.installed.home()), || {
            !self.processes().iter().any(|(pid, _)| is_alive(*pid))
        })
        .await;
    }

    /// The processes of this home that still run after five seconds.
    pub async fn survivors(&self) -> Vec<u32> {
        const A_WHILE: Duration = Duration::from_secs(5);
        let alive =
            || self.processes().into_iter().map(|(pid, _)| pid).filter(|pid| is_alive(*pid));
        let asked = Instant::now();
        loop {
            let survivors: Vec<u32> = alive().collect();
            if survivors.is_empty() || asked.elapsed() > A_WHILE {
                return survivors;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Kills the victims at this moment, one of which is the gateway. Returns the time until all
    /// other processes ended.
    pub async fn fell(&self, victims: Victims, moment: Moment) -> Duration {
        let client = self.reach(moment).await;
        self.end(client, victims).await
    }

    /// Kills the victims and waits until no process is left; returns the time.
    pub async fn end(&self, client: Client, victims: Victims) -> Duration {
        let fallen = self.kill(victims);
        client.ended().await;
        self.until_empty().await;
        fallen.elapsed()
    }

    /// Kills the victims at this moment, but not the gateway. Returns the time until the old
    /// server's processes ended. Checks that the gateway can start the server again.
    pub async fn wound(&self, victims: Victims, moment: Moment) -> Duration {
        let mut client = self.reach(moment).await;
        let before = self.having(Role::Server);
        let fallen = self.kill(victims);
        until("the old tree is gone", || !before.iter().any(|pid| is_alive(*pid))).await;
        let took = fallen.elapsed();
        assert_eq!(call(&mut client, 0, "again").await, "again");
        let zombies = || self.processes().iter().any(|(pid, _)| has_zombies(*pid));
        until("no process has a zombie", || !zombies()).await;
        self.end(client, Victims::Gateway).await;
        took
    }

    /// Starts this many servers and closes the gateway's input; returns the time until it ended.
    pub async fn close(&self, trees: usize) -> Duration {
        let mut client = self.installed.connect(json!({})).await;
        for tree in 0..trees {
            assert_eq!(call(&mut client, tree, "up").await, "up");
        }
        let asked = Instant::now();
        assert_eq!(client.end().await.code, Some(0));
        let took = asked.elapsed();
        self.until_empty().await;
        took
    }
}

/// Every command, for a home with one server. Later commands undo the changes of earlier ones.
pub const COMMANDS: &[&[&str]] = &[
    &["connect", "tree-0"],
    &["reconnect", "tree-0"],
    &["call", "tree-0_echo", "text=hi"],
    &["call", "tree-0_nothing"],
    &["tools"],
    &["search", "echo"],
    &["describe", "tree-0_echo"],
    &["instructions", "tree-0"],
    &["resources"],
    &["read", "no://thing"],
    &["prompts"],
    &["prompt", "tree-0_nothing"],
    &["status"],
    &["status", "--check"],
    &["inspect", "tree-0"],
    &["inspect", "tree-0", "tools/list"],
    &["disconnect", "tree-0"],
    &["pins"],
    &["pins", "accept", "tree-0"],
    &["token", "set", "tree-0"],
    &["token", "status"],
    &["token", "remove", "tree-0"],
    &["logs", "tree-0"],
    &["auth", "tree-0"],
    &["logout", "tree-0"],
    &["doctor"],
    &["serve"],
    &["demo"],
    &["setup"],
    &["trust"],
    &["untrust", "tree-0"],
    &["disable", "tree-0"],
    &["enable", "tree-0"],
    &["add", "--no-check", "other", "sh", "--", "-c", "exit"],
    &["config", "set", "maxTools", "5"],
    &["config", "edit"],
    &["connect", "other"],
    &["remove", "other"],
    &["allow", "tree-0_echo"],
    &["deny", "tree-0_nothing"],
    &["import", "--yes"],
    &["install", "cursor", "--yes"],
    &["uninstall", "cursor", "--yes"],
    &["config", "path"],
    &["config", "show"],
    &["config", "check"],
    &["config", "schema"],
    &["completions", "bash"],
];

/// Calls a tool; reconnects and retries once if the server has just ended.
pub async fn call(client: &mut Client, tree: usize, text: &str) -> String {
    let arguments = json!({ "tool": format!("tree-{tree}_echo"), "args": { "text": text } });
    let said = client.mcp(arguments.clone()).await;
    if said == text {
        return said;
    }
    client.mcp(json!({ "connect": format!("tree-{tree}") })).await;
    client.mcp(arguments).await
}

fn has_zombies(pid: u32) -> bool {
    children(pid).iter().any(|child| !is_alive(*child))
}

/// The role of a process; `None` if it has ended.
fn role(pid: u32) -> Option<Role> {
    let words = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let name = words.split(|byte| *byte == 0).next()?;
    let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let is_ours =
        program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("switchboard"));
    match name {
        b"" => None,
        b"switchboard-reaper" => Some(Role::Reaper),
        b"switchboard-keeper" => Some(Role::Keeper),
        _ if is_ours => Some(Role::Gateway),
        _ => Some(Role::Server),
    }
}
