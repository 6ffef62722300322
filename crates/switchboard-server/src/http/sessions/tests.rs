//! Which sessions exist, and for how long.

use bytes::Bytes;
use switchboard::Environment;

use super::*;
use crate::http::bodies::BodyRoom;
use crate::http::guard::ResponseForm;

fn sessions() -> Sessions {
    let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
    Sessions::new(Gateway::builder(environment).build(), Offer::Proxy, Unsent::default())
}

#[tokio::test(start_paused = true)]
async fn session_without_requests_and_streams_expires() {
    let sessions = sessions();
    let (used, session) = sessions.open(Revision::NEWEST, &Abilities::default()).unwrap();
    let (listening, listener) = sessions.open(Revision::NEWEST, &Abilities::default()).unwrap();
    let (forgotten, _) = sessions.open(Revision::NEWEST, &Abilities::default()).unwrap();
    let _stream = listener.listen(None).unwrap();
    tokio::time::advance(FORGOTTEN - Duration::from_secs(1)).await;
    sessions.sweep(Instant::now());
    assert!(sessions.find(&forgotten).is_some());
    let ping = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    session.say(&ping, ResponseForm::Any, BodyRoom::default()).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    sessions.sweep(Instant::now());
    let left = [&used, &listening, &forgotten].map(|id| sessions.find(id).is_some());
    assert_eq!(left, [true, true, false]);
}

#[tokio::test(start_paused = true)]
async fn new_session_replaces_only_the_longest_idle_one() {
    let sessions = sessions();
    let mut opened = Vec::new();
    for _ in 0..MOST {
        opened.push(sessions.open(Revision::NEWEST, &Abilities::default()).unwrap());
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let streams: Vec<_> = opened[..3].iter().map(|(_, session)| session.listen(None)).collect();
    let (newest, _) = sessions.open(Revision::NEWEST, &Abilities::default()).unwrap();
    let gone: Vec<usize> = (0..MOST).filter(|at| sessions.find(&opened[*at].0).is_none()).collect();
    assert_eq!(gone, [3]);
    assert!(sessions.find(&newest).is_some());
    drop(streams);

    let _all: Vec<_> = lock(&sessions.by_id).values().map(|session| session.listen(None)).collect();
    assert!(
        sessions.open(Revision::NEWEST, &Abilities::default()).is_err(),
        "every session is in use"
    );
}

#[tokio::test]
async fn ended_session_cannot_be_found_or_ended_again() {
    let sessions = sessions();
    let (id, _) = sessions.open(Revision::NEWEST, &Abilities::default()).unwrap();
    assert!(sessions.end(&id));
    assert!(!sessions.end(&id));
    assert!(sessions.find(&id).is_none());
}
