//! Addresses that documents of others name.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| switchboard_properties::check("url_policy", input));
