//! One client: what it asks and tells, and who answers it.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::exact::Args;
use switchboard::{Caller, Gateway, Session};
use switchboard_wire::envelope::Malformed;
use switchboard_wire::{Handler, Id, Notification, Peer, Raw, Responder};

use crate::answer::Answer;
use crate::calls::Calls;
use crate::granular;
use crate::host::{ClientHost, Manner};
use crate::mirror::Mirror;
use crate::news::{List, News};
use crate::proxy;

/// What one client asks.
pub(crate) struct Service {
    session: Arc<Session>,
    host: ClientHost,
    face: Face,
    calls: Calls,
    news: News,
}

/// What a client is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// The one tool, for all servers.
    Proxy,
    /// A tool for each step, for all servers.
    Granular,
    /// One server as it is, by its name in the configuration.
    Mirror(String),
}

/// Who answers.
#[derive(Clone)]
enum Face {
    Proxy,
    Granular,
    Mirror(Arc<Mirror>),
}

impl Service {
    pub(crate) fn new(gateway: &Gateway, offer: &Offer, peer: Peer) -> Service {
        let face = match offer {
            Offer::Proxy => Face::Proxy,
            Offer::Granular => Face::Granular,
            Offer::Mirror(server) => Face::Mirror(Arc::new(Mirror::of(server))),
        };
        let (session, host, news) = match face {
            Face::Proxy | Face::Granular => {
                let host = ClientHost::new(peer, Manner::OneOfMany);
                (gateway.session(host.clone()), host, News::default())
            }
            Face::Mirror(_) => {
                let host = ClientHost::new(peer, Manner::Verbatim);
                // The server tells of its own lists.
                (gateway.private_session(host.clone()), host, News::none())
            }
        };
        let calls = Calls::default();
        Service { session: Arc::new(session), host, face, calls, news }
    }

    pub(crate) fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// What a notification says, if servers are told of it.
    fn params_to_pass_on(&self, notification: &Notification) -> Option<String> {
        let params = match (&self.face, notification.method.as_str()) {
            // Said to us, about our own connection with the client.
            (_, "notifications/initialized" | "notifications/cancelled") => return None,
            (_, "notifications/roots/list_changed") | (Face::Mirror(_), _) => {
                notification.params.as_ref()
            }
            (Face::Proxy | Face::Granular, _) => return None,
        };
        match params {
            None => Some(String::new()),
            Some(params) => Some(params.parse::<Args>().ok()?.to_string()),
        }
    }

    /// Questions about a request travel with it, where the transport can tell.
    fn caller(&self, responder: &Responder) -> Caller {
        let caller = self.session.caller();
        match responder.exchange() {
            None => caller,
            Some(_) => caller.with_host(Arc::new(self.host.at(responder.peer()))),
        }
    }
}

impl Handler for Service {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        let Some((accepted, responder)) = self.calls.accept(responder) else { return };
        match method.as_str() {
            "initialize" => self.host.learn(params.as_ref()),
            "logging/setLevel" => self.host.heed(params.as_ref()),
            "prompts/list" => self.news.follow(List::Prompts, &self.session, &self.host),
            "resources/list" | "resources/templates/list" => {
                self.news.follow(List::Resources, &self.session, &self.host);
            }
            _ => {}
        }
        let session = Arc::clone(&self.session);
        let caller = self.caller(&responder);
        let face = self.face.clone();
        self.calls.run(accepted, async move {
            let (session, params, client) = (&session, params.as_ref(), responder.peer());
            let answer = match (face, method.as_str()) {
                (_, "ping") => Ok(Answer::json("{}")),
                (Face::Granular, "tools/list") => Ok(granular::list()),
                (Face::Granular, "tools/call") => {
                    Box::pin(granular::call(session, caller, params, client)).await
                }
                (Face::Proxy | Face::Granular, method) => {
                    proxy::answer(session, caller, method, params, client).await
                }
                (Face::Mirror(mirror), method) => {
                    Box::pin(mirror.answer(session, caller, method, params, client)).await
                }
            };
            match answer {
                Ok(answer) => responder.result(|out| answer.write(out)).await,
                Err(error) => responder.error(&error).await,
            }
        });
    }

    fn notification(&mut self, notification: Notification) {
        if let Some(id) = cancelled_id(&notification) {
            self.calls.cancel(&id);
        }
        let Some(params) = self.params_to_pass_on(&notification) else { return };
        let session = Arc::clone(&self.session);
        self.calls.spawn(async move {
            session.tell_own_servers(&notification.method, &params).await;
        });
    }

    fn malformed(&mut self, error: &Malformed, peer: &Peer) {
        let (error, peer) = (error.clone(), peer.clone());
        self.calls.spawn(async move { peer.refuse(&error).await });
    }
}

/// The request that the client no longer wants, if that is what it says.
pub(crate) fn cancelled_id(notification: &Notification) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    if notification.method != "notifications/cancelled" {
        return None;
    }
    let Cancelled { request_id } = notification.params.as_ref()?.parse().ok()?;
    Id::read(request_id)
}
