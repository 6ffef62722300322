//! The signals that stop this process.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives SIGINT, SIGTERM and SIGHUP, which stop this process.
pub(crate) struct Signals {
    kinds: [Option<Signal>; 3],
}

impl Signals {
    /// Installs the handlers, which replace the default actions.
    pub(crate) fn listen() -> Signals {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        // If a handler cannot be installed, the signal keeps its default action.
        Signals { kinds: kinds.map(|kind| signal(kind).ok()) }
    }

    /// Waits for the next signal.
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
