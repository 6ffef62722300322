//! The words that request a secret, and the phrases with such words that do not.

use std::sync::LazyLock;

use super::spelling::readings;
use super::words::{Word, squashed, words_of, words_of_plain};

/// The maximum number of words of a label. In a label, one word is enough to request a secret.
const LABEL_WORDS: usize = 5;

/// Words that request something of the user. In a text with one of these words, as in a label, one
/// word is enough to request a secret.
const ASKING: &str =
    "your enter paste type provide give send submit input insert share supply tell fill";

/// A label with one of these words requests no secret, such as `page token`. A text of a numeric
/// field with one of these words requests no secret either.
const NO_SECRETS: &str = "page next continuation cursor max min length count budget";

/// Words in the name or title of a field in which the user chooses a sign-in method or a type.
const METHODS: &str = "method methods kind kinds type types mode auth authentication scheme grant \
    strategy via how way category";

/// The word that is also detected if it is misspelt. All other words are too short, or too similar
/// to harmless words.
const MISTYPED: &str = "password";

/// The type of a value that the user types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerType {
    Text,
    Number,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchRule {
    /// The term for a secret may be any part of the text, ignoring separators.
    Part,
    /// The term for a secret is a whole word of a label, or of a text that requests something,
    /// except in numeric fields.
    Word,
    /// The term for a secret is a whole word of a label, or of a text that requests something, in
    /// numeric fields too.
    Number,
    /// The term for a secret is a whole word of any text.
    Text,
    /// The term for a secret is a sequence of words, or these words joined to one.
    Phrase,
    /// The term for a secret is a whole word with digits in place of letters. Without digits, the
    /// word is harmless.
    Disguised,
}

struct Vocabulary {
    /// For each term for a secret: how it is matched, the term as one word, and its words.
    secrets: Vec<(MatchRule, String, Vec<String>)>,
    /// Phrases that contain a term for a secret but do not request a secret.
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

/// Whether a name, title or sentence requests a secret.
pub(super) fn names_secret(text: &str, answer: AnswerType) -> bool {
    readings(text).iter().any(|reading| reading_names_secret(&words_of_plain(reading), answer))
}

/// Whether a field with this name or title is a choice of sign-in methods.
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
        // A single letter may stand before the spelled word: `a P I N`.
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

/// The parts of a text between benign phrases. Words around a benign phrase are still checked.
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
