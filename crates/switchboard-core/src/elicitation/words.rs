//! Splits a name or a text into words, in a form that unifies letters that look alike.

use super::spelling::normalized;
use crate::name::look::folded;
use crate::name::{is_look, look};

/// A normalized word. `apiKey`, `API-Key`, `api key` and `@pi k3y` have the same words, with or
/// without accents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// The word in lower case without accents. Digits and symbols are replaced by the letters that
    /// they imitate.
    folded: String,
    /// The folded word, with lookalike letters replaced by one of them.
    pub(super) look: String,
    /// Whether digits or symbols imitate letters in the word.
    pub(super) is_disguised: bool,
    /// Whether the text had the word letter by letter, as in `P.I.N.`.
    pub(super) is_spelled: bool,
}

impl Word {
    fn of(written: &str) -> Word {
        let folded: String = written.chars().map(plain_letter).collect();
        let is_disguised = folded != written && written.contains(|c: char| !c.is_alphabetic());
        Word { look: look(&folded), folded, is_disguised, is_spelled: false }
    }
}

/// The words, joined without separators. Joining each word's `look` would be wrong, because the
/// look of a letter depends on its neighbours.
pub(super) fn squashed(words: &[Word]) -> String {
    look(&words.iter().map(|word| word.folded.as_str()).collect::<String>())
}

/// The words of a text, which may be encoded.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    words_of_plain(&normalized(text))
}

/// The words of a normalized text.
pub(super) fn words_of_plain(text: &str) -> Vec<Word> {
    let mut words = vec![String::new()];
    let mut small_before = false;
    for c in text.chars() {
        let starts = c.is_uppercase() && small_before;
        // An upper-case letter after a number continues the word (`2FA`). After a word with a
        // digit, it begins the next word (`oauth2Token`).
        let in_word = words.last().is_some_and(|word| word.contains(char::is_alphabetic));
        small_before = c.is_lowercase() || (c.is_ascii_digit() && in_word);
        if starts || !is_letter(c) {
            words.push(String::new());
        }
        if is_letter(c)
            && let Some(word) = words.last_mut()
        {
            for small in c.to_lowercase() {
                match small {
                    'ß' => word.push_str("ss"),
                    'æ' => word.push_str("ae"),
                    'œ' => word.push_str("oe"),
                    small => word.push(small),
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    spelled_out(&words)
}

/// Whether a character is part of a word. In Unicode, vowel signs of Indic and other scripts, and
/// letters in squares or circles, are not letters. Hyphens that look like the ASCII hyphen separate
/// words.
fn is_letter(c: char) -> bool {
    let looks_like_letter = |c: char| {
        is_look(c)
            && folded(c.encode_utf8(&mut [0; 4])).contains(|c: char| c.is_ascii_alphanumeric())
    };
    c.is_alphanumeric()
        || matches!(c, '@' | '$' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || (!c.is_ascii() && !c.is_whitespace() && looks_like_letter(c))
}

/// Joins single letters in a row into one word: `P I N`, `c.v.v`.
fn spelled_out(words: &[String]) -> Vec<Word> {
    let is_single = |word: &String| word.chars().nth(1).is_none();
    let runs = words.chunk_by(|word, next| is_single(word) && is_single(next));
    runs.map(|run| match run {
        [word] => Word::of(word),
        letters => Word { is_spelled: true, ..Word::of(&letters.concat()) },
    })
    .collect()
}

/// The letter that a character is read as: replaces letters that readers confuse or that keyboards
/// lack, and the digits and symbols that imitate letters. Accents are already removed.
fn plain_letter(c: char) -> char {
    match c {
        '4' | '@' => 'a',
        'đ' | 'ð' => 'd',
        '3' => 'e',
        'ı' => 'i',
        'ł' => 'l',
        'ø' => 'o',
        '5' | '$' => 's',
        '7' => 't',
        'ς' => 'σ',
        'ی' | 'ى' => 'ي',
        'ک' => 'ك',
        c => c,
    }
}
