//! Maps the result of a server to content blocks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::block::{Block, MediaKind, MediaSpan, Span};
use super::fields::{BlockFields, CallFields, Items, ResourceFields};
use super::json::{significant, unescaped};
use super::structured::{are_items, contains_data};
use crate::render::words;

/// The maximum number and size of the images that are shown. Further images are only counted,
/// because a host would reject the whole result.
pub(super) const MAX_IMAGES: usize = 32;
pub(super) const MAX_IMAGE_BYTES: usize = 10 << 20;

/// The text for a result without content.
pub(super) const NOTHING: &str = "(empty result)";

const MAX_URI_CHARS: usize = 1_024;
const MAX_NAME_CHARS: usize = 256;
const MAX_MIME_CHARS: usize = 128;

#[derive(Default)]
pub(super) struct Mapped {
    pub(super) blocks: Vec<Block>,
    pub(super) structured: Option<Span>,
    pub(super) content: Option<Span>,
    pub(super) meta: Option<Span>,
    pub(super) is_error: bool,
}

pub(super) fn call(raw: &str) -> Mapped {
    let fields = serde_json::from_str::<CallFields<'_, Items<'_>>>(raw).or_else(|_| {
        // If `content` is malformed, the result is parsed again, with `content` as any JSON value.
        serde_json::from_str::<CallFields<'_, &RawValue>>(raw).map(CallFields::with_odd_content)
    });
    let Ok(fields) = fields else {
        return unreadable(raw);
    };
    let mut mapper = Mapper::new(raw);
    let content = fields.content.unwrap_or_default();
    mapper.blocks.reserve_exact(content.first.len() + 1);
    mapper.each(&content, Mapper::block);
    if let Some(structured) = fields.structured {
        mapper.structured(structured.get());
    }
    Mapped {
        structured: fields.structured.map(|json| Span::within(raw, json.get())),
        content: content.span(raw),
        meta: fields.meta.map(|json| Span::within(raw, json.get())),
        is_error: fields.is_error.is_some_and(|json| json.get() == "true"),
        blocks: mapper.finish(),
    }
}

pub(super) fn resource(raw: &str) -> Mapped {
    #[derive(Deserialize)]
    struct ResourceResult<'a> {
        #[serde(borrow)]
        contents: Items<'a>,
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    let Ok(fields) = serde_json::from_str::<ResourceResult<'_>>(raw) else {
        return unreadable(raw);
    };
    let mut mapper = Mapper::new(raw);
    mapper.each(&fields.contents, |mapper, item| {
        let json = Span::within(raw, item.get());
        let known = serde_json::from_str::<ResourceFields<'_>>(item.get()).ok();
        match known.and_then(|fields| mapper.resource(&fields, String::new())) {
            Some(block) => mapper.blocks.push(block),
            None => mapper.blocks.push(Block::Json(json)),
        }
    });
    let content = fields.contents.span(raw);
    let meta = fields.meta.map(|json| Span::within(raw, json.get()));
    Mapped { blocks: mapper.finish(), content, meta, ..Mapped::default() }
}

pub(super) fn prompt(raw: &str) -> Mapped {
    #[derive(Deserialize)]
    struct PromptResult<'a> {
        #[serde(borrow)]
        messages: Items<'a>,
        #[serde(borrow, rename = "_meta")]
        meta: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct PromptMessage<'a> {
        #[serde(borrow)]
        role: Cow<'a, str>,
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let Ok(fields) = serde_json::from_str::<PromptResult<'_>>(raw) else {
        return unreadable(raw);
    };
    let mut mapper = Mapper::new(raw);
    let several = fields.messages.first.len() > 1;
    mapper.each(&fields.messages, |mapper, item| {
        let Ok(message) = serde_json::from_str::<PromptMessage<'_>>(item.get()) else {
            mapper.blocks.push(Block::Json(Span::within(raw, item.get())));
            return;
        };
        let before = mapper.blocks.len();
        mapper.block(message.content);
        if several && let Some(block) = mapper.blocks.get_mut(before) {
            let role = words::clean_line(&message.role, MAX_NAME_CHARS);
            block.prefix(raw, &format!("[{role}] "));
        }
    });
    let content = fields.messages.span(raw);
    let meta = fields.meta.map(|json| Span::within(raw, json.get()));
    Mapped { blocks: mapper.finish(), content, meta, ..Mapped::default() }
}

/// Shows a malformed result as JSON, such as a result that is not an object or has a duplicate
/// field.
fn unreadable(raw: &str) -> Mapped {
    let all = Span { start: 0, end: raw.len() };
    Mapped { blocks: vec![Block::Json(all)], ..Mapped::default() }
}

struct Mapper<'r> {
    raw: &'r str,
    blocks: Vec<Block>,
    images: usize,
    image_bytes: usize,
    images_left_out: usize,
}

impl<'r> Mapper<'r> {
    fn new(raw: &'r str) -> Mapper<'r> {
        Mapper { raw, blocks: Vec::new(), images: 0, image_bytes: 0, images_left_out: 0 }
    }

    fn each(&mut self, items: &Items<'_>, map: impl Fn(&mut Mapper<'r>, &RawValue)) {
        for item in &items.first {
            map(self, item);
        }
        if let Some((begin, last)) = items.rest {
            let start = Span::within(self.raw, begin.get()).start;
            let end = Span::within(self.raw, last.get()).end;
            self.blocks.push(Block::Json(Span { start, end }));
        }
    }

