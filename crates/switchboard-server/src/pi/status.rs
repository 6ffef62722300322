//! The status of all servers as the extension shows it, and whenever it is another one.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard::Session;
use switchboard::gateway::Changes;
use switchboard::render::{self, pi as words};
use switchboard_wire::Peer;

/// Changes within this time are told as one.
const REST: Duration = Duration::from_millis(100);

/// What changes by itself, such as how long a failure is news, is noticed after so long.
const LOOK: Duration = Duration::from_secs(5);

/// What `status --json` prints, and what the extension shows of it.
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

/// Tells the client whenever the status is not what it was told last; the last one always arrives.
pub(super) async fn follow(session: Arc<Session>, mut changes: Changes, told: Value, client: Peer) {
    let mut known = essence(told);
    loop {
        tokio::select! {
            going_on = changes.next() => if !going_on { return },
            () = tokio::time::sleep(LOOK) => {}
        }
        tokio::time::sleep(REST).await;
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

/// Without what differs because time goes by.
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
