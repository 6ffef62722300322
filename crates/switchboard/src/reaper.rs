//! The reaper: the process that ends all servers if the gateway is killed.
//!
//! A program with a [`Gateway`](crate::Gateway) enables it by calling [`run_if_asked`] first in
//! `main`. Without that call, servers run in plain process groups: the servers survive if the
//! gateway is killed, and filters over results cannot run.

pub use switchboard_reaper::can_confine;

/// Must be the first call in `main` of a program with a gateway. If the process was started as
/// reaper, keeper or filter, runs that role and never returns; otherwise returns at once.
///
/// ```
/// switchboard::reaper::run_if_asked();
/// // The rest of the program.
/// ```
pub fn run_if_asked() {
    crate::select::run_if_asked();
    switchboard_reaper::run_if_asked();
}
