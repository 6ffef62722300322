//! Reduces lower-case words to their stems. The build script uses this file too.

use std::borrow::Cow;

use rust_stemmers::{Algorithm, Stemmer};

pub(super) struct WordStemmer(Stemmer);

impl Default for WordStemmer {
    fn default() -> WordStemmer {
        WordStemmer(Stemmer::create(Algorithm::English))
    }
}

impl WordStemmer {
    /// The word without its ending. A word that is not English is unchanged.
    pub(super) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Cow::Borrowed(word);
        }
        self.0.stem(word)
    }
}
