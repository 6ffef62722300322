//! A connection inside this process: two ends of two byte streams.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

/// Buffer size in each direction; a larger frame is transferred in several steps.
const BUFFER: usize = 64 * 1024;

/// One end of an in-process pipe.
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
