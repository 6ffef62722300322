//! The transcripts of the README and the guide, run with the real program in a new home.
//!
//! `TRYCMD=overwrite` writes what happened into the files instead.

/// A block of `console` is a transcript: what stands there is what a reader gets.
#[test]
fn every_transcript_is_what_the_program_prints() {
    let home = tempfile::tempdir().unwrap();
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("switchboard", std::path::Path::new(env!("CARGO_BIN_EXE_switchboard-dup")))
        .env("HOME", home.path().to_str().unwrap())
        .env("NO_COLOR", "1");
    // An empty variable counts as not set, so nothing of the user's own is read.
    for moved in ["SWITCHBOARD_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"] {
        cases.env(moved, "");
    }
    cases.case("../../README.md").case("../../docs/guide/*.md");
    cases.run();
}
