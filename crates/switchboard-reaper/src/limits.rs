//! A seccomp filter that keeps a confined server from changing its own mark, and the limits and the
//! scheduling of other processes.
//!
//! `prlimit` on a process of the same user is as harmful as a signal: a keeper without descriptors
//! cannot find processes to end, and a process without processor time is killed. A keeper with the
//! lowest priority on a busy processor ends nothing in time. Landlock restricts neither. The
//! filter is written by hand because the available crates support one architecture at a time and
//! set `no_new_privs`, which would disable `sudo` for servers of root.

use std::io;

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use libc::{c_ulong, sock_filter, sock_fprog};

/// An architecture whose programs this machine can run, with the numbers of system calls.
struct Abi {
    /// The kernel's number for the architecture, an `AUDIT_ARCH_*` constant.
    architecture: u32,
    prlimit: u32,
    setrlimit: u32,
    /// `sched_setparam`, `sched_setscheduler`, `sched_setaffinity`, `sched_setattr` and
    /// `migrate_pages`: the first argument is the process.
    scheduling: [u32; 5],
    /// `setpriority`: the first argument tells whether the second one is a process, a group or a
    /// user.
    setpriority: u32,
    ioprio_set: u32,
}

#[cfg(target_arch = "x86_64")]
const ABIS: &[Abi] = &[
    Abi {
        architecture: 0xc000_003e,
        prlimit: 302,
        setrlimit: 160,
        scheduling: [142, 144, 203, 314, 256],
        setpriority: 141,
        ioprio_set: 251,
    },
    Abi {
        architecture: 0x4000_0003,
        prlimit: 340,
        setrlimit: 75,
        scheduling: [154, 156, 241, 351, 294],
        setpriority: 97,
        ioprio_set: 289,
    },
];
#[cfg(target_arch = "aarch64")]
const ABIS: &[Abi] = &[
    Abi {
        architecture: 0xc000_00b7,
        prlimit: 261,
        setrlimit: 164,
        scheduling: [118, 119, 122, 274, 238],
        setpriority: 140,
        ioprio_set: 30,
    },
    Abi {
        architecture: 0x4000_0028,
        prlimit: 369,
        setrlimit: 75,
        scheduling: [154, 156, 241, 380, 400],
        setpriority: 97,
        ioprio_set: 314,
    },
];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ABIS: &[Abi] = &[];

