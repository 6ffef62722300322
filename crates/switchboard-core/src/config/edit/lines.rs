//! Finds line boundaries and white space around a byte offset of a text.

use std::ops::Range;

/// Finds line boundaries and white space in `text`. Callers pass only offsets from the syntax tree
/// of the same text.
#[derive(Clone, Copy)]
pub(super) struct Lines<'t> {
    pub(super) text: &'t str,
}

impl<'t> Lines<'t> {
    pub(super) fn slice(self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    fn start_of_line(self, at: usize) -> usize {
        self.slice(0..at).rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The indentation of the line that contains `at`.
    pub(super) fn indent(self, at: usize) -> &'t str {
        let line = self.slice(self.start_of_line(at)..self.text.len());
        let blanks = line.len() - line.trim_start_matches(BLANKS).len();
        line.get(..blanks).unwrap_or_default()
    }

    /// The indentation before `at`; `None` if the line has other text than blanks before `at`.
    pub(super) fn own_line_indent(self, at: usize) -> Option<&'t str> {
        let before = self.slice(self.start_of_line(at)..at);
        before.trim_start_matches(BLANKS).is_empty().then_some(before)
    }

    /// The offset of the first byte from `at` on that is not a blank.
    pub(super) fn skip_blanks(self, at: usize) -> usize {
        let rest = self.slice(at..self.text.len());
        at + rest.len() - rest.trim_start_matches(BLANKS).len()
    }

    /// The offset after the last byte before `at` that is not a blank.
    pub(super) fn back_over_blanks(self, at: usize) -> usize {
        self.slice(0..at).trim_end_matches(BLANKS).len()
    }

    /// The offset after the last byte before `at` that is neither a blank nor part of a line end.
    pub(super) fn back_over_whitespace(self, at: usize) -> usize {
        self.slice(0..at).trim_end_matches(WHITESPACE).len()
    }

    /// `range`, extended to whole lines with their line ends. `None` if the lines contain more than
    /// `range`.
    pub(super) fn whole_lines(self, range: Range<usize>) -> Option<Range<usize>> {
        self.own_line_indent(range.start)?;
        let end = self.skip_blanks(range.end);
        let rest = self.slice(end..self.text.len());
        let newline = ["\r\n", "\n"].into_iter().find(|newline| rest.starts_with(newline))?;
        Some(self.start_of_line(range.start)..end + newline.len())
    }

    /// The offset at which a new last member is inserted: after the line of the last content
    /// between `open` and `close`.
    pub(super) fn end_of_content(self, open: usize, close: usize) -> usize {
        let end = open + self.slice(open..close).trim_end_matches(WHITESPACE).len();
        let line_end = self.skip_blanks(end);
        let rest = self.slice(line_end..close);
        if rest.starts_with('\n') || rest.starts_with("\r\n") { line_end } else { end }
    }
}

const BLANKS: [char; 2] = [' ', '\t'];

pub(super) const WHITESPACE: [char; 4] = [' ', '\t', '\n', '\r'];
