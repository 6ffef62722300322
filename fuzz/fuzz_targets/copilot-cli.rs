//! The configuration file of Copilot CLI.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| switchboard_properties::check("copilot-cli", input));
