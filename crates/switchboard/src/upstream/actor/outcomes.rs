//! Handles the outcomes of the actor's tasks: dials, connections, pings and listings.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use switchboard_core::catalog::RawListing;
use switchboard_core::lifecycle::{Generation, Input, Phase, Urgency};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::{Actor, Done};
use crate::upstream::connection::Connection;
use crate::upstream::door::Door;
use crate::upstream::lease::Open;
use crate::upstream::opening::Dialled;
use crate::upstream::{DialError, ExitReason, lifecycle_log};

impl Actor {
    pub(super) fn finished(&mut self, done: Result<Done, JoinError>) {
        // The task was aborted or panicked. The connection ends with the task, which is reported
        // separately.
        let Ok(done) = done else { return };
        let jitter = fastrand::f64();
        match done {
            Done::Dialled { generation, dialled: Dialled { outcome, taught } } => {
                self.dialler.remember(taught);
                self.dialled(generation, outcome, jitter);
            }
            Done::Ended { generation, reason } => self.ended(generation, reason, jitter),
            Done::Pinged { generation, alive: true } => self.feed(Input::Pong { generation }),
            Done::Pinged { generation, alive: false } => {
                let busy = self.open().is_some_and(|open| open.door.usage().held);
                if self.is(Phase::Up, generation) && !busy {
                    self.failed(DialError::Unresponsive);
                    self.feed(Input::PingFailed { generation, jitter });
                }
            }
            Done::Listed { generation, outcome } => self.listed(generation, outcome),
            Done::Drained => self.feed(Input::Shutdown),
        }
    }

    fn dialled(
        &mut self,
        generation: Generation,
        outcome: Result<(Connection, RawListing), DialError>,
        jitter: f64,
    ) {
        if !self.is(Phase::Dialling, generation) {
            // The dial was cancelled, so its outcome is not reported.
            if let Ok((connection, _)) = outcome {
                connection.stop.cancel();
            }
            return;
        }
        // Requests that the server sent while it was listed are handled before the first call.
        while let Ok(news) = self.news.try_recv() {
            self.handle_news(news);
        }
        let error = match outcome {
            Ok((connection, mut listing)) => {
                if self.surroundings.era_of_owner().is_some() {
                    // The owning session prescribed the era of this connection, so the era of other
                    // connections stays as it is.
                    listing.era = self.surroundings.directory.era(&self.server);
                }
                let took = self.statuses.borrow().connecting_for();
                lifecycle_log::connected(&self.server, &connection.hello, &listing, took);
                self.publish_first(listing);
                match connection.exited() {
                    None => {
                        self.last_failure = None;
                        if self.surroundings.directory.era(&self.server).is_some() {
                            self.dialler.forget_greeting();
                        }
                        let open = Open {
                            connection,
                            door: Door::new(self.began),
                            server: self.server.clone(),
                            recipe: Arc::clone(&self.recipe),
                            log_levels: self.surroundings.log_levels.clone(),
                            unwelcome: AtomicBool::new(false),
                        };
                        self.open.send_replace(Some(Arc::new(open)));
                        self.feed(Input::Dialled { generation });
                        if self.relisting.catch_up() {
                            self.walk();
                        }
                        return;
                    }
                    // The connection ended before the first call.
                    Some(exited) => exited,
                }
            }
            Err(error) => error,
        };
        self.relisting.stop();
        let input = match error.needs_sign_in() {
            true => Input::NotSignedIn { generation },
            false => Input::DialFailed { generation, jitter },
        };
        self.failed(error);
        self.feed(input);
    }

    fn ended(&mut self, generation: Generation, exit: ExitReason, jitter: f64) {
        if self.is(Phase::Up, generation) {
            self.lost(exit, jitter);
        } else if self.open().is_some_and(|closing| closing.connection.stop.is_cancelled()) {
            self.open.send_replace(None);
            tracing::info!(server = %self.server, "stopped");
        }
    }

    /// Treats a connection whose stream has ended as lost, even while its program is still being
    /// cleaned up.
    pub(super) fn detect_lost_connection(&mut self) {
        let open = self.open().filter(|_| self.machine.phase() == Phase::Up);
        if let Some(closed) = open.filter(|open| open.connection.peer.is_closed()) {
            let known = closed.connection.end.known().map(|(exit, _)| exit);
            self.lost(known.unwrap_or(ExitReason::StreamClosed), fastrand::f64());
        }
    }

    fn lost(&mut self, exit: ExitReason, jitter: f64) {
        let lost = self.open.send_replace(None);
        let usage = lost.as_ref().map(|lost| lost.door.usage()).unwrap_or_default();
        let generation = self.machine.generation();
        if exit == ExitReason::Forgotten {
            return self.feed(Input::Forgotten { generation, usage, jitter });
        }
        let stderr = lost.map(|lost| lost.connection.end.last_words()).unwrap_or_default();
        self.failed(DialError::Lost { exit, stderr });
        self.feed(Input::Lost { generation, usage, jitter });
    }

    fn listed(&mut self, generation: Generation, outcome: Result<RawListing, DialError>) {
        if let Ok(listing) = outcome
            && self.is(Phase::Up, generation)
        {
            lifecycle_log::listed(&self.server, &listing);
            self.publish(listing);
        }
        let answered = if self.machine.phase() == Phase::Up {
            self.relisting.ended(Instant::now());
            self.refreshes.walk_ended()
        } else {
            self.relisting.stop();
            self.refreshes.connection_ended()
        };
        for reply in answered {
            self.acquire(Urgency::Explicit, reply);
        }
        if !self.refreshes.is_empty() && self.relisting.begin() {
            self.walk();
        }
    }

    /// Publishes the first listing of a connection. The listing may depend on the client
    /// capabilities. A connection that offers other capabilities than the gateway is therefore
    /// published only if no listing is known or an explicit connect requested it.
    fn publish_first(&mut self, listing: RawListing) {
        let wanted = std::mem::take(&mut self.listing_requested);
        let known = self.surroundings.directory.has_listed(&self.server);
        if self.surroundings.offer_the_usual() || !known || wanted {
            self.publish(listing);
        }
    }
}
