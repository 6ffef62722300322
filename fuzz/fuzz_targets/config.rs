//! Our own form of a configuration file.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| switchboard_fuzz::own(text));
