//! Which words ask for a secret, and which only look like it.

use std::sync::LazyLock;

use super::words::{Word, squashed, words_of};

/// A name or a title of so many words is a label, in which single words count.
const LABEL_WORDS: usize = 5;

/// A longer text with one of these asks for something, and single words count as well.
const ASKING: &str =
    "your enter paste type provide give send submit input insert share supply tell fill";

/// Words of labels that are about something else.
const NO_SECRETS: &str = "page next continuation cursor max min length count budget";

/// What a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Text,
    Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LookedFor {
    /// Anywhere, separators left out.
    Part,
    /// As a whole word of a label or of a text that asks for something.
    Word,
    /// The same, of numbers too.
    Number,
    /// As a whole word of any text.
    Text,
    /// As a whole word with digits for letters: plain, it is no secret.
    Disguised,
}

struct Vocabulary {
    /// What is looked for, and how it looks.
    secrets: Vec<(LookedFor, String)>,
    /// Phrases with such a word that ask for no secret.
    benign: Vec<Vec<String>>,
    asking: Vec<String>,
    no_secrets: Vec<String>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let rows = |text: &'static str| text.lines().filter(|row| !row.starts_with('#'));
    let looks = |text: &str| -> Vec<String> {
        text.split(' ').flat_map(words_of).map(|word| word.look).collect()
    };
    let secret = |(how, word): (&str, &str)| {
        let looked_for = match how {
            "part" => LookedFor::Part,
            "word" => LookedFor::Word,
            "number" => LookedFor::Number,
            "disguised" => LookedFor::Disguised,
            _ => LookedFor::Text,
        };
        (looked_for, squashed(&words_of(word)))
    };
    let secrets = rows(include_str!("secrets.txt")).filter_map(|row| row.split_once(' '));
    Vocabulary {
        secrets: secrets.map(secret).collect(),
        benign: rows(include_str!("benign.txt")).map(looks).collect(),
        asking: looks(ASKING),
        no_secrets: looks(NO_SECRETS),
    }
});

/// Whether a name, a title or a sentence asks for a secret.
pub(super) fn names_secret(text: &str, answer: Answer) -> bool {
    let words = words_of(text);
    let has = |any: &[String]| words.iter().any(|word| any.contains(&word.look));
    let is_short = words.len() <= LABEL_WORDS;
    if has(&VOCABULARY.no_secrets) && (answer == Answer::Number || is_short) {
        return false;
    }
    let is_label = is_short || has(&VOCABULARY.asking);
    let parts = without_benign(&words);
    parts.iter().any(|words| part_names_secret(words, is_label, answer))
}

fn part_names_secret(words: &[Word], is_label: bool, answer: Answer) -> bool {
    let whole = squashed(words);
    let has = |secret: &str| {
        // A letter before it may stand alone, too: `a P I N`.
        words
            .iter()
            .any(|word| word.look == secret || word.is_spelled && word.look.contains(secret))
    };
    let has_disguised = |secret: &str| words.iter().any(|w| w.is_disguised && w.look == secret);
    VOCABULARY.secrets.iter().any(|(looked_for, secret)| match looked_for {
        LookedFor::Part => whole.contains(secret),
        LookedFor::Text => has(secret),
        LookedFor::Number => is_label && has(secret),
        LookedFor::Word => is_label && answer == Answer::Text && has(secret),
        LookedFor::Disguised => has_disguised(secret),
    })
}

/// What is left between the phrases that ask for no secret: those alone are passed over, so that one
/// of them does not excuse what else is asked.
fn without_benign(words: &[Word]) -> Vec<&[Word]> {
    let (mut parts, mut start, mut at) = (Vec::new(), 0, 0);
    while at < words.len() {
        let rest = &words[at..];
        let begins = |phrase: &&Vec<String>| {
            rest.len() >= phrase.len()
                && rest.iter().zip(*phrase).all(|(word, look)| word.look == *look)
        };
        match VOCABULARY.benign.iter().find(begins) {
            Some(phrase) => {
                parts.push(&words[start..at]);
                at += phrase.len();
                start = at;
            }
            None => at += 1,
        }
    }
    parts.push(&words[start..]);
    parts
}
