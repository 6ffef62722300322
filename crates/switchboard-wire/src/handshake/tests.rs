//! The handshake with servers of one era, both or neither, slow or fast, as tables of responses.

use std::collections::HashMap;

use tokio::io::AsyncWriteExt;

use super::*;
use crate::envelope::{self, Message};
use crate::era::Era;
use crate::frame::{Frame, FrameReader};
use crate::peer::{self, Handler, Notification, PeerLimits, Responder};
use crate::pipe;

const START: Duration = Duration::from_secs(60);

const DISCOVERED: &str = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"new","version":"2"}}}"#;
const INITIALIZED: &str = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"old","version":"1"}}"#;
const UNKNOWN: &str = r#""error":{"code":-32601,"message":"Method not found"}"#;
const PINNED: &str =
    r#""error":{"code":-32022,"message":"serving 2026-07-28","data":{"supported":["2026-07-28"]}}"#;

/// The reaction of a server to a request.
#[derive(Clone, Copy)]
enum Does {
    Answers(&'static str),
    Ignores,
    /// It exits.
    Leaves,
}
use Does::{Answers, Ignores, Leaves};

struct Quiet;

impl Handler for Quiet {
    fn request(&mut self, _: String, _: Option<Raw>, _: Responder) {}
    fn notification(&mut self, _: Notification) {}
    fn malformed(&mut self, _: &envelope::Malformed, _: &Peer) {}
}

/// Runs a server that reads nothing for `sleeps`; returns the received methods.
async fn act(
    far: pipe::End,
    does: HashMap<&'static str, Vec<Does>>,
    sleeps: Duration,
) -> Vec<String> {
    let mut does: HashMap<&str, std::vec::IntoIter<Does>> =
        does.into_iter().map(|(method, all)| (method, all.into_iter())).collect();
    let pipe::End { reader, mut writer } = far;
    let mut frames = FrameReader::new(reader, 1 << 20);
    let mut heard = Vec::new();
    // On a paused clock.
    let _later = tokio::time::timeout(sleeps, std::future::pending::<()>()).await;
    while let Ok(Some(Frame::Line(line))) = frames.next().await {
        match envelope::parse(&line).unwrap() {
            Message::Request { id: crate::Id::Number(id), method, .. } => {
                heard.push(method.clone());
                match does.get_mut(method.as_str()).and_then(Iterator::next) {
                    Some(Answers(rest)) => {
                        let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}}}\n");
                        let _gone = writer.write_all(answer.as_bytes()).await;
                    }
                    Some(Ignores) => {}
                    Some(Leaves) | None => return heard,
                }
            }
            Message::Notification { method, .. } => heard.push(method),
            other => panic!("{other:?}"),
        }
    }
    heard
}

