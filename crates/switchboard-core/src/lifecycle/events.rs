//! The inputs and effects of a server's state machine.

use std::time::Duration;

/// The number of a caller that waits for a connection. The actor assigns it.
pub type Waiter = u64;

/// The number of a connection. Inputs of an older connection do not affect a newer one.
pub type Generation = u64;

/// How the current connection was used. Single calls are not inputs of the machine, so the inputs
/// that depend on calls carry this value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Whether a lease is held.
    pub held: bool,
    /// When the last lease ended; `None` if there was none.
    pub left_at: Option<Duration>,
    /// Whether the server has responded to a call over this connection.
    pub worked: bool,
}

/// Whether a caller must wait for the backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    Call,
    /// The user requested this connection, so the backoff does not apply.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Input {
    /// The gateway is ready. Eager servers are started now.
    Begin,
    Acquire {
        waiter: Waiter,
        urgency: Urgency,
    },
    Dialled {
        generation: Generation,
    },
    /// A dial failed. `jitter` is random, from 0 to 1.
    DialFailed {
        generation: Generation,
        jitter: f64,
    },
    /// The server requires authentication. The machine gets no input when the user has signed in.
    NotSignedIn {
        generation: Generation,
    },
    /// The connection was lost.
    Lost {
        generation: Generation,
        usage: Usage,
        jitter: f64,
    },
    /// The server no longer knows the session of this connection, but is otherwise reachable.
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
    /// Close the connection now, even if it is in use. The next use opens it again.
    Disconnect,
    /// The time that [`Machine::wake_at`](super::Machine::wake_at) gave has come.
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
    /// Close this connection, or cancel its dial.
    Close {
        generation: Generation,
    },
    Ping {
        generation: Generation,
    },
}

/// Why a waiting caller gets no connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConnectRefusal {
    /// The dial failed. The actor knows the cause.
    DialFailed,
    /// The last dial failed, and the next one is not yet due.
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
