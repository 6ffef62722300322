//! The configuration file of Crush.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| switchboard_properties::check("crush", input));