/// The outcome of the handshake, and the methods that the server received.
async fn greeted(
    greeting: Greeting,
    does: &[(&'static str, &[Does])],
    sleeps: u64,
) -> (Result<ServerHello, HandshakeError>, String) {
    let (near, far) = pipe::pair();
    let (peer, reader, writer) = peer::open(near.reader, near.writer, PeerLimits::default());
    let does = does.iter().map(|(method, all)| (*method, all.to_vec())).collect();
    let acting = tokio::spawn(act(far, does, Duration::from_secs(sleeps)));
    let near = tokio::spawn(async move {
        let mut quiet = Quiet;
        let _ended = tokio::join!(reader.run(&mut quiet), writer.run());
    });
    let hello = ClientHello { name: "test", version: "1", capabilities: "{\"roots\":{}}" };
    let outcome = greet(&peer, hello, greeting, START).await;
    peer.finish().await;
    let heard = acting.await.unwrap();
    near.abort();
    (outcome, heard.join(" "))
}

async fn check(
    what: &str,
    greeting: Greeting,
    does: &[(&'static str, &[Does])],
    sleeps: u64,
    expected: (&str, &str),
) {
    let (outcome, heard) = greeted(greeting, does, sleeps).await;
    let outcome = match outcome {
        Ok(hello) => match hello.era {
            Era::Legacy(revision) => format!("{} {revision}", hello.server_name),
            Era::Modern => format!("{} {}", hello.server_name, hello.revision()),
        },
        Err(error) => {
            let other = error.another_greeting(greeting);
            other.map_or_else(|| error.to_string(), |greeting| format!("{greeting:?}"))
        }
    };
    assert_eq!((outcome.as_str(), heard.as_str()), expected, "{what}");
}

#[tokio::test(start_paused = true)]
async fn era_is_detected_from_the_first_response() {
    let (d, i, done) = ("server/discover", "initialize", "notifications/initialized");
    let both = format!("{d} {i} {done}");
    let old = "old 2025-11-25";
    let new = "new 2026-07-28";
    let probe = Greeting::Probe;
    check("modern", probe, &[(d, &[Answers(DISCOVERED)])], 0, (new, d)).await;
    let legacy: &[(_, &[Does])] = &[(d, &[Answers(UNKNOWN)]), (i, &[Answers(INITIALIZED)])];
    check("legacy", probe, legacy, 0, (old, &both)).await;
    let lenient: &[(_, &[Does])] =
        &[(d, &[Answers(r#""result":{}"#)]), (i, &[Answers(INITIALIZED)])];
    check("answers anything to anything", probe, lenient, 0, (old, &both)).await;
    let names_old = r#""error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}"#;
    let dual: &[(_, &[Does])] = &[(d, &[Answers(names_old)]), (i, &[Answers(INITIALIZED)])];
    check("names older revisions", probe, dual, 0, (old, &both)).await;
    let again: &[(_, &[Does])] = &[(d, &[Answers(PINNED), Answers(DISCOVERED)])];
    check("names what it was asked in", probe, again, 0, (new, &format!("{d} {d}"))).await;
    check("leaves", probe, &[(d, &[Leaves])], 0, ("Initialize", d)).await;
    let needy = r#""error":{"code":-32021,"message":"roots are needed"}"#;
    let needy: &[(_, &[Does])] = &[(d, &[Answers(needy)])];
    check("wants more", probe, needy, 0, ("`server/discover` failed", d)).await;
    let newer = r#""error":{"code":-32022,"message":"no","data":{"supported":["2031-01-01"]}}"#;
    let unknown = "the server speaks protocol revision `2031-01-01`, which is unsupported";
    check("is newer", probe, &[(d, &[Answers(newer)])], 0, (unknown, d)).await;
}

/// A late response to one first request was once taken for the response to the other.
#[tokio::test(start_paused = true)]
async fn late_handshake_response_does_not_change_the_detected_era() {
    let (d, i, done) = ("server/discover", "initialize", "notifications/initialized");
    let (old, new) = ("old 2025-11-25", "new 2026-07-28");
    let probe = Greeting::Probe;
    let pinned: &[(_, &[Does])] = &[(d, &[Answers(DISCOVERED)]), (i, &[Answers(PINNED)])];
    check("modern", probe, pinned, 12, (new, &format!("{d} {i}"))).await;
    let deaf: &[(_, &[Does])] = &[(d, &[Answers(DISCOVERED)]), (i, &[Ignores])];
    let heard = format!("{d} {i} notifications/cancelled");
    check("modern, and deaf to the other", probe, deaf, 12, (new, &heard)).await;
    let legacy: &[(_, &[Does])] = &[(d, &[Answers(UNKNOWN)]), (i, &[Answers(INITIALIZED)])];
    check("legacy", probe, legacy, 12, (old, &format!("{d} {i} {done}"))).await;
    let deaf: &[(_, &[Does])] = &[(d, &[Ignores]), (i, &[Answers(INITIALIZED)])];
    let heard = format!("{d} {i} {done} notifications/cancelled");
    check("legacy, and deaf to the other", probe, deaf, 0, (old, &heard)).await;
    let dual: &[(_, &[Does])] = &[(d, &[Answers(DISCOVERED)]), (i, &[Answers(INITIALIZED)])];
    check("both", probe, dual, 12, (old, &format!("{d} {i} {done}"))).await;
    check("leaves", probe, &[(d, &[Leaves])], 12, ("Initialize", d)).await;
    let deaf: &[(_, &[Does])] = &[(d, &[Ignores]), (i, &[Ignores])];
    let heard = format!("{d} {i} notifications/cancelled notifications/cancelled");
    check("deaf", probe, deaf, 0, ("`initialize` failed", &heard)).await;
}

#[tokio::test(start_paused = true)]
async fn last_known_era_is_tried_first() {
    let (d, i, done) = ("server/discover", "initialize", "notifications/initialized");
    let (old, new) = ("old 2025-11-25", "new 2026-07-28");
    let both = format!("{d} {i} {done}");
    let (was_new, was_old) = (Greeting::Discover, Greeting::Initialize);
    check("modern", was_new, &[(d, &[Answers(DISCOVERED)])], 50, (new, d)).await;
    let legacy: &[(_, &[Does])] = &[(d, &[Answers(UNKNOWN)]), (i, &[Answers(INITIALIZED)])];
    check("no longer modern", was_new, legacy, 50, (old, &both)).await;
    check("leaves", was_new, &[(d, &[Leaves])], 0, ("Initialize", d)).await;
    let legacy: &[(_, &[Does])] = &[(i, &[Answers(INITIALIZED)])];
    check("legacy", was_old, legacy, 50, (old, &format!("{i} {done}"))).await;
    check("pins", was_old, &[(i, &[Answers(PINNED)])], 0, ("Discover", i)).await;
    let modern: &[(_, &[Does])] = &[(i, &[Answers(UNKNOWN)]), (d, &[Answers(DISCOVERED)])];
    check("no longer legacy", was_old, modern, 0, (new, &format!("{i} {d}"))).await;
    let neither: &[(_, &[Does])] = &[(i, &[Answers(UNKNOWN)]), (d, &[Answers(UNKNOWN)])];
    check("neither", was_old, neither, 0, ("`initialize` failed", &format!("{i} {d}"))).await;
    check("leaves", was_old, &[(i, &[Leaves])], 0, ("`initialize` failed", i)).await;
}

#[tokio::test]
async fn modern_and_legacy_handshakes_yield_equal_server_information() {
    let (hello, _) =
        greeted(Greeting::Discover, &[("server/discover", &[Answers(DISCOVERED)])], 0).await;
    let hello = hello.unwrap();
    assert!(hello.capabilities.tools && hello.capabilities.changes.tools);
    assert!(!hello.capabilities.prompts && !hello.capabilities.changes.prompts);
    assert_eq!(hello.server_version, "2");
    assert_eq!(
        hello.to_initialize_result().as_str(),
        r#"{"protocolVersion":"2026-07-28","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"new","version":"2"}}"#
    );
}

#[test]
fn request_meta_identifies_the_client() {
    let hello = ClientHello { name: "test", version: "1", capabilities: "{\"roots\":{}}" };
    assert_eq!(
        hello.meta(),
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}"#
    );
}
