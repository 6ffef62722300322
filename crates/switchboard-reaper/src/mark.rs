//! The mark by which every process of a server is found, wherever it went.
//!
//! It is the limit of a resource that nothing uses, the processor time of real-time tasks, set to a
//! number of many years that nothing else sets. All descendants inherit it, whatever else they leave
//! behind: parent, group, session, environment or working directory. None can raise it, a confined
//! one cannot change it, and everyone can read it in `/proc`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Resource, Rlimit};

/// Below infinity, which is what a process has that is not marked.
const UNLIMITED: u64 = 1 << 62;

/// In microseconds, 35 years: no program is ever stopped by its mark.
const LOWEST: u64 = 1 << 50;

/// The lowest bits of every mark: no limit of another origin has them.
const SIGN: u64 = 0x5_b0a2;
const SIGN_BITS: u32 = 20;

/// The bits above tell the servers of one home from those of another.
const HOME_BITS: u32 = 24;
const ALL_BITS: u64 = (1 << (SIGN_BITS + HOME_BITS)) - 1;

/// What the processes of all servers of one home have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// Of the home in which records lie here.
    pub(crate) fn of(records: &Path) -> Mark {
        // FNV-1a.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = records.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
        let home = (hash ^ (hash >> 32)) & ((1 << HOME_BITS) - 1);
        Mark(home << SIGN_BITS | SIGN)
    }

    /// Marks this process and all that it starts from now on, unless the limit is in use.
    pub(crate) fn set(self) {
        let limit = rustix::process::getrlimit(Resource::Rttime);
        let highest = limit.maximum.unwrap_or(UNLIMITED).min(UNLIMITED);
        // A gateway below a server of another gateway has a mark already, and can only lower it.
        let lowest = highest / 2;
        if lowest >= LOWEST {
            let mark = lowest & !ALL_BITS | self.0;
            let limit = Rlimit { current: Some(mark), maximum: Some(mark) };
            let _in_use = rustix::process::setrlimit(Resource::Rttime, limit);
        }
    }

    /// Whether the process is marked now.
    pub(crate) fn is_on(self, pid: i32) -> bool {
        let limits = fs::read_to_string(format!("/proc/{pid}/limits"));
        let limit = limits.ok().and_then(|limits| hard_limit(&limits));
        limit.is_some_and(|limit| limit & ALL_BITS == self.0 && limit >= LOWEST / 2)
    }
}

/// The hard limit, which a process cannot raise again.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_limit_is_parsed_from_the_limits_table() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max realtime priority     0                    0                    \n\
                     Max realtime timeout      5                    4611686018427387903  us        \n";
        assert_eq!(hard_limit(table), Some(4_611_686_018_427_387_903));
        assert_eq!(hard_limit(&table.replace("4611686018427387903", "unlimited")), None);
        assert_eq!(hard_limit(""), None);
    }
}
