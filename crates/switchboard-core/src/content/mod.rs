//! The result of a server: its blocks, unchanged or as text for a model.

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

/// Shown for a filter without output.
const NOTHING_SELECTED: &str = "(select gave nothing)";

/// The result of a `tools/call`, `resources/read` or `prompts/get`, mapped to blocks.
///
/// It keeps the server's JSON and points into it: a text or image block is passed on unchanged,
/// with unknown fields, and a small result is never parsed into values.
#[derive(Debug, Clone)]
pub struct CallOutput<'a> {
    /// The whole result, without line breaks between its tokens, so that any part fits into a
    /// frame.
    raw: Cow<'a, str>,
    blocks: Vec<Block>,
    structured: Option<Span>,
    content: Option<Span>,
    meta: Option<Span>,
    is_error: bool,
    /// The output of a filter.
    selected: Option<Box<str>>,
}

/// One block of a result, in the form for faces.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'o> {
    Text(Cow<'o, str>),
    Image(Media<'o>),
    Audio(Media<'o>),
}

/// An image or audio.
#[derive(Debug, PartialEq, Eq)]
pub struct Media<'o> {
    /// The MIME type, cleaned and bounded.
    pub mime: &'o str,
    /// Base64.
    pub data: Cow<'o, str>,
}

/// How a host gets an image or audio block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaForm {
    /// The block, unchanged.
    Native,
    /// A note that names a private file.
    Stored,
}

/// How a host gets results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultForm {
    /// Bytes of text that reach the model uncut; `None` if the host cuts nothing.
    pub max_bytes: Option<usize>,
    pub images: MediaForm,
    pub audio: MediaForm,
    pub spacing: Spacing,
}

impl Default for ResultForm {
    fn default() -> ResultForm {
        ResultForm {
            max_bytes: None,
            images: MediaForm::Native,
            audio: MediaForm::Native,
            spacing: Spacing::Compact,
        }
    }
}

/// The treatment of white space in text blocks that are JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    Compact,
    AsWritten,
}

impl<'a> CallOutput<'a> {
    /// Maps the result of `tools/call`. Malformed parts are shown as JSON.
    pub fn of_call(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::call)
    }

    /// Maps the result of `resources/read`: the bare text of each item.
    pub fn of_resource(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::resource)
    }

    /// Maps the result of `prompts/get`: its messages, with their roles when there are several.
    pub fn of_prompt(raw: impl Into<Cow<'a, str>>) -> CallOutput<'a> {
        CallOutput::mapped(raw.into(), map::prompt)
    }

    fn mapped(raw: Cow<'a, str>, map: fn(&str) -> map::Mapped) -> CallOutput<'a> {
        // JSON has line breaks only between tokens. A frame of stdio may have none at all.
        // A fold without early exit is vectorized.
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

    /// The server's result, as JSON.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The server's `structuredContent`, as JSON.
    pub fn structured(&self) -> Option<&str> {
        self.structured.map(|span| span.of(&self.raw))
    }

    /// Removes white space from texts that are JSON. A resource stays unchanged, and so does a
    /// string in `structuredContent`: it may be the content of a file to be edited.
    pub fn compact(&mut self) {
        if self.is_text() {
            return;
        }
        for block in &mut self.blocks {
            let Block::Text { json: Some(_), text, compact, .. } = block else { continue };
            let quoted = text.of(&self.raw);
            // Most texts are not JSON, which shows without decoding.
            if between_quotes(quoted).starts_with(['{', '[', ' ', '\\']) {
                *compact = compacted(&unescaped(quoted));
            }
        }
    }

    /// Whether `structuredContent` is an object whose only field is a string.
    fn is_text(&self) -> bool {
        self.structured().and_then(structured::enclosed_text).is_some()
    }

    /// The JSON on which a filter runs: `structuredContent`, or else the text, if that is JSON. A
    /// string in a single-field object is shown without the object, so the filter also runs on the
    /// string.
    pub fn json(&self) -> Option<Cow<'_, str>> {
        let shown = if self.is_text() { self.text_json() } else { None };
        shown.or_else(|| self.structured().map(Cow::Borrowed)).or_else(|| self.text_json())
    }

    fn text_json(&self) -> Option<Cow<'_, str>> {
        // Our notes and the headings of embedded resources are not part of the result.
        let mut bodies = self.blocks.iter().filter_map(|block| block.body(&self.raw));
        let mut text = bodies.next()?;
        for body in bodies {
            let text = text.to_mut();
            text.push('\n');
            text.push_str(&body);
        }
        is_json(&text).then_some(text)
    }

    /// The same result with the output of a filter in place of its texts.
    #[must_use]
    pub fn select(self, text: String) -> CallOutput<'a> {
        let shown = text.trim_end_matches('\n');
        let shown = if shown.is_empty() { NOTHING_SELECTED } else { shown };
        let mut output = self.without_text();
        output.blocks.insert(0, Block::Note(shown.to_owned()));
        CallOutput { selected: Some(text.into()), ..output }
    }

    /// Only the blocks on which no filter runs: images, audio, blobs, and the notes in their place.
    #[must_use]
    pub fn without_text(mut self) -> CallOutput<'a> {
        self.blocks.retain(|block| match block {
            Block::Media(..) | Block::Blob { .. } | Block::Aside(_) => true,
            Block::Text { .. } | Block::Note(_) | Block::Json(_) => false,
        });
        self
    }

    /// The whole output of the filter.
    pub fn selected(&self) -> Option<&str> {
        self.selected.as_deref()
    }

    /// How many hidden characters it contains, for [`CallOutput::mark_hidden`]. The output of a
    /// filter is checked itself: the filter decodes JSON escapes, and can write any character.
    pub fn hidden_characters(&self) -> usize {
        let hidden = match &self.selected {
            Some(selected) => hidden::find(selected),
            None => hidden::find_json(&self.raw),
        };
        hidden.map_or(0, |hidden| hidden.in_data())
    }

    /// Adds a note about hidden characters. They are not removed: a result is data.
    pub fn mark_hidden(&mut self, characters: usize) {
        if characters > 0 {
            self.note(format!("[{} in this result]", plural(characters, "hidden character")));
        }
    }

    /// Adds a line by Switchboard.
    pub fn note(&mut self, line: String) {
        self.blocks.push(Block::Note(line));
    }

    /// The server's `_meta`, as JSON.
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

    /// Appends the MCP `content` array.
    pub fn write_content(&self, out: &mut String) {
        out.push('[');
        self.write_blocks(out);
        out.push(']');
    }

    /// Appends the elements of that array to an array that may have elements already.
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
    /// Appends the `content` array of an error: its text begins with `head`. Without a text,
    /// `otherwise` is used.
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
