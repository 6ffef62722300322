//! The bytes of a stream, and its limits.

use http_body_util::BodyExt;

use super::super::unsent::Unsent;
use super::*;

fn event(number: u64, frame: impl Into<Bytes>) -> Event {
    let at = Position { stream: 3, event: number };
    Event { at, kind: ParcelKind::Message, frame: frame.into() }
}

async fn written(events: Events) -> String {
    let bytes = events.collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn sse_event_has_an_id_and_one_data_line() {
    let check = async |frame: &'static str, expected: &str| {
        let (feed, tap) = queue(&Unsent::default());
        feed.put(event(1, frame)).unwrap();
        drop(feed);
        assert_eq!(written(Events::new(Some("n".into()), tap)).await, expected);
    };
    check("{}\n", "id: n.3.1\ndata: {}\n\n").await;
    check("{\"a\":1}", "id: n.3.1\ndata: {\"a\":1}\n\n").await;
    // A server's own line ends must not end the event.
    check("{\n\r\n\"a\":1\r}\n", "id: n.3.1\ndata: {   \"a\":1 }\n\n").await;
}

#[tokio::test]
async fn primed_sse_stream_begins_with_an_empty_event() {
    let (feed, tap) = queue(&Unsent::default());
    feed.put(event(2, "{}\n")).unwrap();
    drop(feed);
    let before = Position { stream: 3, event: 0 };
    let events =
        Events::new(Some("n".into()), tap).primed(before).with_first(Some(event(1, "[]\n")));
    assert_eq!(
        written(events).await,
        "id: n.3.0\nretry: 1000\ndata:\n\nid: n.3.1\ndata: []\n\nid: n.3.2\ndata: {}\n\n"
    );
}

#[tokio::test]
async fn large_message_becomes_one_sse_event() {
    let (feed, tap) = queue(&Unsent::default());
    let large = "x".repeat(3 * JOINED_BYTES);
    feed.put(event(1, format!("{large}\n"))).unwrap();
    drop(feed);
    assert_eq!(
        written(Events::new(Some("n".into()), tap)).await,
        format!("id: n.3.1\ndata: {large}\n\n")
    );
}

#[tokio::test(start_paused = true)]
async fn silent_stream_sends_keep_alive_comments() {
    let (feed, tap) = queue(&Unsent::default());
    let mut events = Events::new(Some("n".into()), tap);
    let began = Instant::now();
    for beat in 1..=3 {
        let comment = events.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((&comment[..], began.elapsed()), (&b":\n\n"[..], KEEP_ALIVE * beat));
    }
    drop(feed);
    assert!(events.frame().await.is_none());
}

#[test]
fn sse_stream_ends_if_too_many_bytes_are_unread() {
    let megabyte = |number| event(number, vec![b'x'; 1024 * 1024]);
    let (feed, mut tap) = queue(&Unsent::default());
    let taken = (1..100).take_while(|number| feed.put(megabyte(*number)).is_ok()).count();
    assert_eq!(taken, 9);
    // A client that reads again gets events again.
    let mut cx = Context::from_waker(std::task::Waker::noop());
    for _ in 0..taken {
        assert!(tap.poll_next(&mut cx).is_ready());
    }
    assert!(feed.put(event(1, vec![b'x'; 2 * QUEUED_BYTES])).is_ok());
    drop(tap);
    assert!(feed.put(megabyte(1)).is_err());
}
