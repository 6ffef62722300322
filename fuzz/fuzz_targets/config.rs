//! Our own form of a configuration file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| switchboard_properties::check("config", input));
