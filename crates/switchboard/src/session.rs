//! One conversation: what it asked for, what it was allowed, what it may still read.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::approval::Grants;
use switchboard_core::failure::Failure;
use switchboard_core::reply::Reply;
use switchboard_core::request::Request;

use crate::call;
use crate::gateway::Gateway;
use crate::host::Host;
use crate::modes;
use crate::results::Results;
use crate::upstream::lease::Progress;

/// A conversation with the gateway. Requests run side by side; dropping one cancels it.
pub struct Session {
    pub(crate) gateway: Gateway,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) results: Arc<Results>,
    /// Held for a moment at a time, never across an await.
    grants: Mutex<Grants>,
}

impl Session {
    pub(crate) fn new(gateway: Gateway, host: Arc<dyn Host>, results: Results) -> Session {
        Session { gateway, host, results: Arc::new(results), grants: Mutex::default() }
    }

    /// Answers one request.
    pub fn handle(&self, request: Request) -> impl Future<Output = Result<Reply, Failure>> + Send {
        self.handle_with_progress(request, None)
    }

    /// Answers one request; the steps of a call go to `progress`, as the server sent them.
    pub async fn handle_with_progress(
        &self,
        request: Request,
        progress: Progress,
    ) -> Result<Reply, Failure> {
        if let Request::Call(request) = request {
            return call::call(self, request, progress).await;
        }
        // A future of its own, so that a call does not pay for its size.
        Box::pin(self.answer(request)).await
    }

    async fn answer(&self, request: Request) -> Result<Reply, Failure> {
        match request {
            Request::Status => Ok(modes::status(self)),
            Request::List { server, page } => modes::list(self, &server, page).await,
            Request::Search(request) => modes::search(self, &request),
            Request::Describe { tool, server } => {
                modes::describe(self, &tool, server.as_deref()).await
            }
            Request::Instructions { server } => modes::instructions(self, &server),
            Request::Connect { server } => modes::connect(self, &server).await,
            Request::Disconnect { server } => modes::disconnect(self, &server).await,
            Request::Result { id, view } => modes::result(self, id, view).await,
            Request::Resources { server } => modes::resources(self, server.as_deref()),
            Request::ReadResource { uri, server } => {
                modes::read_resource(self, &uri, server.as_deref()).await
            }
            Request::Prompts { server } => modes::prompts(self, server.as_deref()),
            Request::Prompt { name, server, args } => {
                modes::prompt(self, &name, server.as_deref(), args).await
            }
            Request::Call(request) => call::call(self, request, None).await,
        }
    }

    /// The gateway that this conversation runs through.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    pub(crate) fn grants(&self) -> MutexGuard<'_, Grants> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
