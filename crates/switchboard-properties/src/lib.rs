//! Properties that hold for every input of a parser: one function for each fuzz target.
//!
//! The fuzzer calls these functions with generated inputs. The test suite calls them with the
//! corpus and with mutations of it. A function panics if its property does not hold.

mod addresses;
mod cache;
mod config;
mod envelope;
mod facts;
mod frame;
mod names;
mod schema;
mod terminal;

use switchboard_core::config::hosts::Host;

pub use facts::{Fact, lost};

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub check: fn(&[u8]),
}

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// Every target, by the name of its program and of its corpus.
pub const TARGETS: &[Target] = &[
    target("frame_stdio", frame::any_pieces_give_the_same_frames),
    target("jsonrpc_envelope", envelope::agrees_with_a_plain_reading),
    target("schema_render", schema::is_shown_within_bounds),
    target("cache_load", cache::is_whole_or_a_miss),
    target("tty_sanitize", terminal::is_harmless),
    target("name_codec", names::are_distinct_and_found_again),
    target("url_policy", addresses::agree_with_a_list_of_networks),
    target("config", config::own),
    target("mcp-servers", config::list),
    target("claude-code", |input| config::host(Host::ClaudeCode, input)),
    target("claude-desktop", |input| config::host(Host::ClaudeDesktop, input)),
    target("codex", |input| config::host(Host::Codex, input)),
    target("cursor", |input| config::host(Host::Cursor, input)),
    target("gemini-cli", |input| config::host(Host::GeminiCli, input)),
    target("opencode", |input| config::host(Host::OpenCode, input)),
    target("vscode", |input| config::host(Host::VsCode, input)),
    target("windsurf", |input| config::host(Host::Windsurf, input)),
    target("zed", |input| config::host(Host::Zed, input)),
    target("amp", |input| config::host(Host::Amp, input)),
    target("cline", |input| config::host(Host::Cline, input)),
    target("copilot-cli", |input| config::host(Host::CopilotCli, input)),
    target("crush", |input| config::host(Host::Crush, input)),
    target("kiro", |input| config::host(Host::Kiro, input)),
    target("qwen-code", |input| config::host(Host::QwenCode, input)),
    target("roo", |input| config::host(Host::Roo, input)),
    target("vibe", |input| config::host(Host::Vibe, input)),
];

/// Checks the property of a target; an unknown name is a mistake in the target.
pub fn check(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target of that name").check)(input);
}
