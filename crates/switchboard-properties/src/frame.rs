//! Properties of the reader that splits a byte stream into frames.

use std::pin::Pin;
use std::task::{Context, Poll};

use switchboard_wire::frame::{Frame, FrameReader};
use tokio::io::{AsyncRead, ReadBuf};

/// The limit of a frame; small, so that short inputs exceed it.
const LIMIT: usize = 48;

/// Bytes that are kept at either end of a line over the limit.
const KEPT: usize = 4 * 1024;

/// The frames do not depend on how the bytes arrive: they equal those of a simple reader that has
/// all bytes at once. No part of a line over the limit becomes a frame.
pub(crate) fn any_pieces_give_the_same_frames(input: &[u8]) {
    let expected = plainly(input);
    let sizes = [1, 2, 7, LIMIT, LIMIT + 1, usize::MAX];
    for size in sizes {
        let frames = read(Pieces { rest: input, size });
        assert_eq!(frames.len(), expected.len(), "pieces of {size} bytes");
        for (frame, line) in frames.iter().zip(&expected) {
            check(frame, line);
        }
    }
}

/// One frame that the reader is expected to return.
enum Expected<'a> {
    Line(&'a [u8]),
    /// The beginning of a line that is over the limit.
    TooLong(&'a [u8]),
    /// The end of a line that is over the limit.
    Drained(&'a [u8]),
}

fn check(frame: &Frame, expected: &Expected<'_>) {
    match (frame, expected) {
        (Frame::Line(line), Expected::Line(bytes)) => assert_eq!(line, bytes),
        (Frame::TooLong { head }, Expected::TooLong(line)) => {
            assert!(line.starts_with(head) && (LIMIT.min(KEPT)..=KEPT).contains(&head.len()));
        }
        (Frame::Drained { tail, length }, Expected::Drained(line)) => {
            assert!(line.ends_with(tail) && tail.len() <= KEPT);
            assert_eq!(*length, line.len() as u64);
        }
        (Frame::Line(_) | Frame::TooLong { .. } | Frame::Drained { .. }, _) => {
            panic!("unexpected frame: {frame:?}")
        }
    }
}

/// The expected frames, computed from the whole input at once.
fn plainly(input: &[u8]) -> Vec<Expected<'_>> {
    let mut expected = Vec::new();
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.len() > LIMIT {
            expected.push(Expected::TooLong(line));
            if text.len() < line.len() {
                expected.push(Expected::Drained(line));
            }
            continue;
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text).trim_ascii();
        if !text.is_empty() {
            expected.push(Expected::Line(text));
        }
    }
    expected
}

fn read(pieces: Pieces<'_>) -> Vec<Frame> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime without IO").block_on(async {
        let mut reader = FrameReader::new(pieces, LIMIT);
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await.expect("no read fails") {
            frames.push(frame);
        }
        frames
    })
}

/// A source whose bytes arrive a few at a time.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let length = self.size.min(self.rest.len()).min(buffer.remaining());
        let (piece, rest) = self.rest.split_at(length);
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}
