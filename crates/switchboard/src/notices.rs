//! Handlers for notifications of servers. The session's host receives the notifications at most
//! once a second; the model receives them with the next reply.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hashbrown::HashMap;
use serde_json::json;
use switchboard_core::name::ServerName;
use switchboard_core::notice::{HandlerId, Notice, NoticeFilter, NoticeQueue, NotificationKind};
use switchboard_wire::{Notification, Raw};
use tokio::sync::{Notify, mpsc};
use tokio_util::task::AbortOnDropHandle;

use crate::gateway::Gateway;
use crate::mutex::lock;
use crate::upstream::lease::Caller;
use crate::upstream::{Listener, SessionId};

/// The maximum number of notification handlers in one session.
const MOST_HANDLERS: usize = 32;

/// The minimum time between two deliveries of notifications to a host; repetitions are merged.
const QUIET: Duration = Duration::from_secs(1);

/// The capacity of the queue of a call's progress notifications. If it is full, notifications are
/// skipped.
const WAITING_STEPS: usize = 16;

/// The notification handlers of all sessions; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notices {
    shared: Arc<NoticesState>,
}

#[derive(Debug, Default)]
struct NoticesState {
    /// The notification handlers of each session. The mutex is locked only briefly, never across an
    /// `await`.
    desks: Mutex<HashMap<SessionId, Desk>>,
    /// The number of sessions with notification handlers. If it is zero, calls do no work for
    /// handlers.
    listening: AtomicUsize,
}

/// The notification handlers of one session.
#[derive(Debug)]
struct Desk {
    handlers: Vec<NoticeFilter>,
    for_host: NoticeQueue,
    for_answer: NoticeQueue,
    news: Arc<Notify>,
    /// The task that notifies the host; ends with the session.
    _teller: AbortOnDropHandle<()>,
}

/// The sessions that a notification may reach.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// The session that owns the connection.
    pub(crate) owner: Option<SessionId>,
    /// The session whose call the notification belongs to.
    pub(crate) meant: Option<SessionId>,
}

impl Reach {
    fn includes(self, session: SessionId, kind: NotificationKind) -> bool {
        match self.owner {
            Some(owner) => owner == session,
            None => kind.is_for_all() || self.meant == Some(session),
        }
    }
}

impl Notices {
    /// Registers a handler and returns its id; `None` if the session has too many handlers.
    pub(crate) fn register(
        &self,
        gateway: &Gateway,
        listener: &Listener,
        filter: NoticeFilter,
    ) -> Option<HandlerId> {
        let mut desks = lock(&self.shared.desks);
        let desk = desks.entry(listener.session).or_insert_with(|| {
            self.shared.listening.fetch_add(1, Ordering::Relaxed);
            let news = Arc::new(Notify::new());
            let telling = tell(self.clone(), listener.clone(), Arc::clone(&news));
            Desk {
                handlers: Vec::new(),
                for_host: NoticeQueue::default(),
                for_answer: NoticeQueue::default(),
                news,
                _teller: gateway.beside(telling),
            }
        });
        if desk.handlers.len() >= MOST_HANDLERS {
            return None;
        }
        desk.handlers.push(filter);
        Some(HandlerId(desk.handlers.len()))
    }

    pub(crate) fn forget(&self, session: SessionId) {
        if lock(&self.shared.desks).remove(&session).is_some() {
            self.shared.listening.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn has_no_handlers(&self) -> bool {
        self.shared.listening.load(Ordering::Relaxed) == 0
    }

    /// Passes a notification to the handlers that it may reach.
    pub(crate) fn hear(
        &self,
        server: &ServerName,
        kind: NotificationKind,
        params: Option<&Raw>,
        reach: Reach,
    ) {
        for (session, desk) in lock(&self.shared.desks).iter_mut() {
            if reach.includes(*session, kind) {
                desk.hear(server, kind, params);
            }
        }
    }

    /// The notifications that the session's handlers received since this method was last called, as
    /// one line.
    pub(crate) fn take_line(&self, session: SessionId) -> Option<String> {
        if self.has_no_handlers() {
            return None;
        }
        lock(&self.shared.desks).get_mut(&session)?.for_answer.take_line()
    }

    /// Makes a call for `caller`, and also passes its progress notifications to handlers.
    pub(crate) async fn with_steps<T, F: Future<Output = T>>(
        &self,
        server: ServerName,
        mut caller: Caller,
        call: impl FnOnce(Caller) -> F,
    ) -> T {
        let session = caller.listener.session;
        let reach = Reach { owner: None, meant: Some(session) };
        let (sender, mut steps) = mpsc::channel(WAITING_STEPS);
        let requested = caller.progress.replace(sender);
        let pass_on = |step: Raw| {
            self.hear(&server, NotificationKind::Progress, Some(&step), reach);
            if let Some(requested) = &requested {
                // A slow reader misses progress notifications, never the result.
                let _lagging = requested.try_send(step);
            }
        };
        let mut call = std::pin::pin!(call(caller));
        let outcome = loop {
            tokio::select! {
                biased;
                Some(step) = steps.recv() => pass_on(step),
                outcome = &mut call => break outcome,
            }
        };
        while let Ok(step) = steps.try_recv() {
            pass_on(step);
        }
        outcome
    }
}

impl Desk {
    fn hear(&mut self, server: &ServerName, kind: NotificationKind, params: Option<&Raw>) {
        let mut words = None;
        for (index, filter) in self.handlers.iter().enumerate() {
            if !filter.covers(server, kind) {
                continue;
            }
            let words = words.get_or_insert_with(|| kind.words(params.map(Raw::as_str)));
            let notice = Notice {
                handler: HandlerId(index + 1),
                server: server.clone(),
                kind,
                times: 1,
                words: words.clone(),
            };
            self.for_host.add(notice.clone());
            self.for_answer.add(notice);
            self.news.notify_one();
        }
    }
}

/// Delivers new notifications to the host, with a pause after each delivery.
async fn tell(notices: Notices, listener: Listener, news: Arc<Notify>) {
    loop {
        news.notified().await;
        let waiting = match lock(&notices.shared.desks).get_mut(&listener.session) {
            Some(desk) => desk.for_host.take(),
            None => return,
        };
        for notice in waiting {
            let logger = notice.handler.to_string();
            let message = log_message("notice", &logger, &notice.to_string());
            listener.host.tell(&notice.server, &message);
        }
        tokio::time::sleep(QUIET).await;
    }
}

/// A log message that the gateway itself sends to a client.
pub(crate) fn log_message(level: &str, logger: &str, data: &str) -> Notification {
    let params = json!({ "level": level, "logger": logger, "data": data });
    Notification {
        method: "notifications/message".to_owned(),
        params: Some(Raw::from_json(params.to_string())),
        exchange: None,
    }
}
