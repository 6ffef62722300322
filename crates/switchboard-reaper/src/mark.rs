//! The mark that identifies every process of a server.
//!
//! The mark is a limit that is practically unused, the processor time of real-time tasks
//! (`RLIMIT_RTTIME`), set to a recognisable value of many years. All descendants inherit it, even
//! if they change their parent, group, session, environment or working directory. They cannot raise
//! it, and confined ones cannot change it. Every process can read it in `/proc`.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::process::{Resource, Rlimit};

/// The upper bound of marks; a process without a mark has no limit at all.
const UNLIMITED: u64 = 1 << 62;

/// The lower bound of marks, 35 years in microseconds: a mark never stops a program.
const LOWEST: u64 = 1 << 50;

/// The lowest bits of every mark, by which it differs from limits that other programs set.
const SIGN: u64 = 0x5_b0a2;
const SIGN_BITS: u32 = 20;

/// The number of bits directly above [`SIGN`] that hold a hash of the path of the server records,
/// so that a command ends only servers of its own home directory.
const HOME_BITS: u32 = 24;
const ALL_BITS: u64 = (1 << (SIGN_BITS + HOME_BITS)) - 1;

/// The mark of all server processes of one home directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(u64);

impl Mark {
    /// The mark for the home directory that contains the directory `records`.
    pub(crate) fn of(records: &Path) -> Mark {
        // The hash function FNV-1a.
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        let hash = records.as_os_str().as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
        let home = (hash ^ (hash >> 32)) & ((1 << HOME_BITS) - 1);
        Mark(home << SIGN_BITS | SIGN)
    }

    /// Marks this process and its future descendants, unless another program has set the limit.
    pub(crate) fn set(self) {
        let limit = rustix::process::getrlimit(Resource::Rttime);
        let highest = limit.maximum.unwrap_or(UNLIMITED).min(UNLIMITED);
        // A gateway that runs below a server of another gateway already has a mark and can only
        // lower it.
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

/// The hard limit in `/proc/PID/limits` that holds the mark; a process cannot raise it again.
fn hard_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hard_limit_is_parsed_from_proc_pid_limits() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max realtime priority     0                    0                    \n\
                     Max realtime timeout      5                    4611686018427387903  us        \n";
        assert_eq!(hard_limit(table), Some(4_611_686_018_427_387_903));
        assert_eq!(hard_limit(&table.replace("4611686018427387903", "unlimited")), None);
        assert_eq!(hard_limit(""), None);
    }
}
