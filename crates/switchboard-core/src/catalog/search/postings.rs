//! The index of one server's listing: which word stands in which tool, in which field, how often.

use rust_stemmers::Stemmer;

use super::Document;
use super::properties::{self, Piece};
use super::table::{self, Direction, Row, Sum};
use super::tokens;
use super::vocabulary::{Interned, Interner, Key, Vocabulary};

/// More tools than this of one server are not searchable.
const MOST_DOCUMENTS: usize = 1 << 15;
const LONGEST_NAME: usize = 512;
const LONGEST_DESCRIPTION: usize = 8 * 1024;
const LONGEST_PROPERTY_NAMES: usize = 4 * 1024;
const LONGEST_PROPERTY_TEXT: usize = 4 * 1024;
const LONGEST_KEYWORDS: usize = 4 * 1024;

/// The searchable part of one server's listing: immutable and self-contained, so that publishing
/// a server swaps one pointer.
#[derive(Debug, Default)]
pub struct Postings {
    vocabulary: Vocabulary,
    /// By word of the vocabulary: a search for similar words reads nothing else of most.
    outlines: Vec<Outline>,
    /// Where the entries of each word end; they start where those of the one before it end.
    ends: Vec<u32>,
    /// By word, then document, then field.
    entries: Vec<Entry>,
    documents: Vec<Indexed>,
    totals: [FieldTotal; Field::COUNT],
}

/// A part of a tool that has its own weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Title,
    Server,
    /// The first sentence of the description.
    Lead,
    /// The rest of the description.
    Description,
    PropertyNames,
    /// Descriptions and enum values of properties.
    PropertyText,
    Keywords,
}

impl Field {
    pub(super) const COUNT: usize = 8;
    pub(super) const ALL: [Field; Field::COUNT] = [
        Field::Name,
        Field::Title,
        Field::Server,
        Field::Lead,
        Field::Description,
        Field::PropertyNames,
        Field::PropertyText,
        Field::Keywords,
    ];

    /// How many words of the field say what the tool is about, and how much each of them counts.
    /// The trainer reads as many; a title speaks like a first sentence. Keywords are there to be
    /// found by the very word.
    fn about(self) -> (u8, f32) {
        match self {
            Field::Name => (16, table::field_weight(0)),
            Field::Server => (12, table::field_weight(1)),
            Field::Title => (8, table::field_weight(2)),
            Field::Lead => (40, table::field_weight(2)),
            Field::Description => (64, table::field_weight(3)),
            Field::PropertyNames => (24, table::field_weight(4)),
            Field::PropertyText | Field::Keywords => (0, 0.0),
        }
    }
}

/// One word in one field of one document: 24 bits of document, 3 of field, 5 of count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry(u32);

impl Entry {
    const HIGHEST_COUNT: u32 = 31;

    fn new(document: usize, field: Field) -> Self {
        Entry((document as u32) << 8 | (field as u32) << 5)
    }

    fn counted(self, count: usize) -> Self {
        Entry(self.0 | (count as u32).min(Self::HIGHEST_COUNT))
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

/// What ranking needs to know of a document besides its words.
#[derive(Debug)]
pub(super) struct Indexed {
    /// Words per field.
    pub(super) lengths: [u16; Field::COUNT],
    /// What it is about; `None` if the table knows none of its words.
    pub(super) about: Option<Direction>,
    pub(super) server: Box<str>,
    pub(super) name: Box<str>,
}

/// How long a field is on average, as a sum that can be added up over listings.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FieldTotal {
    pub(super) words: u64,
    /// Documents that have the field at all.
    pub(super) documents: u64,
}

/// Which characters a word has, folded to 26 bits, and below them how many, in 6.
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

    /// False if no word of this outline can begin a word of the other.
    pub(super) fn may_begin(self, other: Outline) -> bool {
        self.0 & !other.0 & !Self::LENGTH == 0 && self.length() <= other.length()
    }

