//! HTTP+SSE of revision 2024-11-05: one event stream carries all responses and names the URL for
//! posts.

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::HeaderMap;

use super::carrier::Ended;
use super::exchange::ExchangeStage;
use super::link::{Ask, Link, same_origin};
use super::stream::{Stream, is_event_stream};
use super::trouble::{self, HttpError, ResponseBody};
use crate::peer::RequestError;
use crate::sse::Event;

/// The event stream on which an HTTP+SSE server sends all responses.
pub(super) struct Answers {
    stream: Box<Stream>,
}

/// Opens the event stream and sends `initialize`.
pub(super) async fn open(link: &Link, initialize: &Bytes) -> Result<Answers, RequestError> {
    let response = link.send(&Ask::get(None)).await?;
    if !response.status().is_success() {
        return Err(link.refusal(response).await);
    }
    if !is_event_stream(&response) {
        let headers = response.headers().clone();
        let page = ResponseBody::of(&headers, &trouble::beginning(response).await);
        return Err(HttpError::NotMcp { page }.into());
    }
    let mut stream = Stream::new(response, link.limits.max_frame_bytes);
    let url = loop {
        match stream.next().await {
            Some(Event::Whole { name, data }) if name == "endpoint" => {
                break endpoint(&link.url(), &data)?;
            }
            Some(Event::Whole { .. } | Event::TooLong { .. }) => {}
            None => return Err(HttpError::Broken { cause: None }.into()),
        }
    };
    link.speak_legacy(url);
    link.tell(initialize).await?;
    Ok(Answers { stream: Box::new(stream) })
}

impl Answers {
    /// Reads the stream to its end, which ends the connection.
    pub(super) async fn read(mut self, link: &Link) {
        while let Some(event) = self.stream.next().await {
            link.take_event(event, None, ExchangeStage::Open);
        }
        link.end(Ended::StreamClosed);
    }
}

/// The URL for posts, from the data of the event `endpoint`; it must be of the same origin.
fn endpoint(base: &Url, data: &[u8]) -> Result<Url, HttpError> {
    let written = String::from_utf8_lossy(data);
    let page = || ResponseBody::of(&HeaderMap::new(), data);
    let url = base.join(written.trim()).map_err(|_| HttpError::NotMcp { page: page() })?;
    same_origin(url, base)
}
