//! Concurrent updates of the same files by processes that are killed at random.

use switchboard_it::storm::{Storm, rage};

#[test]
fn no_finished_update_is_lost_and_no_file_is_torn_however_many_writers_are_killed() {
    let home = tempfile::tempdir().unwrap();
    let storm = Storm { writers: 8, updates: 50, calm: 16 };
    let damage = rage(env!("CARGO_BIN_EXE_storm"), home.path(), storm);
    assert!(damage.kills > 0, "{damage:?}");
}
