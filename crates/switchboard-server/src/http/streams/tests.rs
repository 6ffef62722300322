//! Which reader gets which message, also after a lost stream.

use tokio::sync::Semaphore;

use super::super::unsent::Unsent;
use super::*;

fn slot() -> (Option<OwnedSemaphorePermit>, BodyRoom) {
    (Arc::new(Semaphore::new(1)).try_acquire_owned().ok(), BodyRoom::default())
}

fn open(streams: &Streams, id: u64) -> (Exchange, Tap) {
    let exchange = streams.next_exchange();
    (exchange, streams.open(exchange, Id::number(id), slot()).unwrap())
}

fn say(streams: &Streams, exchange: Option<Exchange>, kind: ParcelKind, frame: &str) {
    let frame = Bytes::from(frame.to_owned());
    streams.route(Parcel::loose(frame, exchange, kind));
}

fn tell(streams: &Streams, exchange: Option<Exchange>, frame: &str) {
    say(streams, exchange, ParcelKind::Message, frame);
}

fn answer(streams: &Streams, exchange: Exchange, frame: &str) {
    say(streams, Some(exchange), ParcelKind::Answer, frame);
}

/// All queued frames, and `end` if the stream has ended.
async fn read(tap: &mut Tap) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let next = tokio::time::timeout(std::time::Duration::from_millis(1), tap.next()).await;
        match next {
            Ok(Some(event)) => seen.push(String::from_utf8(event.frame.to_vec()).unwrap()),
            Ok(None) => {
                seen.push("end".to_owned());
                return seen;
            }
            Err(_nothing_waits) => return seen,
        }
    }
}

fn id(streams: &Streams, stream: u64, event: u64) -> String {
    format!("{}.{stream}.{event}", streams.nonce())
}

async fn resumed(streams: &Streams, id: &str) -> Option<Vec<String>> {
    let (mut tap, _) = streams.listen(Some(id))?;
    Some(read(&mut tap).await)
}

#[tokio::test(start_paused = true)]
async fn message_goes_to_the_stream_of_its_exchange() {
    let streams = Streams::new(Unsent::default());
    let ((one, mut first), (other, mut second)) = (open(&streams, 1), open(&streams, 2));
    let (mut unasked, _) = streams.listen(None).unwrap();
    tell(&streams, Some(other), "step of 2");
    tell(&streams, None, "news");
    answer(&streams, one, "answer to 1");
    tell(&streams, Some(one), "too late");
    assert_eq!(read(&mut first).await, ["answer to 1", "end"]);
    assert_eq!(read(&mut second).await, ["step of 2"]);
    assert_eq!(read(&mut unasked).await, ["news"]);
    streams.close();
    assert_eq!(read(&mut second).await, ["end"]);
    assert_eq!(read(&mut unasked).await, ["end"]);
    assert!(streams.open(streams.next_exchange(), Id::number(3), slot()).is_none());
    assert!(streams.listen(None).is_none());
}

#[tokio::test(start_paused = true)]
async fn stream_resumes_after_any_stored_event() {
    let streams = Streams::new(Unsent::default());
    let (exchange, lost) = open(&streams, 1);
    drop(lost);
    for step in ["a", "b", "c"] {
        tell(&streams, Some(exchange), step);
    }
    assert_eq!(resumed(&streams, &id(&streams, 1, 0)).await.unwrap(), ["a", "b", "c"]);
    assert_eq!(resumed(&streams, &id(&streams, 1, 2)).await.unwrap(), ["c"]);
    // An event that does not exist yet.
    assert_eq!(resumed(&streams, &id(&streams, 1, 4)).await, None);
    let (mut tap, _) = streams.listen(Some(&id(&streams, 1, 3))).unwrap();
    answer(&streams, exchange, "d");
    assert_eq!(read(&mut tap).await, ["d", "end"]);
    assert_eq!(resumed(&streams, &id(&streams, 1, 1)).await.unwrap(), ["b", "c", "d", "end"]);
    assert_eq!(resumed(&streams, &id(&streams, 1, 4)).await.unwrap(), ["end"]);
    assert_eq!(resumed(&streams, &id(&streams, 1, 5)).await, None, "nothing follows the answer");

    for _ in 0..KEPT_EVENTS {
        tell(&streams, None, "news");
    }
    assert_eq!(resumed(&streams, &id(&streams, 1, 1)).await, None);
}

#[tokio::test(start_paused = true)]
async fn response_sent_as_json_is_not_stored_for_resumption() {
    let streams = Streams::new(Unsent::default());
    let (exchange, mut tap) = open(&streams, 1);
    answer(&streams, exchange, "all");
    assert_eq!(read(&mut tap).await, ["all", "end"]);
    assert!(!streams.as_events(exchange));
    assert_eq!(resumed(&streams, &id(&streams, 1, 0)).await, None);
}

#[tokio::test(start_paused = true)]
async fn stream_resume_with_foreign_or_invented_id_is_refused() {
    let (streams, other) = (Streams::new(Unsent::default()), Streams::new(Unsent::default()));
    let (exchange, _lost) = open(&streams, 1);
    tell(&streams, Some(exchange), "step");
    tell(&streams, None, "news");
    tell(&other, None, "news of others");
    for stranger in ["", ".", "0.0", "x.0.0", &id(&other, 0, 0), &id(&streams, 7, 0)] {
        assert_eq!(resumed(&streams, stranger).await, None, "{stranger}");
    }
}

#[tokio::test(start_paused = true)]
async fn unsolicited_messages_go_to_the_newest_listener() {
    let streams = Streams::new(Unsent::default());
    tell(&streams, None, "early");
    let (mut first, _) = streams.listen(None).unwrap();
    assert_eq!(read(&mut first).await, ["early"]);
    let (mut second, _) = streams.listen(None).unwrap();
    tell(&streams, None, "news");
    assert_eq!(read(&mut first).await, ["end"]);
    assert_eq!(read(&mut second).await, ["news"]);
}

#[tokio::test(start_paused = true)]
async fn undelivered_response_too_large_to_store_becomes_an_error() {
    let streams = Streams::new(Unsent::default());
    let (exchange, tap) = open(&streams, 7);
    assert!(streams.as_events(exchange));
    drop(tap);
    answer(&streams, exchange, &"x".repeat(KEPT_BYTES + 1));
    let seen = resumed(&streams, &id(&streams, 1, 0)).await.unwrap();
    assert_eq!(
        seen,
        [
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32603,\"message\":\"the stream was \
             interrupted, and the response is too large to be sent again\"}}\n",
            "end"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn session_without_requests_and_listeners_is_idle() {
    let streams = Streams::new(Unsent::default());
    let began = Instant::now();
    assert_eq!(streams.idle_since(), Some(began));
    let (exchange, tap) = open(&streams, 1);
    drop(tap);
    assert_eq!(streams.idle_since(), None);
    answer(&streams, exchange, "done");
    let (tap, _) = streams.listen(None).unwrap();
    assert_eq!(streams.idle_since(), None);
    drop(tap);
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    assert_eq!(streams.idle_since(), Some(began));
    streams.touch();
    assert_eq!(streams.idle_since(), Some(Instant::now()));
}
