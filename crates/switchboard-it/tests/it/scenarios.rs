//! Plays every scenario in `scenarios/` through every face that it names.
//!
//! `UPDATE_EXPECT=1` writes the transcript of the first face into the file instead.

use std::fs;
use std::path::{Path, PathBuf};

use switchboard::Environment;
use switchboard_it::faces::{CommandLine, Face, Http, Library, Stdio};
use switchboard_it::scenario::{Story, play};
use tokio::runtime::{Builder, Runtime};

use crate::PROGRAMS;

fn stories() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn check<F: Face>(face: &str, runtime: &Runtime) {
    let update = Environment::of_process().variable("UPDATE_EXPECT").is_some();
    let mut played = 0;
    let mut wrong = Vec::new();
    for path in stories() {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        let story = Story::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        if !story.faces.iter().any(|named| named == face) {
            continue;
        }
        played += 1;
        let told = runtime.block_on(play::<F>(&story, PROGRAMS));
        if update && story.faces.first().is_some_and(|first| first == face) {
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
    assert!(played > 0, "no scenario names the face {face}");
}

#[test]
fn every_scenario_passes_in_the_library() {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    check::<Library>("library", &runtime);
}

/// Real processes need the real clock.
fn real_time() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn every_scenario_passes_over_stdio() {
    check::<Stdio>("stdio", &real_time());
}

#[test]
fn every_scenario_passes_over_http() {
    check::<Http>("http", &real_time());
}

#[test]
fn every_scenario_passes_on_the_command_line() {
    check::<CommandLine>("cli", &real_time());
}
