//! Builds the search index: extracts, stems and counts the words of each tool by field.

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

/// The most tools of one server that are searchable.
const MOST_DOCUMENTS: usize = 1 << 15;
/// The most bytes of one server that are indexed, besides names; a typical tool has 400.
const MOST_BYTES: usize = 2 << 20;

/// With fewer tools, starting a thread costs more than it saves.
const TOOLS_PER_THREAD: usize = 500;
const MOST_THREADS: usize = 4;

/// Calls `index` with each listing, on several threads if there are many tools in all.
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
            // If no thread can be started, this one does all the work.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
}

/// Indexes listings one after the other, and caches the stems of words: tools of all servers share
/// many words, and stemming is expensive.
#[derive(Default)]
pub struct Indexer {
    stemmer: WordStemmer,
    /// The stem of each short word. Servers choose the words, so the hash is seeded.
    short: HashMap<u128, u32>,
    long: HashMap<Box<str>, u32>,
    stems: Interner,
    /// Data of each known stem.
    known: Vec<Stem>,
    /// The number of the current listing, from 1.
    listing: u32,
    /// The stems of the current listing by number, and their entries.
    words: Vec<u32>,
    found: Vec<(u32, Occurrence)>,
    /// The bytes of the current listing that may still be indexed.
    room: usize,
    /// Its texts that were indexed already, with the ranges of their stems in `text_stems`: tools
    /// of one server share many parameters.
    texts: HashMap<Box<str>, Range<usize>>,
    text_stems: Vec<u32>,
    /// The stems that add to the direction of the current document.
    telling: Vec<u32>,
}

/// The cached data of a stem, and where it occurred last.
struct Stem {
    hash: u32,
    outline: Outline,
    row: Option<WordVector>,
    /// The listing that `number` and `last` are about.
    listing: u32,
    /// The number of the stem among the words of that listing.
    number: u32,
    /// The last entry of the stem in that listing.
    last: u32,
    /// The weight of the stem in the direction of the current document.
    weight: f32,
}

/// The indexing state of one field of the present document.
struct Reading {
    entry: Occurrence,
    words: u16,
    /// The number of bytes that were indexed, and its limit.
    bytes: usize,
    most: usize,
    /// How many more words go into the direction of the document, and the weight of each.
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
    /// The index of the tools of one server.
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

    /// Counts the words of `text`, up to the limit of the field.
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

    /// Stems a new text; returns the range of its stems in `text_stems`.
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

    /// The direction of the present document; clears its words.
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

    /// The number of the stem of a lower-case word.
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

/// A word of at most 16 bytes as a number, which is faster to look up. Most words are that short.
fn in_a_number(word: &str) -> Option<u128> {
    let mut bytes = [0; 16];
    bytes.get_mut(..word.len())?.copy_from_slice(word.as_bytes());
    // Words contain no zero bytes, so the numbers are unique.
    Some(u128::from_le_bytes(bytes))
}

/// Whether a description marks the tool as deprecated, and not something that it works on.
fn is_deprecated(description: &str) -> bool {
    const WORD: &str = "deprecated";
    let start = description.trim_start_matches(|c: char| !c.is_alphanumeric());
    let start = start.get(..WORD.len()).unwrap_or_default();
    start.eq_ignore_ascii_case(WORD) || description.contains("DEPRECATED")
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
