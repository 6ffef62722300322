//! Limits the text of a result: shows its beginning and end, and the id under which the whole text
//! is stored.

use std::borrow::Cow;
use std::sync::Arc;

use super::CallOutput;
use super::block::Block;
use super::json::between_quotes;
use super::lines::Lines;
use crate::render::words;

/// The maximum size of the text in one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLimits {
    pub max_bytes: usize,
    pub max_lines: usize,
}

impl TextLimits {
    pub const DEFAULT: TextLimits = TextLimits { max_bytes: 51_200, max_lines: 2_000 };
    pub const OFF: TextLimits = TextLimits { max_bytes: usize::MAX, max_lines: usize::MAX };

    /// The smallest limits that are used. The three lines about omitted text need this many bytes.
    pub const LEAST: TextLimits = TextLimits { max_bytes: 480, max_lines: 5 };

    /// The limits for one host. Default limits are reduced to the host's own limit; limits that the
    /// user set are kept.
    #[must_use]
    pub fn fitted(self, host_bytes: Option<usize>) -> TextLimits {
        match host_bytes {
            Some(most) if self.max_bytes == TextLimits::DEFAULT.max_bytes => {
                TextLimits { max_bytes: self.max_bytes.min(most), ..self }
            }
            Some(_) | None => self,
        }
    }

    /// These limits, each raised to that of [`TextLimits::LEAST`] if it is smaller.
    pub(super) fn workable(&self) -> TextLimits {
        TextLimits {
            max_bytes: self.max_bytes.max(TextLimits::LEAST.max_bytes),
            max_lines: self.max_lines.max(TextLimits::LEAST.max_lines),
        }
    }

    fn hold(&self, text: &str) -> bool {
        text.len() <= self.max_bytes && line_count(text) <= self.max_lines
    }
}

impl Default for TextLimits {
    fn default() -> TextLimits {
        TextLimits::DEFAULT
    }
}

/// An output within the limits, or one that must be shortened.
#[derive(Debug)]
pub enum Guarded<'a> {
    Within(CallOutput<'a>),
    Over(Capped<'a>),
}

/// An output above the limits. The engine stores [`whole`](Capped::whole) under an id.
#[derive(Debug)]
pub struct Capped<'a> {
    output: CallOutput<'a>,
    whole: Arc<Whole>,
    limits: TextLimits,
}

/// The stored form of an output that was shortened.
#[derive(Debug)]
pub struct Whole {
    /// The complete text of the output.
    pub text: String,
    json: Json,
}

/// The JSON of an output, on which a filter runs.
#[derive(Debug)]
enum Json {
    None,
    /// The text of the output is itself the JSON.
    Text,
    /// The output has JSON that differs from its text.
    Beside(String),
}

impl Whole {
    pub fn of(output: &CallOutput<'_>) -> Whole {
        let text = output.text();
        let json = match output.json() {
            None => Json::None,
            Some(json) if json == text => Json::Text,
            Some(json) => Json::Beside(json.into_owned()),
        };
        Whole { text: text.into_owned(), json }
    }

    /// The stored form of a text that Switchboard wrote.
    pub fn of_text(text: String) -> Whole {
        Whole { text, json: Json::None }
    }

    /// The beginning and end of the text, shortened to the limits. The id has at most 64 bytes.
    pub fn shortened(&self, limits: &TextLimits, id: &str) -> String {
        shortened(&self.text, &limits.workable(), id, "result, offset, limit or grep")
    }

    pub fn json(&self) -> Option<&str> {
        match &self.json {
            Json::None => None,
            Json::Text => Some(&self.text),
            Json::Beside(json) => Some(json),
        }
    }

    /// The JSON of the output; `None` if the text is itself the JSON, or if the output has none.
    pub fn json_beside(&self) -> Option<&str> {
        match &self.json {
            Json::None | Json::Text => None,
            Json::Beside(json) => Some(json),
        }
    }
}

/// Checks the output against the limits, which are at least [`TextLimits::LEAST`]. Images and audio
/// are limited when they are mapped.
pub fn guard<'a>(output: CallOutput<'a>, limits: &TextLimits) -> Guarded<'a> {
    let limits = limits.workable();
    if surely_within(&output, &limits) {
        return Guarded::Within(output);
    }
    let text = output.text();
    if limits.hold(&text) {
        drop(text);
        return Guarded::Within(output);
    }
    drop(text);
    let whole = Arc::new(Whole::of(&output));
    Guarded::Over(Capped { output, whole, limits })
}

impl<'a> Capped<'a> {
    pub fn whole(&self) -> Arc<Whole> {
        Arc::clone(&self.whole)
    }

    /// The output with the beginning and end of its text, shortened to the limits. The id has at
    /// most 64 bytes.
    pub fn with_id(self, id: &str) -> CallOutput<'a> {
        let Capped { mut output, whole, limits } = self;
        let remedy = match (output.selected(), whole.json()) {
            (Some(_), _) => "result, the same select, offset, limit or grep",
            (None, Some(_)) => "result and select, offset, limit or grep",
            (None, None) => "result, offset, limit or grep",
        };
        let shortened = shortened(&whole.text, &limits, id, remedy);
        let mut capped = Some(Block::Note(shortened));
        let blocks = std::mem::take(&mut output.blocks);
        for block in blocks {
            if block.is_media() {
                output.blocks.push(block);
            } else if let Some(text) = capped.take() {
                output.blocks.push(text);
            }
        }
        output
    }
}

