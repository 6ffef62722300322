//! Reads processes from `/proc`, and ends process trees.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::mark::Mark;
use crate::{PROGRAM, REAPER_SHOWN};

/// Identifies a process, even if its process id is reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub pid: i32,
    /// The start time of the process, in clock ticks since boot.
    pub start: u64,
}

impl Identity {
    /// The process that has this id now.
    pub fn of(pid: i32) -> Option<Identity> {
        ProcessRow::read(pid).map(|row| row.identity)
    }

    pub fn is_running(self) -> bool {
        ProcessRow::read(self.pid).is_some_and(|row| row.identity == self && !row.is_over)
    }

    /// Signals this process, never another one with the same id.
    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // The descriptor refers to one process, even if its id is reused.
        let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Identity::of(self.pid) == Some(self) {
            let _already_gone = rustix::process::pidfd_send_signal(process, signal);
        }
    }
}

/// One process in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessRow {
    identity: Identity,
    parent: i32,
    group: i32,
    session: i32,
    /// Whether the process has ended: it is a zombie, or dead.
    is_over: bool,
}

impl ProcessRow {
    fn read(pid: i32) -> Option<ProcessRow> {
        ProcessRow::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses a line of `/proc/PID/stat`. The name of the program, in parentheses, can contain any
    /// bytes.
    fn parse(pid: i32, stat: &[u8]) -> Option<ProcessRow> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(ProcessRow {
            identity: Identity { pid, start: fields.get(19)?.parse().ok()? },
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            // The first thread may have ended while other threads still run.
            is_over: matches!(fields.first(), Some(&("Z" | "X"))) && number(17)? <= 1,
        })
    }
}

fn table() -> impl Iterator<Item = ProcessRow> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(ProcessRow::read)
}

/// Kills all descendants of `parent`, except its children in `spared` and their descendants.
/// Processes that lose their parent become children of this process, so one round may not be
/// enough. Returns whether `parent` had such descendants.
///
/// Kills the deepest descendants first: if this process is killed meanwhile, the remaining ones
/// still form a tree.
pub(crate) fn kill_below(parent: Pid, spared: &HashSet<Pid>) -> bool {
    let rows: Vec<ProcessRow> = table().collect();
    let below = below(&rows, parent.as_raw_nonzero().get(), spared);
    below.iter().rev().for_each(|process| process.signal(Signal::KILL));
    !below.is_empty()
}

/// All descendants by generation; within one generation the oldest process is first.
fn below(rows: &[ProcessRow], parent: i32, spared: &HashSet<Pid>) -> Vec<Identity> {
    let is_spared = |pid| Pid::from_raw(pid).is_some_and(|pid| spared.contains(&pid));
    let mut found: Vec<Identity> = Vec::new();
    let mut parents = HashSet::from([parent]);
    while !parents.is_empty() {
        let mut generation: Vec<Identity> = rows
            .iter()
            .filter(|row| parents.contains(&row.parent) && !is_spared(row.identity.pid))
            .map(|row| row.identity)
            .collect();
        generation.sort_unstable_by_key(|process| (process.start, process.pid));
        // A table that changed while it was read could contain a cycle.
        generation.retain(|process| !found.contains(process));
        parents = generation.iter().map(|process| process.pid).collect();
        found.extend(generation);
    }
    found
}

/// Ends a process that is not a child of this process, with its group, its session and all their
/// descendants.
pub fn end_tree(root: Identity) {
    end(|rows| tree(rows, root));
}

/// Ends the orphaned processes of servers.
///
/// Only `/proc` decides which processes are orphaned: a server could write a file that names any
/// process of its user, to have it ended.
pub(crate) fn end_orphans(mark: Mark) {
    let is_reaper = |pid: i32| {
        let name = fs::read(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.strip_suffix(b"\n") == Some(REAPER_SHOWN.to_bytes()))
    };
    end(|rows| orphans(rows, |pid| mark.is_on(pid), is_reaper));
}

/// The marked processes whose nearest unmarked ancestor is not a reaper. A server cannot insert a
/// reaper of its own, because all its descendants are marked.
fn orphans(
    rows: &[ProcessRow],
    is_marked: impl Fn(i32) -> bool,
    is_reaper: impl Fn(i32) -> bool,
) -> Vec<Identity> {
    let parents: HashMap<i32, i32> =
        rows.iter().map(|row| (row.identity.pid, row.parent)).collect();
    let marked = rows.iter().filter(|row| !row.is_over && is_marked(row.identity.pid));
    let marked: HashMap<i32, Identity> =
        marked.map(|row| (row.identity.pid, row.identity)).collect();
    let is_orphan = |process: &&Identity| {
        let mut ancestor = process.pid;
        // A table that changed while it was read could contain a cycle.
        for _ in 0..rows.len() {
            let Some(parent) = parents.get(&ancestor) else { break };
            ancestor = *parent;
            if !marked.contains_key(&ancestor) {
                break;
            }
        }
        !is_reaper(ancestor)
    };
    marked.values().filter(is_orphan).copied().collect()
}

/// Stops the processes that `find` returns, so that they cannot start others, until it returns no
/// new ones. Then kills them all, except this process.
fn end(find: impl Fn(&[ProcessRow]) -> Vec<Identity>) {
    let own = own_pid();
    let mut held: Vec<Identity> = Vec::new();
    loop {
        let rows: Vec<ProcessRow> = table().collect();
        let mut fresh = find(&rows);
        fresh.retain(|process| process.pid != own && !held.contains(process));
        if fresh.is_empty() {
            break;
        }
        fresh.iter().for_each(|process| process.signal(Signal::STOP));
        held.extend(fresh);
    }
    // The root is killed last, because its descendants are found through it.
    held.iter().rev().for_each(|process| process.signal(Signal::KILL));
}

