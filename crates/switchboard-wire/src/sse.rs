//! Parses server-sent events from chunks of any size; an event over the limit is discarded without
//! being buffered.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The number of bytes that are kept of an over-long event, to identify its message.
const KEPT_OF_OVERLONG: usize = 4 * 1024;

/// The maximum length of an event's name or id in bytes; a longer one is ignored.
const LONGEST_NAME: usize = 1024;

/// One event of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// An event with complete data. `name` is empty if the event has no name.
    Whole { name: String, data: Bytes },
    /// The data of the event exceeds the limit. `head` is the beginning of the data.
    TooLong { head: Bytes },
}

/// Parses one stream from its first byte.
#[derive(Debug)]
pub struct Parser {
    limit: usize,
    /// The received part of the current line.
    line: BytesMut,
    /// Whether the rest of the current line is stored or skipped.
    rest: Rest,
    first_line: bool,
    /// Whether the last line ended with a carriage return, so that a following line feed belongs to
    /// it.
    after_return: bool,
    name: String,
    data: EventData,
    /// The id in the current event; becomes `last_event_id` at the end of the event.
    id: String,
    last_event_id: String,
    retry: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Kept,
    Skipped,
}

/// The data of the current event.
#[derive(Debug)]
enum EventData {
    None,
    One(Bytes),
    Many(BytesMut),
    TooLong { head: Bytes },
}

impl Parser {
    /// The parser of a new stream. An event with more than `limit` bytes of data is too long.
    pub fn new(limit: usize) -> Parser {
        Parser {
            limit,
            line: BytesMut::new(),
            rest: Rest::Kept,
            first_line: true,
            after_return: false,
            name: String::new(),
            data: EventData::None,
            id: String::new(),
            last_event_id: String::new(),
            retry: None,
        }
    }

    /// The parser for the response that resumes this stream.
    pub fn again(self) -> Parser {
        let (id, last_event_id) = (self.last_event_id.clone(), self.last_event_id);
        Parser { id, last_event_id, retry: self.retry, ..Parser::new(self.limit) }
    }

    /// The next event that `chunk` completes; `None` when the chunk is consumed.
    pub fn next(&mut self, chunk: &mut Bytes) -> Option<Event> {
        while let Some(first) = chunk.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                chunk.advance(1);
                continue;
            }
            let Some(end) = memchr::memchr2(b'\r', b'\n', chunk) else {
                self.keep(chunk);
                chunk.clear();
                return None;
            };
            let part = chunk.split_to(end);
            self.after_return = chunk.first() == Some(&b'\r');
            chunk.advance(1);
            if let Some(event) = self.end_line(part) {
                return Some(event);
            }
        }
        None
    }

    /// The id of the last event, for resuming the stream, if it has one.
    pub fn last_event_id(&self) -> Option<&str> {
        Some(self.last_event_id.as_str()).filter(|id| !id.is_empty())
    }

    /// The stream's reconnection time, if it set one.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn keep(&mut self, part: &[u8]) {
        if self.rest == Rest::Skipped {
            return;
        }
        self.line.put_slice(part);
        // The line still contains the field name, which is not data, so a slight excess is allowed
        // here. It is detected at the end of the line.
        if self.held() + self.line.len() > self.limit + KEPT_OF_OVERLONG {
            if is_data(&self.line) {
                let line = self.line.split().freeze();
                self.give_up(value_of(&line));
            }
            // A new buffer also frees the memory of the line.
            self.line = BytesMut::new();
            self.rest = Rest::Skipped;
        }
    }

    /// Completes a line. `part` is the part of the line that the current chunk contains.
    fn end_line(&mut self, part: Bytes) -> Option<Event> {
        // A line within one chunk is not copied.
        let mut line = if self.line.is_empty() && self.rest == Rest::Kept {
            part
        } else {
            self.keep(&part);
            self.line.split().freeze()
        };
        let skipped = std::mem::replace(&mut self.rest, Rest::Kept) == Rest::Skipped;
        if std::mem::take(&mut self.first_line) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        if skipped {
            return None;
        }
        if line.is_empty() {
            return self.dispatch();
        }
        self.take_field(line);
        None
    }

    fn take_field(&mut self, line: Bytes) {
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let value = line.slice_ref(value_of(&line));
        match line.get(..colon).unwrap_or_default() {
            b"data" => self.take_data(value),
            b"event" => self.name = text(&value).unwrap_or_default(),
            b"id" if value.contains(&0) => {}
            // An over-long id must clear the previous id.
            b"id" => self.id = text(&value).unwrap_or_default(),
            b"retry" => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let millis = text(&value).filter(|_| digits).and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            // A comment or an unknown field is ignored.
            _ => {}
        }
    }

    fn take_data(&mut self, value: Bytes) {
        if self.held() + value.len() > self.limit {
            return self.give_up(&value);
        }
        self.data = match std::mem::replace(&mut self.data, EventData::None) {
            EventData::None => EventData::One(value),
            EventData::One(first) => EventData::Many(joined(BytesMut::from(&first[..]), &value)),
            EventData::Many(data) => EventData::Many(joined(data, &value)),
            overlong @ EventData::TooLong { .. } => overlong,
        };
    }

    /// Marks the current event as too long and keeps only its beginning. `value` is the next part
    /// of the data.
    fn give_up(&mut self, value: &[u8]) {
        let beginning = match &self.data {
            EventData::None => value,
            EventData::One(data) => data,
            EventData::Many(data) => data,
            EventData::TooLong { .. } => return,
        };
        let kept = beginning.get(..KEPT_OF_OVERLONG).unwrap_or(beginning);
        self.data = EventData::TooLong { head: Bytes::copy_from_slice(kept) };
    }

    fn held(&self) -> usize {
        match &self.data {
            EventData::None | EventData::TooLong { .. } => 0,
            EventData::One(data) => data.len() + 1,
            EventData::Many(data) => data.len() + 1,
        }
    }

    /// Ends an event at an empty line. An event without data only sets the last event id.
    fn dispatch(&mut self) -> Option<Event> {
        self.last_event_id.clone_from(&self.id);
        let name = std::mem::take(&mut self.name);
        match std::mem::replace(&mut self.data, EventData::None) {
            EventData::None => None,
            EventData::One(data) => Some(Event::Whole { name, data }),
            EventData::Many(data) => Some(Event::Whole { name, data: data.freeze() }),
            EventData::TooLong { head } => Some(Event::TooLong { head }),
        }
    }
}

fn is_data(line: &[u8]) -> bool {
    line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).starts_with(b"data:")
}

/// The value after the colon of a line, without one leading blank.
fn value_of(line: &[u8]) -> &[u8] {
    let colon = memchr::memchr(b':', line).unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default();
    value.strip_prefix(b" ").unwrap_or(value)
}

fn text(value: &[u8]) -> Option<String> {
    let short = Some(value).filter(|value| value.len() <= LONGEST_NAME)?;
    std::str::from_utf8(short).ok().map(str::to_owned)
}

fn joined(mut data: BytesMut, line: &[u8]) -> BytesMut {
    data.put_u8(b'\n');
    data.put_slice(line);
    data
}

#[cfg(test)]
mod tests;