    /// At least so many edits lie between words of these outlines: one edit makes a word longer
    /// or shorter by one, and changes at most two members of the set.
    pub(super) fn fewest_edits(self, other: Outline) -> u32 {
        let changes = ((self.0 ^ other.0) & !Self::LENGTH).count_ones();
        changes.div_ceil(2).max(self.length().abs_diff(other.length()))
    }

    fn length(self) -> u32 {
        self.0 & Self::LENGTH
    }
}

impl Postings {
    pub fn build<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Postings {
        let mut builder = Builder::new();
        for document in documents.into_iter().take(MOST_DOCUMENTS) {
            builder.add(&document);
        }
        builder.finish()
    }

    /// How many documents are indexed.
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    pub(super) fn find(&self, key: Key<'_>) -> Option<u32> {
        self.vocabulary.find(key)
    }

    pub(super) fn word(&self, number: u32) -> &str {
        self.vocabulary.word(number)
    }

    /// The outline of each word, by its number.
    pub(super) fn outlines(&self) -> &[Outline] {
        &self.outlines
    }

    /// The documents that have a word, each with its entries.
    pub(super) fn occurrences(&self, word: u32) -> impl Iterator<Item = (usize, &[Entry])> {
        let word = word as usize;
        let start = word.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(word).copied().unwrap_or_default();
        let entries = self.entries.get(start.unwrap_or_default() as usize..end as usize);
        let documents =
            entries.unwrap_or_default().chunk_by(|one, next| one.document() == next.document());
        documents.filter_map(|entries| Some((entries.first()?.document(), entries)))
    }

    pub(super) fn documents(&self) -> &[Indexed] {
        &self.documents
    }

    pub(super) fn totals(&self) -> &[FieldTotal; Field::COUNT] {
        &self.totals
    }
}

struct Builder {
    stemmer: Stemmer,
    /// Words as they are written, and for each the number of its stem: a stem is computed once.
    written: Interner,
    stem_of: Vec<u32>,
    stems: Interner,
    /// By stem.
    rows: Vec<Option<Row>>,
    /// What the document at hand is about, and the words of each field that went into it.
    about: Sum,
    heard: [u8; Field::COUNT],
    /// The words of the document at hand.
    current: Vec<(u32, Entry)>,
    found: Vec<(u32, Entry)>,
    documents: Vec<Indexed>,
    totals: [FieldTotal; Field::COUNT],
}

impl Builder {
    fn new() -> Self {
        Builder {
            stemmer: tokens::stemmer(),
            written: Interner::default(),
            stem_of: Vec::new(),
            stems: Interner::default(),
            rows: Vec::new(),
            about: Sum::ZERO,
            heard: [0; Field::COUNT],
            current: Vec::new(),
            found: Vec::new(),
            documents: Vec::new(),
            totals: Default::default(),
        }
    }

    fn add(&mut self, document: &Document<'_>) {
        let mut indexed = Indexed {
            lengths: [0; Field::COUNT],
            about: None,
            server: document.server.into(),
            name: document.name.into(),
        };
        let mut budget = LONGEST_KEYWORDS;
        for keyword in document.keywords {
            self.read(keyword, Field::Keywords, &mut budget, &mut indexed);
        }
        self.read(document.server, Field::Server, &mut { LONGEST_NAME }, &mut indexed);
        self.read(document.name, Field::Name, &mut { LONGEST_NAME }, &mut indexed);
        let title = document.title.unwrap_or_default();
        self.read(title, Field::Title, &mut { LONGEST_NAME }, &mut indexed);
        let (lead, rest) = after_first_sentence(document.description);
        let mut budget = LONGEST_DESCRIPTION;
        self.read(lead, Field::Lead, &mut budget, &mut indexed);
        self.read(rest, Field::Description, &mut budget, &mut indexed);
        let mut names = LONGEST_PROPERTY_NAMES;
        let mut texts = LONGEST_PROPERTY_TEXT;
        properties::walk(document.input_schema, |piece| match piece {
            Piece::Name(name) => self.read(name, Field::PropertyNames, &mut names, &mut indexed),
            Piece::Text(text) => self.read(text, Field::PropertyText, &mut texts, &mut indexed),
        });

        self.current.sort_unstable();
        let runs = self.current.chunk_by(|one, next| one == next);
        self.found.extend(
            runs.filter_map(|run| {
                run.first().map(|&(word, entry)| (word, entry.counted(run.len())))
            }),
        );
        self.current.clear();
        indexed.about = std::mem::replace(&mut self.about, Sum::ZERO).direction();
        self.heard = [0; Field::COUNT];
        for (total, &length) in self.totals.iter_mut().zip(&indexed.lengths) {
            total.words += u64::from(length);
            total.documents += u64::from(length > 0);
        }
        self.documents.push(indexed);
    }

