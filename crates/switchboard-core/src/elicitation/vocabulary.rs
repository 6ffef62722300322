//! The words that ask for a secret, and phrases that only seem to.

use std::sync::LazyLock;

use super::spelling::readings;
use super::words::{Word, squashed, words_of, words_of_plain};

/// A name or title of at most this many words is a label, in which a single word is enough.
const LABEL_WORDS: usize = 5;

/// A longer text with one of these words asks for something, so a single word is enough too.
const ASKING: &str =
    "your enter paste type provide give send submit input insert share supply tell fill";

/// Words that show that a label is not about a secret.
const NO_SECRETS: &str = "page next continuation cursor max min length count budget";

/// Words in the name or title of a field that chooses a sign-in method or a type.
const METHODS: &str = "method methods kind kinds type types mode auth authentication scheme grant \
    strategy via how way category";

/// Words that are also found if they are misspelt. Other words are too short, or too similar to
/// harmless ones.
const MISTYPED: &str = "password";

/// The type of value that a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerType {
    Text,
    Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchRule {
    /// Matches anywhere in the text, ignoring separators.
    Part,
    /// Matches a whole word of a label, or of a text that asks for something.
    Word,
    /// Matches a whole word, also for numeric fields.
    Number,
    /// Matches a whole word of any text.
    Text,
    /// Matches consecutive words, or the words joined into one.
    Phrase,
    /// Matches a whole word with digits for letters; the plain word is harmless.
    Disguised,
}

struct Vocabulary {
    /// How to match, the text as one word, and its words.
    secrets: Vec<(MatchRule, String, Vec<String>)>,
    /// Phrases that contain such a word but ask for no secret.
    benign: Vec<Vec<String>>,
    asking: Vec<String>,
    no_secrets: Vec<String>,
    methods: Vec<String>,
}

static VOCABULARY: LazyLock<Vocabulary> = LazyLock::new(|| {
    let rows = |text: &'static str| text.lines().filter(|row| !row.starts_with('#'));
    let looks = |text: &str| -> Vec<String> {
        text.split(' ').flat_map(words_of).map(|word| word.look).collect()
    };
    let secret = |(how, word): (&str, &str)| {
        let match_rule = match how {
            "part" => MatchRule::Part,
            "word" => MatchRule::Word,
            "phrase" => MatchRule::Phrase,
            "number" => MatchRule::Number,
            "disguised" => MatchRule::Disguised,
            _ => MatchRule::Text,
        };
        (match_rule, squashed(&words_of(word)), looks(word))
    };
    let secrets = rows(include_str!("secrets.txt")).filter_map(|row| row.split_once(' '));
    Vocabulary {
        secrets: secrets.map(secret).collect(),
        benign: rows(include_str!("benign.txt")).map(looks).collect(),
        asking: looks(ASKING),
        no_secrets: looks(NO_SECRETS),
        methods: looks(METHODS),
    }
});

/// Whether a name, a title or a sentence asks for a secret.
pub(super) fn names_secret(text: &str, answer: AnswerType) -> bool {
    readings(text).iter().any(|reading| reading_names_secret(&words_of_plain(reading), answer))
}

/// Whether a name or title belongs to a choice of sign-in methods.
pub(super) fn chooses_method(text: &str) -> bool {
    words_of(text).iter().any(|word| VOCABULARY.methods.contains(&word.look))
}

fn reading_names_secret(words: &[Word], answer: AnswerType) -> bool {
    let has = |any: &[String]| words.iter().any(|word| any.contains(&word.look));
    let is_short = words.len() <= LABEL_WORDS;
    if has(&VOCABULARY.no_secrets) && (answer == AnswerType::Number || is_short) {
        return false;
    }
    let is_label = is_short || has(&VOCABULARY.asking);
    let parts = without_benign(words);
    parts.iter().any(|words| part_names_secret(words, is_label, answer))
}

fn part_names_secret(words: &[Word], is_label: bool, answer: AnswerType) -> bool {
    let whole = squashed(words);
    let has = |secret: &str| {
        // A single letter may precede the spelled word: `a P I N`.
        words
            .iter()
            .any(|word| word.look == secret || word.is_spelled && word.look.contains(secret))
    };
    let has_disguised = |secret: &str| words.iter().any(|w| w.is_disguised && w.look == secret);
    let has_phrase = |phrase: &[String]| {
        words.windows(phrase.len()).any(|row| row.iter().map(|word| &word.look).eq(phrase))
    };
    let is_mistyped = |word: &Word| strsim::osa_distance(&word.look, MISTYPED) == 1;
    let is_in = |(match_rule, secret, phrase): &(MatchRule, String, Vec<String>)| match match_rule {
        MatchRule::Part => whole.contains(secret),
        MatchRule::Text => has(secret),
        MatchRule::Number => is_label && has(secret),
        MatchRule::Word => is_label && answer == AnswerType::Text && has(secret),
        MatchRule::Disguised => has_disguised(secret),
        MatchRule::Phrase => has(secret) || has_phrase(phrase),
    };
    words.iter().any(is_mistyped) || VOCABULARY.secrets.iter().any(is_in)
}

/// The text between benign phrases. Only the phrases themselves are skipped, so that one of them
/// does not excuse other words.
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
