//! Creates the tasks of a dial, and remembers the greeting for the next dial of the server.

use std::sync::Arc;

use switchboard_core::name::ServerName;
use switchboard_wire::handshake::Greeting;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::connection::{Body, DialContext};
use super::incoming::News;
use super::opening::{self, Dialled};
use super::recipe::Recipe;
use super::{DialError, DialStage, ExitReason, Surroundings};

/// Starts the dials of one server, one dial at a time.
pub(super) struct Dialler {
    /// Publishes the progress of the current dial.
    stage: watch::Sender<DialStage>,
    /// Sends the actor news about the server's requests and notifications.
    news: mpsc::Sender<News>,
    /// Cancels the dial that was started last; `None` if none was started.
    current: Option<CancellationToken>,
    /// The handshake that succeeded after the server had refused another; the next dial tries it
    /// first.
    accepted: Option<Greeting>,
}

impl Dialler {
    pub(super) fn new(stage: watch::Sender<DialStage>, news: mpsc::Sender<News>) -> Dialler {
        Dialler { stage, news, current: None, accepted: None }
    }

    /// Two futures to spawn: the first opens and lists a connection, the second runs it to its end.
    pub(super) fn start(
        &mut self,
        server: &ServerName,
        recipe: &Arc<Recipe>,
        surroundings: &Surroundings,
    ) -> (impl Future<Output = Dialled> + use<>, impl Future<Output = ExitReason> + use<>) {
        self.stage.send_replace(DialStage::Starting);
        let cancel = CancellationToken::new();
        self.current = Some(cancel.clone());
        let (bodies, incoming_bodies) = mpsc::channel(1);
        let context = DialContext {
            server: server.clone(),
            recipe: Arc::clone(recipe),
            surroundings: surroundings.clone(),
            stage: self.stage.clone(),
            news: self.news.clone(),
        };
        let accepted = self.accepted;
        let dial = async move {
            tokio::select! {
                dialled = dial(context, accepted, bodies) => dialled,
                () = cancel.cancelled() => Dialled {
                    outcome: Err(DialError::Lost { exit: ExitReason::Stopped, stderr: Vec::new() }),
                    taught: None,
                },
            }
        };
        (dial, run_bodies(incoming_bodies))
    }

    /// Remembers a greeting that the server accepted after it had refused another greeting.
    pub(super) fn remember(&mut self, accepted: Option<Greeting>) {
        self.accepted = accepted.or(self.accepted);
    }

    /// Drops the remembered greeting, which is not needed once the directory has the server's era.
    pub(super) fn forget_greeting(&mut self) {
        self.accepted = None;
    }

    pub(super) fn cancel(&mut self) {
        if let Some(current) = self.current.take() {
            current.cancel();
        }
    }
}

/// Waits for the predecessor to end and for a dial permit, then opens and lists a connection.
async fn dial(
    context: DialContext,
    accepted: Option<Greeting>,
    bodies: mpsc::Sender<Body>,
) -> Dialled {
    let DialContext { server, recipe, surroundings, .. } = &context;
    if let Some(predecessor) = &surroundings.after {
        predecessor.cancelled().await;
    }
    let capabilities = opening::capabilities(&context).await;
    let era = surroundings.era_of_owner().or_else(|| surroundings.directory.era(server));
    let greeting = accepted.unwrap_or_else(|| opening::greeting(recipe, era));
    let _permit = surroundings.dials.acquire().await;
    opening::dial(&context, (greeting, &capabilities), bodies).await
}

/// Runs each body that the dial sends: none if the dial fails early, two if the server is restarted
/// with another greeting.
async fn run_bodies(mut bodies: mpsc::Receiver<Body>) -> ExitReason {
    let mut reason = ExitReason::Stopped;
    while let Some(body) = bodies.recv().await {
        reason = body.run().await;
    }
    reason
}
