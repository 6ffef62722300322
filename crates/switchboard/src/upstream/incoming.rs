//! Handles the requests and notifications that a server sends.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use switchboard_core::exact::Args;
use switchboard_core::name::ServerName;
use switchboard_core::notice;
use switchboard_wire::envelope::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Malformed};
use switchboard_wire::era::Era;
use switchboard_wire::modern::meta;
use switchboard_wire::{Exchange, Handler, Notification, Peer, Raw, Responder, RpcError};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::audience::{Audience, Meant, Recipient, Unanswered};
use crate::host::{ServerQuestion, Topic};
use crate::notices::{Notices, Reach};

/// The maximum number of server-to-client requests of one server that are pending at the same time.
const QUESTIONS: usize = 16;

/// The maximum size of the parameters of a server-to-client request, in bytes.
pub(super) const LARGEST_QUESTION: usize = 1024 * 1024;

/// How long the user may take to answer; the timeouts of the waiting calls are extended by as much.
pub(super) const USER_ANSWER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Events in the server's messages that the actor has to handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A list of the server changed.
    ListChanged,
    /// The server sends requests to its client, so each session needs a connection of its own.
    AsksClient,
}

/// Handles the messages that the server sends on one connection.
pub(super) struct Incoming {
    pub(super) server: ServerName,
    /// The era of the server, set by the handshake.
    pub(super) era: Arc<OnceLock<Era>>,
    pub(super) news: mpsc::Sender<News>,
    pub(super) notices: Notices,
    pub(super) audience: Arc<Audience>,
    pub(super) askable: Vec<Topic>,
    /// Tasks of the pending server-to-client requests; they end with the connection.
    pub(super) questions: JoinSet<()>,
}

impl Handler for Incoming {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        // The gateway answers a ping without a task: a server that floods the gateway only loses
        // its responses.
        if method == "ping" {
            return responder.try_result("{}");
        }
        // A stateless server must return its requests inside responses, so its other requests are
        // unsupported.
        let known = Topic::of_method(&method).filter(|_| !self.is_stateless());
        let Some(topic) = known else {
            let error = RpcError::new(METHOD_NOT_FOUND, "this client does not support this method");
            return responder.try_error(&error);
        };
        if !self.askable.contains(&topic) {
            return responder.try_error(&topic.refused());
        }
        if params.as_ref().is_some_and(|params| params.as_str().len() > LARGEST_QUESTION) {
            let error = RpcError::new(INVALID_PARAMS, "the request is too large");
            return responder.try_error(&error);
        }
        // If the queue is full, it usually holds this news already.
        let _told_already = self.news.try_send(News::AsksClient);
        while self.questions.try_join_next().is_some() {}
        if self.questions.len() >= QUESTIONS {
            let error = RpcError::new(INTERNAL_ERROR, "too many requests at once");
            return responder.try_error(&error);
        }
        let meant = self.audience.meant(responder.exchange());
        if let Meant::NoSession = meant {
            return responder.try_error(&ambiguous_recipient(&self.audience));
        }
        let question = PendingQuestion {
            server: self.server.clone(),
            topic,
            params,
            responder,
            _unanswered: self.audience.unanswered(),
        };
        self.questions.spawn(question.answer(meant, Arc::clone(&self.audience)));
    }

    fn notification(&mut self, notification: Notification) {
        let notification = match self.is_stateless() {
            true => untagged(notification),
            false => notification,
        };
        match notification.method.as_str() {
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => {
                let _told_already = self.news.try_send(News::ListChanged);
            }
            "notifications/message"
            | "notifications/resources/updated"
            | "notifications/elicitation/complete" => {}
            // Only registered handlers receive these notifications, not hosts.
            "notifications/cancelled" | "notifications/progress" => {
                return self.notice(&notification);
            }
            _ => return,
        }
        self.notice(&notification);
        if let Meant::One(recipient) = self.audience.meant(notification.exchange) {
            recipient.listener.host.tell(&self.server, &notification);
        }
    }

    fn malformed(&mut self, error: &Malformed, _: &Peer) {
        tracing::debug!(%error, "ignored a malformed line");
    }
}

impl Incoming {
    fn is_stateless(&self) -> bool {
        self.era.get() == Some(&Era::Modern)
    }

