//! Requests to the callback listener: the page that each gets, and its effect.

use switchboard_core::sign_in::callback::{Expected, of_query};
use switchboard_core::sign_in::redirect::Return;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;

const STATE: &str = "s3cret-state";
const GOOD: &str = "/callback?code=hunter2&state=s3cret-state";

fn judge(query: &str) -> Result<Code, CallbackError> {
    let issuer = "https://as.example";
    of_query(query, &Expected { state: STATE, issuer, issuer_promised: false })
}

async fn bound() -> Callback {
    Callback::bind(&Redirect::default()).await.unwrap()
}

/// Sends `request` to the listener, and returns the whole response.
async fn tell(port: u16, request: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

fn get(port: u16, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: a=b\r\n\r\n")
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Runs `visit` while the listener waits. The visit must not end the wait.
async fn waiting<T>(callback: &mut Callback, visit: impl Future<Output = T>) -> T {
    tokio::select! {
        outcome = callback.wait(judge) => panic!("the visit ended the wait: {outcome:?}"),
        seen = visit => seen,
    }
}

#[tokio::test]
async fn callback_page_reveals_neither_code_nor_state() {
    let mut callback = bound().await;
    let port = callback.door.port;
    assert_eq!(callback.redirect_uri(), format!("http://127.0.0.1:{port}/callback"));

    let request = get(port, GOOD);
    let waits = async {
        let outcome = callback.wait(judge).await;
        assert!(
            matches!(callback.phase, CallbackPhase::Over(_)),
            "the listener accepts no other response"
        );
        // A caller that has received the code drops the listener.
        drop(callback);
        outcome
    };
    let (outcome, answer) = tokio::join!(waits, tell(port, &request));
    assert_eq!(outcome.unwrap().reveal(), "hunter2");

    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!(status(&answer), 200);
    let head = head.to_ascii_lowercase();
    let length = format!("\r\ncontent-length: {}\r\n", page.len());
    assert!(head.contains(&length), "the page is incomplete: {answer}");
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; style-src 'sha256-",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "connection: close",
    ] {
        assert!(head.contains(&format!("\r\n{header}")), "{header}: {head}");
    }
    assert!(page.contains("You can close this window"), "{page}");
    assert!(page.ends_with("</html>\n"), "{page}");
    assert!(!answer.contains("hunter2") && !answer.contains(STATE), "{answer}");
}

#[tokio::test]
async fn invalid_callback_requests_do_not_end_the_sign_in() {
    let mut callback = bound().await;
    let port = callback.door.port;
    let here = format!("Host: 127.0.0.1:{port}");
    let mut visit = async |line: &str, hosts: &str, expected: u16| {
        let request = format!("{line} HTTP/1.1\r\n{hosts}\r\n\r\n");
        let answer = waiting(&mut callback, tell(port, &request)).await;
        assert_eq!(status(&answer), expected, "{request}\n{answer}");
        assert!(!answer.contains("evil"), "{answer}");
    };
    let good = &format!("GET {GOOD}");
    for stray in [
        "GET /callback",
        "GET /callback?",
        "GET /callback?code=hunter2",
        "GET /callback?code=hunter2&state=evil",
        "GET /callback?code=hunter2&state=s3cret-state&state=evil",
        "GET /callback?error=access_denied&error_description=evil&state=evil",
        "GET /callback?<script>alert(1)</script>evil",
    ] {
        visit(stray, &here, 400).await;
    }
    for nowhere in [
        "GET /favicon.ico",
        "GET /",
        "GET /callback/?code=hunter2&state=s3cret-state",
        "GET /Callback?code=hunter2&state=s3cret-state",
        "GET //callback?code=hunter2&state=s3cret-state",
        "GET /x/../callback?code=hunter2&state=s3cret-state",
        "POST /evil",
    ] {
        visit(nowhere, &here, 404).await;
    }
    for method in ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "evil"] {
        visit(&format!("{method} {GOOD}"), &here, 405).await;
    }
    for hosts in [
        "Accept: */*".to_owned(),
        "Host: 127.0.0.1".to_owned(),
        "Host: localhost".to_owned(),
        "Host: 127.0.0.1:1".to_owned(),
        format!("Host: evil.example:{port}"),
        format!("Host: 127.0.0.1.evil.example:{port}"),
        format!("Host: 127.0.0.1:{port}@evil.example:{port}"),
        format!("Host: [::1]:{port}"),
        format!("{here}\r\n{here}"),
    ] {
        visit(good, &hosts, 403).await;
    }
    visit(&format!("GET http://evil.example:{port}{GOOD}"), &here, 403).await;
    visit("no request at all, and evil", &here, 400).await;

    // An endless request may be cut off without a response.
    let endless = format!("GET {GOOD} HTTP/1.1\r\n{here}\r\nX: {}", "x".repeat(4 * HEAD_BYTES));
    let visit = async {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        let _cut = stream.write_all(endless.as_bytes()).await;
        let _cut = stream.read_to_end(&mut Vec::new()).await;
    };
    waiting(&mut callback, visit).await;

    let request = format!("GET {GOOD} HTTP/1.1\r\nHost: LocalHost:{port}\r\n\r\n");
    let (outcome, answer) = tokio::join!(callback.wait(judge), tell(port, &request));
    assert_eq!((outcome.unwrap().reveal().as_str(), status(&answer)), ("hunter2", 200));
}

