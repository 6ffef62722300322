//! The corpus of the fuzz targets, through every parser of configuration files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use switchboard::config::hosts::{self, Host};
use switchboard::config::layers::{Source, Tier};
use switchboard::config::parse::{self, ParsedFile};
use switchboard::config::pi_servers;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The names of what lies in a folder, without endings.
fn stems(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect()
}

#[test]
fn every_parser_has_a_fuzz_target_and_a_corpus() {
    let parsers = Host::WORDS.iter().copied().chain(["config", "mcp-servers"]);
    let parsers: BTreeSet<String> = parsers.map(str::to_owned).collect();
    assert_eq!(stems(&fuzz().join("fuzz_targets")), parsers);
    assert_eq!(stems(&fuzz().join("corpus")), parsers);
}

#[test]
fn no_text_of_the_corpus_panics_in_any_parser() {
    let mut read = 0;
    for target in stems(&fuzz().join("corpus")) {
        for entry in fs::read_dir(fuzz().join("corpus").join(&target)).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            for tier in [Tier::User, Tier::Project] {
                let source = Source { path: path.to_string_lossy().into(), tier };
                check(&parse::parse(&text, &source));
                check(&pi_servers::parse(&text, &source));
                for host in Host::ALL {
                    check(&hosts::parse(host, &text, &source, "/project"));
                }
            }
            read += 1;
        }
    }
    assert!(read > 30, "{read} texts");
}

/// A place is always inside the text, and there is an end to the problems.
fn check(file: &ParsedFile) {
    assert!(file.diagnostics.len() <= 201);
    for found in &file.diagnostics {
        assert!(found.line >= 1 && found.column >= 1, "{found}");
        assert!(found.kind.to_string().chars().count() < 1_000, "{found}");
    }
}
