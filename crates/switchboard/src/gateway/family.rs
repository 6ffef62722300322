//! Sibling gateways for clients with other capabilities than the first client. Each gateway has its
//! own connections and listings, so that a client sees exactly the tools that it can call.

use std::sync::Arc;

use switchboard_core::config::layers::Config;
use tokio::sync::watch;

use super::{FileNotices, Gateway, GatewayState};
use crate::blueprint::Blueprint;
use crate::capabilities::{CapabilitySet, OfferedCapabilities};
use crate::directory::Directory;
use crate::host::Abilities;
use crate::log_level::LogLevels;
use crate::mutex::lock;
use crate::notices::Notices;
use crate::upstream::Surroundings;

/// The maximum number of capability sets in one process. Clients with further sets share the first
/// gateway.
const MOST: usize = 8;

/// The sibling gateways of a process, one for each further set of client capabilities, and the
/// configuration that a new sibling gets.
#[derive(Default)]
pub(super) struct Family {
    siblings: Vec<(CapabilitySet, Gateway)>,
    config: Arc<Config>,
    notices: FileNotices,
}

impl Gateway {
    /// Offers servers the capabilities of this client, if it is the first one. See
    /// [`super::GatewayBuilder::capabilities_of_first_client`].
    pub fn declare(&self, abilities: &Abilities) {
        self.shared.blueprint.offered.declare(CapabilitySet::of(abilities));
    }

    /// Completes when the capabilities that servers are offered are known.
    pub async fn declared(&self) {
        self.shared.blueprint.offered.wait().await;
    }

    /// The gateway for a client with these capabilities: this one, or a sibling with the same
    /// configuration that offers servers exactly these capabilities.
    #[must_use]
    pub fn for_client(&self, abilities: &Abilities) -> Gateway {
        let set = CapabilitySet::of(abilities);
        self.shared.blueprint.offered.declare(set);
        if self.shared.blueprint.offered.get() == Some(set) {
            return self.clone();
        }
        let mut family = lock(&self.shared.family);
        if let Some((_, sibling)) = family.siblings.iter().find(|(known, _)| *known == set) {
            return sibling.clone();
        }
        if family.siblings.len() + 1 >= MOST {
            return self.clone();
        }
        let GatewayState { blueprint, surroundings, .. } = &*self.shared;
        let offered = OfferedCapabilities::known(set);
        let blueprint = Blueprint { offered: offered.clone(), ..blueprint.clone() };
        let surroundings = Surroundings {
            directory: Directory::default(),
            offered,
            log_levels: LogLevels::default(),
            notices: Notices::default(),
            pulse: watch::Sender::new(()),
            closing: surroundings.closing.child_token(),
            ..surroundings.clone()
        };
        let settings = self.roster().settings.clone();
        let sibling = Gateway::without_servers(blueprint, surroundings, settings);
        sibling.apply_alone(&family.config, family.notices.clone());
        if lock(&self.shared.first_listing).is_some() {
            sibling.list_missing_in_background();
        }
        family.siblings.push((set, sibling.clone()));
        sibling
    }

    /// Applies a configuration to the siblings of this gateway, and stores it for later siblings.
    pub(super) fn apply_to_family(&self, config: &Config, notices: &FileNotices) {
        let mut family = lock(&self.shared.family);
        family.config = Arc::new(config.clone());
        family.notices = notices.clone();
        for (_, sibling) in &family.siblings {
            sibling.apply_alone(config, notices.clone());
        }
    }

    pub(super) fn siblings(&self) -> Vec<Gateway> {
        lock(&self.shared.family).siblings.iter().map(|(_, sibling)| sibling.clone()).collect()
    }
}
