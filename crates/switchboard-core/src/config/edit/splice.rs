//! Inserts members into objects and arrays, and removes members with their commas and blank lines.

use std::ops::Range;

use jsonc_parser::ast::{Array, Object};
use jsonc_parser::common::Ranged;
use jsonc_parser::tokens::{Token, TokenAndRange};
use serde_json::Value as Json;

use super::lines::{Lines, WHITESPACE};
use super::print::{Layout, key};
use super::{Document, Opens};

/// Ranges of a text and their replacements. The ranges do not overlap.
#[derive(Default)]
pub(super) struct Splices(Vec<(Range<usize>, String)>);

impl Splices {
    pub(super) fn one(range: Range<usize>, text: String) -> Splices {
        Splices(vec![(range, text)])
    }

    fn cut(&mut self, range: Range<usize>) {
        self.0.push((range, String::new()));
    }

    fn put(&mut self, at: usize, text: String) {
        self.0.push((at..at, text));
    }

    pub(super) fn apply(mut self, text: &str) -> String {
        // The stable sort keeps the order of insertions at the same offset.
        self.0.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for (range, replacement) in self.0 {
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push_str(&replacement);
            done = done.max(range.end);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        out
    }
}

/// An object or array in the text, whose members can be changed.
pub(super) struct Container<'d> {
    lines: Lines<'d>,
    tokens: &'d [TokenAndRange<'d>],
    /// The offset after the opening bracket.
    open: usize,
    /// The offset of the closing bracket.
    close: usize,
    children: Vec<Range<usize>>,
    /// The space inside the brackets of an object or array that is written on one line.
    pad: &'static str,
}

impl<'d> Container<'d> {
    pub(super) fn of_object(document: &'d Document<'_>, object: &Object<'_>) -> Self {
        let children = object.properties.iter().map(|property| property.start()..property.end());
        Self::new(document, object.start()..object.end(), children.collect(), " ")
    }

    pub(super) fn of_array(document: &'d Document<'_>, array: &Array<'_>) -> Self {
        let children = array.elements.iter().map(|element| element.start()..element.end());
        Self::new(document, array.start()..array.end(), children.collect(), "")
    }

    fn new(
        document: &'d Document<'_>,
        range: Range<usize>,
        children: Vec<Range<usize>>,
        pad: &'static str,
    ) -> Self {
        let (open, close) = (range.start + 1, range.end.saturating_sub(1));
        let (lines, tokens) = (document.lines, document.tokens.as_slice());
        Self { lines, tokens, open, close, children, pad }
    }

    /// Appends a member in the style of the previous one.
    pub(super) fn insert(
        &self,
        layout: &Layout<'_>,
        opens: Opens,
        name: Option<&str>,
        value: &Json,
    ) -> Splices {
        let name = name.map(key).unwrap_or_default();
        let newline = layout.newline;
        let mut splices = Splices::default();
        let Some((index, last)) = self.children.iter().enumerate().next_back() else {
            self.insert_first(&mut splices, layout, opens, (&name, value));
            return splices;
        };
        let comma = self.comma_after(index);
        if comma.is_none() {
            splices.put(last.end, ",".to_owned());
        }
        let trailing = if comma.is_some() { "," } else { "" };
        let place = self.lines.end_of_content(self.open, self.close);
        match self.lines.own_line_indent(last.start) {
            Some(indent) => {
                let value = layout.on_lines(value, indent);
                splices.put(place, format!("{newline}{indent}{name}{value}{trailing}"));
            }
            None if self.is_line_comment_before(self.close) => {
                let value = layout.inline(value);
                splices.put(place, format!("{newline}{name}{value}{trailing}"));
            }
            None => {
                let place = self.lines.back_over_whitespace(self.close);
                let value = layout.inline(value);
                splices.put(place, format!(" {name}{value}{trailing}"));
            }
        }
        splices
    }

