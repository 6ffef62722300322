//! Checks the properties of the fuzz targets on their corpus, unchanged and randomly mutated.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use switchboard::config::hosts::Host;
use switchboard_properties::{TARGETS, Target};

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The file names in a directory, without extensions.
fn stems(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

/// The corpus of a fuzz target, in a fixed order.
fn inputs(target: Target) -> Vec<Vec<u8>> {
    let folder = fuzz().join("corpus").join(target.name);
    let names = stems(&folder);
    names.iter().map(|name| fs::read(folder.join(name)).unwrap()).collect()
}

#[test]
fn every_fuzz_property_has_a_fuzz_target_and_corpus() {
    let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
    assert_eq!(stems(&fuzz().join("fuzz_targets")), names);
    assert_eq!(stems(&fuzz().join("corpus")), names);
    let unread: Vec<_> = Host::WORDS.iter().filter(|word| !names.contains(**word)).collect();
    assert!(unread.is_empty(), "no target reads the files of {unread:?}");
}

#[test]
fn fuzz_properties_hold_for_the_corpus() {
    for target in TARGETS {
        let inputs = inputs(*target);
        assert!(inputs.len() >= 2, "{}", target.name);
        inputs.iter().for_each(|input| (target.check)(input));
    }
}

#[test]
fn fuzz_properties_hold_for_random_corpus_mutations() {
    const CHANGED: usize = 2_000;
    for target in TARGETS {
        let inputs = inputs(*target);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..CHANGED {
            (target.check)(&changed(&inputs, &mut random));
        }
    }
}

/// A random input with bytes removed, duplicated, flipped, or followed by part of another input.
fn changed(inputs: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut input = random.choice(inputs).cloned().unwrap_or_default();
    for _ in 0..random.usize(1..=4) {
        let [mut start, mut end] = [random.usize(0..=input.len()), random.usize(0..=input.len())];
        if start > end {
            std::mem::swap(&mut start, &mut end);
        }
        match random.u8(0..5) {
            0 => drop(input.drain(start..end.min(start + 8))),
            1 => input.extend_from_within(start..end),
            2 => input.insert(start, random.u8(..)),
            3 if start < input.len() => input[start] ^= 1 << random.u8(0..8),
            _ => {
                let other = random.choice(inputs).cloned().unwrap_or_default();
                input.truncate(end);
                input.extend_from_slice(&other[random.usize(0..=other.len())..]);
            }
        }
    }
    input
}
