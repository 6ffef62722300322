//! Resolves hostnames for a sign-in, and refuses a hostname that resolves to a forbidden address.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_core::sign_in::address::Reach;

use crate::dial::http::Clients;
use crate::dial::names::{Names, look_up};

/// Resolves a hostname once for each connection, checks its addresses, and connects only to a
/// checked address.
#[derive(Clone)]
pub(super) struct Guard {
    names: Arc<dyn Names>,
    pub(super) reach: Reach,
    /// The proxies of the user's environment, whose hostnames are not checked.
    proxies: Arc<[String]>,
}

#[derive(Debug, thiserror::Error)]
#[error("`{host}` resolves to an internal or reserved address")]
pub(super) struct OutOfReach {
    pub(super) host: String,
}

impl Guard {
    pub(super) fn new(clients: &Clients, reach: Reach) -> Guard {
        let (names, proxies) = (Arc::clone(clients.names()), clients.proxy_hosts());
        Guard { names, reach, proxies: proxies.into() }
    }

    /// Whether a request may name this host. Only a proxy's own hostname is resolved and checked
    /// here; other hostnames are checked when a connection resolves them.
    pub(super) async fn admits(&self, host: &str) -> bool {
        !self.is_proxy(host) || self.look_up(host).await.is_ok()
    }

    fn is_proxy(&self, host: &str) -> bool {
        self.proxies.iter().any(|proxy| proxy == host)
    }

    /// Resolves a hostname. One forbidden address is enough to refuse it.
    async fn look_up(&self, host: &str) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        let addresses = look_up(&*self.names, host).await?;
        match addresses.iter().all(|address| self.reach.admits(host, address.ip())) {
            true => Ok(addresses),
            false => Err(OutOfReach { host: host.to_owned() }.into()),
        }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let addresses = match guard.is_proxy(name.as_str()) {
                true => look_up(&*guard.names, name.as_str()).await?,
                false => guard.look_up(name.as_str()).await?,
            };
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