/// Whether the output is certainly within the limits, judged by the escaped text. Unescaping only
/// shortens a text, and each line break in it is an escape with a backslash.
fn surely_within(output: &CallOutput<'_>, limits: &TextLimits) -> bool {
    let (mut bytes, mut lines) = (0, 0);
    for block in &output.blocks {
        let (head, body, newline) = match block {
            Block::Text { head, compact: Some(compact), .. } => {
                (head.as_str(), Cow::Borrowed(&**compact), b'\n')
            }
            Block::Text { head, text, compact: None, .. } => {
                (head.as_str(), Cow::Borrowed(between_quotes(text.of(&output.raw))), b'\\')
            }
            Block::Note(_) | Block::Aside(_) | Block::Json(_) | Block::Blob { .. } => {
                ("", block.text(&output.raw), b'\n')
            }
            Block::Media(..) => continue,
        };
        bytes += head.len() + body.len() + 1;
        if bytes > limits.max_bytes {
            return false;
        }
        let size = head.len() + body.len();
        // A line break takes at least one byte, so the lines of a short text need not be counted.
        let short = size <= limits.max_lines / 8;
        lines += 1 + if short { size } else { count(head, b'\n') + count(&body, newline) };
    }
    lines <= limits.max_lines
}

/// The beginning and end of `whole`, with lines that tell how to read the omitted text.
fn shortened(whole: &str, limits: &TextLimits, id: &str, remedy: &str) -> String {
    /// The maximum number of bytes of the line that stands in place of the omitted middle.
    const MARKER_BYTES: usize = 110;
    let lines = Lines::of(whole, limits);
    let (count, size) = (words::plural(lines.count(), "line"), words::bytes(whole.len()));
    // Hosts that shorten a result keep its beginning, so the id is in the first line too.
    let top = format!("[result: {id} · {count} · {size}]");
    let foot = format!("[result: {id} · {count} · {size} · read more with {remedy}]");
    // The bytes of the three lines that Switchboard adds, and of four line breaks.
    let ours = top.len() + foot.len() + MARKER_BYTES + 4;
    let bytes = limits.max_bytes.saturating_sub(ours);
    let line_breaks = limits.max_lines.saturating_sub(3);
    let (head_bytes, head_lines) = (bytes / 10 * 7, (line_breaks * 7 / 10).max(1));

    let body = whole.strip_suffix('\n').unwrap_or(whole);
    let head = head(body, head_bytes, head_lines);
    let rest = body.get(head.len()..).unwrap_or_default();
    let tail = tail(rest, bytes - head_bytes, line_breaks.saturating_sub(head_lines));
    let middle = rest.get(..rest.len() - tail.len()).unwrap_or_default();
    let is_whole_lines = middle.len() > 1 && middle.starts_with('\n') && middle.ends_with('\n');
    let (size, last) = (words::bytes(middle.len()), lines.at(head.len()));
    let left_out = if is_whole_lines {
        let next = last + 1;
        let count = lines.at(head.len() + middle.len()).saturating_sub(next);
        let count = words::plural(count, "line");
        format!("[… {count}, {size} left out, from offset {next} …]")
    } else {
        format!("[… {size} left out, from within the line at offset {last} …]")
    };
    format!("{top}\n{head}\n{left_out}\n{tail}\n{foot}")
}

/// The longest beginning of the text within the limits. It ends at the end of a line, unless that
/// would lose half of it.
fn head(text: &str, max_bytes: usize, max_lines: usize) -> &str {
    let (fits, rest) = text.split_at(text.floor_char_boundary(max_bytes));
    if let Some((end, _)) = fits.match_indices('\n').nth(max_lines.saturating_sub(1)) {
        return fits.get(..end).unwrap_or_default();
    }
    if rest.is_empty() || rest.starts_with('\n') {
        return fits;
    }
    match fits.rsplit_once('\n') {
        Some((lines, _)) if lines.len() >= fits.len() / 2 => lines,
        Some(_) | None => fits,
    }
}

/// The longest end of the text within the limits. It begins at the start of a line, unless that
/// would lose half of it.
fn tail(text: &str, max_bytes: usize, max_lines: usize) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max_bytes));
    let (before, fits) = text.split_at(start);
    if let Some((end, _)) = fits.rmatch_indices('\n').nth(max_lines.saturating_sub(1)) {
        return fits.get(end + 1..).unwrap_or_default();
    }
    if before.ends_with('\n') {
        return fits;
    }
    match fits.split_once('\n') {
        Some((_, lines)) if lines.len() >= fits.len() / 2 => lines,
        Some(_) | None => fits,
    }
}

/// The number of lines. A line break at the end does not begin another line.
pub(super) fn line_count(text: &str) -> usize {
    let open_end = !text.is_empty() && !text.ends_with('\n');
    count(text, b'\n') + usize::from(open_end)
}

fn count(text: &str, wanted: u8) -> usize {
    // The count fits into a byte so that the compiler vectorizes the loop. Results can have
    // megabytes.
    let count = |chunk: &[u8]| chunk.iter().map(|&byte| u8::from(byte == wanted)).sum::<u8>();
    text.as_bytes().chunks(usize::from(u8::MAX)).map(|chunk| usize::from(count(chunk))).sum()
}
