//! Stems lower-case words for the index. The build script uses it, too.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

/// The word without its ending; words that are not English stay as they are.
pub(super) fn stem<'a>(stemmer: &Stemmer, word: &'a str) -> Cow<'a, str> {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return Cow::Borrowed(word);
    }
    stemmer.stem(word)
}

pub(super) fn stemmer() -> Stemmer {
    Stemmer::create(Algorithm::English)
}
