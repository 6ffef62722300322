//! The process that outlives a killed gateway by exactly the end of its servers.
//!
//! A program with a [`Gateway`](crate::Gateway) gets it by beginning its `main` with
//! [`run_if_asked`]; without that, servers run in plain process groups, which end with the gateway
//! in every way but its sudden death.

pub use switchboard_reaper::run_if_asked;
