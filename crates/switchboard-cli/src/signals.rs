//! The signals that ask this process to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, a polite kill, and a terminal that was closed.
pub(crate) struct Signals {
    kinds: [Option<Signal>; 3],
}

impl Signals {
    /// From now on the signals are heard here, and nothing else happens by them.
    pub(crate) fn listen() -> Signals {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // Where a signal cannot be heard, it does what it always did.
        Signals { kinds: kinds.map(|kind| signal(kind).ok()) }
    }

    /// Waits for the next one.
    pub(crate) async fn stop(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.kinds;
        tokio::select! {
            () = next(interrupt) => {}
            () = next(terminate) => {}
            () = next(hangup) => {}
        }
    }
}

async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}
