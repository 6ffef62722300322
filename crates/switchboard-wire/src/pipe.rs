//! A connection inside this process: two ends of two byte streams.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

/// Bytes that wait in each direction; a frame larger than this just takes more turns.
const BUFFER: usize = 64 * 1024;

/// One end: what it reads from and what it writes to.
#[derive(Debug)]
pub struct End {
    pub reader: ReadHalf<DuplexStream>,
    pub writer: WriteHalf<DuplexStream>,
}

/// Two connected ends; dropping one closes the other.
pub fn pair() -> (End, End) {
    let (left, right) = tokio::io::duplex(BUFFER);
    (end(left), end(right))
}

fn end(stream: DuplexStream) -> End {
    let (reader, writer) = tokio::io::split(stream);
    End { reader, writer }
}
