//! Tools that the user's `deny` rules match. Lists and searches omit them, and calls of them are
//! refused.

use std::sync::Arc;

use hashbrown::HashMap;

use super::Catalog;
use crate::approval::denying;
use crate::name::ServerName;

/// The tools that `deny` rules match, by shown name. Each has its server and the pattern that
/// matches it.
pub(super) type Denied = HashMap<Arc<str>, (ServerName, String)>;

impl Catalog {
    /// The `deny` pattern that matches the tool with this shown name.
    pub fn denied_by(&self, shown: &str) -> Option<&str> {
        self.denied().get(shown).map(|(_, pattern)| pattern.as_str())
    }

    /// How many tools the `deny` rules match, on one server or on all.
    pub fn denied_count(&self, server: Option<&ServerName>) -> usize {
        match server {
            None => self.denied().len(),
            Some(server) => self.denied().values().filter(|(of, _)| of == server).count(),
        }
    }

    fn denied(&self) -> &Denied {
        self.denied.get_or_init(|| {
            let denied = self.shelves.iter().filter(|(_, shelf)| !shelf.deny.is_empty());
            let denied = denied.flat_map(|(server, shelf)| {
                self.all_tools_of(server).filter_map(move |tool| {
                    let pattern = denying(&shelf.deny, tool)?.to_owned();
                    Some((Arc::clone(&tool.shown), (server.clone(), pattern)))
                })
            });
            denied.collect()
        })
    }
}
