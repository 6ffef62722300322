//! The words of a name or a text as they look, however they are spelled.

use super::spelling::normalized;
use crate::name::look::folded;
use crate::name::{is_look, look};

/// One word, folded: `apiKey`, `API-Key`, `api key` and `@pi k3y` have the same words, with accents
/// or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// In small letters without accents; digits are the letters that they stand for.
    folded: String,
    /// As it looks.
    pub(super) look: String,
    /// Whether digits or signs stand for letters in it.
    pub(super) is_disguised: bool,
    /// Whether it was written letter by letter, as in `P.I.N.`.
    pub(super) is_spelled: bool,
}

impl Word {
    fn of(written: &str) -> Word {
        let folded: String = written.chars().map(plain_letter).collect();
        let is_disguised = folded != written && written.contains(|c: char| !c.is_alphabetic());
        Word { look: look(&folded), folded, is_disguised, is_spelled: false }
    }
}

/// Words without what is between them. Their looks cannot be put together: that of a letter depends
/// on where in a word it stands.
pub(super) fn squashed(words: &[Word]) -> String {
    look(&words.iter().map(|word| word.folded.as_str()).collect::<String>())
}

/// The words of a text that may be encoded.
pub(super) fn words_of(text: &str) -> Vec<Word> {
    words_of_plain(&normalized(text))
}

/// The same of a normalized text.
pub(super) fn words_of_plain(text: &str) -> Vec<Word> {
    let mut words = vec![String::new()];
    let mut small_before = false;
    for c in text.chars() {
        let starts = c.is_uppercase() && small_before;
        // A number does not end before a capital (`2FA`), a word with a digit does (`oauth2Token`).
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

/// Signs of Indic and other Asian scripts are neither letters nor separators, and letters in a square
/// or a circle are symbols. Some hyphens look like ASCII, too, and separate.
fn is_letter(c: char) -> bool {
    let looks_like_letter = |c: char| {
        is_look(c)
            && folded(c.encode_utf8(&mut [0; 4])).contains(|c: char| c.is_ascii_alphanumeric())
    };
    c.is_alphanumeric()
        || matches!(c, '@' | '$' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || (!c.is_ascii() && !c.is_whitespace() && looks_like_letter(c))
}

/// Letters that stand alone are one word: `P I N`, `c.v.v`.
fn spelled_out(words: &[String]) -> Vec<Word> {
    let is_single = |word: &String| word.chars().nth(1).is_none();
    let runs = words.chunk_by(|word, next| is_single(word) && is_single(next));
    runs.map(|run| match run {
        [word] => Word::of(word),
        letters => Word { is_spelled: true, ..Word::of(&letters.concat()) },
    })
    .collect()
}

/// One letter for those that a reader takes for each other, or that keyboards lack; digits and signs
/// are the letters that they stand for. Accents are gone already.
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
