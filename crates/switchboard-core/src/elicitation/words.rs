//! The words of a name or a text as they look, however they are spelled.

use crate::hidden::strip;
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

pub(super) fn words_of(text: &str) -> Vec<Word> {
    let mut words = vec![String::new()];
    let mut small_before = false;
    for c in strip(text).chars().filter(|c| !matches!(c, '\u{300}'..='\u{36f}')) {
        let starts = c.is_uppercase() && small_before;
        small_before = c.is_lowercase() || c.is_ascii_digit();
        if starts || !is_letter(c) {
            words.push(String::new());
        }
        if is_letter(c)
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    spelled_out(&words)
}

/// Signs of Indic and other Asian scripts are neither letters nor separators, and letters in a square
/// or a circle are symbols.
fn is_letter(c: char) -> bool {
    c.is_alphanumeric()
        || matches!(c, '@' | '$' | '\u{900}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || (!c.is_ascii() && !c.is_whitespace() && is_look(c))
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

/// Without its accent; digits and signs are the letters that they stand for.
fn plain_letter(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' | 'ạ'..='ặ' | '4' | '@' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'ē' | 'ę' | 'ě' | 'ẹ'..='ệ' | '3' => 'e',
        'ğ' => 'g',
        'ì'..='ï' | 'ı' => 'i',
        'ł' => 'l',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ő' | 'ọ'..='ợ' => 'o',
        'ř' => 'r',
        'ś' | 'š' | 'ş' | 'ș' | '5' | '$' => 's',
        'ț' | 'ţ' | '7' => 't',
        'ù'..='ü' | 'ů' | 'ű' | 'ụ'..='ự' => 'u',
        'ý' | 'ÿ' => 'y',
        'ź' | 'ž' | 'ż' => 'z',
        c => c,
    }
}
