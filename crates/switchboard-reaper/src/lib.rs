//! Starts the programs of Switchboard and ensures that none outlives it.
//!
//! Two processes of the same binary run between the gateway and each server:
//!
//! ```text
//! gateway ── reaper ── keeper ── server ── whatever it starts
//! ```
//!
//! A **keeper** starts one server. It is a subreaper (`PR_SET_CHILD_SUBREAPER`): descendants of the
//! server whose parent dies become its children. So it knows every process of the server without
//! having to recognise any. Its lifeline is a socket whose other end only the gateway holds. When
//! the socket closes, for whatever reason, the keeper ends the server and its descendants, then
//! itself.
//!
//! The **reaper** starts the keepers and is a subreaper too: it adopts and kills the processes that
//! a killed keeper leaves. If the reaper itself is killed, every keeper ends its server and itself,
//! because no process would replace the keeper's protection. The gateway starts a new reaper and
//! new keepers when they are needed.
//!
//! The gateway creates the server's pipes and passes them on, so messages bypass the reaper and the
//! keepers. Both kinds of processes have no threads and no runtime; they only wait.
//!
//! Processes survive only if the gateway, the reaper and a keeper are killed at the same moment.
//! The next start finds these processes by the mark that every descendant of a keeper has;
//! [`records`] show whether a search is necessary.
//!
//! A server runs as the same user and could stop its keeper and the reaper. If the kernel supports
//! confinement, the server is confined and cannot signal them ([`Confinement`]). Otherwise the
//! kernel continues a stopped keeper or reaper when the gateway sends an order or ends.

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

/// Whether a server may signal and trace processes other than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confinement {
    /// A server may not signal or trace other processes, if the kernel has Landlock's signal scope
    /// (Linux 6.12).
    ///
    /// A PID namespace would do the same on older kernels, but breaks more. A server in one cannot
    /// list the processes of its user and considers the lock file of a running browser stale. It
    /// cannot use `ssh`, because root has no number in an unprivileged user namespace.
    #[default]
    WherePossible,
    /// A server may signal and trace other processes. For servers that need `sudo`, or that debug or
    /// end other processes.
    Off,
}

/// The path of the running program, which works even if its file has been replaced.
pub const PROGRAM: &str = "/proc/self/exe";

/// The `argv[0]` of the reaper.
pub const REAPER: &str = "switchboard-reaper";

/// The `argv[0]` of a keeper.
#[cfg(target_os = "linux")]
const KEEPER: &str = "switchboard-keeper";

/// The reaper's process name in `ps` and `top`, limited to 15 bytes.
#[cfg(target_os = "linux")]
const REAPER_SHOWN: &std::ffi::CStr = c"switchbd-reaper";

static AT_HAND: AtomicBool = AtomicBool::new(false);

/// Must be the first call in `main` of a program with a gateway. If the process was started as
/// reaper or keeper, runs that role and never returns. Otherwise returns at once, and the gateways
/// of this program use a reaper, if the system supports it.
pub fn run_if_asked() {
    #[cfg(target_os = "linux")]
    {
        let mut words = std::env::args_os();
        let name = words.next().unwrap_or_default();
        let requested_role: Option<(fn(_) -> _, _)> = match (name.to_str(), words.len()) {
            (Some(REAPER), 0) => Some((reaper::run, REAPER_SHOWN)),
            // The argument is the process id of the reaper.
            (Some(KEEPER), 1) => Some((keeper::run, c"switchbd-keeper")),
            (_, _) => None,
        };
        // If standard input is no socket, and so no lifeline, another program chose this `argv[0]`,
        // and this program runs as usual.
        if let Some((role, shown)) = requested_role.filter(|_| handover::has_lifeline()) {
            // The name in `ps` and `top`, limited to 15 bytes; the default would be `exe`.
            let _shown_as_it_is = rustix::thread::set_name(shown);
            leave(handover::take_lifeline().and_then(role));
        }
        AT_HAND.store(true, Ordering::Relaxed);
    }
}

/// The only environment variable of reapers and keepers. A server may read their environment in
/// `/proc`, so it contains nothing but `HOME`, which identifies the user.
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
