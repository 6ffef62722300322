//! Words as small numbers: one arena of text, and ways into it.

use std::hash::{BuildHasher, RandomState};

/// The distinct words of one listing, numbered in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Vocabulary {
    words: Words,
    /// The hash and the number of each word, sorted.
    by_hash: Vec<(u32, u32)>,
}

/// A word with its hash, so that a query hashes it once for all listings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'a> {
    word: &'a str,
    hash: u32,
}

impl<'a> Key<'a> {
    /// FNV-1a. Forged collisions are harmless here: `Vocabulary` sorts by hash and then reads on.
    pub(super) fn new(word: &'a str) -> Self {
        let hash = word
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
        Key { word, hash }
    }

    pub(super) fn word(self) -> &'a str {
        self.word
    }

    pub(super) fn hash(self) -> u32 {
        self.hash
    }
}

impl Vocabulary {
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

/// Text end to end.
#[derive(Debug, Default)]
struct Words {
    text: String,
    /// Where each word ends in `text`; it starts where the one before it ends.
    ends: Vec<u32>,
}

impl Words {
    fn word(&self, number: u32) -> &str {
        let number = number as usize;
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.text.get(start.unwrap_or_default() as usize..end as usize).unwrap_or_default()
    }

    fn push(&mut self, word: &str) -> u32 {
        let number = self.ends.len() as u32;
        self.text.push_str(word);
        self.ends.push(self.text.len() as u32);
        number
    }
}

/// A vocabulary in the making.
#[derive(Debug, Default)]
pub(super) struct Interner {
    words: Words,
    /// Open addressing, a power of two long, at most half full; `FREE` or a word's number.
    slots: Vec<u32>,
    /// Servers choose the words, so the hash must not be one they can foresee.
    hasher: RandomState,
}

const FREE: u32 = u32::MAX;

/// The number of a word.
#[derive(Debug, Clone, Copy)]
pub(super) enum Interned {
    Known(u32),
    New(u32),
}

impl Interner {
    pub(super) fn intern(&mut self, word: &str) -> Interned {
        if self.words.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let slot = match self.probe(word) {
            Ok(number) => return Interned::Known(number),
            Err(slot) => slot,
        };
        let number = self.words.push(word);
        if let Some(free) = self.slots.get_mut(slot) {
            *free = number;
        }
        Interned::New(number)
    }

    pub(super) fn freeze(mut self) -> Vocabulary {
        self.words.text.shrink_to_fit();
        self.words.ends.shrink_to_fit();
        let numbers = 0..self.words.ends.len() as u32;
        let mut by_hash: Vec<(u32, u32)> =
            numbers.map(|number| (Key::new(self.words.word(number)).hash, number)).collect();
        by_hash.sort_unstable();
        Vocabulary { words: self.words, by_hash }
    }

    /// The word's number, or the free slot where it would stand.
    fn probe(&self, word: &str) -> Result<u32, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut slot = self.hasher.hash_one(word) as usize & mask;
        while let Some(&number) = self.slots.get(slot) {
            if number == FREE {
                return Err(slot);
            }
            if self.words.word(number) == word {
                return Ok(number);
            }
            slot = (slot + 1) & mask;
        }
        Err(slot)
    }

    fn grow(&mut self) {
        self.slots = vec![FREE; (self.slots.len() * 2).max(64)];
        for number in 0..self.words.ends.len() as u32 {
            let Err(slot) = self.probe(self.words.word(number)) else {
                continue;
            };
            if let Some(free) = self.slots.get_mut(slot) {
                *free = number;
            }
        }
    }
}
