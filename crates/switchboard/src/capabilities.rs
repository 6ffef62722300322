//! The client capabilities that servers are offered. A server may list different tools to clients
//! with different capabilities, so each connection and listing belongs to one set.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use switchboard_wire::Raw;
use tokio::sync::watch;

use crate::host::{Abilities, Topic};

/// The client capabilities that can affect a server's listing, as a bit set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CapabilitySet(u8);

const ROOTS: u8 = 1;
const SAMPLING: u8 = 1 << 1;
const SAMPLING_TOOLS: u8 = 1 << 2;
const SAMPLING_CONTEXT: u8 = 1 << 3;
const FORMS: u8 = 1 << 4;
const URLS: u8 = 1 << 5;

/// The number of possible capability sets: one more than the largest code.
const EVERY: u8 = 1 << 6;

impl CapabilitySet {
    /// The empty set: no capabilities.
    pub const NONE: CapabilitySet = CapabilitySet(0);

    /// The capabilities that servers are offered while the client is unknown.
    pub const USUAL: CapabilitySet = CapabilitySet(ROOTS | SAMPLING | FORMS | URLS);

    /// The capabilities of the command line at a terminal.
    pub const TERMINAL: CapabilitySet = CapabilitySet(SAMPLING | FORMS | URLS);

    /// The capabilities that a client declared.
    pub fn of(abilities: &Abilities) -> CapabilitySet {
        let members = |raw: &Raw| raw.parse::<Map<String, Value>>().unwrap_or_default();
        let mut set = if abilities.roots.is_some() { ROOTS } else { 0 };
        if let Some(sampling) = abilities.sampling.as_ref().map(members) {
            set |= SAMPLING;
            set |= if sampling.contains_key("tools") { SAMPLING_TOOLS } else { 0 };
            set |= if sampling.contains_key("context") { SAMPLING_CONTEXT } else { 0 };
        }
        if let Some(modes) = abilities.elicitation.as_ref().map(members) {
            let urls = modes.contains_key("url");
            // Older clients declare no mode of elicitation, and support forms.
            set |= if modes.contains_key("form") || !urls { FORMS } else { 0 };
            set |= if urls { URLS } else { 0 };
        }
        CapabilitySet(set)
    }

    /// The capabilities in the form in which `initialize` declares them.
    pub fn abilities(self) -> Abilities {
        let object = |members: &[(u8, &str)]| {
            let members = members.iter().filter(|(bit, _)| self.0 & bit != 0);
            let members = members.map(|(_, name)| ((*name).to_owned(), json!({})));
            Raw::from_json(Value::Object(members.collect()).to_string())
        };
        let has = |bits: u8| self.0 & bits != 0;
        let sampling = [(SAMPLING_TOOLS, "tools"), (SAMPLING_CONTEXT, "context")];
        Abilities {
            roots: has(ROOTS).then(|| Raw::from_json("{\"listChanged\":true}".to_owned())),
            sampling: has(SAMPLING).then(|| object(&sampling)),
            elicitation: has(FORMS | URLS).then(|| object(&[(FORMS, "form"), (URLS, "url")])),
        }
    }

    /// The subset for servers that may send only requests about `topics`.
    #[must_use]
    pub(crate) fn only(self, topics: &[Topic]) -> CapabilitySet {
        let bits = |topic: &Topic| match topic {
            Topic::Roots => ROOTS,
            Topic::Sampling => SAMPLING | SAMPLING_TOOLS | SAMPLING_CONTEXT,
            Topic::Elicitation => FORMS | URLS,
        };
        CapabilitySet(self.0 & topics.iter().map(bits).fold(0, |all, bits| all | bits))
    }

    /// The number that identifies this capability set in cache files and in their names.
    pub(crate) fn code(self) -> u8 {
        self.0
    }

    /// All possible capability sets.
    pub(crate) fn every() -> impl Iterator<Item = CapabilitySet> {
        (0..EVERY).map(CapabilitySet)
    }
}

/// The names of the capabilities, for reports.
impl fmt::Display for CapabilitySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (ROOTS, "roots"),
            (SAMPLING, "sampling"),
            (SAMPLING_TOOLS, "sampling.tools"),
            (SAMPLING_CONTEXT, "sampling.context"),
            (FORMS, "elicitation.form"),
            (URLS, "elicitation.url"),
        ];
        let names = names.iter().filter(|(bit, _)| self.0 & bit != 0).map(|(_, name)| *name);
        let names: Vec<&str> = names.collect();
        f.write_str(&if names.is_empty() { "no capabilities".to_owned() } else { names.join(", ") })
    }
}

