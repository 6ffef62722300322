//! Reads the state of processes from `/proc`, and waits for changes with a limit.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal};

/// The limit for a process to end.
const DEADLINE: Duration = Duration::from_secs(50);

/// The polling interval: the kernel cannot notify about processes that are not children.
const PERIOD: Duration = Duration::from_millis(5);

/// Whether the process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some('Z' | 'X'))
}

/// Processes whose parent is `pid`, zombies included.
pub fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("a Linux machine").flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        if rest.split_whitespace().nth(1) == Some(pid.to_string().as_str())
            && let Ok(child) = entry.file_name().to_string_lossy().parse()
        {
            found.push(child);
        }
    }
    found
}

/// Whether a thread of the process waits for its standard input.
pub fn reads_its_input(pid: u32) -> bool {
    const READ: &str = if cfg!(target_arch = "x86_64") { "0 0x0 " } else { "63 0x0 " };
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut calls =
        threads.filter_map(|entry| fs::read_to_string(entry.path().join("syscall")).ok());
    calls.any(|call| call.starts_with(READ))
}

/// The processor time of the process so far, if it still runs.
pub fn processor_time(pid: u32) -> Option<Duration> {
    const TICK: Duration = Duration::from_millis(10);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    let ticks = rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u32>());
    Some(TICK * ticks.sum::<Result<u32, _>>().ok()?)
}

/// The resident memory of the process, in bytes.
pub fn memory(pid: u32) -> u64 {
    status(pid, "VmRSS:")
}

/// The peak resident memory of the process, in bytes.
pub fn peak_memory(pid: u32) -> u64 {
    status(pid, "VmHWM:")
}

fn status(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("every process has memory") * 1024
}

/// The number of open descriptors of the process.
pub fn open_files(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs").count()
}

/// Waits until `condition` holds.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(PERIOD).await;
        }
    };
    if tokio::time::timeout(DEADLINE, waiting).await.is_err() {
        panic!("timed out waiting until {what}");
    }
}

/// Waits until none of the processes is left.
pub async fn until_gone(pids: &[u32]) {
    until(&format!("all of {pids:?} are gone"), || !pids.iter().any(|pid| is_alive(*pid))).await;
}

pub fn send_signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    rustix::process::kill_process(pid, signal).expect("the process runs");
}
