//! The integration tests of all crates, in one binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod approval;
mod authority;
mod cache;
mod calls;
mod capabilities;
mod card;
mod chaos;
mod cli;
mod confinement;
mod content;
mod corpus;
mod credentials;
mod damaged_rules;
mod definitions;
mod denied;
mod direct;
mod docs;
mod doctor;
mod early_roots;
mod edits;
mod exact;
mod failures;
mod faults;
mod filters;
mod first_contact;
mod flood;
mod granular;
mod hidden_text;
mod host_profiles;
mod hostile_repository;
mod http_face;
mod http_guard;
mod http_streams;
mod import;
mod install;
mod launch;
mod layers;
mod lifecycle;
mod listing;
mod mirror;
mod modern;
mod nesting;
mod nine_hosts;
mod observing;
mod ordeal;
mod pair;
mod pi_face;
mod pi_list;
mod pins;
mod prefixes;
mod processes;
mod question;
mod reaper;
mod reload;
mod remote;
mod rmcp_guard;
mod rmcp_peer;
mod scenarios;
mod secret_forms;
mod secrets;
mod select;
mod server_to_client;
mod setup;
mod sign_in;
mod sign_in_tool;
mod slips;
mod state;
mod stateless_clients;
mod stdio_face;
mod switching;
mod thirty;
mod tokens;
mod trust;
mod unnamed;
mod what_stays;
mod writers;

use switchboard_it::program::Programs;

/// The paths of the programs. Only tests of this package know where Cargo puts its programs.
const PROGRAMS: Programs = Programs {
    switchboard: env!("CARGO_BIN_EXE_switchboard-dup"),
    fixture_server: env!("CARGO_BIN_EXE_fixture-server"),
};
