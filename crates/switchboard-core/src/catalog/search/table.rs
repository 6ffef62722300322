//! The compiled-in word vectors: texts about the same topic have vector sums of similar direction.
//!
//! `tools/search-table` describes the format of the table and trains it.

use super::vocabulary::Key;

pub(super) const DIMENSIONS: usize = 128;

static BYTES: &[u8] = include_bytes!("table.bin");

const FIELDS_AT: usize = 12;
const FIELDS: usize = 5;
/// The number of words in the table.
const COUNT: usize = header(8, 4);

static FIELD_WEIGHTS: &[[u8; 4]] = numbers(FIELDS_AT, FIELDS);
/// The sorted hashes of the words. `ENDS`, `SCALES` and `ROWS` have the same order.
static HASHES: &[[u8; 4]] = numbers(FIELDS_AT + FIELDS * 4, COUNT);
/// The end of each word in `TEXT`. A word starts at the end of the previous one.
static ENDS: &[[u8; 4]] = numbers(FIELDS_AT + FIELDS * 4 + COUNT * 4, COUNT);
static SCALES: &[[u8; 4]] = numbers(FIELDS_AT + FIELDS * 4 + COUNT * 8, COUNT);
static ROWS: &[u8] = part(FIELDS_AT + FIELDS * 4 + COUNT * 12, COUNT * DIMENSIONS);
static TEXT: &[u8] = BYTES.split_at(FIELDS_AT + FIELDS * 4 + COUNT * (12 + DIMENSIONS)).1;

// The build fails if the table has another format.
const _: () = assert!(matches!(BYTES, [b'S', b'W', b'T', b'1', ..]));
const _: () = assert!(header(4, 2) == DIMENSIONS && header(6, 2) == FIELDS);

const fn part(start: usize, length: usize) -> &'static [u8] {
    BYTES.split_at(start).1.split_at(length).0
}

const fn numbers(start: usize, count: usize) -> &'static [[u8; 4]] {
    part(start, count * 4).as_chunks().0
}

/// A number in the table's header, read at compile time.
const fn header(at: usize, bytes: usize) -> usize {
    let mut value = 0;
    let mut byte = bytes;
    while byte > 0 {
        byte -= 1;
        value = value << 8 | BYTES[at + byte] as usize;
    }
    value
}

/// The index of a word vector in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WordVector(u16);

/// The vector of a stemmed, lower-case word; `None` if the table does not have the word.
pub(super) fn find(key: Key<'_>) -> Option<WordVector> {
    let first = HASHES.partition_point(|hash| u32::from_le_bytes(*hash) < key.hash);
    let mut same = (first..COUNT).take_while(|&at| u32_at(HASHES, at) == key.hash);
    same.find(|&at| word(at) == key.word.as_bytes())
        .and_then(|at| u16::try_from(at).ok())
        .map(WordVector)
}

/// The weight of a word in the field with this number. `tools/search-table` numbers the fields:
/// name, server, first sentence, rest of the description, names of properties.
pub(super) fn field_weight(field: usize) -> f32 {
    f32::from_bits(u32_at(FIELD_WEIGHTS, field))
}

fn word(at: usize) -> &'static [u8] {
    let start = at.checked_sub(1).map_or(0, |before| u32_at(ENDS, before));
    TEXT.get(start as usize..u32_at(ENDS, at) as usize).unwrap_or_default()
}

fn u32_at(numbers: &[[u8; 4]], at: usize) -> u32 {
    u32::from_le_bytes(numbers.get(at).copied().unwrap_or_default())
}

impl WordVector {
    fn scale(self) -> f32 {
        f32::from_bits(u32_at(SCALES, usize::from(self.0)))
    }

    fn bytes(self) -> &'static [u8] {
        let start = usize::from(self.0) * DIMENSIONS;
        ROWS.get(start..start + DIMENSIONS).unwrap_or_default()
    }
}

/// The sum of the word vectors of a text.
#[derive(Debug, Clone)]
pub(super) struct Sum([f32; DIMENSIONS]);

impl Sum {
    pub(super) const ZERO: Sum = Sum([0.0; DIMENSIONS]);

    pub(super) fn add(&mut self, row: WordVector, weight: f32) {
        let weight = weight * row.scale();
        for (sum, &byte) in self.0.iter_mut().zip(row.bytes()) {
            *sum += weight * f32::from(byte.cast_signed());
        }
    }

    /// The direction of the sum; `None` if no vector was added.
    pub(super) fn direction(&self) -> Option<Direction> {
        let length = self.0.iter().map(|value| value * value).sum::<f32>().sqrt();
        let largest = self.0.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        if largest <= 0.0 || !length.is_finite() {
            return None;
        }
        let mut steps = [0; DIMENSIONS];
        let scale = 127.0 / largest;
        for (step, value) in steps.iter_mut().zip(&self.0) {
            let scaled = value * scale;
            // `f32::round` would be a function call for each number.
            *step = (scaled + 0.5_f32.copysign(scaled)) as i32 as i8;
        }
        Some(Direction { steps, step: largest / 127.0 / length })
    }
}

/// The direction of a text's vector sum: a vector of length one, with one byte per dimension.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Direction {
    steps: [i8; DIMENSIONS],
    step: f32,
}

impl Direction {
    /// The cosine similarity: 1 for texts about the same topic, about 0 for unrelated texts.
    pub(super) fn likeness(&self, other: &Direction) -> f32 {
        let pairs = self.steps.iter().zip(&other.steps);
        let product: i32 = pairs.map(|(&one, &other)| i32::from(one) * i32::from(other)).sum();
        product as f32 * self.step * other.step
    }
}
