//! The resource subscriptions of a session, renewed when a connection of the server ends.

use switchboard_core::exact::Args;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::render::words::clean_line;
use switchboard_wire::Raw;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use crate::explain;
use crate::gateway::Gateway;
use crate::notices::log_message;
use crate::relay::Lookup;
use crate::upstream::lease::{Caller, Listening};
use crate::upstream::stateless::Renewal;
use crate::upstream::{ExitReason, Lease, Upstream};

/// The maximum length, in characters, of a URI in a message.
const SHOWN_URI: usize = 200;

/// A subscription to a resource, which ends when it is dropped.
pub(crate) struct Subscription {
    pub(crate) server: ServerName,
    /// The URI of the resource at its server.
    pub(crate) uri: String,
    _keeping: AbortOnDropHandle<()>,
}

/// A subscription that a client requested, before it exists.
pub(crate) struct Wish {
    pub(crate) gateway: Gateway,
    pub(crate) caller: Caller,
    pub(crate) server: ServerName,
    pub(crate) uri: String,
    /// The parameters of the client's request, unchanged.
    pub(crate) params: Args,
}

/// The connection that carries the updates of a subscription.
struct SubscribedConnection {
    upstream: Upstream,
    lease: Lease,
    /// The `subscriptions/listen` request, for stateless servers.
    listening: Option<Listening>,
}

impl Wish {
    /// Subscribes over a connection that the session owns and holds open, so that no other session
    /// receives the updates.
    pub(crate) async fn fulfil(self) -> Result<(Raw, Subscription), Failure> {
        let (answer, kept) = self.subscribe().await?;
        let (gateway, server, uri) = (self.gateway.clone(), self.server.clone(), self.uri.clone());
        let keeping = gateway.beside(self.keep(kept));
        Ok((answer, Subscription { server, uri, _keeping: keeping }))
    }

    async fn subscribe(&self) -> Result<(Raw, SubscribedConnection), Failure> {
        let upstream = self.gateway.open_own_upstream(&self.server, &self.caller.listener)?;
        let leased = upstream.lease().await;
        let lease = leased.map_err(|error| explain::lease(error, &self.server))?;
        let failed = |error| explain::lookup(error, &self.server);
        if lease.is_stateless() {
            let listening = lease.listen(&self.uri, &self.caller).await.map_err(failed)?;
            let answer = Raw::from_json("{}".to_owned());
            return Ok((
                answer,
                SubscribedConnection { upstream, lease, listening: Some(listening) },
            ));
        }
        let method = Lookup::Subscribe.method();
        let answer = lease.look_up(method, self.params.clone(), &self.caller).await;
        Ok((answer.map_err(failed)?, SubscribedConnection { upstream, lease, listening: None }))
    }

    /// Renews the subscription whenever the connection is lost, the server ends the subscription,
    /// or the server's definition changes.
    async fn keep(self, mut kept: SubscribedConnection) {
        let mut renewal = Renewal::default();
        loop {
            let SubscribedConnection { upstream, lease, listening } = kept;
            let began = Instant::now();
            let ended = tokio::select! {
                biased;
                ended = lease.ended() => ended,
                () = upstream.retiring() => ExitReason::Stopped,
                () = over(listening) => match lease.is_up() {
                    false => lease.ended().await,
                    true => match renewal.after(began.elapsed()) {
                        Some(pause) => {
                            tokio::time::sleep(pause).await;
                            ExitReason::StreamClosed
                        }
                        None => return self.give_up("the server ended it repeatedly"),
                    },
                },
            };
            if ended == ExitReason::Stopped && !upstream.is_retired() {
                return self.give_up("the server was disconnected");
            }
            drop(lease);
            kept = match self.subscribe().await {
                Ok((_, kept)) => kept,
                Err(failure) => return self.give_up(&failure.chain().join(": ")),
            };
        }
    }

    /// Notifies the client that no more updates of the resource follow.
    fn give_up(&self, why: &str) {
        let uri = clean_line(&self.uri, SHOWN_URI);
        let data = format!("the subscription to `{uri}` ended: {why}");
        let message = log_message("warning", "switchboard", &data);
        self.caller.listener.host.tell(&self.server, &message);
    }
}

/// Completes when the server ends the subscription, which session-based servers never do.
async fn over(listening: Option<Listening>) {
    match listening {
        Some(mut listening) => listening.over().await,
        None => std::future::pending().await,
    }
}