#[tokio::test]
async fn authorization_error_ends_the_wait_with_an_error_page() {
    let mut callback = bound().await;
    let port = callback.door.port;
    let request =
        get(port, "/callback?error=access_denied&error_description=evil&state=s3cret-state");
    let (outcome, answer) = tokio::join!(callback.wait(judge), tell(port, &request));
    assert!(matches!(outcome, Err(CallbackError::Denied { .. })), "{outcome:?}");
    assert_eq!(status(&answer), 400);
    assert!(answer.contains("Not signed in") && !answer.contains("evil"), "{answer}");
}

#[tokio::test]
async fn dropped_wait_does_not_lose_a_received_callback() {
    let mut callback = bound().await;
    let port = callback.door.port;
    let judged = Notify::new();
    let visit = tokio::spawn(async move { tell(port, &get(port, GOOD)).await });
    let watched = |query: &str| {
        judged.notify_one();
        judge(query)
    };
    tokio::select! {
        biased;
        () = judged.notified() => {}
        outcome = callback.wait(watched) => panic!("the page is not sent yet: {outcome:?}"),
    }
    let outcome = callback.wait(|_| panic!("only one response is judged")).await;
    assert_eq!(outcome.unwrap().reveal(), "hunter2");
    assert_eq!(status(&visit.await.unwrap()), 200);
}

#[tokio::test]
async fn silent_connections_do_not_block_the_callback() {
    let mut callback = bound().await;
    let port = callback.door.port;
    let mut crowd = Vec::new();
    for _ in 0..2 * MOST {
        let visit = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        crowd.push(waiting(&mut callback, visit).await.unwrap());
    }
    let request = get(port, GOOD);
    let (outcome, answer) = tokio::join!(callback.wait(judge), tell(port, &request));
    assert_eq!((outcome.unwrap().reveal().as_str(), status(&answer)), ("hunter2", 200));
    let (seats, visitors) = (callback.seats.len(), callback.visitors.len());
    assert!(seats <= MOST && visitors <= MOST, "{seats} seats, {visitors} visitors");
    for mut silent in crowd {
        let _end_or_reset = silent.read_to_end(&mut Vec::new()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn incomplete_callback_request_times_out() {
    let mut callback = bound().await;
    let port = callback.door.port;
    for beginning in ["", "GET /callback?code=hunter2&state=s3c"] {
        let visit = tell(port, beginning);
        let answer = waiting(&mut callback, visit).await;
        assert!(!answer.contains(" 200 "), "{answer}");
    }
}

#[tokio::test]
async fn configured_redirect_uri_is_used_unchanged() {
    let Return::Here(redirect) = Return::of("http://localhost:{port}/sign/in?by=us").unwrap()
    else {
        panic!("the redirect URI is on this machine")
    };
    let mut callback = Callback::bind(&redirect).await.unwrap();
    let port = callback.door.port;
    assert_eq!(callback.redirect_uri(), format!("http://localhost:{port}/sign/in?by=us"));
    let request = get(port, "/sign/in?by=us&code=hunter2&state=s3cret-state");
    let (outcome, _) = tokio::join!(callback.wait(judge), tell(port, &request));
    assert_eq!(outcome.unwrap().reveal(), "hunter2");
}

#[tokio::test]
async fn error_names_an_occupied_callback_port() {
    let callback = bound().await;
    let port = callback.door.port;
    let Return::Here(redirect) = Return::of(&format!("http://127.0.0.1:{port}/callback")).unwrap()
    else {
        panic!("the redirect URI is on this machine")
    };
    let refused = Callback::bind(&redirect).await.err().unwrap();
    assert!(matches!(refused, CallbackBindError::Taken { port: taken } if taken == port));
}

#[tokio::test]
async fn dropping_the_callback_listener_closes_its_connections() {
    let callback = bound().await;
    let port = callback.door.port;
    let mut visitor = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    drop(callback);
    let _end_or_reset = visitor.read_to_end(&mut Vec::new()).await;
}
