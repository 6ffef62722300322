//! What every fuzz target does with its text.

use switchboard_core::config::hosts::{self, Host};
use switchboard_core::config::layers::{Source, Tier};
use switchboard_core::config::parse::{self, ParsedFile};
use switchboard_core::config::pi_servers;

/// Our own form.
pub fn own(text: &str) {
    both_tiers(|source| parse::parse(text, source));
}

/// Pi's list of servers.
pub fn list(text: &str) {
    both_tiers(|source| pi_servers::parse(text, source));
}

/// The file of a host.
pub fn host(host: Host, text: &str) {
    both_tiers(|source| hosts::parse(host, text, source, "/project"));
}

/// A place is always inside the text, and there is an end to the problems.
fn both_tiers(read: impl Fn(&Source) -> ParsedFile) {
    for tier in [Tier::User, Tier::Project] {
        let file = read(&Source { path: "fuzz".into(), tier });
        assert!(file.diagnostics.len() <= 201);
        assert!(file.diagnostics.iter().all(|found| found.line >= 1 && found.column >= 1));
    }
}
