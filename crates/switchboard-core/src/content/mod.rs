//! The result of a server, split into blocks: unchanged for hosts, or as text for a model.

mod block;
pub mod details;
mod fields;
pub mod guard;
mod json;
mod lines;
mod map;
mod outline;
pub mod page;
mod spill;
mod structured;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use self::block::{Block, MediaKind, Span, push_text_block};
pub(crate) use self::json::push_unescaped;
use self::json::{between_quotes, compacted, unescaped};
pub use self::json::{is_json, push_json_string};
pub use self::outline::outline;
pub use self::spill::{BlobError, MAX_BLOB_BYTES, Settled, Spill};
use crate::hidden;
use crate::render::words::plural;

/// The text for a filter that has no output.
const NOTHING_SELECTED: &str = "(select gave nothing)";

/// The result of a `tools/call`, `resources/read` or `prompts/get`, mapped to blocks.
///
/// The blocks are byte ranges of the server's JSON. So a text or image block is passed on
/// unchanged, with its unknown fields, and a small result is never parsed into values.
#[derive(Debug, Clone)]
pub struct CallOutput<'a> {
    /// The JSON of the whole result. It has no line breaks between tokens, so that any part can be
    /// sent as one line.
    raw: Cow<'a, str>,
    blocks: Vec<Block>,
    structured: Option<Span>,
    content: Option<Span>,
    meta: Option<Span>,
    is_error: bool,
    /// The output of a filter, which replaces the text; `None` without a filter.
    selected: Option<Box<str>>,
}

/// One block of a result, as the server part and the command line use it.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'o> {
    Text(Cow<'o, str>),
    Image(Media<'o>),
    Audio(Media<'o>),
}

/// The data of an image or of audio.
#[derive(Debug, PartialEq, Eq)]
pub struct Media<'o> {
    /// The MIME type, shortened and without hidden characters.
    pub mime: &'o str,
    /// The data in base64.
    pub data: Cow<'o, str>,
}

/// How a host gets an image or audio block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MediaForm {
    /// The host gets the block unchanged.
    #[default]
    Native,
    /// The host gets a note with the path of a private file.
    Stored,
}

/// How a host gets results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultForm {
    /// How many bytes of text the host passes to the model uncut; `None` if it never cuts.
    pub max_bytes: Option<usize>,
    pub images: MediaForm,
    pub audio: MediaForm,
    pub spacing: Spacing,
}

/// Whether white space in text blocks of JSON is removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spacing {
    #[default]
    Compact,
    AsWritten,
}