    /// Adds the words of `text` as far as the field's budget of bytes goes.
    fn read(&mut self, text: &str, field: Field, budget: &mut usize, indexed: &mut Indexed) {
        let text = text.get(..text.floor_char_boundary(*budget)).unwrap_or_default();
        *budget -= text.len();
        let entry = Entry::new(self.documents.len(), field);
        let (most, weight) = field.about();
        let mut words = 0_u16;
        tokens::split(text, |word, _| {
            let stem = match self.written.intern(word) {
                Interned::Known(number) => self.stem_of.get(number as usize).copied(),
                Interned::New(_) => {
                    let stem = tokens::stem(&self.stemmer, word);
                    let number = match self.stems.intern(&stem) {
                        Interned::Known(number) => number,
                        Interned::New(number) => {
                            self.rows.push(table::find(Key::new(&stem)));
                            number
                        }
                    };
                    self.stem_of.push(number);
                    Some(number)
                }
            };
            let Some(stem) = stem else { return };
            self.current.push((stem, entry));
            words = words.saturating_add(1);
            let row = self.rows.get(stem as usize).copied().flatten();
            if let (Some(row), Some(heard)) = (row, self.heard.get_mut(field as usize))
                && *heard < most
            {
                *heard += 1;
                self.about.add(row, weight);
            }
        });
        if let Some(length) = indexed.lengths.get_mut(field as usize) {
            *length = length.saturating_add(words);
        }
    }

    fn finish(self) -> Postings {
        let vocabulary = self.stems.freeze();
        // A counting sort by word: documents stay in order, since they were found in order.
        let mut ends = vec![0_u32; vocabulary.len()];
        for &(word, _) in &self.found {
            if let Some(count) = ends.get_mut(word as usize) {
                *count += 1;
            }
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut entries = vec![Entry::default(); self.found.len()];
        for &(word, entry) in &self.found {
            let Some(next) = ends.get_mut(word as usize) else {
                continue;
            };
            if let Some(slot) = entries.get_mut(*next as usize) {
                *slot = entry;
            }
            *next += 1;
        }
        let numbers = 0..vocabulary.len() as u32;
        let outlines = numbers.map(|word| Outline::of(vocabulary.word(word))).collect();
        Postings {
            outlines,
            ends,
            entries,
            vocabulary,
            documents: self.documents,
            totals: self.totals,
        }
    }
}

/// A description up to the end of its first sentence or line, and the rest.
fn after_first_sentence(description: &str) -> (&str, &str) {
    let description = description.trim_start();
    let mut end = description.len();
    let mut chars = description.char_indices().peekable();
    while let Some((index, char)) = chars.next() {
        let next = chars.peek().map(|&(_, char)| char);
        let ends = match char {
            '\n' | '。' | '！' | '？' => true,
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            _ => false,
        };
        if ends {
            end = index;
            break;
        }
    }
    description.split_at_checked(end).unwrap_or((description, ""))
}
