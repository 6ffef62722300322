//! Two peers over a pipe: responses, cancellation, progress, deadlines, disconnects.

use std::sync::mpsc as std_mpsc;

use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;
use crate::envelope::Message;
use crate::frame::{Frame, FrameReader};
use crate::pipe;

/// Answers `echo` with its parameters, keeps `hold` open, and records notifications.
struct Recorder {
    heard: std_mpsc::Sender<String>,
    held: Vec<Responder>,
}

impl Handler for Recorder {
    fn request(&mut self, method: String, params: Option<Raw>, responder: Responder) {
        match method.as_str() {
            "echo" => {
                tokio::spawn(async move {
                    let params = params.unwrap();
                    responder.result(|out| out.push_str(params.as_str())).await;
                });
            }
            "hold" => {
                let _ = self.heard.send(format!("hold {:?}", responder.id()));
                self.held.push(responder);
            }
            "tick" => {
                let token = params.unwrap();
                responder.peer().try_notify("notifications/progress", token.as_str());
                self.held.push(responder);
            }
            _ => {
                tokio::spawn(async move {
                    responder.error(&RpcError::new(envelope::METHOD_NOT_FOUND, "unknown")).await;
                });
            }
        }
    }

    fn notification(&mut self, notification: Notification) {
        let params = notification.params.as_ref().map_or("", Raw::as_str).to_owned();
        let _ = self.heard.send(format!("{} {params}", notification.method));
    }

    fn malformed(&mut self, error: &envelope::Malformed, _: &Peer) {
        let _ = self.heard.send(error.to_string());
    }
}

/// A peer whose other side is a [`Recorder`], and the messages that it recorded.
fn connected() -> (Peer, std_mpsc::Receiver<String>) {
    let (near, far) = pipe::pair();
    let (heard, hearing) = std_mpsc::channel();
    let (peer, reader, writer) = open(near.reader, near.writer, PeerLimits::default());
    let silent = std_mpsc::channel().0;
    tokio::spawn(async move {
        let mut handler = Recorder { heard: silent, held: Vec::new() };
        let _ = tokio::join!(reader.run(&mut handler), writer.run());
    });
    let (_, reader, writer) = open(far.reader, far.writer, PeerLimits::default());
    tokio::spawn(async move {
        let mut handler = Recorder { heard, held: Vec::new() };
        let _ = tokio::join!(reader.run(&mut handler), writer.run());
    });
    (peer, hearing)
}

fn within(timeout: u64) -> Patience {
    Patience { timeout: Some(Duration::from_secs(timeout)), progress: None }
}

#[tokio::test]
async fn thousand_interleaved_requests_get_their_own_responses() {
    let (peer, _heard) = connected();
    let mut asks = JoinSet::new();
    for n in 0..1_000 {
        let peer = peer.clone();
        asks.spawn(async move {
            let params = format!("{{\"n\":{n}}}");
            let answer = peer.request("echo", params.clone(), Patience::default()).await.unwrap();
            assert_eq!(answer.as_str(), params);
        });
    }
    assert_eq!(asks.join_all().await.len(), 1_000);
}

#[tokio::test]
async fn error_response_keeps_its_code_and_message() {
    let (peer, _heard) = connected();
    let refused = peer.request("nope", String::new(), Patience::default()).await.unwrap_err();
    assert_eq!(refused.to_string(), "the peer answered with error -32601: unknown");
}