    fn insert_first(
        &self,
        splices: &mut Splices,
        layout: &Layout<'_>,
        opens: Opens,
        (name, value): (&str, &Json),
    ) {
        let newline = layout.newline;
        let inside = self.lines.slice(self.open..self.close);
        let indent = self.lines.indent(self.open);
        let inner = format!("{indent}{}", layout.unit);
        let is_blank = inside.trim_matches(WHITESPACE).is_empty();
        if is_blank && opens == Opens::OnLines {
            let value = layout.on_lines(value, &inner);
            let text = format!("{newline}{inner}{name}{value}{newline}{indent}");
            splices.0.push((self.open..self.close, text));
        } else if is_blank {
            let pad = self.pad;
            let text = format!("{pad}{name}{}{pad}", layout.inline(value));
            splices.0.push((self.open..self.close, text));
        } else if inside.contains('\n') {
            // The new member follows the comments of the empty object or array.
            let place = self.lines.end_of_content(self.open, self.close);
            let value = layout.on_lines(value, &inner);
            splices.put(place, format!("{newline}{inner}{name}{value}"));
        } else {
            let place = self.lines.end_of_content(self.open, self.close);
            splices.put(place, format!(" {name}{}", layout.inline(value)));
        }
    }

    /// Removes every child for whose index `leaves` is true. Comments on lines of their own are
    /// preserved.
    pub(super) fn remove(&self, leaves: impl Fn(usize) -> bool) -> Splices {
        let mut splices = Splices::default();
        let staying: Vec<usize> = (0..self.children.len()).filter(|at| !leaves(*at)).collect();
        if staying.len() == self.children.len() {
            return splices;
        }
        if staying.is_empty() && self.holds_no_comment() {
            splices.cut(self.open..self.close);
            return splices;
        }
        let ends_with_comma =
            self.children.len().checked_sub(1).and_then(|last| self.comma_after(last)).is_some();
        let last_to_stay = staying.last().copied();
        for (index, child) in self.children.iter().enumerate() {
            let comma = self.comma_after(index);
            if !leaves(index) {
                // The new last child has a trailing comma only if the old last child had one.
                if last_to_stay == Some(index)
                    && index + 1 < self.children.len()
                    && !ends_with_comma
                    && let Some(comma) = comma
                {
                    splices.cut(comma..comma + 1);
                }
                continue;
            }
            let mut end = child.end;
            match comma {
                Some(comma) if self.lines.skip_blanks(end) == comma => end = comma + 1,
                Some(comma) => splices.cut(comma..comma + 1),
                None => {}
            }
            splices.cut(self.with_blanks(index, child.start..end));
        }
        splices
    }

    /// The range of a child, with the adjacent blanks that would be left over after its removal.
    fn with_blanks(&self, index: usize, range: Range<usize>) -> Range<usize> {
        if let Some(lines) = self.lines.whole_lines(range.clone()) {
            return lines;
        }
        let after = self.lines.skip_blanks(range.end);
        if after == self.close && !self.is_line_comment_before(range.start) {
            return self.lines.back_over_whitespace(range.start)..range.end;
        }
        let is_last = index + 1 == self.children.len();
        if is_last && self.lines.own_line_indent(range.start).is_none() {
            return self.lines.back_over_blanks(range.start)..range.end;
        }
        range.start..after
    }

    fn comma_after(&self, index: usize) -> Option<usize> {
        let from = self.children.get(index)?.end;
        let to = self.children.get(index + 1).map_or(self.close, |next| next.start);
        let first = self.tokens.partition_point(|token| token.start() < from);
        let between = self.tokens.iter().skip(first).take_while(|token| token.start() < to);
        between.filter(|token| token.token == Token::Comma).map(Ranged::start).next()
    }

    /// Whether the token before `at` is a line comment.
    fn is_line_comment_before(&self, at: usize) -> bool {
        let next = self.tokens.partition_point(|token| token.start() < at);
        let last = next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.is_some_and(|token| matches!(token.token, Token::CommentLine(_)))
    }

    fn holds_no_comment(&self) -> bool {
        let starts = [self.open].into_iter().chain(self.children.iter().map(|child| child.end));
        let ends = self.children.iter().map(|child| child.start).chain([self.close]);
        let filler = |c: char| c == ',' || WHITESPACE.contains(&c);
        starts.zip(ends).all(|(from, to)| self.lines.slice(from..to).chars().all(filler))
    }
}
