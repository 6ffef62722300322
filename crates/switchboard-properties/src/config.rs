//! Properties of the parsers of configuration files: ours, Pi's list of servers, and the hosts'.

use switchboard_core::config::hosts::{self, Host};
use switchboard_core::config::layers::{ConfigSource, Tier};
use switchboard_core::config::parse::{self, ParsedFile};
use switchboard_core::config::pi_servers;

pub(crate) fn own(input: &[u8]) {
    both_tiers(input, parse::parse);
}

pub(crate) fn list(input: &[u8]) {
    both_tiers(input, pi_servers::parse);
}

pub(crate) fn host(host: Host, input: &[u8]) {
    both_tiers(input, |text, source| hosts::parse(host, text, source, "/project"));
}

/// Each diagnostic has a line and a column, and their number and length are bounded.
fn both_tiers(input: &[u8], read: impl Fn(&str, &ConfigSource) -> ParsedFile) {
    let text = String::from_utf8_lossy(input);
    for tier in [Tier::User, Tier::Project] {
        let file = read(&text, &ConfigSource { path: "fuzz".into(), tier });
        assert!(file.diagnostics.len() <= 201);
        for found in &file.diagnostics {
            assert!(found.line >= 1 && found.column >= 1, "{found}");
            assert!(found.kind.to_string().chars().count() < 1_000, "{found}");
        }
    }
}
