//! The state of one server across all configuration files.

use switchboard_core::catalog::resolve::nearest;
use switchboard_core::config::layers::{Tier, Trust};
use switchboard_core::name::ServerName;

use super::error::EditError;
use crate::load::Loaded;

/// The state of a server across all files.
pub(super) struct Standing {
    pub(super) tier: Tier,
    /// The file with the endpoint of the server, or else the last file that names the server.
    pub(super) file: String,
    pub(super) is_disabled: bool,
}

pub(super) fn standing(loaded: &Loaded, server: &ServerName) -> Option<Standing> {
    let config = &loaded.config;
    let pending = config.pending.iter().find(|pending| pending.name == server.as_str());
    let (definition, tier) = match (config.servers.get(server.as_str()), pending) {
        // A pending project entry does not affect the user's server.
        (Some(found), _) => match found.trust {
            Trust::UserFile => (&found.definition, Tier::User),
            Trust::Approved(_) => (&found.definition, Tier::Project),
        },
        (None, Some(pending)) => (&pending.definition, Tier::Project),
        (None, None) => return None,
    };
    let endpoint = ["command", "url", "socket"].iter().find_map(|key| definition.origins.get(key));
    let origin = endpoint.or_else(|| definition.origins.values().next());
    let file = origin.map(|origin| origin.path.to_string()).unwrap_or_default();
    Some(Standing { tier, file, is_disabled: definition.is_disabled() })
}

pub(super) fn unknown(server: &ServerName, loaded: &Loaded) -> EditError {
    if let Some(refused) = loaded.refused(server.as_str()) {
        return EditError::RefusedEntry(Box::new(refused));
    }
    let known = loaded.config.servers.keys().cloned();
    let pending = loaded.config.pending.iter().map(|pending| pending.name.clone());
    let suggestions = nearest(server.as_str(), known.chain(pending));
    EditError::Unknown { name: server.to_string(), suggestions }
}
