//! Reads newline-delimited frames; a line over the limit is discarded without being buffered.

use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The default limit of a frame in memory.
pub const DEFAULT_MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The number of bytes kept of each end of an over-long line, to find the id of its response.
const KEPT_OF_OVERLONG: usize = 4 * 1024;

/// The time without new bytes of an over-long line after which the stream is treated as broken.
const OVERLONG_STALL: Duration = Duration::from_secs(1);

/// A line that exceeds the limit by this many bytes is treated as endless.
const HOPELESS: u64 = 256 * 1024 * 1024;

const READ_CHUNK: usize = 16 * 1024;

/// Up to this length, copying a line is cheaper than allocating a new buffer.
const COPIED_LINE: usize = 4 * 1024;

/// The largest capacity at which a buffer is reused. A larger buffer is freed once it is empty.
const KEPT_CAPACITY: usize = 256 * 1024;

/// What one read returns: a line, or a part of an over-long line.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A complete line without its line ending, never blank.
    Line(Bytes),
    /// The beginning of a line that exceeds the limit. The next read discards the rest.
    TooLong { head: Bytes },
    /// The end of a line that was `TooLong`.
    Drained { tail: Bytes, length: u64 },
}

/// Splits a byte stream into frames.
#[derive(Debug)]
pub struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    /// Length of the part of `buffer` that is known to contain no newline.
    scanned: usize,
    limit: usize,
    draining: Option<Drain>,
}

#[derive(Debug)]
struct Drain {
    tail: BytesMut,
    length: u64,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(source: R, limit: usize) -> FrameReader<R> {
        FrameReader { source, buffer: BytesMut::new(), scanned: 0, limit, draining: None }
    }

    /// The next frame, or `None` at the end of the stream. Cancel-safe.
    ///
    /// A last line without a newline is a frame too: a peer may close the stream right after a
    /// response.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if self.draining.is_some() {
                return self.drain().await;
            }
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                if self.scanned + at > self.limit {
                    return Ok(Some(self.start_draining()));
                }
                let line = self.take_line(self.scanned + at + 1);
                if let Some(line) = trimmed(line) {
                    return Ok(Some(Frame::Line(line)));
                }
                continue;
            }
            self.scanned = self.buffer.len();
            if self.buffer.len() > self.limit {
                return Ok(Some(self.start_draining()));
            }
            if self.read_more().await? == 0 {
                let rest = self.buffer.split().freeze();
                self.scanned = 0;
                return Ok(trimmed(rest).map(Frame::Line));
            }
        }
    }

    /// Takes the first `length` bytes out of the buffer. A short line is copied, so that the buffer
    /// can be reused; a long line is split off without a copy.
    fn take_line(&mut self, length: usize) -> Bytes {
        self.scanned = 0;
        if length > COPIED_LINE {
            return self.buffer.split_to(length).freeze();
        }
        let line = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        line
    }

    async fn read_more(&mut self) -> io::Result<usize> {
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_CAPACITY {
            self.buffer = BytesMut::new();
        }
        self.buffer.reserve(READ_CHUNK);
        self.source.read_buf(&mut self.buffer).await
    }

    /// Returns the beginning of an over-long line. `drain` later discards the buffer and the rest
    /// of the line.
    fn start_draining(&mut self) -> Frame {
        let kept = &self.buffer[..self.buffer.len().min(KEPT_OF_OVERLONG)];
        // With a small limit, the buffer may already contain the next line.
        let kept = &kept[..memchr::memchr(b'\n', kept).unwrap_or(kept.len())];
        self.scanned = 0;
        self.draining = Some(Drain { tail: BytesMut::new(), length: 0 });
        Frame::TooLong { head: Bytes::copy_from_slice(kept) }
    }

    /// Discards bytes up to the newline. Returns `None` if the stream ends before that, and an
    /// error if the line stalls or is endless.
    async fn drain(&mut self) -> io::Result<Option<Frame>> {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer);
            let part = self.buffer.split_to(end.map_or(self.buffer.len(), |at| at + 1));
            let Some(drain) = &mut self.draining else {
                return Ok(None);
            };
            drain.take(&part);
            drop(part);
            if end.is_none() && drain.length > self.limit as u64 + HOPELESS {
                return Err(io::ErrorKind::InvalidData.into());
            }
            if self.buffer.is_empty() {
                // Frees the memory of the beginning of the line.
                self.buffer = BytesMut::new();
            }
            if end.is_some()
                && let Some(drain) = self.draining.take()
            {
                return Ok(Some(Frame::Drained {
                    tail: drain.tail.freeze(),
                    length: drain.length,
                }));
            }
            match tokio::time::timeout(OVERLONG_STALL, self.read_more()).await {
                Ok(Ok(0)) => return Ok(None),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error),
                Err(_stalled) => return Err(io::ErrorKind::TimedOut.into()),
            }
        }
    }
}

