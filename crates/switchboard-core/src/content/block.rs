//! One content block of a result, which is rendered as text or as JSON for a host.

use std::borrow::Cow;

use super::Media;
use super::json::{push_json_string, push_unescaped, unescaped};
use super::spill::omitted;

#[derive(Debug, Clone)]
pub(super) enum Block {
    /// Text of the server, preceded by the text `head` of Switchboard.
    Text {
        /// The byte range of the whole block, if the block is passed on unchanged.
        json: Option<Span>,
        head: String,
        /// The byte range of the block's text: a JSON string with its quotes and escapes.
        text: Span,
        /// The text without white space between tokens, which is shown instead of the text if the
        /// text is JSON.
        compact: Option<Box<str>>,
    },
    /// A text that Switchboard wrote.
    Note(String),
    /// A text that Switchboard wrote in place of a block that is not text.
    Aside(String),
    /// JSON from the server that is shown as text.
    Json(Span),
    Media(MediaKind, MediaSpan),
    /// The data of an embedded resource that no host can show.
    Blob {
        uri: String,
        media: MediaSpan,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaKind {
    Image,
    Audio,
}

#[derive(Debug, Clone)]
pub(super) struct MediaSpan {
    /// The byte range of the whole block, if the block is passed on unchanged.
    pub(super) json: Option<Span>,
    pub(super) mime: String,
    /// The byte range of the base64 string, with its quotes and escapes.
    pub(super) data: Span,
}

/// A byte range of [`CallOutput::raw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// The byte range of `part` in `raw`; `part` is a slice of `raw`.
    pub(super) fn within(raw: &str, part: &str) -> Span {
        let start = part.as_ptr().addr().wrapping_sub(raw.as_ptr().addr());
        Span { start, end: start.wrapping_add(part.len()) }
    }

    pub(super) fn of(self, raw: &str) -> &str {
        raw.get(self.start..self.end).unwrap_or_default()
    }
}

impl Block {
    pub(super) fn is_media(&self) -> bool {
        matches!(self, Block::Media(..))
    }

    pub(super) fn text<'o>(&'o self, raw: &'o str) -> Cow<'o, str> {
        match self {
            Block::Text { head, .. } if head.is_empty() => self.body(raw).unwrap_or_default(),
            Block::Note(note) | Block::Aside(note) => Cow::Borrowed(note),
            Block::Json(json) => Cow::Borrowed(json.of(raw)),
            Block::Text { .. } | Block::Blob { .. } | Block::Media(..) => {
                let mut shown = String::new();
                self.push_text(raw, &mut shown);
                Cow::Owned(shown)
            }
        }
    }

    /// The text of the server, without the text of Switchboard. `None` for a block without such
    /// text.
    pub(super) fn body<'o>(&'o self, raw: &'o str) -> Option<Cow<'o, str>> {
        match self {
            Block::Text { compact: Some(compact), .. } => Some(Cow::Borrowed(compact)),
            Block::Text { text, compact: None, .. } => Some(unescaped(text.of(raw))),
            Block::Json(json) => Some(Cow::Borrowed(json.of(raw))),
            Block::Note(_) | Block::Aside(_) | Block::Blob { .. } | Block::Media(..) => None,
        }
    }

    pub(super) fn push_text(&self, raw: &str, out: &mut String) {
        match self {
            Block::Text { head, text, compact, .. } => {
                out.push_str(head);
                match compact {
                    Some(compact) => out.push_str(compact),
                    None => push_unescaped(text.of(raw), out),
                }
            }
            Block::Note(note) | Block::Aside(note) => out.push_str(note),
            Block::Json(json) => out.push_str(json.of(raw)),
            Block::Blob { uri, media } => {
                out.push_str(&omitted(uri, &media.mime, &"it was not saved"));
            }
            Block::Media(..) => {}
        }
    }

    pub(super) fn push_json(&self, raw: &str, out: &mut String) {
        match self {
            Block::Text { json: Some(json), compact: None, .. } => out.push_str(json.of(raw)),
            Block::Text { json: Some(json), text, compact: Some(compact), .. } => {
                // All other fields of the block are passed on unchanged.
                out.push_str(Span { start: json.start, end: text.start }.of(raw));
                push_json_string(out, compact);
                out.push_str(Span { start: text.end, end: json.end }.of(raw));
            }
            Block::Media(kind, media) => media.push_json(*kind, raw, out),
            Block::Text { json: None, .. }
            | Block::Note(_)
            | Block::Aside(_)
            | Block::Json(_)
            | Block::Blob { .. } => {
                push_text_block(out, &self.text(raw));
            }
        }
    }

    /// Puts a text of Switchboard before the text of the block.
    pub(super) fn prefix(&mut self, raw: &str, prefix: &str) {
        match self {
            Block::Text { json, head, .. } => {
                *json = None;
                head.insert_str(0, prefix);
            }
            Block::Note(note) | Block::Aside(note) => note.insert_str(0, prefix),
            Block::Json(json) => *self = Block::Note(format!("{prefix}{}", json.of(raw))),
            Block::Media(..) | Block::Blob { .. } => {}
        }
    }
}

impl MediaSpan {
    pub(super) fn view<'o>(&'o self, raw: &'o str) -> Media<'o> {
        Media { mime: &self.mime, data: unescaped(self.data.of(raw)) }
    }

    fn push_json(&self, kind: MediaKind, raw: &str, out: &mut String) {
        if let Some(json) = self.json {
            out.push_str(json.of(raw));
            return;
        }
        out.push_str(match kind {
            MediaKind::Image => "{\"type\":\"image\",\"data\":",
            MediaKind::Audio => "{\"type\":\"audio\",\"data\":",
        });
        out.push_str(self.data.of(raw));
        out.push_str(",\"mimeType\":");
        push_json_string(out, &self.mime);
        out.push('}');
    }
}

pub(super) fn push_text_block(out: &mut String, text: &str) {
    out.push_str("{\"type\":\"text\",\"text\":");
    push_json_string(out, text);
    out.push('}');
}