impl<'a> CallOutput<'a> {
    /// Maps the result of `tools/call`. Malformed parts are shown as JSON.
    pub fn of_call(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::call)
    }

    /// Maps the result of `resources/read`. Each item becomes a block with its text.
    pub fn of_resource(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::resource)
    }

    /// Maps the result of `prompts/get` to its messages. Several messages are shown with their
    /// roles.
    pub fn of_prompt(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::prompt)
    }

    fn mapped(raw: Cow<'a, str>, map: fn(&str) -> map::Mapped) -> CallOutput<'a> {
        // A message on stdio must not contain line breaks. JSON allows them only between tokens,
        // where a space can replace them. A fold without an early exit is vectorized.
        let is_broken = |seen, byte| seen | (byte == b'\n') | (byte == b'\r');
        let raw = if raw.bytes().fold(false, is_broken) {
            Cow::Owned(raw.replace(['\n', '\r'], " "))
        } else {
            raw
        };
        let map::Mapped { blocks, structured, content, meta, is_error } = map(&raw);
        CallOutput { raw, blocks, structured, content, meta, is_error, selected: None }
    }

    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The result of the server, as JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The `structuredContent` of the result, as JSON.
    pub fn structured(&self) -> Option<&str> {
        self.structured.map(|span| span.of(&self.raw))
    }

    /// Removes white space from text blocks that are JSON. Resources are unchanged, and so is a
    /// string in `structuredContent`, because it may be the content of a file that the model edits.
    pub fn compact(&mut self) {
        if self.is_text() {
            return;
        }
        for block in &mut self.blocks {
            let Block::Text { json: Some(_), text, compact, .. } = block else { continue };
            let quoted = text.of(&self.raw);
            // Most texts are not JSON, which their first character shows without decoding.
            if between_quotes(quoted).starts_with(['{', '[', ' ', '\\']) {
                *compact = compacted(&unescaped(quoted));
            }
        }
    }

    /// Whether `structuredContent` is an object whose only field is a string.
    fn is_text(&self) -> bool {
        self.structured().and_then(structured::enclosed_text).is_some()
    }

    /// The JSON on which a filter runs: `structuredContent`, or else the text if it is JSON. If
    /// `structuredContent` only wraps a single string, the filter runs on the string, because only
    /// the string is shown.
    pub fn json(&self) -> Option<Cow<'_, str>> {
        let shown = if self.is_text() { self.text_json() } else { None };
        shown.or_else(|| self.structured().map(Cow::Borrowed)).or_else(|| self.text_json())
    }

    fn text_json(&self) -> Option<Cow<'_, str>> {
        // Notes of Switchboard and the headings of embedded resources are not part of the JSON.
        let mut bodies = self.blocks.iter().filter_map(|block| block.body(&self.raw));
        let mut text = bodies.next()?;
        for body in bodies {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&body);
        }
        is_json(&text).then_some(text)
    }

    /// This result, with the output of a filter in place of its text.
    #[must_use]
    pub fn select(self, text: String) -> CallOutput<'a> {
        let shown = text.trim_end_matches('\n');
        let shown = if shown.is_empty() { NOTHING_SELECTED } else { shown };
        let mut output = self.without_text();
        output.blocks.insert(0, Block::Note(shown.to_owned()));
        CallOutput { selected: Some(text.into()), ..output }
    }

    /// Removes the text blocks. Images, audio and blobs, and the notes in their place, remain.
    #[must_use]
    pub fn without_text(mut self) -> CallOutput<'a> {
        self.blocks.retain(|block| match block {
            Block::Media(..) | Block::Blob { .. } | Block::Aside(_) => true,
            Block::Text { .. } | Block::Note(_) | Block::Json(_) => false,
        });
        self
    }

    /// The complete output of the filter; `None` without a filter.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// The number of hidden characters in the result, for [`CallOutput::mark_hidden`]. The output
    /// of a filter is counted instead of its input, because a filter decodes JSON escapes and can
    /// write any character.
    pub fn hidden_characters(&self) -> usize {
        let hidden = match &self.selected {
            Some(selected) => hidden::find(selected),
            None => hidden::find_json(&self.raw),
        };
        hidden.map_or(0, |hidden| hidden.in_data())
    }

    /// Adds a note with the number of hidden characters. They are not removed, because a result is
    /// data.
    pub fn mark_hidden(&mut self, characters: usize) {
        if characters > 0 {
            self.note(format!("[{} in this result]", plural(characters, "hidden character")));
        }
    }

    /// Adds a text line that Switchboard wrote.
    pub fn note(&mut self, line: String) {
        self.blocks.push(Block::Note(line));
    }

    /// The `_meta` of the result, as JSON.
    pub fn meta(&self) -> Option<&str> {
        self.meta.map(|span| span.of(&self.raw))
    }

    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.blocks.iter().map(|block| match block {
            Block::Media(MediaKind::Image, media) => Part::Image(media.view(&self.raw)),
            Block::Media(MediaKind::Audio, media) => Part::Audio(media.view(&self.raw)),
            Block::Text { .. }
            | Block::Note(_)
            | Block::Aside(_)
            | Block::Json(_)
            | Block::Blob { .. } => Part::Text(block.text(&self.raw)),
        })
    }

    /// The text of all blocks, joined with line breaks.
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.blocks.iter().filter(|block| !block.is_media());
        let Some(first) = texts.next() else {
            return Cow::Borrowed("");
        };
        let Some(second) = texts.next() else {
            return first.text(&self.raw);
        };
        let mut joined = String::new();
        first.push_text(&self.raw, &mut joined);
        for block in std::iter::once(second).chain(texts) {
            joined.push('\n');
            block.push_text(&self.raw, &mut joined);
        }
        Cow::Owned(joined)
    }

    /// Appends the `content` of the result, as a JSON array.
    pub fn write_content(&self, out: &mut String) {
        out.push('[');
        self.write_blocks(out);
        out.push(']');
    }

    /// Appends the elements of `content` to a JSON array, which may already have elements.
    pub fn write_blocks(&self, out: &mut String) {
        for block in &self.blocks {
            if !out.ends_with('[') {
                out.push(',');
            }
            block.push_json(&self.raw, out);
        }
    }
}

impl CallOutput<'_> {
    /// Appends the `content` of an error, whose text begins with `head`. If the result has no text,
    /// `otherwise` follows `head`.
    pub fn write_error_content(&self, out: &mut String, head: &str, otherwise: &str) {
        let has_text = |block: &&Block| {
            let text = block.text(&self.raw);
            !block.is_media() && !text.trim().is_empty() && text != map::NOTHING
        };
        let first = self.blocks.iter().find(has_text);
        out.push('[');
        if first.is_none() {
            push_text_block(out, &format!("{head}{otherwise}"));
        }
        let mut headed = first.is_none();
        for block in self.blocks.iter().filter(|block| block.is_media() || has_text(block)) {
            if !out.ends_with("[") {
                out.push(',');
            }
            if headed || block.is_media() {
                block.push_json(&self.raw, out);
            } else {
                push_text_block(out, &format!("{head}{}", block.text(&self.raw)));
                headed = true;
            }
        }
        out.push(']');
    }
}
