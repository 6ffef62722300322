//! The configuration file of Claude Desktop.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_core::config::hosts::Host;

fuzz_target!(|text: &str| switchboard_fuzz::host(Host::ClaudeDesktop, text));
