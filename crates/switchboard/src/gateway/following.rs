//! Follows the configuration files while the gateway runs.

use std::sync::Arc;

use switchboard_core::failure::Failure;
use tokio::sync::{mpsc, oneshot};

use super::{Gateway, WeakGateway};
use crate::explain;
use crate::follow::{self, Follower, ReadAgain};
use crate::last_good::LastGood;
use crate::load::LoadOptions;

impl Gateway {
    /// Follows the files of a configuration and the approvals from now on; changes are applied as
    /// by [`Gateway::apply`]. For a file that cannot be parsed, its last good version stays in
    /// effect.
    pub fn follow(&self, options: LoadOptions, last_good: LastGood) {
        let gateway = WeakGateway { shared: Arc::downgrade(&self.shared) };
        let (ask, asked) = mpsc::channel(1);
        let follower = Follower { ask, options: options.clone() };
        let _followed_already = self.shared.follower.set(follower);
        self.run_beside(follow::follow(gateway, options, last_good, asked));
    }

    /// The configuration files that the gateway follows; `None` if it follows none.
    pub(crate) fn followed(&self) -> Option<&LoadOptions> {
        self.shared.follower.get().map(|follower| &follower.options)
    }

    /// Reloads the configuration files now, whether or not they seem changed.
    pub(crate) async fn reload(&self) -> Result<ReadAgain, Failure> {
        let follower = self.shared.follower.get().ok_or_else(explain::nothing_to_reload)?;
        let (reply, read) = oneshot::channel();
        let _going = follower.ask.send(reply).await;
        read.await.map_err(|_| explain::nothing_to_reload())
    }
}