/// System calls of the x32 ABI have this bit in their number.
const X32: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`, the input of a filter.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// The offset of an argument's lower half; both architectures are little-endian.
const fn low(argument: u32) -> u32 {
    ARGUMENTS + 8 * argument
}

const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

/// Installs the filter in this process irrevocably; its descendants inherit it. The kernel requires
/// `no_new_privs` or `CAP_SYS_ADMIN`.
#[expect(unsafe_code, reason = "the system call takes a pointer to the filter")]
pub(crate) fn restrict() -> io::Result<()> {
    let mut filter = filter();
    if filter.is_empty() {
        return Ok(());
    }
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let program = sock_fprog { len: length, filter: filter.as_mut_ptr() };
    let no_flags: c_ulong = 0;
    // SAFETY: `program` and the instructions that it points to live until the call returns.
    let outcome = unsafe {
        let mode = c_ulong::from(libc::SECCOMP_SET_MODE_FILTER);
        libc::syscall(libc::SYS_seccomp, mode, no_flags, std::ptr::from_ref(&program))
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The filter: one block for each architecture. System calls of other architectures are allowed.
fn filter() -> Vec<sock_filter> {
    let mut filter = Vec::new();
    for abi in ABIS {
        let block = block(abi);
        let length = u8::try_from(block.len()).unwrap_or(u8::MAX);
        filter.extend([load(ARCHITECTURE), jump_if(abi.architecture, 0, length)]);
        filter.extend(block);
    }
    if !filter.is_empty() {
        filter.push(ret(libc::SECCOMP_RET_ALLOW));
    }
    filter
}

/// The kernel's value for "the second argument of `setpriority` is a process".
const PRIO_PROCESS: u32 = 0;

/// The kernel's value for "the second argument of `ioprio_set` is a process".
const IOPRIO_PROCESS: u32 = 1;

/// The instructions for one architecture. They refuse `setrlimit` of the mark, `prlimit(pid,
/// resource, new, old)` that sets the mark or any limit of another process, and the scheduling of
/// other processes. The operands of a jump are numbers of skipped instructions.
fn block(abi: &Abi) -> Vec<sock_filter> {
    let mut block = vec![load(NUMBER), step(BPF_ALU | BPF_AND | BPF_K, !X32, 0, 0)];
    for number in abi.scheduling {
        block.extend(only_with(number, &[(0, 0)]));
    }
    block.extend(only_with(abi.setpriority, &[(0, PRIO_PROCESS), (1, 0)]));
    block.extend(only_with(abi.ioprio_set, &[(0, IOPRIO_PROCESS), (1, 0)]));
    block.extend(limits(abi));
    block
}

fn refuse() -> sock_filter {
    ret(libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs())
}

/// Instructions that refuse a system call unless its arguments have these values; process 0 is the
/// caller.
fn only_with(number: u32, arguments: &[(u32, u32)]) -> Vec<sock_filter> {
    let mut checks = Vec::new();
    for (index, (argument, value)) in arguments.iter().enumerate() {
        let left = u8::try_from(2 * (arguments.len() - index) - 1).unwrap_or(u8::MAX);
        checks.extend([load(low(*argument)), jump_if(*value, 0, left)]);
    }
    checks.extend([ret(libc::SECCOMP_RET_ALLOW), refuse()]);
    let all = u8::try_from(checks.len()).unwrap_or(u8::MAX);
    [jump_if(number, 0, all)].into_iter().chain(checks).collect()
}

fn limits(abi: &Abi) -> [sock_filter; 16] {
    let (allow, refuse) = (ret(libc::SECCOMP_RET_ALLOW), refuse());
    let mark = libc::RLIMIT_RTTIME;
    [
        jump_if(abi.setrlimit, 0, 4),
        load(low(0)),
        jump_if(mark, 0, 1),
        refuse,
        allow,
        jump_if(abi.prlimit, 0, 9),
        // Without a new limit, `prlimit` only reads.
        load(low(2)),
        jump_if(0, 0, 2),
        load(high(2)),
        jump_if(0, 5, 0),
        // The process id 0 means the calling process. A filter cannot know the caller's own id.
        load(low(0)),
        jump_if(0, 0, 2),
        load(low(1)),
        jump_if(mark, 0, 1),
        refuse,
        allow,
    ]
}

fn load(offset: u32) -> sock_filter {
    step(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

fn jump_if(value: u32, equal: u8, other: u8) -> sock_filter {
    step(BPF_JMP | BPF_JEQ | BPF_K, value, equal, other)
}

fn ret(action: u32) -> sock_filter {
    step(BPF_RET | BPF_K, action, 0, 0)
}

fn step(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();

    /// The verdict of the filter, computed as the kernel does.
    fn run(architecture: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let mut data = [number, architecture, 0, 0].map(u32::to_le_bytes).concat();
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        let filter = filter();
        let (mut at, mut value) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = filter[at];
            at += 1;
            match u32::from(code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    let bytes = &data[k as usize..][..4];
                    value = u32::from_le_bytes(bytes.try_into().unwrap());
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if value == k { jt } else { jf });
                }
                code if code == BPF_RET | BPF_K => return k,
                code => panic!("step {code}"),
            }
        }
    }

    #[test]
    fn seccomp_filter_refuses_scheduling_of_other_processes() {
        for abi in ABIS {
            let check = |number: u32, arguments: [u64; 3], expected: u32| {
                for number in [number, number | X32] {
                    let found = run(abi.architecture, number, arguments);
                    assert_eq!(found, expected, "{number} {arguments:x?}");
                }
            };
            for number in abi.scheduling {
                check(number, [0, 4321, 1], libc::SECCOMP_RET_ALLOW);
                check(number, [4321, 0, 0], REFUSED);
                check(number, [(1 << 32) + 4321, 0, 0], REFUSED);
            }
            for (number, process) in [(abi.setpriority, 0), (abi.ioprio_set, 1)] {
                check(number, [process, 0, 19], libc::SECCOMP_RET_ALLOW);
                check(number, [process, 4321, 19], REFUSED);
                // Targets other than one process: a process group, or all processes of a user.
                for kind in (0..4).filter(|kind| *kind != process) {
                    check(number, [kind, 0, 19], REFUSED);
                }
            }
        }
    }

    #[test]
    fn seccomp_filter_refuses_changing_other_processes_limits_or_mark() {
        let mark = u64::from(libc::RLIMIT_RTTIME);
        let files = u64::from(libc::RLIMIT_NOFILE);
        let new = 0x7f00_0000_1000;
        for abi in ABIS {
            let check = |number: u32, arguments: [u64; 3], expected: u32| {
                let found = run(abi.architecture, number, arguments);
                assert_eq!(found, expected, "{number} {arguments:x?}");
            };
            for number in [abi.prlimit, abi.prlimit | X32] {
                check(number, [0, files, new], libc::SECCOMP_RET_ALLOW);
                check(number, [4321, files, 0], libc::SECCOMP_RET_ALLOW);
                check(number, [4321, mark, 0], libc::SECCOMP_RET_ALLOW);
                check(number, [4321, files, new], REFUSED);
                check(number, [4321, files, 1 << 40], REFUSED);
                check(number, [0, mark, new], REFUSED);
                check(number, [0, mark, 1 << 40], REFUSED);
                // The kernel reads only the lower 32 bits of a process id.
                check(number, [1 << 32, files, new], libc::SECCOMP_RET_ALLOW);
                check(number, [(1 << 32) + 4321, files, new], REFUSED);
            }
            check(abi.setrlimit, [files, new, 0], libc::SECCOMP_RET_ALLOW);
            check(abi.setrlimit, [mark, new, 0], REFUSED);
            check(abi.setrlimit, [(1 << 32) + mark, new, 0], REFUSED);
            check(1, [4321, mark, new], libc::SECCOMP_RET_ALLOW);
        }
        assert_eq!(run(7, 302, [4321, files, new]), libc::SECCOMP_RET_ALLOW);
    }
}
