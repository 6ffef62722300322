//! `subscriptions/listen`: the request stays open, and change notifications are sent during it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use switchboard::Session;
use switchboard::exact::Args;
use switchboard_wire::modern::ACKNOWLEDGED;
use switchboard_wire::{Id, Peer, Raw, RpcError};
use tokio_util::sync::CancellationToken;

use crate::answer::McpResult;
use crate::bulletin::{Bulletin, Subscription, SubscriptionFilter};
use crate::conversation::Conversation;
use crate::direct::TOOLS_CHANGED;
use crate::news::{self, List};
use crate::params::read;

/// Sends change notifications until the client cancels its request or `closing` is cancelled.
pub(crate) async fn run(
    talk: &Conversation,
    closing: CancellationToken,
    params: &Args,
    (client, request): (&Peer, &Id),
) -> Result<McpResult, RpcError> {
    #[derive(Deserialize)]
    struct Wishes {
        #[serde(default)]
        notifications: SubscriptionFilter,
    }
    let params = Raw::from_json(params.to_string());
    let Wishes { notifications } = read(Some(&params))?;
    let mut wanted = notifications.bounded();
    wanted.resource_subscriptions = subscribe(talk, wanted.resource_subscriptions).await;
    let (session, bulletin) = (&talk.session, talk.host.bulletin());
    let seat = bulletin.subscribe(wanted, client.clone(), request);
    let following = Following { session, bulletin, seat };
    let seat = &following.seat;
    let _client_gone = client.notify(ACKNOWLEDGED, &seat.acknowledgement()).await;
    seat.opened();
    tokio::select! {
        () = follow_lists(talk, seat) => {}
        () = closing.cancelled() => {}
    }
    Ok(McpResult::json(json!({ "_meta": seat.mark() }).to_string()))
}

/// Subscribes to resources, and returns the URIs that could be subscribed to.
async fn subscribe(talk: &Conversation, wanted: Vec<String>) -> Vec<String> {
    let mut followed = Vec::with_capacity(wanted.len());
    for uri in wanted {
        match talk.session.subscribe(&uri).await {
            Ok(()) => followed.push(uri),
            Err(error) => tracing::debug!(%error, "cannot subscribe to a resource"),
        }
    }
    followed
}

/// Notifies the subscriber of changes of the gateway's own lists. A mirrored server sends its own
/// notifications.
async fn follow_lists(talk: &Conversation, seat: &Subscription) {
    let ours = talk.mirror().is_none();
    let tools = async {
        if let Some(direct) = talk.direct()
            && seat.filter().tools_list_changed
        {
            direct.follow(talk.session.gateway(), || seat.tell(TOOLS_CHANGED)).await;
        }
        std::future::pending::<()>().await;
    };
    let follow = |list, wanted| async move {
        if ours && wanted {
            let changes = talk.session.gateway().watch();
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

/// On drop, ends the resource subscriptions that no other subscriber needs.
struct Following<'a> {
    session: &'a Arc<Session>,
    bulletin: &'a Bulletin,
    seat: Subscription,
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
