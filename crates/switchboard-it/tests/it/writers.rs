//! Concurrent updates of the same files by processes that are killed at random.

use std::path::Path;

use switchboard_it::soak::writers::{WriterPlan, update_concurrently};

#[test]
fn killed_process_loses_no_finished_update_of_shared_file() {
    let home = tempfile::tempdir().unwrap();
    let plan = WriterPlan { writers: 8, updates: 50, updates_per_kill: 16 };
    let program = Path::new(env!("CARGO_BIN_EXE_soak"));
    let figures = update_concurrently(program, home.path(), plan);
    assert!(figures.kills > 0, "{figures:?}");
}
