//! Each request is answered exactly once, however it ends.

use bytes::Bytes;
use switchboard_wire::envelope::Malformed;
use switchboard_wire::peer::{Inlet, Outlet, PeerLimits, detached};
use switchboard_wire::{Exchange, Handler, Notification, Raw};
use tokio::sync::oneshot;

use super::*;

/// One client connection without a transport.
struct Line {
    calls: Calls,
    peer: Peer,
    inlet: Inlet,
    outlet: Outlet,
}

/// Stores the one request that it receives.
struct Ear(Option<Responder>);

impl Handler for Ear {
    fn request(&mut self, _: String, _: Option<Raw>, responder: Responder) {
        self.0 = Some(responder);
    }

    fn notification(&mut self, _: Notification) {}

    fn malformed(&mut self, _: &Malformed, _: &Peer) {}
}

impl Line {
    fn new() -> Line {
        let (peer, outlet, inlet) = detached(PeerLimits::default());
        Line { calls: Calls::default(), peer, inlet, outlet }
    }

    fn responder(&self, id: u64, exchange: Option<Exchange>) -> Responder {
        let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ask\"}}");
        let mut ear = Ear(None);
        self.inlet.take(&Bytes::from(frame), exchange, &mut ear);
        ear.0.unwrap()
    }

    /// Accepts a request and runs the task that answers it.
    fn run<F>(&self, request: Responder, answering: impl FnOnce(Responder) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if let Some((accepted, responder)) = self.calls.accept(request) {
            self.calls.run(accepted, answering(responder));
        }
    }

    /// All messages sent, in order of ids.
    async fn sent(mut self) -> Vec<(Option<Exchange>, String)> {
        self.peer.finish().await;
        let mut sent = Vec::new();
        while let Some(parcel) = self.outlet.next().await {
            let frame = String::from_utf8(parcel.frame.to_vec()).unwrap();
            sent.push((parcel.exchange, frame.trim_end().to_owned()));
        }
        sent.sort_by(|one, other| one.1.cmp(&other.1));
        sent
    }
}

async fn answer(responder: Responder) {
    responder.result(|out| out.push_str("{}")).await;
}

fn error(id: u64, code: i64, message: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":\"{message}\"}}}}"
    )
}

fn result(id: u64) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}")
}

#[tokio::test(start_paused = true)]
async fn panic_in_a_request_handler_fails_only_its_request() {
    let line = Line::new();
    let over_http = Some(Exchange(7));
    line.run(line.responder(1, None), |_| async { panic!("on purpose") });
    line.run(line.responder(2, over_http), |_| async { panic!("on purpose") });
    line.run(line.responder(3, None), answer);
    line.run(line.responder(4, None), |responder| async move { drop(responder) });
    line.calls.drain(Duration::from_secs(60)).await;
    assert_eq!(
        line.sent().await,
        [
            (None, error(1, INTERNAL_ERROR, BROKEN)),
            (over_http, error(2, INTERNAL_ERROR, BROKEN)),
            (None, result(3)),
            (None, error(4, INTERNAL_ERROR, BROKEN)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn request_running_after_the_shutdown_limit_gets_an_error() {
    let line = Line::new();
    let over_http = Some(Exchange(7));
    let (release, released) = oneshot::channel::<()>();
    line.run(line.responder(1, None), |responder| async move {
        let _go = released.await;
        answer(responder).await;
    });
    line.run(line.responder(2, over_http), |responder| async move {
        std::future::pending::<()>().await;
        answer(responder).await;
    });
    release.send(()).unwrap();
    line.calls.drain(Duration::from_secs(5)).await;
    line.run(line.responder(3, None), answer);
    tokio::task::yield_now().await;
    assert_eq!(
        line.sent().await,
        [
            (None, result(1)),
            (over_http, error(2, INTERNAL_ERROR, CUT_OFF)),
            (None, error(3, INTERNAL_ERROR, CUT_OFF)),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_request_is_unanswered_and_frees_its_id() {
    let line = Line::new();
    let (release, released) = oneshot::channel::<()>();
    let late = line.responder(1, None);
    let (accepted, late) = line.calls.accept(late).unwrap();
    line.run(line.responder(1, None), answer);
    line.calls.cancel(&Id::number(1));
    assert!(!accepted.take());
    // The request is cancelled right before its answer.
    line.calls.run(accepted, async move {
        let _go = released.await;
        answer(late).await;
    });
    release.send(()).unwrap();
    line.run(line.responder(1, None), answer);
    line.calls.drain(Duration::from_secs(60)).await;
    let expected = [error(1, INVALID_REQUEST, IN_USE), result(1)];
    assert_eq!(line.sent().await, expected.map(|frame| (None, frame)));
}
