//! Compiles the patterns of `hints.txt` into two tables that need no parsing at startup: the sorted
//! phrases, reduced to word stems, and the patterns.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

#[path = "src/catalog/search/stemming.rs"]
mod stemming;

use stemming::WordStemmer;

const HINTS: &str = "src/catalog/search/hints.txt";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={HINTS}");
    println!("cargo::rerun-if-changed=src/catalog/search/stemming.rs");
    println!("cargo::rerun-if-changed=build.rs");
    let hints = fs::read_to_string(HINTS)?;
    let tables = Tables::of(&hints)?;
    let out = out_dir().ok_or("Cargo does not set OUT_DIR")?;
    fs::write(out.join("hint_phrases.txt"), tables.phrases())?;
    fs::write(out.join("hint_patterns.txt"), tables.patterns)?;
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo passes the output directory in the environment"
)]
fn out_dir() -> Option<PathBuf> {
    env::var_os("OUT_DIR").map(PathBuf::from)
}

#[derive(Default)]
struct Tables<'a> {
    stemmer: WordStemmer,
    classes: HashMap<&'a str, &'a str>,
    numbers: HashMap<&'a str, usize>,
    /// Each phrase of the patterns, with the numbers of the pattern parts that contain it.
    parts: BTreeMap<String, BTreeSet<usize>>,
    /// The pattern table: one line per pattern, as `LEAST:MOST:NUMBER … > WORDS`.
    patterns: String,
}

impl<'a> Tables<'a> {
    fn of(text: &'a str) -> Result<Tables<'a>, String> {
        let mut tables = Tables::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match (line.split_once(" = "), line.split_once(" > ")) {
                (Some((class, phrases)), None) => {
                    tables.classes.insert(class, phrases);
                }
                (None, Some((pattern, words))) => tables.enter_pattern(pattern, words)?,
                _ => return Err(format!("{HINTS}: neither a class nor a pattern: {line}")),
            }
        }
        Ok(tables)
    }

    fn enter_pattern(&mut self, pattern: &'a str, words: &str) -> Result<(), String> {
        for part in pattern.split(' ') {
            let (least, most, part) = match part.split_at_checked(1) {
                Some(("-", part)) => (0, 0, part),
                Some(("2", part)) => (2, u8::MAX, part),
                _ => (1, u8::MAX, part),
            };
            let next = self.numbers.len();
            let number = *self.numbers.entry(part).or_insert(next);
            if number == next {
                self.enter_part(part, number)?;
            }
            let _ = write!(self.patterns, "{least}:{most}:{number} ");
        }
        let _ = writeln!(self.patterns, "> {words}");
        Ok(())
    }

    fn enter_part(&mut self, part: &str, number: usize) -> Result<(), String> {
        for phrase in part.split('|') {
            let phrases = self.classes.get(phrase).copied().unwrap_or(phrase);
            phrases.split(' ').try_for_each(|phrase| self.enter_phrase(phrase, number))?;
        }
        Ok(())
    }

    fn enter_phrase(&mut self, phrase: &str, number: usize) -> Result<(), String> {
        if phrase.starts_with('@') {
            return Err(format!("{HINTS}: no class {phrase}"));
        }
        let stems: Vec<_> = phrase.split('_').map(|word| self.stemmer.stem(word)).collect();
        let stems = stems.join("_");
        self.parts.entry(stems).or_default().insert(number);
        Ok(())
    }

    /// The phrase table: one line per phrase, as `PHRASE NUMBER …`.
    fn phrases(&self) -> String {
        let mut lines = String::new();
        for (phrase, numbers) in &self.parts {
            lines.push_str(phrase);
            for number in numbers {
                let _ = write!(lines, " {number}");
            }
            lines.push('\n');
        }
        lines
    }
}
