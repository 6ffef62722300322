//! Resolution of hostnames to addresses.

use std::io;
use std::net::SocketAddr;

use super::spawn::Promise;

/// Resolves the hostnames of all network connections.
pub trait Names: Send + Sync {
    /// All addresses of a hostname; their ports are ignored. Called for each new connection.
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>>;
}

/// The resolver of the system.
pub(crate) struct SystemNames;

impl Names for SystemNames {
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { tokio::net::lookup_host((host, 0)).await.map(Vec::from_iter) })
    }
}

/// The error for a hostname without an address.
#[derive(Debug, thiserror::Error)]
#[error("cannot resolve the hostname `{host}`")]
pub(crate) struct NoSuchHost {
    pub(crate) host: String,
    #[source]
    cause: io::Error,
}

/// The addresses of a hostname; at least one.
pub(crate) async fn look_up(names: &dyn Names, host: &str) -> Result<Vec<SocketAddr>, NoSuchHost> {
    let unknown = |cause| NoSuchHost { host: host.to_owned(), cause };
    let addresses = names.addresses(host).await.map_err(unknown)?;
    if addresses.is_empty() {
        return Err(unknown(io::ErrorKind::NotFound.into()));
    }
    Ok(addresses)
}
