//! Servers inside this process: the demo, and the servers of an embedder.

use std::pin::Pin;

use switchboard_wire::pipe::End;

/// A server that speaks MCP over a pipe inside this process.
pub trait InProcess: Send + Sync + 'static {
    /// Serves one connection until the gateway closes its end.
    fn serve(&self, end: End) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}
