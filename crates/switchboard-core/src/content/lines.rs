//! Numbers the lines of a stored text. A long line is split into pieces, which are numbered like
//! lines.

use std::ops::Range;

use super::guard::TextLimits;

/// The maximum number of bytes of a numbered line. JSON without line breaks has lines of megabytes,
/// which must be readable too.
const LONGEST: usize = 2_000;

/// The lines of a text, with long lines split into pieces that fit into a page.
#[derive(Clone, Copy)]
pub(super) struct Lines<'t> {
    text: &'t str,
    pub(super) longest: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t str, limits: &TextLimits) -> Lines<'t> {
        Lines { text, longest: LONGEST.min(limits.workable().max_bytes / 4) }
    }

    /// The byte range of each line, without its line break.
    pub(super) fn spans(self) -> impl Iterator<Item = Range<usize>> {
        let mut start = 0;
        self.text.split_terminator('\n').flat_map(move |line| {
            let begin = start;
            start += line.len() + 1;
            self.pieces(line).map(move |piece| begin + piece.start..begin + piece.end)
        })
    }

    pub(super) fn count(self) -> usize {
        self.spans().count()
    }

    /// The number of the line in which the byte at this offset is.
    pub(super) fn at(self, byte: usize) -> usize {
        self.spans().take_while(|line| line.start <= byte).count().saturating_sub(1)
    }

    /// The byte ranges of the pieces into which a long line is split.
    pub(super) fn pieces(self, line: &'t str) -> impl Iterator<Item = Range<usize>> + 't {
        let mut next = Some(0);
        std::iter::from_fn(move || {
            let start = next?;
            let end = line.floor_char_boundary(start + self.longest);
            next = (end < line.len()).then_some(end);
            Some(start..end)
        })
    }
}
