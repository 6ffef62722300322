//! Makes the tasks of a dial, and keeps what the next dial of the server needs.

use std::sync::Arc;

use switchboard_core::name::ServerName;
use switchboard_wire::handshake::Greeting;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::connection::{self, Body};
use super::incoming::News;
use super::opening::{self, Dialled};
use super::recipe::Recipe;
use super::{DialError, ExitReason, Stage, Surroundings};

/// The dials of one server, one at a time.
pub(super) struct Dialler {
    /// The progress of the current dial.
    stage: watch::Sender<Stage>,
    /// Receives the server's requests and notifications that the actor handles.
    news: mpsc::Sender<News>,
    /// Cancels the current dial.
    current: Option<CancellationToken>,
    /// The greeting that the server accepted after it had refused another one.
    accepted: Option<Greeting>,
}

impl Dialler {
    pub(super) fn new(stage: watch::Sender<Stage>, news: mpsc::Sender<News>) -> Dialler {
        Dialler { stage, news, current: None, accepted: None }
    }

    /// Two futures to spawn: the first opens and lists a connection, the second runs it to its end.
    pub(super) fn start(
        &mut self,
        server: &ServerName,
        recipe: &Arc<Recipe>,
        surroundings: &Surroundings,
    ) -> (impl Future<Output = Dialled> + use<>, impl Future<Output = ExitReason> + use<>) {
        self.stage.send_replace(Stage::Starting);
        let cancel = CancellationToken::new();
        self.current = Some(cancel.clone());
        let (bodies, incoming_bodies) = mpsc::channel(1);
        let open = self.open(server, Arc::clone(recipe), surroundings, bodies);
        let dial = async move {
            tokio::select! {
                dialled = open => dialled,
                () = cancel.cancelled() => Dialled {
                    outcome: Err(DialError::Lost { exit: ExitReason::Stopped, stderr: Vec::new() }),
                    taught: None,
                },
            }
        };
        (dial, run_bodies(incoming_bodies))
    }

    fn open(
        &self,
        server: &ServerName,
        recipe: Arc<Recipe>,
        surroundings: &Surroundings,
        bodies: mpsc::Sender<Body>,
    ) -> impl Future<Output = Dialled> + use<> {
        let means = connection::Means {
            spawner: Arc::clone(&surroundings.spawner),
            accounts: Arc::clone(&surroundings.accounts),
            tasks: surroundings.tasks.clone(),
            stage: self.stage.clone(),
            closing: surroundings.closing.clone(),
        };
        let hearing = connection::Hearing {
            server: server.clone(),
            news: self.news.clone(),
            owner: surroundings.owner.clone(),
            notices: surroundings.notices.clone(),
        };
        let (dials, log_levels) =
            (Arc::clone(&surroundings.dials), surroundings.log_levels.clone());
        let (after, era_of_owner) = (surroundings.after.clone(), surroundings.era_of_owner());
        let (directory, offered) = (surroundings.directory.clone(), surroundings.offered.clone());
        let accepted = self.accepted;
        async move {
            if let Some(predecessor) = after {
                predecessor.cancelled().await;
            }
            let capabilities = opening::capabilities(&recipe, &hearing, &offered).await;
            let era = era_of_owner.or_else(|| directory.era(&hearing.server));
            let greeting = accepted.unwrap_or_else(|| opening::greeting(&recipe, era));
            let _permit = dials.acquire().await;
            let how = (greeting, capabilities.as_str());
            opening::dial(&recipe, &means, hearing, &log_levels, how, bodies).await
        }
    }

    /// The server accepted this greeting after it had refused another one.
    pub(super) fn remember(&mut self, accepted: Option<Greeting>) {
        self.accepted = accepted.or(self.accepted);
    }

    /// Drops the remembered greeting: the directory has the era of the server.
    pub(super) fn forget_greeting(&mut self) {
        self.accepted = None;
    }

    /// The current dial has ended.
    pub(super) fn ended(&mut self) {
        self.current = None;
    }

    pub(super) fn cancel(&mut self) {
        if let Some(current) = self.current.take() {
            current.cancel();
        }
    }
}

/// Runs no body if the dial fails early, and two if the server is started anew with another greeting.
async fn run_bodies(mut bodies: mpsc::Receiver<Body>) -> ExitReason {
    let mut reason = ExitReason::Stopped;
    while let Some(body) = bodies.recv().await {
        reason = body.run().await;
    }
    reason
}
