//! The mark by which every process of a server is found, wherever it went.
//!
//! It is the limit of a resource that nothing uses, the processor time of real-time tasks, set to a
//! random number of many years. All descendants inherit it, whatever else they leave behind:
//! parent, group, session, environment or working directory. None can raise it, and everyone can
//! read it in `/proc`.

use std::fs;
use std::io;

use rustix::process::{Resource, Rlimit};

/// Below infinity, which is what a process has that is not marked.
const UNLIMITED: u64 = 1 << 62;

/// In microseconds, 35 years: no program is ever stopped by its mark.
const LOWEST: u64 = 1 << 50;

/// What tells the processes of one server from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    /// Marks this process and all that it starts from now on. `None` where the limit is in use.
    pub(crate) fn set() -> Option<Mark> {
        let limit = rustix::process::getrlimit(Resource::Rttime);
        let highest = limit.maximum.unwrap_or(UNLIMITED).min(UNLIMITED);
        // A gateway below a server of another gateway has a mark already, and can only lower it.
        let lowest = highest / 2;
        if lowest < LOWEST {
            return None;
        }
        let mark = lowest + random().ok()? % (highest - lowest);
        let limit = Rlimit { current: Some(mark), maximum: Some(mark) };
        rustix::process::setrlimit(Resource::Rttime, limit).ok()?;
        Some(Mark(mark))
    }

    /// Whether the process has this mark now.
    pub(crate) fn is_on(self, pid: i32) -> bool {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits"));
        limits.is_ok_and(|limits| hard_limit(&limits) == Some(self.0))
    }
}

/// The hard limit, which a process cannot raise again.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

fn random() -> io::Result<u64> {
    let mut bytes = [0; size_of::<u64>()];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_limit_is_read_from_the_table_of_limits() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max realtime priority     0                    0                    \n\
                     Max realtime timeout      5                    4611686018427387903  us        \n";
        assert_eq!(hard_limit(table), Some(4_611_686_018_427_387_903));
        assert_eq!(hard_limit(&table.replace("4611686018427387903", "unlimited")), None);
        assert_eq!(hard_limit(""), None);
    }
}