/// The root, if it still runs, with its group, its session and all their descendants.
fn tree(rows: &[ProcessRow], root: Identity) -> Vec<Identity> {
    if !rows.iter().any(|row| row.identity == root && !row.is_over) {
        return Vec::new();
    }
    let mut members = vec![root];
    let own = |row: &&ProcessRow| row.group == root.pid || row.session == root.pid;
    members.extend(rows.iter().filter(own).map(|row| row.identity));
    for at in 0..members.len() {
        let Some(member) = members.get(at).copied() else { break };
        members.extend(below(rows, member.pid, &HashSet::new()));
    }
    let mut seen = HashSet::new();
    members.retain(|member| seen.insert(*member));
    members
}

/// The id of this process.
pub(crate) fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether `/proc` is available: it is necessary to identify processes and to restart this program.
/// Some containers and sandboxes have none.
pub fn can_be_seen() -> bool {
    Path::new(PROGRAM).is_symlink() && Identity::of(own_pid()).is_some()
}

/// The number of this process's PID namespace, in which process ids are unique; 0 if the kernel has
/// no namespaces.
pub(crate) fn namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// The kernel's id of the current boot.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, parent: i32, group: i32, session: i32) -> ProcessRow {
        let identity = Identity { pid, start: 10 * pid.unsigned_abs() as u64 };
        ProcessRow { identity, parent, group, session, is_over: false }
    }

    #[test]
    fn proc_pid_stat_with_odd_program_name_is_parsed() {
        let stat = b"42 (a) Z 1 2 (\xff) S 7 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0";
        let expected = ProcessRow {
            identity: Identity { pid: 42, start: 987 },
            parent: 7,
            group: 42,
            session: 40,
            is_over: false,
        };
        assert_eq!(ProcessRow::parse(42, stat), Some(expected));
        for cut in 0..stat.len() - 8 {
            assert_eq!(ProcessRow::parse(42, &stat[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn process_runs_until_its_last_thread_has_ended() {
        for (state, threads, is_over) in
            [("Z", 1, true), ("Z", 2, false), ("S", 2, false), ("X", 1, true)]
        {
            let stat =
                format!("42 (x) {state} 7 42 40 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 987 0 0");
            let row = ProcessRow::parse(42, stat.as_bytes()).unwrap();
            assert_eq!(row.is_over, is_over, "{state} {threads}");
        }
    }

    #[test]
    fn marked_process_without_a_reaper_is_an_orphan() {
        const REAPER: i32 = 20;
        let rows = [
            row(20, 1, 20, 20),
            // A keeper, its server and a daemon of the server.
            row(21, 20, 20, 20),
            row(22, 21, 22, 22),
            row(23, 21, 23, 23),
            // Leftovers of another gateway, with a reaper of their own.
            row(30, 1, 30, 30),
            row(31, 30, 31, 31),
            // An unrelated process.
            row(40, 1, 40, 40),
        ];
        let is_marked = |pid: i32| matches!(pid, 21..=23 | 30..=31);
        let mut found = pids(&orphans(&rows, is_marked, |pid| [REAPER, 30].contains(&pid)));
        found.sort_unstable();
        assert_eq!(found, [30, 31]);
        let circle = [row(2, 3, 2, 1), row(3, 2, 2, 1)];
        assert_eq!(orphans(&circle, |_| true, |_| false).len(), 2);
    }

    fn pids(processes: &[Identity]) -> Vec<i32> {
        processes.iter().map(|process| process.pid).collect()
    }

    #[test]
    fn process_tree_contains_root_its_group_and_descendants() {
        let rows = [
            row(90, 60, 90, 90), // A helper with a session of its own.
            row(50, 10, 10, 1),
            row(10, 1, 10, 1),
            row(60, 1, 10, 1), // Its parent has ended; the process group identifies it.
            row(70, 1, 70, 1), // An unrelated process.
        ];
        let mut members = pids(&tree(&rows, Identity { pid: 10, start: 100 }));
        assert_eq!(members.first(), Some(&10));
        members.sort_unstable();
        assert_eq!(members, [10, 50, 60, 90]);
        // The process id has been reused since.
        assert_eq!(tree(&rows, Identity { pid: 10, start: 99 }), []);
    }

    #[test]
    fn descendants_are_ordered_by_generation_omitting_spared_processes() {
        let rows = [
            row(4, 3, 4, 4),
            row(3, 2, 2, 1),
            row(2, 1, 2, 1),
            row(9, 1, 9, 9),
            row(7, 6, 6, 1),
            row(6, 1, 6, 1),
        ];
        let spared: HashSet<Pid> = Pid::from_raw(6).into_iter().collect();
        assert_eq!(pids(&below(&rows, 1, &spared)), [2, 9, 3, 4]);
        // The table was read while a process id was reused.
        let circle = [row(2, 3, 2, 1), row(3, 2, 2, 1)];
        assert_eq!(pids(&below(&circle, 3, &HashSet::new())), [2, 3]);
    }

    #[test]
    fn process_identity_includes_its_start_time() {
        let own = Identity::of(own_pid()).unwrap();
        assert!(own.is_running());
        assert!(!Identity { start: own.start + 1, ..own }.is_running());
    }
}
