//! The inputs and effects of the state machine of one server.

use std::time::Duration;

/// The number of a caller that waits for a connection; the actor assigns it.
pub type Waiter = u64;

/// The number of a connection; inputs of an older connection do not affect a newer one.
pub type Generation = u64;

/// How the present connection has been used. Single calls are no inputs of the machine, so the
/// inputs that depend on them carry this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// A lease is held.
    pub held: bool,
    /// When a lease ended last.
    pub left_at: Option<Duration>,
    /// The server has responded to a call over it.
    pub worked: bool,
}

/// Whether a wait respects the backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Call,
    /// The user requested this connection.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// The gateway is ready; eager servers start.
    Begin,
    Acquire {
        waiter: Waiter,
        urgency: Urgency,
    },
    Dialled {
        generation: Generation,
    },
    /// `jitter` is random, from 0 to 1.
    DialFailed {
        generation: Generation,
        jitter: f64,
    },
    /// The server requires authentication. The machine is not told when the user has signed in.
    NotSignedIn {
        generation: Generation,
    },
    /// The connection was lost.
    Lost {
        generation: Generation,
        usage: Usage,
        jitter: f64,
    },
    /// The server no longer knows the session of the connection, but works otherwise.
    Forgotten {
        generation: Generation,
        usage: Usage,
        jitter: f64,
    },
    Pong {
        generation: Generation,
    },
    PingFailed {
        generation: Generation,
        jitter: f64,
    },
    /// Stop now, even if it is in use; the next use starts it again.
    Disconnect,
    /// The time of [`Machine::wake_at`](super::Machine::wake_at) has come.
    Wake {
        usage: Usage,
    },
    Shutdown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    Dial {
        generation: Generation,
    },
    Grant {
        waiter: Waiter,
        generation: Generation,
    },
    Refuse {
        waiter: Waiter,
        refusal: ConnectRefusal,
    },
    /// Close the connection, or cancel the dial.
    Close {
        generation: Generation,
    },
    Ping {
        generation: Generation,
    },
}

/// Why a waiter gets no connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConnectRefusal {
    /// The dial failed; the actor has the cause.
    DialFailed,
    /// The last dial failed, and the next retry is not due yet.
    Backoff {
        since: Duration,
        retry_in: Duration,
    },
    CrashLoop {
        crashes: usize,
        retry_in: Duration,
    },
    Disconnected,
    ShuttingDown,
}
