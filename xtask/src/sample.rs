//! `cargo xtask sample SEED`: draws texts of the project at random, for a reader who grades them.
//!
//! The same seed draws the same texts from the same tree.

use std::io;

use crate::printer::say;
use crate::tidy::{File, Tree, tests_of};

/// Collects all texts of a kind.
type Collect = fn(&Tree) -> Vec<Text>;

/// How many texts of each kind are drawn.
const DRAWS: &[(&str, usize, Collect)] = &[
    ("test names", 20, test_names),
    ("comments", 15, comments),
    ("error texts", 10, error_texts),
    ("sentences of documents", 8, sentences),
    ("lines of the changelog", 7, changelog_lines),
];

/// A text with its place.
struct Text {
    place: String,
    text: String,
}

/// Prints the texts that `seed` draws, numbered and by kind.
pub(crate) fn run(seed: u64) -> io::Result<()> {
    let tree = Tree::read()?;
    let mut random = SplitMix(seed);
    let mut number = 0;
    for (kind, count, collect) in DRAWS {
        say(&format!("\n## {kind}"));
        for text in draw(collect(&tree), *count, &mut random) {
            number += 1;
            say(&format!("{number}. {} ({})", text.text, text.place));
        }
    }
    Ok(())
}

/// Takes `count` of the texts at random, each at most once.
fn draw(mut texts: Vec<Text>, count: usize, random: &mut SplitMix) -> Vec<Text> {
    let mut drawn = Vec::new();
    while drawn.len() < count && !texts.is_empty() {
        let at = random.next() % texts.len() as u64;
        drawn.push(texts.swap_remove(at as usize));
    }
    drawn
}

/// The random generator of <https://prng.di.unimi.it/splitmix64.c>. It has ten lines and never
/// changes, unlike the default generator of a library.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn test_names(tree: &Tree) -> Vec<Text> {
    let tests = tree.files.iter().flat_map(|file| {
        tests_of(file).into_iter().map(move |test| text(file, test.line, test.name))
    });
    tests.collect()
}

/// Comments outside of tests, without blocks of code. Consecutive lines are one comment.
fn comments(tree: &Tree) -> Vec<Text> {
    let mut comments = Vec::new();
    for file in tree.files.iter().filter(|file| is_production(&file.path)) {
        let (mut last, mut in_code) = (0, false);
        for (line, comment) in file.comment_lines() {
            let words = comment.trim().trim_start_matches(['/', '!']).trim();
            let is_fence = words.starts_with("```");
            in_code ^= is_fence;
            if words.is_empty() || in_code || is_fence {
                continue;
            }
            match comments.last_mut() {
                Some(Text { text, .. }) if last > 0 && last + 1 == line => {
                    text.push(' ');
                    text.push_str(words);
                }
                _ => comments.push(text(file, line, words)),
            }
            last = line;
        }
    }
    comments
}

/// Whether a format string has words of its own. The words of `{clause}` are written elsewhere.
fn has_words(message: &str) -> bool {
    message.split('{').any(|part| part.rsplit('}').next().is_some_and(|words| words.len() > 3))
}

fn error_texts(tree: &Tree) -> Vec<Text> {
    let mut texts = Vec::new();
    for file in tree.files.iter().filter(|file| is_production(&file.path)) {
        for (index, line) in file.text.lines().enumerate() {
            if let Some((_, message)) = line.split_once("#[error(\"")
                && let message = message.trim_end_matches(")]").trim_end_matches('"')
                && has_words(message)
            {
                texts.push(text(file, index + 1, message));
            }
        }
    }
    texts
}

/// The prose of the guides, the README and the security policy, without tables, headings and code.
fn sentences(tree: &Tree) -> Vec<Text> {
    let mut sentences = Vec::new();
    let is_page = |file: &&File| {
        file.path.starts_with("docs/guide/") || ["README.md", "SECURITY.md"].contains(&&*file.path)
    };
    for file in tree.files.iter().filter(is_page) {
        let mut fenced = false;
        for (index, line) in file.text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let prose = line.starts_with(|c: char| c.is_alphabetic() || c == '-' || c == '`');
            if prose && !fenced && !line.starts_with("```") && line.contains(' ') {
                sentences.push(text(file, index + 1, line));
            }
        }
    }
    sentences
}

fn changelog_lines(tree: &Tree) -> Vec<Text> {
    let file = tree.files.iter().find(|file| file.path == "CHANGELOG.md");
    let lines = file.into_iter().flat_map(|file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| line.starts_with("- "));
        lines.map(move |(index, line)| text(file, index + 1, line))
    });
    lines.collect()
}

fn text(file: &File, line: usize, words: &str) -> Text {
    Text { place: format!("{}:{line}", file.path), text: words.to_owned() }
}

fn is_production(path: &str) -> bool {
    path.starts_with("crates/")
        && path.contains("/src/")
        && path.ends_with(".rs")
        && !path.contains("/tests")
        && !path.starts_with("crates/switchboard-it/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! Names of servers\n//! and tools.\n//!\n//! ```\n//! // Code.\n\
                        //! ```\n\nfn a() {} // One.\n\n// Two.\n\
                        enum E {\n    #[error(\"no `{0}`\")]\n    No,\n    #[error(\"{0}: {1}\")]\n    Other,\n}\n";
    const PAGE: &str = "# Title\nProse here.\n```sh\ncode here\n```\n| a | b |\n- An item.\n";

    fn tree() -> Tree {
        Tree::new([
            ("crates/switchboard/src/a.rs", Some(CODE.to_owned())),
            ("crates/switchboard/src/a/tests.rs", Some("#[test]\nfn works() {}\n".to_owned())),
            ("docs/guide/a.md", Some(PAGE.to_owned())),
            ("CHANGELOG.md", Some("# Changes\n- Add a thing.\n".to_owned())),
        ])
    }

    #[test]
    fn sample_collects_each_kind_of_text_with_its_place() {
        let tree = tree();
        let found = |collect: Collect| -> Vec<String> {
            collect(&tree).iter().map(|text| format!("{} {}", text.place, text.text)).collect()
        };
        let code = "crates/switchboard/src/a.rs";
        assert_eq!(found(test_names), ["crates/switchboard/src/a/tests.rs:2 works"]);
        assert_eq!(
            found(comments),
            [
                format!("{code}:1 Names of servers and tools."),
                format!("{code}:8 One."),
                format!("{code}:10 Two."),
            ]
        );
        assert_eq!(found(error_texts), [format!("{code}:12 no `{{0}}`")]);
        assert_eq!(
            found(sentences),
            ["docs/guide/a.md:2 Prose here.", "docs/guide/a.md:7 - An item."]
        );
        assert_eq!(found(changelog_lines), ["CHANGELOG.md:2 - Add a thing."]);
    }

    #[test]
    fn same_seed_samples_the_same_texts_without_repetition() {
        let numbers = |seed| -> Vec<String> {
            let place = |n: u32| Text { place: n.to_string(), text: String::new() };
            let drawn = draw((0..50).map(place).collect(), 20, &mut SplitMix(seed));
            drawn.into_iter().map(|text| text.place).collect()
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
        let mut once = numbers(3);
        once.sort();
        once.dedup();
        assert_eq!(once.len(), 20);
        assert_eq!(draw(Vec::new(), 3, &mut SplitMix(1)).len(), 0);
    }
}
