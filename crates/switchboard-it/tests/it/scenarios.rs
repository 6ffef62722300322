//! Plays every story in `scenarios/` through every face that it names.
//!
//! `UPDATE_EXPECT=1` writes what happened into the files instead.

use std::fs;
use std::path::{Path, PathBuf};

use switchboard::Environment;
use switchboard_it::faces::{Face, Library};
use switchboard_it::scenario::{Story, play};

/// On a paused clock of its own.
fn play_through<F: Face>(story: &Story) -> Story {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(play::<F>(story))
}

fn stories() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_story_comes_true_in_the_library() {
    let update = Environment::of_process().variable("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    for path in stories() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let story = Story::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        if !story.faces.iter().any(|face| face == "library") {
            continue;
        }
        let told = play_through::<Library>(&story);
        if update {
            fs::write(&path, told.text()).unwrap();
        } else if told != story {
            for (expected, seen) in story.steps.iter().zip(&told.steps) {
                if expected != seen {
                    wrong.push(format!("{name}:\nexpected {expected:#?}\nseen {seen:#?}"));
                }
            }
        } else if told.text() != text {
            wrong.push(format!("{name} is not written as `UPDATE_EXPECT=1` writes it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
