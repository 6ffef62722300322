//! How the names of hosts become addresses.

use std::io;
use std::net::SocketAddr;

use super::spawn::Promise;

/// Looks up the names of hosts, for everything that is reached over the network.
pub trait Names: Send + Sync {
    /// Every address that a name stands for; their ports say nothing. Asked for each new connection.
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>>;
}

/// The names that the system knows.
pub(crate) struct SystemNames;

impl Names for SystemNames {
    fn addresses<'a>(&'a self, host: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { tokio::net::lookup_host((host, 0)).await.map(Vec::from_iter) })
    }
}

/// A name that stands for no address.
#[derive(Debug, thiserror::Error)]
#[error("the name `{host}` is not known")]
pub(crate) struct NoSuchHost {
    pub(crate) host: String,
    #[source]
    cause: io::Error,
}

/// What a name stands for; at least one address.
pub(crate) async fn look_up(names: &dyn Names, host: &str) -> Result<Vec<SocketAddr>, NoSuchHost> {
    let unknown = |cause| NoSuchHost { host: host.to_owned(), cause };
    let addresses = names.addresses(host).await.map_err(unknown)?;
    if addresses.is_empty() {
        return Err(unknown(io::ErrorKind::NotFound.into()));
    }
    Ok(addresses)
}
