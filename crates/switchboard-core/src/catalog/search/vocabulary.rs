//! Numbers the words of a listing. The words are stored in one string and found by text or by
//! number.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};

/// The distinct words of one listing, numbered in the order of their first occurrence.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    words: WordArena,
    /// The hash and number of each word, sorted by hash.
    by_hash: Vec<(u32, u32)>,
}

/// A word and its hash, which is computed once for all listings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) word: &'a str,
    pub(super) hash: u32,
}

impl<'a> Key<'a> {
    /// Hashes the word with FNV-1a. Collisions are harmless: a lookup compares all words with the
    /// same hash.
    pub(super) fn new(word: &'a str) -> Self {
        let hash = word
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Key { word, hash }
    }
}

impl Vocabulary {
    pub(super) fn new<'a>(keys: impl ExactSizeIterator<Item = Key<'a>>) -> Self {
        let mut words = WordArena { text: String::new(), ends: Vec::with_capacity(keys.len()) };
        let mut by_hash = Vec::with_capacity(keys.len());
        for (key, number) in keys.zip(0..) {
            words.push(key.word);
            by_hash.push((key.hash, number));
        }
        words.text.shrink_to_fit();
        by_hash.sort_unstable();
        Vocabulary { words, by_hash }
    }

    pub(super) fn len(&self) -> usize {
        self.by_hash.len()
    }

    pub(super) fn word(&self, number: u32) -> &str {
        self.words.word(number)
    }

    pub(super) fn find(&self, key: Key<'_>) -> Option<u32> {
        let first = self.by_hash.partition_point(|&(hash, _)| hash < key.hash);
        let candidates = self.by_hash.iter().skip(first);
        candidates
            .take_while(|&&(hash, _)| hash == key.hash)
            .map(|&(_, number)| number)
            .find(|&number| self.word(number) == key.word)
    }
}

/// Words in one string, without separators between them.
#[derive(Debug, Default)]
struct WordArena {
    text: String,
    /// The end of each word in `text`. A word starts at the end of the previous one.
    ends: Vec<u32>,
}

impl WordArena {
    fn word(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.text.get(start.unwrap_or_default() as usize..end as usize).unwrap_or_default()
    }

    fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len() as u32);
    }
}

/// Numbers the words while a listing is indexed.
#[derive(Debug, Default)]
pub(super) struct Interner {
    words: WordArena,
    numbers: HashTable<u32>,
    /// The seeded hash function. Servers choose the words, so its results must be unpredictable.
    hasher: DefaultHashBuilder,
}

impl Interner {
    /// The number of a word. A new word gets the next number.
    pub(super) fn intern(&mut self, word: &str) -> u32 {
        let Interner { words, numbers, hasher } = self;
        let known = |number: &u32| words.word(*number) == word;
        let hash_of = |number: &u32| hasher.hash_one(words.word(*number));
        match numbers.entry(hasher.hash_one(word), known, hash_of) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(free) => {
                let number = words.ends.len() as u32;
                free.insert(number);
                words.push(word);
                number
            }
        }
    }

    pub(super) fn word(&self, number: u32) -> &str {
        self.words.word(number)
    }
}
