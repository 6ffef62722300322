//! Pi's list of servers.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| switchboard_fuzz::list(text));
