//! A client that listens: its request stays open, and changes come on it.

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

/// Who listens, and to what.
pub(crate) struct Listening {
    pub(crate) session: Arc<Session>,
    pub(crate) bulletin: Bulletin,
    /// What is shown beside the one tool.
    pub(crate) direct: Option<Arc<Direct>>,
    pub(crate) manner: Manner,
    /// Set when it has to end.
    pub(crate) closing: CancellationToken,
}

impl Listening {
    /// Tells the client of changes until it has enough, or until we have.
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

    /// Those of the resources that the client will hear of.
    async fn subscribe(&self, wanted: Vec<String>) -> Vec<String> {
        let mut followed = Vec::with_capacity(wanted.len());
        for uri in wanted {
            match self.session.subscribe(&uri).await {
                Ok(()) => followed.push(uri),
                Err(error) => tracing::debug!(%error, "a resource cannot be followed"),
            }
        }
        followed
    }

    /// Tells of the lists that are ours. A server that is shown as it is tells of its own.
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

/// Ends the subscriptions that nobody else has when the listener goes, however it goes.
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
