//! The process that outlives a killed gateway by exactly the end of its servers.
//!
//! A program with a [`Gateway`](crate::Gateway) gets it by beginning its `main` with
//! [`run_if_asked`]; without that, servers run in plain process groups, which end with the gateway
//! in every way but its sudden death, and filters over results cannot run at all.

pub use switchboard_reaper::can_confine;

/// The first thing that `main` does in a program with a gateway: if it was started to look after
/// servers, or to run a filter, it does that and never returns. Otherwise it returns at once.
///
/// ```
/// switchboard::reaper::run_if_asked();
/// // The rest of the program.
/// ```
pub fn run_if_asked() {
    crate::select::run_if_asked();
    switchboard_reaper::run_if_asked();
}