/// The capabilities that one server is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The capabilities of the clients that use this gateway.
    pub(crate) offered: OfferedCapabilities,
    /// The server-to-client requests that the configuration permits.
    pub(crate) askable: Vec<Topic>,
}

impl Offer {
    /// The capabilities that the server is offered; `None` until the first client has declared its
    /// own.
    pub(crate) fn set(&self) -> Option<CapabilitySet> {
        Some(self.offered.get()?.only(&self.askable))
    }

    /// The capability set that selects the server's cache and pin files; the usual set while the
    /// client is unknown.
    pub(crate) fn set_or_usual(&self) -> CapabilitySet {
        self.set().unwrap_or_else(|| CapabilitySet::USUAL.only(&self.askable))
    }
}

/// The capabilities that the shared connections of a gateway offer: known from the start, or as soon
/// as its first client has declared them.
#[derive(Clone, Debug)]
pub(crate) struct OfferedCapabilities {
    set: Arc<watch::Sender<Option<CapabilitySet>>>,
}

impl OfferedCapabilities {
    pub(crate) fn known(set: CapabilitySet) -> OfferedCapabilities {
        OfferedCapabilities { set: Arc::new(watch::Sender::new(Some(set))) }
    }

    pub(crate) fn of_first_client() -> OfferedCapabilities {
        OfferedCapabilities { set: Arc::new(watch::Sender::new(None)) }
    }

    pub(crate) fn get(&self) -> Option<CapabilitySet> {
        *self.set.borrow()
    }

    /// Sets the capabilities, unless they are known already.
    pub(crate) fn declare(&self, set: CapabilitySet) {
        self.set.send_if_modified(|known| known.is_none() && known.replace(set).is_none());
    }

    /// Completes as soon as the capabilities are known, and returns them.
    pub(crate) async fn wait(&self) -> CapabilitySet {
        let mut changes = self.set.subscribe();
        let known = changes.wait_for(Option::is_some).await;
        // Receiving does not fail, because `self` owns the sender.
        known.ok().and_then(|set| *set).unwrap_or(CapabilitySet::USUAL)
    }
}

/// Compares by identity: each gateway has one `OfferedCapabilities`, which all its listing plans
/// share.
impl PartialEq for OfferedCapabilities {
    fn eq(&self, other: &OfferedCapabilities) -> bool {
        Arc::ptr_eq(&self.set, &other.set)
    }
}

impl Eq for OfferedCapabilities {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_round_trip_through_initialize() {
        for bits in 0..64 {
            let set = CapabilitySet(bits);
            let sampling = bits & (SAMPLING_TOOLS | SAMPLING_CONTEXT) == 0 || bits & SAMPLING != 0;
            if sampling {
                assert_eq!(CapabilitySet::of(&set.abilities()), set, "{bits:b}");
            }
        }
        assert_eq!(CapabilitySet::of(&Abilities::default()), CapabilitySet::NONE);
        assert_eq!(CapabilitySet::of(&Abilities::all()), CapabilitySet::USUAL);
        let older = Abilities {
            elicitation: Some(Raw::from_json("{}".to_owned())),
            ..Abilities::default()
        };
        assert_eq!(CapabilitySet::of(&older), CapabilitySet(FORMS));
    }

    #[test]
    fn disabled_capabilities_are_not_offered_to_servers() {
        let all = CapabilitySet(0b11_1111);
        assert_eq!(all.only(&Topic::ALL), all);
        assert_eq!(all.only(&[]), CapabilitySet::NONE);
        assert_eq!(all.only(&[Topic::Roots]), CapabilitySet(ROOTS));
    }

    #[test]
    fn capability_set_is_displayed_by_protocol_names() {
        assert_eq!(CapabilitySet::NONE.to_string(), "no capabilities");
        let usual = "roots, sampling, elicitation.form, elicitation.url";
        assert_eq!(CapabilitySet::USUAL.to_string(), usual);
        assert_eq!(CapabilitySet::every().count(), 64);
    }

    #[tokio::test]
    async fn first_client_decides_the_offered_capabilities() {
        let offered = OfferedCapabilities::of_first_client();
        assert_eq!(offered.get(), None);
        offered.declare(CapabilitySet(ROOTS));
        offered.declare(CapabilitySet::NONE);
        assert_eq!(offered.wait().await, CapabilitySet(ROOTS));
    }
}
