//! Resumes broken streams, and keeps one open for unsolicited messages of the server.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::carrier::Ended;
use super::exchange::ExchangeStage;
use super::link::{Ask, Link, Speaks};
use super::stream::{Stream, is_event_stream};
use super::trouble::HttpError;
use crate::peer::RequestError;
use crate::sse::Parser;

/// The maximum number of consecutive resumptions of a stream without an event.
const MOST_FRUITLESS: u32 = 5;

/// A stream that lasted this long resets the count of fruitless resumptions even without events.
const LASTING: Duration = Duration::from_secs(30);

/// The default pause before a stream is resumed, and the bounds for the server's `retry`.
const PAUSE: Duration = Duration::from_millis(500);
const SHORTEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Counts the consecutive resumptions of a stream without an event.
#[derive(Debug, Default)]
pub(super) struct Resuming {
    fruitless: u32,
}

impl Resuming {
    pub(super) fn progress(&mut self) {
        self.fruitless = 0;
    }

    /// The pause before the next attempt to resume a stream; `None` after too many attempts.
    fn pause(&mut self, asked: Option<Duration>) -> Option<Duration> {
        if self.fruitless == MOST_FRUITLESS {
            return None;
        }
        let pause = asked.unwrap_or(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let pause = (pause * 2_u32.pow(self.fruitless)).min(LONGEST_PAUSE);
        self.fruitless += 1;
        Some(pause)
    }
}

impl Link {
    /// Completes the handshake: admits further requests, and listens for messages of the server.
    pub(super) async fn begin(&self, initialized: Bytes) {
        let notified = self.tell(&initialized).await;
        // If the notification failed, the next request reports the failure.
        let _first_time = self.ready.set(());
        if notified.is_ok() && self.speaks() == Speaks::Streamable {
            self.listen().await;
        }
    }

    /// Resumes the stream of a response after its last event id. Fails if the server sent no event
    /// id.
    pub(super) async fn resume(
        &self,
        cut: Stream,
        resuming: &mut Resuming,
    ) -> Result<Stream, RequestError> {
        let parser = cut.into_parser().again();
        while parser.last_event_id().is_some()
            && let Some(pause) = resuming.pause(parser.retry())
        {
            tokio::time::sleep(pause).await;
            match self.send(&Ask::get(parser.last_event_id())).await {
                Ok(response) if response.status().is_success() && is_event_stream(&response) => {
                    return Ok(Stream::go_on(response, parser));
                }
                Ok(response) if response.status().is_server_error() => {}
                // The server cannot resume the stream.
                Ok(_) => break,
                Err(_) => {}
            }
        }
        Err(HttpError::Broken { cause: None }.into())
    }

    /// Listens for unsolicited messages, as long as the server offers a stream for them.
    async fn listen(&self) {
        let mut resuming = Resuming::default();
        let mut parser = Parser::new(self.limits.max_frame_bytes);
        let mut had_stream = false;
        loop {
            match self.send(&Ask::get(parser.last_event_id())).await {
                Ok(response) if response.status().is_success() => {
                    if !is_event_stream(&response) {
                        return;
                    }
                    had_stream = true;
                    let opened = Instant::now();
                    let mut stream = Stream::go_on(response, parser);
                    while let Some(event) = stream.next().await {
                        resuming.progress();
                        self.take_event(event, None, ExchangeStage::Open);
                    }
                    if opened.elapsed() >= LASTING {
                        resuming.progress();
                    }
                    parser = stream.into_parser().again();
                }
                Ok(response) if response.status().is_client_error() => {
                    // Servers without such a stream respond with various statuses.
                    if had_stream && response.status() == reqwest::StatusCode::NOT_FOUND {
                        self.end(Ended::SessionOver);
                    }
                    return;
                }
                Ok(_) | Err(_) => {}
            }
            let Some(pause) = resuming.pause(parser.retry()) else { return };
            tokio::time::sleep(pause).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pauses(asked: Option<Duration>) -> Vec<u128> {
        let mut resuming = Resuming::default();
        std::iter::from_fn(|| resuming.pause(asked)).map(|pause| pause.as_millis()).collect()
    }

    #[test]
    fn listening_stream_without_events_backs_off_and_stops() {
        assert_eq!(pauses(None), [500, 1_000, 2_000, 4_000, 8_000]);
        assert_eq!(pauses(Some(Duration::ZERO)), [100, 200, 400, 800, 1_600]);
        assert_eq!(pauses(Some(Duration::from_secs(3_600))), [60_000; 5]);
    }

    #[test]
    fn any_event_resets_the_resume_backoff() {
        let mut resuming = Resuming::default();
        for _ in 0..20 {
            assert_eq!(resuming.pause(None), Some(PAUSE));
            resuming.progress();
        }
    }
}
