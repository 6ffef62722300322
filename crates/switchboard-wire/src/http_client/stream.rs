//! The body of a response as an event stream.

use bytes::Bytes;
use reqwest::Response;

use super::trouble::content_type;
use crate::sse::{Event, Parser};

/// The event stream in the body of a response.
pub(super) struct Stream {
    response: Response,
    parser: Parser,
    chunk: Bytes,
}

impl Stream {
    /// A new stream. `limit` is the maximum size of the data of one event, in bytes.
    pub(super) fn new(response: Response, limit: usize) -> Stream {
        Stream::go_on(response, Parser::new(limit))
    }

    /// Continues an interrupted stream with the response that resumes it; `parser` is that of the
    /// interrupted stream.
    pub(super) fn go_on(response: Response, parser: Parser) -> Stream {
        Stream { response, parser, chunk: Bytes::new() }
    }

    /// The next event; `None` when the stream ended or broke.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.parser.next(&mut self.chunk) {
                return Some(event);
            }
            self.chunk = self.response.chunk().await.ok().flatten()?;
        }
    }

    pub(super) fn into_parser(self) -> Parser {
        self.parser
    }
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    content_type(response.headers()) == "text/event-stream"
}
