//! Responses over HTTP: JSON or event stream, request ids, cancellation, and resumed streams.

use std::collections::BTreeSet;

use serde_json::json;
use switchboard_it::client::text;
use switchboard_it::http_client::{Connection, mcp_call};

use crate::http_face::{Served, echo, wait};

#[tokio::test]
async fn progress_events_precede_the_response() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let mut call = mcp_call(json!(7), json!({ "tool": "demo_slow", "args": { "ms": 1 } }));
    call["params"]["_meta"] = json!({ "progressToken": "mine" });
    let mut stream = client.elsewhere("POST", &[], &call.to_string()).await.stream().await;
    assert_eq!(stream.head.header("content-type"), Some("text/event-stream"));
    let opening = stream.event().await.unwrap();
    assert_eq!((opening.data.as_str(), opening.retry.as_deref()), ("", Some("1000")));
    let mut ids = vec![opening.id.unwrap()];
    let mut seen = Vec::new();
    while let Some((event, message)) = stream.message().await {
        ids.push(event.id.unwrap());
        seen.push(match message["method"].as_str() {
            Some(_) => {
                format!("{} {}", message["params"]["progressToken"], message["params"]["progress"])
            }
            None => format!("{} {}", message["id"], text(&message)),
        });
    }
    assert_eq!(seen, ["\"mine\" 0", "\"mine\" 1", "\"mine\" 2", "7 took 1 ms"]);
    let distinct: BTreeSet<&String> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "{ids:?}");
}

#[tokio::test]
async fn client_that_accepts_only_event_streams_gets_one_event() {
    let served = Served::everything().await;
    let client = served.connect_at("2025-06-18").await;
    let bytes = client.bytes("POST", &[], &echo(json!(1), "hi").to_string());
    let bytes = String::from_utf8(bytes).unwrap().replace("application/json, text/", "text/");
    let mut connection = Connection::to(served.address).await;
    connection.send(bytes.as_bytes()).await;
    let mut stream = connection.stream().await;
    // Clients of revision 2025-06-18 get no event without data.
    let event = stream.event().await.unwrap();
    assert_eq!(text(&serde_json::from_str(&event.data).unwrap()), "hi");
    assert_eq!(stream.event().await, None);
}

#[tokio::test]
async fn duplicate_request_id_in_flight_is_refused() {
    let served = Served::everything().await;
    let mut client = served.connect().await;
    let first = client.elsewhere("POST", &[], &wait(json!(5)).to_string()).await;
    served.world.fixture("demo").call_started(1).await;
    let second = client.post(&echo(json!(5), "hi")).await.json();
    assert_eq!(second["error"]["code"], -32600);
    // The same number as a string is another id.
    assert_eq!(text(&client.post(&echo(json!("5"), "hi")).await.json()), "hi");
    served.world.fixture("demo").release();
    assert_eq!(text(&first.answer().await.unwrap()), "released");
}

#[tokio::test]
async fn cancelled_http_call_is_cancelled_at_the_server() {
    let served = Served::everything().await;
    let mut client = served.connect().await;
    let waiting = client.elsewhere("POST", &[], &wait(json!("w")).to_string()).await;
    served.world.fixture("demo").call_started(1).await;
    let cancel = json!({ "requestId": "w", "reason": "enough" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel });
    assert_eq!(client.post(&cancel).await.head.status, 202);
    served.world.fixture("demo").until(|ledger| ledger.cancelled.len() == 1).await;
    assert_eq!(waiting.answer().await, None);
}

#[tokio::test]
async fn lost_stream_resumes_at_the_last_event_id() {
    let served = Served::everything().await;
    let client = served.connect().await;
    let other = served.connect().await;
    let mut lost = client.elsewhere("POST", &[], &wait(json!(9)).to_string()).await.stream().await;
    let opening = lost.event().await.unwrap().id.unwrap();
    drop(lost);
    served.world.fixture("demo").call_started(1).await;

    // The call continues, and the client resumes its stream.
    let mut resumed = client.listen(Some(&opening)).await;
    assert_eq!(resumed.event().await.unwrap().id.as_ref(), Some(&opening));
    served.world.fixture("demo").release();
    let (event, answer) = resumed.message().await.unwrap();
    assert_eq!((text(&answer).as_str(), &answer["id"]), ("released", &json!(9)));
    assert_eq!(resumed.message().await, None);

    // A finished stream can still be resumed, until newer events replace it.
    let (again, _) = client.listen(Some(&opening)).await.message().await.unwrap();
    assert_eq!(again, event);
    assert_eq!(client.listen(event.id.as_deref()).await.message().await, None);

    let (nonce, _) = opening.split_once('.').unwrap();
    let of_this_session = ["99.0", "1.x", "1.99", "0.99"].map(|at| format!("{nonce}.{at}"));
    let made_up = ["", "1", "x.1.0"].map(str::to_owned);
    for stranger in of_this_session.iter().chain(&made_up) {
        assert_eq!(client.listen(Some(stranger)).await.head.status, 400, "{stranger}");
    }
    assert_eq!(other.listen(Some(&opening)).await.head.status, 400);
}
