//! Builds the search index: splits the fields of each tool into words, and counts their stems.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hashbrown::HashMap;

use super::Document;
use super::effect::ToolEffect;
use super::postings::{Indexed, Occurrence, Outline, Postings, ToolField};
use super::properties::{self, Piece};
use super::stemming::WordStemmer;
use super::table::{self, Direction, Sum, WordVector};
use super::tokens;
use super::vocabulary::{Interner, Key, Vocabulary};

/// The maximum number of tools of one server that are indexed.
const MOST_DOCUMENTS: usize = 1 << 15;
/// The maximum number of bytes of one server that are indexed, besides names. A typical tool has
/// 400.
const MOST_BYTES: usize = 2 << 20;

/// The number of tools per thread below which another thread costs more time than it saves.
const TOOLS_PER_THREAD: usize = 500;
const MOST_THREADS: usize = 4;

/// Calls `index` with each listing. Several threads run if the listings have many tools in total.
pub fn index_all<L: Sync>(listings: &[L], tools: usize, index: impl Fn(&L, &mut Indexer) + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut indexer = Indexer::default();
        while let Some(listing) = listings.get(next.fetch_add(1, Ordering::Relaxed)) {
            index(listing, &mut indexer);
        }
    };
    let worthwhile = (tools / TOOLS_PER_THREAD).min(listings.len()).min(MOST_THREADS);
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    let threads = if worthwhile > 1 { worthwhile.min(cores()) } else { 1 };
    thread::scope(|scope| {
        for _ in 1..threads {
            // If no other thread can be started, this thread does all the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

/// Indexes listings one after the other. The stems of words are cached, because tools of all
/// servers share many words and stemming is slow.
#[derive(Default)]
pub struct Indexer {
    stemmer: WordStemmer,
    /// The stem of each word of at most 16 bytes. Servers choose the words, so the hash function is
    /// seeded.
    short: HashMap<u128, u32>,
    long: HashMap<Box<str>, u32>,
    stems: Interner,
    /// The cached data of each stem, by its number.
    known: Vec<Stem>,
    /// The number of the current listing, counted from 1.
    listing: u32,
    /// The stems of the current listing, by their numbers in that listing, and the occurrences of
    /// all of them.
    words: Vec<u32>,
    found: Vec<(u32, Occurrence)>,
    /// How many more bytes of the current listing may be indexed.
    room: usize,
    /// The texts of the current listing that were already indexed, with their ranges in
    /// `text_stems`. Tools of one server share many parameters.
    texts: HashMap<Box<str>, Range<usize>>,
    text_stems: Vec<u32>,
    /// The stems whose vectors are added to the direction of the current document.
    telling: Vec<u32>,
}

/// The cached data of a stem, and its last occurrence.
struct Stem {
    hash: u32,
    outline: Outline,
    row: Option<WordVector>,
    /// The listing to which `number` and `last` belong.
    listing: u32,
    /// The number of the stem in the vocabulary of that listing.
    number: u32,
    /// The index of the stem's last occurrence in that listing.
    last: u32,
    /// The weight of the stem's vector in the direction of the current document.
    weight: f32,
}

/// The state of indexing one field of the current document.
struct Reading {
    entry: Occurrence,
    words: u16,
    /// The number of bytes of the field that were indexed so far, and the maximum.
    bytes: usize,
    most: usize,
    /// How many more words are added to the direction of the document, and the weight of each.
    telling: u8,
    weight: f32,
}

impl Reading {
    fn new(document: usize, field: ToolField, room: usize) -> Self {
        let (telling, weight) = field.about();
        let entry = Occurrence::new(document, field);
        let most = match field {
            ToolField::Name | ToolField::Server | ToolField::Keywords => field.longest(),
            ToolField::Title
            | ToolField::Lead
            | ToolField::Description
            | ToolField::PropertyNames
            | ToolField::PropertyText => field.longest().min(room),
        };
        Reading { entry, words: 0, bytes: 0, most, telling, weight }
    }
}

impl Indexer {
    /// Builds the index of one server's tools.
    pub fn index<'a>(&mut self, documents: impl IntoIterator<Item = Document<'a>>) -> Postings {
        self.listing += 1;
        self.room = MOST_BYTES;
        self.words.clear();
        self.found.clear();
        self.texts.clear();
        self.text_stems.clear();
        let documents = documents.into_iter().take(MOST_DOCUMENTS).enumerate();
        let indexed = documents.map(|(number, document)| self.add(number, &document)).collect();

        let keys = self.words.iter().map(|stem| {
            let hash = self.known.get(*stem as usize).map_or(0, |known| known.hash);
            Key { word: self.stems.word(*stem), hash }
        });
        let known = |stem: &u32| self.known.get(*stem as usize);
        let outlines = self.words.iter().filter_map(known).map(|known| known.outline).collect();
        Postings::new(Vocabulary::new(keys), outlines, &self.found, indexed)
    }

    fn add(&mut self, number: usize, document: &Document<'_>) -> Indexed {
        let mut fields = ToolField::ALL.map(|field| Reading::new(number, field, self.room));
        let mut read = |text: &str, field: ToolField| {
            if let Some(reading) = fields.get_mut(field as usize) {
                self.read(text, reading);
            }
        };
        for keyword in document.keywords {
            read(keyword, ToolField::Keywords);
        }
        read(document.server, ToolField::Server);
        read(document.name, ToolField::Name);
        read(document.title.unwrap_or_default(), ToolField::Title);
        let (lead, rest) = after_first_sentence(document.description);
        read(lead, ToolField::Lead);
        read(rest, ToolField::Description);
        properties::walk(document.input_schema, |piece| match piece {
            Piece::Name(name) => read(name, ToolField::PropertyNames),
            Piece::Text(text) => read(text, ToolField::PropertyText),
        });
        let bytes = fields.iter().map(|field| field.bytes).sum();
        self.room = self.room.saturating_sub(bytes);
        Indexed {
            lengths: fields.map(|field| field.words),
            is_deprecated: is_deprecated(document.description),
            effect: ToolEffect::of(document.annotations, document.name),
            about: self.about(),
            server: document.server.into(),
            name: document.name.into(),
        }
    }

    /// Counts the words of `text`, up to the byte limit of the field.
    fn read(&mut self, text: &str, field: &mut Reading) {
        let text = text.get(..text.floor_char_boundary(field.most - field.bytes));
        let text = text.unwrap_or_default();
        field.bytes += text.len();
        let stems = match self.texts.get(text) {
            Some(stems) => stems.clone(),
            None => self.stem_text(text),
        };
        let Indexer { known, listing, words, found, text_stems, telling, .. } = self;
        for &stem in text_stems.get(stems).unwrap_or_default() {
            let Some(known) = known.get_mut(stem as usize) else { continue };
            field.words = field.words.saturating_add(1);
            if field.telling > 0 && known.row.is_some() {
                field.telling -= 1;
                if known.weight == 0.0 {
                    telling.push(stem);
                }
                known.weight += field.weight;
            }
            if known.listing != *listing {
                (known.listing, known.number) = (*listing, words.len() as u32);
                words.push(stem);
            } else if let Some((_, last)) = found.get_mut(known.last as usize)
                && last.absorb(field.entry)
            {
                continue;
            }
            known.last = found.len() as u32;
            found.push((known.number, field.entry));
        }
    }

    /// Stems a text that was not cached; returns its range in `text_stems`.
    fn stem_text(&mut self, text: &str) -> Range<usize> {
        let start = self.text_stems.len();
        tokens::split(text, |word, _| {
            let stem = self.stem(word);
            self.text_stems.push(stem);
        });
        let stems = start..self.text_stems.len();
        self.texts.insert(text.into(), stems.clone());
        stems
    }

    /// Computes the direction of the current document, and clears its words for the next document.
    fn about(&mut self) -> Option<Direction> {
        let mut sum = Sum::ZERO;
        for stem in self.telling.drain(..) {
            let Some(known) = self.known.get_mut(stem as usize) else { continue };
            let weight = std::mem::take(&mut known.weight);
            if let Some(row) = known.row {
                sum.add(row, weight);
            }
        }
        sum.direction()
    }

    /// The number that identifies the stem of a word, which is in lower case.
    fn stem(&mut self, word: &str) -> u32 {
        let short = in_a_number(word);
        let known = match short {
            Some(short) => self.short.get(&short),
            None => self.long.get(word),
        };
        if let Some(stem) = known {
            return *stem;
        }
        let stem = self.stemmer.stem(word);
        let number = self.stems.intern(&stem);
        if number as usize == self.known.len() {
            self.known.push(Stem::new(Key::new(&stem)));
        }
        match short {
            Some(short) => self.short.insert(short, number),
            None => self.long.insert(word.into(), number),
        };
        number
    }
}

impl Stem {
    fn new(key: Key<'_>) -> Self {
        Stem {
            hash: key.hash,
            outline: Outline::of(key.word),
            row: table::find(key),
            listing: 0,
            number: 0,
            last: 0,
            weight: 0.0,
        }
    }
}

/// A word of at most 16 bytes as a number, which is faster to look up; `None` for a longer one.
/// Most words are this short.
fn in_a_number(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
    // Words contain no zero bytes, so different words have different numbers.
    Some(u128::from_le_bytes(bytes))
}

/// Whether a description says that the tool itself is deprecated, rather than something that it
/// works on.
fn is_deprecated(description: &str) -> bool {
    const WORD: &str = "deprecated";
    let start = description.trim_start_matches(|c: char| !c.is_alphanumeric());
    let start = start.get(..WORD.len()).unwrap_or_default();
    start.eq_ignore_ascii_case(WORD) || description.contains("DEPRECATED")
}

/// Splits a description after its first sentence or line.
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
