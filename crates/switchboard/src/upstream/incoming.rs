//! What a server asks of us or tells us.

use switchboard_wire::envelope::{METHOD_NOT_FOUND, Malformed};
use switchboard_wire::{Handler, Notification, Peer, Raw, Responder, RpcError};
use tokio::sync::mpsc;

/// News that the actor acts upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A list of the server is not what it was.
    ListChanged,
}

/// Hears one connection.
pub(super) struct Incoming {
    pub(super) news: mpsc::Sender<News>,
}

impl Handler for Incoming {
    fn request(&mut self, method: String, _: Option<Raw>, responder: Responder) {
        // At once, without a task: a server that floods us only loses its answers.
        if method == "ping" {
            responder.try_result("{}");
        } else {
            responder
                .try_error(&RpcError::new(METHOD_NOT_FOUND, "this client does not offer that"));
        }
    }

    fn notification(&mut self, notification: Notification) {
        if let "notifications/tools/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/prompts/list_changed" = notification.method.as_str()
        {
            // One piece of news that waits stands for any number of changes.
            let _one_waits_already = self.news.try_send(News::ListChanged);
        }
    }

    fn malformed(&mut self, error: &Malformed, _: &Peer) {
        tracing::debug!(%error, "skipped a line");
    }
}