#[tokio::test(start_paused = true)]
async fn malformed_response_fails_only_its_own_request() {
    for rest in ["", r#","result":1,"error":{}"#] {
        let (near, mut far) = pipe::pair();
        let (peer, reader, writer) = open(near.reader, near.writer, PeerLimits::default());
        tokio::spawn(async move {
            let mut handler = Recorder { heard: std_mpsc::channel().0, held: Vec::new() };
            let _ = tokio::join!(reader.run(&mut handler), writer.run());
        });
        let ask = || peer.request("a", "{}".to_owned(), within(60));
        let answer = async {
            let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":2{rest}}}\n");
            far.writer.write_all(line.as_bytes()).await.unwrap();
            far.writer.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n").await.unwrap();
        };
        let (first, second, ()) = tokio::join!(ask(), ask(), answer);
        assert_eq!(first.unwrap().as_str(), "1");
        let failure = second.unwrap_err().to_string();
        assert_eq!(
            failure,
            "the peer answered with error -32603: the server's answer is malformed"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn timed_out_request_is_cancelled_at_the_peer() {
    let (peer, heard) = connected();
    let late = peer.request("hold", "{}".to_owned(), within(5)).await.unwrap_err();
    assert_eq!(late.to_string(), "the peer sent no response within 5000 ms");
    // This response proves that all earlier messages have arrived.
    peer.request("echo", "{}".to_owned(), within(5)).await.unwrap();
    let heard: Vec<_> = heard.try_iter().collect();
    assert_eq!(
        heard,
        [
            "hold Number(Number(1))",
            r#"notifications/cancelled {"requestId":1,"reason":"no longer needed"}"#
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_its_request_and_extends_the_deadline() {
    let (peer, _heard) = connected();
    let (sender, mut steps) = mpsc::channel(4);
    let patience = Patience { timeout: Some(Duration::from_secs(5)), progress: Some(sender) };
    let started = Instant::now();
    let ticket = peer.begin();
    let params = format!("{{\"progressToken\":{}}}", ticket.id());
    let asked = peer.request_with(ticket, "tick", params, patience);
    let late = asked.await.unwrap_err();
    assert!(matches!(late, RequestError::TimedOut(_)));
    assert!(started.elapsed() >= Duration::from_secs(5));
    assert_eq!(steps.recv().await.unwrap().as_str(), r#"{"progressToken":1}"#);
}

#[tokio::test]
async fn closed_connection_fails_every_waiting_request() {
    let (near, far) = pipe::pair();
    let (peer, reader, writer) = open(near.reader, near.writer, PeerLimits::default());
    let run = tokio::spawn(async move {
        let mut handler = Recorder { heard: std_mpsc::channel().0, held: Vec::new() };
        tokio::select! {
            ended = reader.run(&mut handler) => ended,
            ended = writer.run() => ended,
        }
    });
    let asked = {
        let peer = peer.clone();
        tokio::spawn(async move { peer.request("hold", String::new(), Patience::default()).await })
    };
    // The request has arrived once the far end can read it.
    let mut far_reader = FrameReader::new(far.reader, 1024);
    assert!(far_reader.next().await.unwrap().is_some());
    drop((far_reader, far.writer));
    assert!(matches!(asked.await.unwrap(), Err(RequestError::Closed)));
    run.await.unwrap().unwrap();
    let again = peer.request("hold", String::new(), Patience::default()).await;
    assert!(matches!(again, Err(RequestError::NotSent)));
}

#[tokio::test]
async fn oversized_response_fails_only_its_request() {
    let (near, far) = pipe::pair();
    let limits = PeerLimits { max_frame_bytes: 1_000, write_deadline: None };
    let (peer, reader, writer) = open(near.reader, near.writer, limits);
    tokio::spawn(async move {
        let mut handler = Recorder { heard: std_mpsc::channel().0, held: Vec::new() };
        let _ = tokio::join!(reader.run(&mut handler), writer.run());
    });
    tokio::spawn(async move {
        let mut requests = FrameReader::new(far.reader, 1024);
        let mut answers = far.writer;
        for size in [100_000, 10] {
            let Ok(Some(Frame::Line(line))) = requests.next().await else {
                return;
            };
            let Ok(Message::Request { id, .. }) = envelope::parse(&line) else {
                return;
            };
            let text = "x".repeat(size);
            let frame = envelope::result_frame(&id, |out| out.push_str(&format!("{text:?}")));
            answers.write_all(&frame).await.unwrap();
        }
    });
    let first = peer.request("big", String::new(), Patience::default()).await.unwrap_err();
    assert_eq!(first.to_string(), "the response is larger than 1000 bytes");
    let second = peer.request("big", String::new(), Patience::default()).await.unwrap();
    assert_eq!(second.as_str(), "\"xxxxxxxxxx\"");
}

#[tokio::test(start_paused = true)]
async fn dropped_reader_fails_waiting_requests() {
    let (near, _far) = pipe::pair();
    let (peer, reader, writer) = open(near.reader, near.writer, PeerLimits::default());
    let ask = peer.request("hold", "{}".to_owned(), within(3_600));
    let owner = async {
        let mut handler = Recorder { heard: std_mpsc::channel().0, held: Vec::new() };
        let running = async { tokio::join!(reader.run(&mut handler), writer.run()) };
        let given_up = tokio::time::timeout(Duration::from_secs(1), running).await;
        assert!(given_up.is_err());
    };
    let (answer, ()) = tokio::join!(ask, owner);
    assert!(matches!(answer, Err(RequestError::Closed)), "{answer:?}");
    assert!(peer.is_closed());
}

/// A peer with a small limit, the messages of its handler, and the far end as raw bytes.
fn with_raw_far_end() -> (Peer, std_mpsc::Receiver<String>, pipe::End) {
    let (near, far) = pipe::pair();
    let limits = PeerLimits { max_frame_bytes: 1_000, write_deadline: None };
    let (peer, reader, writer) = open(near.reader, near.writer, limits);
    let (heard, hearing) = std_mpsc::channel();
    tokio::spawn(async move {
        let mut handler = Recorder { heard, held: Vec::new() };
        let _ = tokio::join!(reader.run(&mut handler), writer.run());
    });
    (peer, hearing, far)
}

#[tokio::test]
async fn oversized_request_is_refused_without_failing_pending_requests() {
    let (peer, heard, far) = with_raw_far_end();
    let asking =
        tokio::spawn(
            async move { peer.request("hold", "{}".to_owned(), Patience::default()).await },
        );
    let mut requests = FrameReader::new(far.reader, 1_024);
    assert!(requests.next().await.unwrap().is_some());
    let mut answers = far.writer;
    let long = "x".repeat(5_000);
    let request =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":\"{long}\"}}\n");
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n";
    for frame in [&*request, answer] {
        answers.write_all(frame.as_bytes()).await.unwrap();
    }
    assert_eq!(asking.await.unwrap().unwrap().as_str(), "7");
    assert_eq!(heard.try_recv().unwrap(), "the message is larger than 1000 bytes");
}

#[tokio::test(start_paused = true)]
async fn endless_line_does_not_suspend_request_deadlines() {
    let (peer, _heard, far) = with_raw_far_end();
    let mut answers = far.writer;
    let drip = tokio::spawn(async move {
        let mut pace = tokio::time::interval(Duration::from_millis(900));
        let long = "x".repeat(5_000);
        answers.write_all(long.as_bytes()).await.unwrap();
        loop {
            pace.tick().await;
            answers.write_all(b"x").await.unwrap();
        }
    });
    let mut flow = peer.shared.flow.subscribe();
    flow.wait_for(|flow| *flow == Flow::Draining).await.unwrap();
    let late = peer.request("echo", "{}".to_owned(), within(5)).await.unwrap_err();
    assert!(matches!(late, RequestError::TimedOut(_)), "{late:?}");
    drip.abort();
}

#[tokio::test(start_paused = true)]
async fn full_send_queue_does_not_suspend_request_deadlines() {
    let (peer, _heard, _far_that_never_reads) = with_raw_far_end();
    let filler = format!("\"{}\"", "x".repeat(1_000));
    for _ in 0..1_000 {
        peer.try_notify("filler", &filler);
        tokio::task::yield_now().await;
    }
    assert_eq!(peer.shared.outbox.capacity(), 0);
    let late = peer.request("echo", "{}".to_owned(), within(5)).await.unwrap_err();
    assert!(matches!(late, RequestError::TimedOut(_)), "{late:?}");
}

#[tokio::test]
async fn messages_during_a_request_carry_its_exchange() {
    let (peer, mut outlet, inlet) = detached(PeerLimits::default());
    let (heard, _hearing) = std_mpsc::channel();
    let mut handler = Recorder { heard, held: Vec::new() };
    let frame = br#"{"jsonrpc":"2.0","id":1,"method":"hold"}"#;
    inlet.take(&Bytes::from_static(frame), Some(Exchange(7)), &mut handler);
    let responder = handler.held.pop().unwrap();
    assert_eq!(responder.exchange(), Some(Exchange(7)));
    responder.peer().try_notify("step", "{}");
    responder.try_result("{}");
    peer.try_notify("unrelated", "{}");
    peer.finish().await;
    let mut exchanges = Vec::new();
    while let Some(parcel) = outlet.next().await {
        exchanges.push((parcel.exchange, parcel.kind));
    }
    let ours = Some(Exchange(7));
    assert_eq!(
        exchanges,
        [(ours, ParcelKind::Message), (ours, ParcelKind::Answer), (None, ParcelKind::Message)]
    );
}

#[tokio::test]
async fn request_handled_twice_is_answered_only_once() {
    #[derive(Debug, Default)]
    struct Once(std::sync::atomic::AtomicBool);
    impl Claim for Once {
        fn take(&self) -> bool {
            !self.0.swap(true, Ordering::Relaxed)
        }
    }
    let (peer, mut outlet, inlet) = detached(PeerLimits::default());
    let (heard, _hearing) = std_mpsc::channel();
    let mut handler = Recorder { heard, held: Vec::new() };
    let mut responder = |claim: &Arc<Once>| {
        let frame = br#"{"jsonrpc":"2.0","id":1,"method":"hold"}"#;
        inlet.take(&Bytes::from_static(frame), None, &mut handler);
        handler.held.pop().unwrap().claiming(Arc::<Once>::clone(claim))
    };
    let claim = Arc::default();
    let (first, late) = (responder(&claim), responder(&claim));
    first.result(|out| out.push_str("{}")).await;
    assert!(!claim.take(), "taken before the answer can arrive");
    late.error(&RpcError::new(envelope::INTERNAL_ERROR, "late")).await;
    peer.finish().await;
    let mut answers = Vec::new();
    while let Some(parcel) = outlet.next().await {
        answers.push(parcel.frame);
    }
    assert_eq!(answers, [&b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n"[..]]);
}

#[tokio::test]
async fn transport_error_of_one_request_keeps_connection_open() {
    let (peer, mut outlet, inlet) = detached(PeerLimits::default());
    let ask = peer.request("ask", String::new(), Patience::default());
    let carry = async {
        let Message::Request { id: Id::Number(id), .. } =
            envelope::parse(&outlet.next().await.unwrap().frame).unwrap()
        else {
            panic!("not a request");
        };
        inlet.fail(id.as_u64().unwrap(), RequestError::NotSent);
    };
    let (outcome, ()) = tokio::join!(ask, carry);
    assert!(matches!(outcome, Err(RequestError::NotSent)), "{outcome:?}");
    assert!(!peer.is_closed());
}

/// Records every observation.
#[derive(Debug)]
struct Scribe(std_mpsc::Sender<String>);

impl Observer for Scribe {
    fn sent(&self, message: &[u8]) {
        let _ = self.0.send(format!("sent {}", String::from_utf8_lossy(message).trim_end()));
    }

    fn received(&self, message: &[u8]) {
        let _ = self.0.send(format!("received {}", String::from_utf8_lossy(message)));
    }

    fn begin(&self, method: &str, params: &str) -> Option<Box<dyn ObservedRequest>> {
        let _ = self.0.send(format!("begin {method} {params}"));
        Some(Box::new(Scribe(self.0.clone())))
    }
}

impl ObservedRequest for Scribe {
    fn end(self: Box<Self>, outcome: &Result<Raw, RequestError>) {
        let _ = self.0.send(format!("end {}", outcome.is_ok()));
    }
}

#[tokio::test]
async fn observer_sees_every_message_and_request_outcome() {
    let (peer, _hearing) = connected();
    let (scribe, written) = std_mpsc::channel();
    peer.observe(Arc::new(Scribe(scribe)));
    peer.request("echo", "[1]".to_owned(), Patience::default()).await.unwrap();
    peer.notify("notifications/x", "{}").await.unwrap();
    let written: Vec<String> = written.try_iter().collect();
    assert_eq!(
        written,
        [
            "begin echo [1]",
            r#"sent {"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}"#,
            r#"received {"jsonrpc":"2.0","id":1,"result":[1]}"#,
            "end true",
            r#"sent {"jsonrpc":"2.0","method":"notifications/x","params":{}}"#,
        ]
    );
}
