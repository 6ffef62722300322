//! Starts the programs of Switchboard and sees to it that none outlives it.
//!
//! Between the gateway and each server stand two processes of the same binary:
//!
//! ```text
//! gateway ── reaper ── keeper ── server ── whatever it starts
//! ```
//!
//! A **keeper** starts one server, and everything below that server falls to it when its parent
//! dies, for the kernel takes it for their init (`PR_SET_CHILD_SUBREAPER`). It knows to the last
//! process what belongs to the server without having to recognise any. Its lifeline is a socket
//! whose other end only the gateway holds: when that closes, however that came about, the keeper
//! ends the server and what is below it, then itself.
//!
//! The **reaper** starts the keepers and is in turn their init: what a killed keeper leaves falls
//! to it and is killed. If the reaper is killed, no process would do that any more, so every keeper ends
//! its server and itself, and the gateway starts both anew when they are needed.
//!
//! The server's pipes are made by the gateway and handed over, so no byte of a message passes
//! through here. Nothing here has threads, a runtime, or more to do than wait.
//!
//! What survives only when the gateway, the reaper and a keeper are killed in the same moment is
//! found by the next start, by the mark that every process below a keeper has; [`records`] say
//! whether there is something to look for.
//!
//! A server runs as the same user and could stop both. Where the kernel supports it, the server is
//! confined and cannot signal them ([`Confinement`]). Elsewhere the kernel continues a stopped
//! process when the gateway sends an order or ends.

#[cfg(target_os = "linux")]
pub mod records;
#[cfg(target_os = "linux")]
pub mod message;
#[cfg(target_os = "linux")]
pub mod handover;
#[cfg(target_os = "linux")]
pub mod processes;
#[cfg(target_os = "linux")]
mod confine;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod mark;
#[cfg(target_os = "linux")]
mod reaper;
#[cfg(target_os = "linux")]
mod watch;

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a server can signal and trace processes that are not its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confinement {
    /// It cannot, where the kernel has Landlock's signal scope (Linux 6.12).
    ///
    /// A PID namespace would do the same on older kernels, but breaks more: a server in one cannot
    /// list the processes of its user, takes the lock file of a running browser for stale, and,
    /// because root has no number in an unprivileged user namespace, cannot use `ssh`.
    #[default]
    WherePossible,
    /// It can. For servers that need `sudo`, or that debug or end other processes.
    Off,
}

/// The running program itself, even if its file was replaced meanwhile.
pub const PROGRAM: &str = "/proc/self/exe";

/// What the program is called, as `argv[0]`, when it is to be the reaper.
pub const REAPER: &str = "switchboard-reaper";

/// What the program is called when it is to be a keeper.
#[cfg(target_os = "linux")]
const KEEPER: &str = "switchboard-keeper";

/// What `ps` and `top` show of a reaper, in the 15 bytes that there are.
#[cfg(target_os = "linux")]
const REAPER_SHOWN: &std::ffi::CStr = c"switchbd-reaper";

static AT_HAND: AtomicBool = AtomicBool::new(false);

/// The first thing that `main` does in a program with a gateway: if it was started to look after
/// servers, it does that and never returns. Otherwise it returns at once, and this program's
/// gateways have a reaper from now on, where the system can have one.
pub fn run_if_asked() {
    #[cfg(target_os = "linux")]
    {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_default();
        let asked: Option<(fn(_) -> _, _)> = match (name.to_str(), words.len()) {
            (Some(REAPER), 0) => Some((reaper::run, REAPER_SHOWN)),
            // The other word says who the reaper is.
            (Some(KEEPER), 1) => Some((keeper::run, c"switchbd-keeper")),
            (_, _) => None,
        };
        // A program that another one started under this name has no lifeline, and runs as usual.
        if let Some((role, shown)) = asked.filter(|_| handover::has_lifeline()) {
            // What `ps` and `top` show, in the 15 bytes that there are; otherwise it is `exe`.
            let _shown_as_it_is = rustix::thread::set_name(shown);
            leave(handover::take_lifeline().and_then(role));
        }
        AT_HAND.store(true, Ordering::Relaxed);
    }
}

/// The whole environment of reapers and keepers: a server may be able to read it in `/proc`, so it
/// has no more than says whose they are.
#[expect(clippy::disallowed_methods, reason = "it is passed on as it is, and decides nothing here")]
pub fn helper_environment() -> Option<(&'static str, std::ffi::OsString)> {
    let mut all = std::env::vars_os();
    all.find(|(name, _)| name == "HOME").map(|(_, home)| ("HOME", home))
}

/// Whether [`run_if_asked`] was called, so that this program can be started as a reaper.
pub fn is_at_hand() -> bool {
    AT_HAND.load(Ordering::Relaxed)
}

/// Whether the kernel can confine servers.
pub fn can_confine() -> bool {
    #[cfg(target_os = "linux")]
    return confine::signal_scope().is_some();
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
#[expect(clippy::exit, reason = "the rest of the program is not for a reaper")]
fn leave(outcome: std::io::Result<()>) -> ! {
    std::process::exit(i32::from(outcome.is_err()))
}
