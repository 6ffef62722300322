//! The index of one server's listing: how often each word occurs in each field of each tool.

use super::effect::ToolEffect;
use super::table::{self, Direction};
use super::vocabulary::Vocabulary;

/// The search index of one server's listing. It is immutable and self-contained, so replacing a
/// server's listing swaps one pointer.
#[derive(Debug, Default)]
pub struct Postings {
    pub(super) vocabulary: Vocabulary,
    /// The outline of each word. A search for similar words excludes most words by their outlines.
    pub(super) outlines: Vec<Outline>,
    /// The end of each word's range in `entries`. The range starts at the end of the previous one.
    ends: Vec<u32>,
    /// All occurrences, sorted by word and then by document.
    entries: Vec<Occurrence>,
    pub(super) documents: Vec<Indexed>,
    pub(super) totals: [FieldTotal; ToolField::COUNT],
}

/// A part of a tool's definition with its own weight in the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolField {
    Name,
    Title,
    Server,
    /// The first sentence of the description.
    Lead,
    /// The rest of the description.
    Description,
    PropertyNames,
    /// The descriptions and enum values of properties.
    PropertyText,
    Keywords,
}

impl ToolField {
    pub(super) const COUNT: usize = 8;
    pub(super) const ALL: [ToolField; ToolField::COUNT] = [
        ToolField::Name,
        ToolField::Title,
        ToolField::Server,
        ToolField::Lead,
        ToolField::Description,
        ToolField::PropertyNames,
        ToolField::PropertyText,
        ToolField::Keywords,
    ];

    /// How many bytes of the field are indexed at most.
    pub(super) fn longest(self) -> usize {
        match self {
            ToolField::Name | ToolField::Title | ToolField::Server => 512,
            ToolField::Lead | ToolField::Description => 8 * 1024,
            ToolField::PropertyNames | ToolField::PropertyText | ToolField::Keywords => 4 * 1024,
        }
    }

    /// How many words of the field are added to the direction of the tool, and the weight of each.
    /// `tools/search-table` uses the same numbers, and treats a title like a first sentence.
    /// Keywords are only matched as words.
    pub(super) fn about(self) -> (u8, f32) {
        match self {
            ToolField::Name => (16, table::field_weight(0)),
            ToolField::Server => (12, table::field_weight(1)),
            ToolField::Title => (8, table::field_weight(2)),
            ToolField::Lead => (40, table::field_weight(2)),
            ToolField::Description => (64, table::field_weight(3)),
            ToolField::PropertyNames => (24, table::field_weight(4)),
            ToolField::PropertyText | ToolField::Keywords => (0, 0.0),
        }
    }
}

/// One word in one field of one document: 24 bits for the document, 3 for the field, 5 for the
/// count. A word can have several entries for one field, whose counts add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Occurrence(u32);

impl Occurrence {
    const HIGHEST_COUNT: u32 = 31;

    /// A single occurrence of a word.
    pub(super) fn new(document: usize, field: ToolField) -> Self {
        Occurrence((document as u32) << 8 | (field as u32) << 5 | 1)
    }

    /// Adds the count of `other`; `false` if `other` belongs to another document or field.
    pub(super) fn absorb(&mut self, other: Occurrence) -> bool {
        let same = (self.0 ^ other.0) & !Self::HIGHEST_COUNT == 0;
        if same && self.0 & Self::HIGHEST_COUNT < Self::HIGHEST_COUNT {
            self.0 += 1;
        }
        same
    }

    pub(super) fn document(self) -> usize {
        (self.0 >> 8) as usize
    }

    pub(super) fn field(self) -> usize {
        (self.0 >> 5 & 7) as usize
    }

    pub(super) fn count(self) -> f32 {
        (self.0 & Self::HIGHEST_COUNT) as f32
    }
}

/// The data of a document that ranking needs in addition to its words.
#[derive(Debug)]
pub(super) struct Indexed {
    /// The number of words in each field.
    pub(super) lengths: [u16; ToolField::COUNT],
    /// Whether the description marks the tool as deprecated.
    pub(super) is_deprecated: bool,
    pub(super) effect: ToolEffect,
    /// The direction of the document's words; `None` if the vector table has none of them.
    pub(super) about: Option<Direction>,
    pub(super) server: Box<str>,
    pub(super) name: Box<str>,
}

/// The length of a field over all documents of one listing, from which averages are computed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FieldTotal {
    pub(super) words: u64,
    /// The number of documents that have the field.
    pub(super) documents: u64,
}

/// The set of a word's characters, folded to 26 bits, and its length in the lowest 6 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline(u32);

impl Outline {
    const LENGTH: u32 = 63;

    pub(super) fn of(word: &str) -> Self {
        let mut characters = 0;
        let mut length = 0;
        for char in word.chars() {
            characters |= 1 << (6 + char as u32 % 26);
            length += 1;
        }
        Outline(characters | length.min(Self::LENGTH))
    }

    /// Whether a word of this outline may be the beginning of a word of the other outline.
    pub(super) fn may_begin(self, other: Outline) -> bool {
        self.0 & !other.0 & !Self::LENGTH == 0 && self.length() <= other.length()
    }

    /// A lower bound of the edit distance of two words with these outlines. One edit changes the
    /// length by at most one, and the set by at most two members.
    pub(super) fn fewest_edits(self, other: Outline) -> u32 {
        let changes = ((self.0 ^ other.0) & !Self::LENGTH).count_ones();
        changes.div_ceil(2).max(self.length().abs_diff(other.length()))
    }

    fn length(self) -> u32 {
        self.0 & Self::LENGTH
    }
}

impl Postings {
    /// Builds the index from `found`, the occurrences by word, with the documents in order.
    pub(super) fn new(
        vocabulary: Vocabulary,
        outlines: Vec<Outline>,
        found: &[(u32, Occurrence)],
        documents: Vec<Indexed>,
    ) -> Postings {
        let mut totals = [FieldTotal::default(); ToolField::COUNT];
        for document in &documents {
            for (total, &length) in totals.iter_mut().zip(&document.lengths) {
                total.words += u64::from(length);
                total.documents += u64::from(length > 0);
            }
        }
        let (ends, entries) = by_word(vocabulary.len(), found);
        Postings { vocabulary, outlines, ends, entries, documents, totals }
    }

    /// The documents that have a word, each with the word's occurrences.
    pub(super) fn occurrences(&self, word: u32) -> impl Iterator<Item = (usize, &[Occurrence])> {
        let word = word as usize;
        let start = word.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(word).copied().unwrap_or_default();
        let entries = self.entries.get(start.unwrap_or_default() as usize..end as usize);
        let documents =
            entries.unwrap_or_default().chunk_by(|one, next| one.document() == next.document());
        documents.filter_map(|entries| Some((entries.first()?.document(), entries)))
    }
}

/// Sorts occurrences by word with a counting sort, which keeps the order of documents.
fn by_word(words: usize, found: &[(u32, Occurrence)]) -> (Vec<u32>, Vec<Occurrence>) {
    let mut ends = vec![0_u32; words];
    for &(word, _) in found {
        if let Some(count) = ends.get_mut(word as usize) {
            *count += 1;
        }
    }
    let mut start = 0;
    for end in &mut ends {
        start += std::mem::replace(end, start);
    }
    let mut entries = vec![Occurrence::default(); found.len()];
    for &(word, entry) in found {
        let Some(next) = ends.get_mut(word as usize) else {
            continue;
        };
        if let Some(slot) = entries.get_mut(*next as usize) {
            *slot = entry;
        }
        *next += 1;
    }
    (ends, entries)
}