impl Drain {
    fn take(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        let kept = &part[part.len().saturating_sub(KEPT_OF_OVERLONG)..];
        self.tail.extend_from_slice(kept);
        let surplus = self.tail.len().saturating_sub(KEPT_OF_OVERLONG);
        let _forgotten = self.tail.split_to(surplus);
    }
}

/// The line without its line ending, leading byte order mark and surrounding blanks; `None` if it
/// is empty.
fn trimmed(line: Bytes) -> Option<Bytes> {
    let without_mark = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line);
    let text = without_mark.trim_ascii();
    (!text.is_empty()).then(|| line.slice_ref(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 64;

    /// Everything read from `input`, as one line per frame.
    async fn check(input: &[u8], expected: &[&str]) {
        // A one-byte pipe makes every read partial.
        for capacity in [1, 7, 4096] {
            let (mut far, near) = tokio::io::duplex(capacity);
            let input = input.to_vec();
            let feed = tokio::spawn(async move {
                tokio::io::AsyncWriteExt::write_all(&mut far, &input).await.unwrap();
            });
            let mut reader = FrameReader::new(near, LIMIT);
            let mut seen = Vec::new();
            while let Some(frame) = reader.next().await.unwrap() {
                seen.push(match frame {
                    Frame::Line(line) => String::from_utf8_lossy(&line).into_owned(),
                    Frame::TooLong { .. } => "too long".to_owned(),
                    Frame::Drained { length, .. } => format!("drained {length}"),
                });
            }
            feed.await.unwrap();
            assert_eq!(seen, expected, "pipe of {capacity} bytes");
        }
    }

    #[tokio::test]
    async fn every_line_ending_terminates_a_frame() {
        check(b"{\"a\":1}\n{\"b\":2}\r\n\n  \n{\"c\":3}", &["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"])
            .await;
    }

    #[tokio::test]
    async fn leading_byte_order_mark_is_dropped_from_a_frame() {
        check(b"\xef\xbb\xbf{}\n", &["{}"]).await;
    }

    #[tokio::test]
    async fn oversized_line_is_drained_and_next_frame_read() {
        let mut input = vec![b'x'; 300];
        input.extend_from_slice(b"\n{}\n");
        check(&input, &["too long", "drained 301", "{}"]).await;
    }

    #[tokio::test]
    async fn oversized_unterminated_line_ends_the_stream() {
        check(&[b'x'; 300], &["too long"]).await;
    }

    #[tokio::test(start_paused = true)]
    async fn oversized_line_that_stalls_times_out() {
        let (mut far, near) = tokio::io::duplex(4096);
        tokio::io::AsyncWriteExt::write_all(&mut far, &[b'x'; 300]).await.unwrap();
        let mut reader = FrameReader::new(near, LIMIT);
        assert!(matches!(reader.next().await, Ok(Some(Frame::TooLong { .. }))));
        let stalled = reader.next().await.unwrap_err();
        assert_eq!(stalled.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn endless_line_is_an_invalid_data_error() {
        let mut reader = FrameReader::new(tokio::io::repeat(b'x'), LIMIT);
        assert!(matches!(reader.next().await, Ok(Some(Frame::TooLong { .. }))));
        let endless = reader.next().await.unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::InvalidData);
    }
}
