//! `subscriptions/listen`: the request stays open, and change notifications are sent during it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use switchboard::Session;
use switchboard::exact::Args;
use switchboard_wire::modern::ACKNOWLEDGED;
use switchboard_wire::{Id, Peer, Raw, RpcError};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::bulletin::{Bulletin, Filter, Seat};
use crate::direct::{Direct, TOOLS_CHANGED};
use crate::news::{self, List};
use crate::params::read;
use crate::question::Manner;

/// One such request and everything that it needs.
pub(crate) struct Listening {
    pub(crate) session: Arc<Session>,
    pub(crate) bulletin: Bulletin,
    /// The direct tools.
    pub(crate) direct: Option<Arc<Direct>>,
    pub(crate) manner: Manner,
    /// Cancelled when the request must end.
    pub(crate) closing: CancellationToken,
}

impl Listening {
    /// Sends change notifications until the client cancels or the gateway closes.
    pub(crate) async fn run(
        self,
        params: &Args,
        client: &Peer,
        request: &Id,
    ) -> Result<Answer, RpcError> {
        #[derive(Deserialize)]
        struct Wishes {
            #[serde(default)]
            notifications: Filter,
        }
        let params = Raw::from_json(params.to_string());
        let Wishes { notifications } = read(Some(&params))?;
        let mut wanted = notifications.bounded();
        wanted.resource_subscriptions = self.subscribe(wanted.resource_subscriptions).await;
        let seat = self.bulletin.sit(wanted, client.clone(), request);
        let following = Following { session: &self.session, bulletin: &self.bulletin, seat };
        let seat = &following.seat;
        let _client_gone = client.notify(ACKNOWLEDGED, &seat.acknowledgement()).await;
        seat.opened();
        tokio::select! {
            () = self.lists(seat) => {}
            () = self.closing.cancelled() => {}
        }
        Ok(Answer::json(json!({ "_meta": seat.mark() }).to_string()))
    }

    /// Subscribes to resources, and returns those that could be subscribed to.
    async fn subscribe(&self, wanted: Vec<String>) -> Vec<String> {
        let mut followed = Vec::with_capacity(wanted.len());
        for uri in wanted {
            match self.session.subscribe(&uri).await {
                Ok(()) => followed.push(uri),
                Err(error) => tracing::debug!(%error, "cannot subscribe to a resource"),
            }
        }
        followed
    }

    /// Sends changes of the gateway's own lists. A mirrored server sends its own.
    async fn lists(&self, seat: &Seat) {
        let ours = self.manner == Manner::OneOfMany;
        let tools = async {
            if let Some(direct) = &self.direct
                && seat.filter().tools_list_changed
            {
                let gateway = self.session.gateway();
                direct.follow(gateway, || seat.tell(TOOLS_CHANGED)).await;
            }
            std::future::pending::<()>().await;
        };
        let follow = |list, wanted| async move {
            if ours && wanted {
                let changes = self.session.gateway().watch();
                news::tell(list, changes, |method| seat.tell(method)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::join!(
            tools,
            follow(List::Prompts, seat.filter().prompts_list_changed),
            follow(List::Resources, seat.filter().resources_list_changed),
        );
    }
}

/// On drop, ends the resource subscriptions that no other subscriber needs.
struct Following<'a> {
    session: &'a Arc<Session>,
    bulletin: &'a Bulletin,
    seat: Seat,
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let uris = self.seat.filter().resource_subscriptions.clone();
        self.seat.leave();
        let left: Vec<String> =
            uris.into_iter().filter(|uri| !self.bulletin.is_followed(uri)).collect();
        if !left.is_empty() {
            self.session.unsubscribe_in_background(left);
        }
    }
}
