//! Concurrent updates of the same files by processes that are killed at random.

use switchboard_it::storm::{Storm, rage};

#[test]
fn killed_writers_lose_no_finished_update() {
    let home = tempfile::tempdir().unwrap();
    let storm = Storm { writers: 8, updates: 50, calm: 16 };
    let damage = rage(env!("CARGO_BIN_EXE_storm"), home.path(), storm);
    assert!(damage.kills > 0, "{damage:?}");
}