    fn block(&mut self, item: &RawValue) {
        let json = Span::within(self.raw, item.get());
        let known = serde_json::from_str::<BlockFields<'_>>(item.get()).ok();
        match known.and_then(|fields| self.known(&fields, json)) {
            Some(Block::Media(MediaKind::Image, image)) => self.image(image),
            Some(block) => self.blocks.push(block),
            None => self.blocks.push(Block::Json(json)),
        }
    }

    /// Parses a block of a known type; `None` if the type is unknown or a required field is
    /// missing.
    fn known(&self, fields: &BlockFields<'_>, json: Span) -> Option<Block> {
        match fields.kind.as_ref() {
            "text" => {
                let text = Span::within(self.raw, string(fields.text)?);
                Some(Block::Text { json: Some(json), head: String::new(), text, compact: None })
            }
            "image" => self.media(fields, json, MediaKind::Image, "image/png"),
            "audio" => self.media(fields, json, MediaKind::Audio, "audio/wav"),
            "resource" => {
                let resource: ResourceFields<'_> =
                    serde_json::from_str(fields.resource?.get()).ok()?;
                let head = format!("[Resource: {}]\n", line(resource.uri, MAX_URI_CHARS)?);
                self.resource(&resource, head)
            }
            "resource_link" => {
                let uri = line(fields.uri, MAX_URI_CHARS)?;
                let name = line(fields.name, MAX_NAME_CHARS).unwrap_or_else(|| uri.clone());
                Some(Block::Note(format!("[Resource Link: {name}]\nURI: {uri}")))
            }
            _ => None,
        }
    }

    fn media(
        &self,
        fields: &BlockFields<'_>,
        json: Span,
        kind: MediaKind,
        default: &str,
    ) -> Option<Block> {
        let data = Span::within(self.raw, string(fields.data)?);
        let mime = line(fields.mime, MAX_MIME_CHARS);
        let json = mime.is_some().then_some(json);
        let mime = mime.unwrap_or_else(|| default.to_owned());
        Some(Block::Media(kind, MediaSpan { json, mime, data }))
    }

    fn resource(&self, fields: &ResourceFields<'_>, head: String) -> Option<Block> {
        if let Some(text) = string(fields.text) {
            let text = Span::within(self.raw, text);
            return Some(Block::Text { json: None, head, text, compact: None });
        }
        let data = string(fields.blob)?;
        let uri = line(fields.uri, MAX_URI_CHARS).unwrap_or_default();
        let mime = line(fields.mime, MAX_MIME_CHARS)
            .unwrap_or_else(|| "application/octet-stream".to_owned());
        let media = MediaSpan { json: None, mime, data: Span::within(self.raw, data) };
        Some(Block::Blob { uri, media })
    }

    fn image(&mut self, image: MediaSpan) {
        let data = image.data.of(self.raw);
        if self.images == MAX_IMAGES || self.image_bytes + data.len() > MAX_IMAGE_BYTES {
            self.images_left_out += 1;
        } else if is_base64(&unescaped(data)) {
            self.images += 1;
            self.image_bytes += data.len();
            self.blocks.push(Block::Media(MediaKind::Image, image));
        } else {
            // The image is omitted, because a single image with invalid base64 makes the model's
            // API reject the whole conversation.
            let note = format!("[Image content: {}]\nOmitted: not valid base64", image.mime);
            self.blocks.push(Block::Aside(note));
        }
    }

    /// Shows `structuredContent` as text, unless the text blocks contain the same data.
    fn structured(&mut self, json: &str) {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.of(self.raw)),
            Block::Note(_)
            | Block::Aside(_)
            | Block::Json(_)
            | Block::Media(..)
            | Block::Blob { .. } => None,
        });
        let texts: Vec<&str> = texts.collect();
        if texts.iter().any(|text| contains_data(text, json)) || are_items(&texts, json) {
            return;
        }
        let mut is_significant = significant();
        let is_compact = json.chars().all(|character| is_significant(&character));
        self.blocks.push(if is_compact {
            Block::Json(Span::within(self.raw, json))
        } else {
            Block::Note(json.chars().filter(significant()).collect())
        });
    }

    fn finish(mut self) -> Vec<Block> {
        if self.images_left_out > 0 {
            let images = words::plural(self.images_left_out, "more image");
            self.blocks.push(Block::Aside(format!("[{images} left out]")));
        }
        let is_empty = |block: &Block| {
            matches!(block, Block::Text { head, text, .. }
                if head.is_empty() && text.of(self.raw) == "\"\"")
        };
        if self.blocks.iter().all(is_empty) {
            self.blocks = vec![Block::Note(NOTHING.to_owned())];
        }
        self.blocks
    }
}

/// The JSON string in a raw value, with its quotes; `None` for any other type.
fn string(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(RawValue::get).filter(|json| json.starts_with('"'))
}

fn line(raw: Option<&RawValue>, max: usize) -> Option<String> {
    string(raw).map(|quoted| words::clean_line(&unescaped(quoted), max).into_owned())
}

fn is_base64(data: &str) -> bool {
    let digits = data.trim_end_matches('=');
    !digits.is_empty()
        && data.len().is_multiple_of(4)
        && data.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}
