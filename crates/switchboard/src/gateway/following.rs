//! The files of the configuration, while the gateway runs.

use std::sync::Arc;

use switchboard_core::failure::Failure;
use tokio::sync::{mpsc, oneshot};

use super::{Gateway, WeakGateway};
use crate::explain;
use crate::follow::{self, Follower, ReadAgain};
use crate::last_good::LastGood;
use crate::load::LoadOptions;

impl Gateway {
    /// Follows the files of a configuration from now on: what changes in them, and in what the user
    /// approved, is applied as by [`Gateway::apply`]. A file that does not read keeps its last good
    /// version.
    pub fn follow(&self, options: LoadOptions, last_good: LastGood) {
        let gateway = WeakGateway { shared: Arc::downgrade(&self.shared) };
        let (ask, asked) = mpsc::channel(1);
        let follower = Follower { ask, options: options.clone() };
        let _followed_already = self.shared.follower.set(follower);
        self.run_beside(follow::follow(gateway, options, last_good, asked));
    }

    /// Which files are followed.
    pub(crate) fn followed(&self) -> Option<&LoadOptions> {
        self.shared.follower.get().map(|follower| &follower.options)
    }

    /// Has the files read now, whatever they look like.
    pub(crate) async fn reload(&self) -> Result<ReadAgain, Failure> {
        let follower = self.shared.follower.get().ok_or_else(explain::nothing_to_reload)?;
        let (reply, read) = oneshot::channel();
        let _going = follower.ask.send(reply).await;
        read.await.map_err(|_| explain::nothing_to_reload())
    }
}
