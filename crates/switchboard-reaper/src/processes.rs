//! What `/proc` says about processes, and how to end a tree of them from outside.

use std::collections::HashSet;
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal};

/// A process, told apart from any other that ever has its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    pub pid: i32,
    /// In ticks since the machine started.
    pub start: u64,
}

impl Identity {
    /// The process that has this number now.
    pub fn of(pid: i32) -> Option<Identity> {
        Row::read(pid).map(|row| row.identity)
    }

    pub fn is_running(self) -> bool {
        Row::read(self.pid).is_some_and(|row| row.identity == self && !row.is_over)
    }

    /// Signals this very process, or nobody.
    fn signal(self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // From here on the number means one process, whatever becomes of it.
        let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
        if Identity::of(self.pid) == Some(self) {
            let _already_gone = rustix::process::pidfd_send_signal(process, signal);
        }
    }
}

/// One line of the table of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    identity: Identity,
    parent: i32,
    group: i32,
    session: i32,
    /// It waits for its parent only, or not even for that.
    is_over: bool,
}

impl Row {
    fn read(pid: i32) -> Option<Row> {
        Row::parse(pid, &fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program, in parentheses, can hold anything.
    fn parse(pid: i32, stat: &[u8]) -> Option<Row> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = str::from_utf8(stat.get(name_end + 1..)?).ok()?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse().ok();
        Some(Row {
            identity: Identity { pid, start: fields.get(19)?.parse().ok()? },
            parent: number(1)?,
            group: number(2)?,
            session: number(3)?,
            is_over: matches!(fields.first(), Some(&("Z" | "X"))),
        })
    }
}

fn table() -> impl Iterator<Item = Row> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Row::read)
}

/// Processes whose parent is `pid`. They keep their numbers until that parent buries them.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    let parent = pid.as_raw_nonzero().get();
    table()
        .filter(|row| row.parent == parent)
        .filter_map(|row| Pid::from_raw(row.identity.pid))
        .collect()
}

/// Ends a process that is nobody's to wait for, and all that it started: first all are stopped, so
/// that none starts another one unseen, then all are killed.
pub fn end_tree(root: Identity) {
    let mut held: HashSet<Identity> = HashSet::new();
    loop {
        let rows: Vec<Row> = table().collect();
        let fresh: Vec<Identity> =
            tree(&rows, root).into_iter().filter(|process| !held.contains(process)).collect();
        if fresh.is_empty() {
            break;
        }
        for process in fresh {
            process.signal(Signal::STOP);
            held.insert(process);
        }
    }
    for process in held {
        process.signal(Signal::KILL);
    }
}

/// The root if it still runs, its descendants, and whoever is in its group or session.
fn tree(rows: &[Row], root: Identity) -> HashSet<Identity> {
    let mut members = HashSet::new();
    if !rows.iter().any(|row| row.identity == root && !row.is_over) {
        return members;
    }
    let mut pids = HashSet::from([root.pid]);
    loop {
        let before = members.len();
        for row in rows.iter().filter(|row| !row.is_over) {
            let below = pids.contains(&row.parent);
            if row.identity == root || below || row.group == root.pid || row.session == root.pid {
                pids.insert(row.identity.pid);
                members.insert(row.identity);
            }
        }
        if members.len() == before {
            return members;
        }
    }
}

/// What tells one run of the machine from the next.
pub(crate) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i32, parent: i32, group: i32, session: i32) -> Row {
        let identity = Identity { pid, start: 10 * pid.unsigned_abs() as u64 };
        Row { identity, parent, group, session, is_over: false }
    }

    #[test]
    fn a_row_is_read_whatever_the_program_is_called() {
        let stat = b"42 (a) Z 1 2 (\xff) S 7 42 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987 0 0";
        let expected = Row {
            identity: Identity { pid: 42, start: 987 },
            parent: 7,
            group: 42,
            session: 40,
            is_over: false,
        };
        assert_eq!(Row::parse(42, stat), Some(expected));
        for cut in 0..stat.len() - 8 {
            assert_eq!(Row::parse(42, &stat[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_tree_is_the_root_its_descendants_and_its_group() {
        let rows = [
            row(90, 50, 90, 90), // A helper with a session of its own.
            row(50, 10, 10, 1),
            row(10, 1, 10, 1),
            row(60, 1, 10, 1), // Its parent is gone; the group tells.
            row(70, 1, 70, 1), // Somebody else.
        ];
        let members = |root: Identity| {
            let mut pids: Vec<i32> = tree(&rows, root).iter().map(|process| process.pid).collect();
            pids.sort_unstable();
            pids
        };
        assert_eq!(members(Identity { pid: 10, start: 100 }), [10, 50, 60, 90]);
        // The number was given to another process since.
        assert_eq!(members(Identity { pid: 10, start: 99 }), [0; 0]);
    }

    #[test]
    fn this_process_is_running_and_another_one_of_its_number_is_not() {
        let own = Identity::of(rustix::process::getpid().as_raw_nonzero().get()).unwrap();
        assert!(own.is_running());
        assert!(!Identity { start: own.start + 1, ..own }.is_running());
    }
}