    /// Passes a notification to the handlers registered for it.
    fn notice(&self, notification: &Notification) {
        let Some(kind) = notice::NotificationKind::of_method(&notification.method) else { return };
        if self.notices.has_no_handlers() {
            return;
        }
        let owner = self.audience.owner().map(|owner| owner.session);
        let meant = match self.audience.meant(notification.exchange) {
            Meant::One(recipient) => Some(recipient.listener.session),
            Meant::Several { .. } | Meant::NoSession => None,
        };
        let reach = Reach { owner, meant };
        self.notices.hear(&self.server, kind, notification.params.as_ref(), reach);
    }
}

/// Assigns a notification on a subscription to the request that opened the subscription, and
/// removes the tag, which only the client of that request can interpret.
fn untagged(mut notification: Notification) -> Notification {
    let tagged = |params: &&Raw| params.as_str().contains(meta::SUBSCRIPTION_ID);
    let Some(params) = notification.params.as_ref().filter(tagged) else { return notification };
    let Ok(mut params) = Args::parse(params.as_str()) else { return notification };
    let members = params.take("_meta").and_then(|members| Args::try_from(members).ok());
    let mut members = members.unwrap_or_default();
    let tag = members.take(meta::SUBSCRIPTION_ID);
    if !members.is_empty() {
        params.insert("_meta", members);
    }
    let request = tag.and_then(|tag| tag.value().as_u64());
    // The request that the transport names takes precedence over the request in the tag.
    notification.exchange = notification.exchange.or(request.map(Exchange));
    notification.params = Some(Raw::from_json(params.to_string()));
    notification
}

/// A server-to-client request without a response so far.
struct PendingQuestion {
    server: ServerName,
    topic: Topic,
    params: Option<Raw>,
    responder: Responder,
    _unanswered: Unanswered,
}

impl PendingQuestion {
    /// Passes the request to the session's host. Until the request is answered, the calls to which
    /// it belongs do not time out.
    async fn answer(self, meant: Meant, audience: Arc<Audience>) {
        let PendingQuestion { server, topic, params, responder, _unanswered } = self;
        let recipient = match meant {
            Meant::One(recipient) => Some(recipient),
            Meant::Several { abandoned } => audience.decided(abandoned).await,
            Meant::NoSession => None,
        };
        let Some(Recipient { listener, requests }) = recipient else {
            return responder.error(&ambiguous_recipient(&audience)).await;
        };
        if listener.host.abilities().of(topic).is_none() {
            return responder.error(&topic.refused()).await;
        }
        audience.asked(&requests);
        let _waiting = responder.peer().hold(requests.clone(), USER_ANSWER_TIMEOUT);
        let question = match ServerQuestion::new((&server, None), topic, params.as_ref()) {
            Ok(question) => question,
            Err(error) => return responder.error(&error).await,
        };
        let answered = listener.host.answer(question).await;
        audience.go_on(&listener, &requests).await;
        match answered {
            Ok(answer) => responder.result(|out| out.push_str(answer.as_str())).await,
            Err(error) => responder.error(&error).await,
        }
    }
}

/// The error for a server-to-client request that could belong to several callers. Servers return
/// the text of the error to their caller. A repeated call succeeds, because the gateway then knows
/// that the server sends requests to its client.
fn ambiguous_recipient(audience: &Audience) -> RpcError {
    if audience.owner().is_some() {
        let message = "this request cannot be assigned to a call, because an abandoned call may still \
                       be running; repeat the call in a minute";
        return RpcError::new(INTERNAL_ERROR, message);
    }
    let message = "several clients share this connection, so this request cannot be assigned to one; \
                   from now on each has its own connection, so repeat the call";
    RpcError::new(INTERNAL_ERROR, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tagged_notification_is_assigned_to_its_subscription() {
        let check = |params: &str, expected: (&str, Option<u64>)| {
            let notification = untagged(Notification {
                method: "notifications/resources/updated".to_owned(),
                params: Some(Raw::from_json(params.to_owned())),
                exchange: None,
            });
            let params = notification.params.as_ref().map_or("", Raw::as_str);
            assert_eq!((params, notification.exchange.map(|it| it.0)), expected);
        };
        let tag = r#""io.modelcontextprotocol/subscriptionId":7"#;
        check(&format!(r#"{{"uri":"a","_meta":{{{tag}}}}}"#), (r#"{"uri":"a"}"#, Some(7)));
        check(
            &format!(r#"{{"_meta":{{{tag},"x":1.0}},"uri":"a"}}"#),
            (r#"{"uri":"a","_meta":{"x":1.0}}"#, Some(7)),
        );
        check(r#"{"uri":"a","_meta":{"x":1}}"#, (r#"{"uri":"a","_meta":{"x":1}}"#, None));
    }
}
