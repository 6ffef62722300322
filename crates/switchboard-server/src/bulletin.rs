//! Change notifications for stateless clients: each subscribes with an open `subscriptions/listen`
//! request, and every notification carries the id of that request.

use std::ops::Not;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard::exact::Args;
use switchboard_wire::modern::meta;
use switchboard_wire::{Id, Peer};

use crate::lock::lock;

/// The maximum number of notifications that are queued until a subscription is acknowledged.
const EARLY: usize = 64;

/// The maximum number of resources that one client may subscribe to.
const MAX_RESOURCES: usize = 256;

/// The notifications that a client subscribes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SubscriptionFilter {
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) tools_list_changed: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) prompts_list_changed: bool,
    #[serde(default, skip_serializing_if = "Not::not")]
    pub(crate) resources_list_changed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) resource_subscriptions: Vec<String>,
}

impl SubscriptionFilter {
    pub(crate) fn bounded(mut self) -> SubscriptionFilter {
        self.resource_subscriptions.truncate(MAX_RESOURCES);
        self.resource_subscriptions.sort_unstable();
        self.resource_subscriptions.dedup();
        self
    }

    fn wants(&self, method: &str, params: &Args) -> bool {
        match method {
            "notifications/tools/list_changed" => self.tools_list_changed,
            "notifications/prompts/list_changed" => self.prompts_list_changed,
            "notifications/resources/list_changed" => self.resources_list_changed,
            "notifications/resources/updated" => {
                let uri = params.values().get("uri").and_then(Value::as_str);
                uri.is_some_and(|uri| self.resource_subscriptions.iter().any(|own| own == uri))
            }
            _ => false,
        }
    }
}

/// Distributes change notifications; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bulletin {
    readers: Arc<Mutex<Subscribers>>,
}

#[derive(Debug, Default)]
struct Subscribers {
    last: u64,
    here: Vec<(u64, Arc<Subscriber>)>,
}

/// A client that subscribed with `subscriptions/listen`.
#[derive(Debug)]
struct Subscriber {
    filter: SubscriptionFilter,
    client: Peer,
    /// The id of the client's `subscriptions/listen` request, as JSON.
    tag: Value,
    /// The notifications that are queued until the acknowledgement; `None` after it.
    early: Mutex<Option<Vec<(String, Args)>>>,
}

/// One subscription; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Subscription {
    bulletin: Bulletin,
    number: u64,
    reader: Arc<Subscriber>,
}

impl Bulletin {
    /// Adds a subscription. Its notifications are queued until [`Subscription::opened`].
    pub(crate) fn subscribe(
        &self,
        filter: SubscriptionFilter,
        client: Peer,
        request: &Id,
    ) -> Subscription {
        let early = Mutex::new(Some(Vec::new()));
        let reader = Arc::new(Subscriber { filter, client, tag: tag(request), early });
        let mut readers = lock(&self.readers);
        readers.last += 1;
        let number = readers.last;
        readers.here.push((number, Arc::clone(&reader)));
        Subscription { bulletin: self.clone(), number, reader }
    }

    /// Sends a notification to all subscribers whose filter matches.
    pub(crate) fn post(&self, method: &str, params: &str) {
        let readers: Vec<_> =
            lock(&self.readers).here.iter().map(|(_, one)| Arc::clone(one)).collect();
        if readers.is_empty() {
            return;
        }
        let params = if params.is_empty() { "{}" } else { params };
        let Ok(params) = Args::parse(params) else { return };
        for reader in readers.iter().filter(|reader| reader.filter.wants(method, &params)) {
            reader.tell(method, &params);
        }
    }

    /// Whether any client subscribes to the resource.
    pub(crate) fn is_followed(&self, uri: &str) -> bool {
        let follows =
            |reader: &Subscriber| reader.filter.resource_subscriptions.iter().any(|u| u == uri);
        lock(&self.readers).here.iter().any(|(_, reader)| follows(reader))
    }
}

impl Subscriber {
    fn tell(&self, method: &str, params: &Args) {
        match &mut *lock(&self.early) {
            None => self.client.try_notify(method, &self.tagged(params)),
            // Equal notifications are queued only once.
            Some(waiting) => {
                let news = (method.to_owned(), params.clone());
                if waiting.len() < EARLY && !waiting.contains(&news) {
                    waiting.push(news);
                }
            }
        }
    }

    fn tagged(&self, params: &Args) -> String {
        let mut params = params.clone();
        let about = params.take("_meta").and_then(|about| Args::try_from(about).ok());
        let mut about = about.unwrap_or_default();
        about.insert(meta::SUBSCRIPTION_ID, self.tag.clone());
        params.insert("_meta", about);
        params.to_string()
    }
}

impl Subscription {
    /// Sends the queued notifications, and from now on every notification at once. Must be called
    /// after the acknowledgement of the subscription was sent.
    pub(crate) fn opened(&self) {
        let mut early = lock(&self.reader.early);
        for (method, params) in early.take().into_iter().flatten() {
            self.reader.client.try_notify(&method, &self.reader.tagged(&params));
        }
    }

    /// Sends a notification to this subscriber alone.
    pub(crate) fn tell(&self, method: &str) {
        self.reader.tell(method, &Args::default());
    }

    /// Removes this subscription, so that no further notification is sent on it.
    pub(crate) fn leave(&self) {
        lock(&self.bulletin.readers).here.retain(|(number, _)| *number != self.number);
    }

    pub(crate) fn filter(&self) -> &SubscriptionFilter {
        &self.reader.filter
    }

    /// The parameters of the acknowledgement of a subscription. It is sent before all other
    /// notifications of the subscription.
    pub(crate) fn acknowledgement(&self) -> String {
        json!({ "notifications": self.filter(), "_meta": self.mark() }).to_string()
    }

    /// The `_meta` that every notification carries: the id of its subscription.
    pub(crate) fn mark(&self) -> Value {
        json!({ meta::SUBSCRIPTION_ID: self.reader.tag })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.leave();
    }
}

fn tag(request: &Id) -> Value {
    let mut json = String::new();
    request.write(&mut json);
    serde_json::from_str(&json).unwrap_or(Value::String(json))
}
