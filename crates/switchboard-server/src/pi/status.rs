//! The status of all servers for the Pi extension, and notifications when it changes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::Session;
use switchboard::gateway::Changes;
use switchboard::pi::text as words;
use switchboard::render;
use switchboard_wire::Peer;

/// Changes within this time cause a single notification.
const COALESCE: Duration = Duration::from_millis(100);

/// Interval for checking parts of the status that depend on the time, such as a failure that
/// becomes old.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The object of `status --json`, with the texts that the extension shows.
pub(super) fn of(session: &Session) -> Value {
    let (overview, settings) = (session.overview(), session.gateway().settings());
    let mut status = render::json::status(&overview);
    status["text"] = json!(words::status(&overview));
    status["pending"] = json!(words::pending(&overview));
    status["footer"] = json!(words::footer(&overview, &settings));
    status["greeting"] = json!(words::greeting(&overview, &settings));
    status["lines"] = json!(settings.shown_lines());
    status
}

/// Notifies the client whenever the status changes. The client always receives the latest status.
pub(super) async fn follow(session: Arc<Session>, mut changes: Changes, sent: Value, client: Peer) {
    let mut known = essence(sent);
    loop {
        tokio::select! {
            going_on = changes.next() => if !going_on { return },
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        tokio::time::sleep(COALESCE).await;
        let now = of(&session);
        let params = now.to_string();
        let now = essence(now);
        if now != known {
            known = now;
            if client.notify("notifications/switchboard/status", &params).await.is_err() {
                return;
            }
        }
    }
}

/// The status without the parts that change as time passes.
fn essence(mut status: Value) -> Value {
    status["text"].take();
    for server in status["servers"].as_array_mut().into_iter().flatten() {
        for (part, time) in [("failure", "agoMs"), ("stage", "forMs")] {
            if let Some(part) = server.get_mut(part) {
                part[time].take();
            }
        }
    }
    status
}
