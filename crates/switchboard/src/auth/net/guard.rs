//! Looks names up for a sign-in: a name that stands for an address out of reach is no name.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use switchboard_core::sign_in::address::Reach;

use crate::dial::http::Clients;
use crate::dial::names::{Names, look_up};

/// What is connected to is what was checked: a name is looked up once for a connection, here.
#[derive(Clone)]
pub(super) struct Guard {
    names: Arc<dyn Names>,
    pub(super) reach: Reach,
    /// The user's environment has them, so their own names are not checked.
    proxies: Arc<[String]>,
}

#[derive(Debug, thiserror::Error)]
#[error("`{host}` leads to an address out of reach")]
pub(super) struct OutOfReach {
    pub(super) host: String,
}

impl Guard {
    pub(super) fn new(clients: &Clients, reach: Reach) -> Guard {
        let (names, proxies) = (Arc::clone(clients.names()), clients.proxy_hosts());
        Guard { names, reach, proxies: proxies.into() }
    }

    /// Whether requests may go to a host by itself, which is seen here for proxies alone: every other
    /// host is checked when it is looked up.
    pub(super) async fn admits(&self, host: &str) -> bool {
        !self.is_proxy(host) || self.look_up(host).await.is_ok()
    }

    fn is_proxy(&self, host: &str) -> bool {
        self.proxies.iter().any(|proxy| proxy == host)
    }

    /// One address that is out of reach spoils the name.
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
