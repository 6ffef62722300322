//! Calls that continue, are parked and expire.

use serde_json::json;
use switchboard_wire::peer::{Outlet, PeerLimits, detached};

use super::*;
use crate::answer::ResultStyle;

fn args(value: Value) -> Args {
    Args::parse(&value.to_string()).unwrap()
}

fn client() -> (Peer, Outlet) {
    let (peer, outlet, _inlet) = detached(PeerLimits::default());
    (peer, outlet)
}

fn result(answer: &McpResult) -> Value {
    let mut out = String::new();
    answer.write(&mut out, ResultStyle::Plain);
    serde_json::from_str(&out).unwrap()
}

/// A call that sends these requests one after the other, and returns all responses.
fn asking(questions: &'static [(Option<&'static str>, Topic)]) -> Box<Rounds> {
    asking_given(questions, Args::default())
}

fn asking_given(questions: &'static [(Option<&'static str>, Topic)], given: Args) -> Box<Rounds> {
    Rounds::begin(args(json!({ "name": "t" })), given, |words, _| {
        Box::pin(async move {
            let mut told = Vec::new();
            for (key, topic) in questions {
                let answer = words.ask(*topic, *key, "{\"q\":1}".to_owned()).await;
                told.push(answer.map_or_else(|error| error.to_string(), Raw::into_string));
            }
            Ok(McpResult::json(json!({ "told": told }).to_string()))
        })
    })
}

async fn next(rounds: Box<Rounds>) -> Turn {
    rounds.go_on(&client().0, None).await
}

async fn park(parking: &Parking, rounds: Box<Rounds>) -> (String, Value) {
    let Turn::Asks(rounds) = next(rounds).await else { panic!("it asks") };
    let asked = result(&parking.park(rounds).map_err(|error| error.to_string()).unwrap());
    (asked["requestState"].as_str().unwrap().to_owned(), asked["inputRequests"].clone())
}

async fn done(rounds: Box<Rounds>) -> Value {
    match next(rounds).await {
        Turn::Done(Ok(answer)) => result(&answer),
        Turn::Done(Err(error)) => panic!("{error}"),
        Turn::Asks(_) => panic!("it asks once more"),
    }
}

fn refusal(parking: &Parking, state: &str, request: Value) -> String {
    let resumed = parking.resume(state, &args(request), Args::default());
    resumed.map(drop).unwrap_err().message
}

const TWO: &[(Option<&str>, Topic)] = &[(None, Topic::Elicitation), (Some("roots"), Topic::Roots)];

#[tokio::test]
async fn parked_call_resumes_with_each_client_response() {
    let parking = Parking::default();
    let (state, asked) = park(&parking, asking(TWO)).await;
    let question = json!({ "method": "elicitation/create", "params": { "q": 1 } });
    assert_eq!(asked, json!({ "elicitation-1": question }));
    let answers = args(json!({ "elicitation-1": { "a": 1.50 }, "other": {} }));
    let rounds = parking.resume(&state, &args(json!({ "name": "t" })), answers).unwrap();
    let (second, asked) = park(&parking, rounds).await;
    assert_eq!(asked["roots"]["method"], "roots/list");
    assert_ne!(state, second);
    let answers = args(json!({ "roots": { "roots": [] } }));
    let rounds = parking.resume(&second, &args(json!({ "name": "t" })), answers).unwrap();
    let told = done(rounds).await;
    assert_eq!(told, json!({ "told": ["{\"a\":1.5}", "{\"roots\":[]}"] }));
}

#[tokio::test]
async fn request_state_resumes_only_its_own_request_once() {
    let parking = Parking::default();
    let (state, _) = park(&parking, asking(TWO)).await;
    let other = refusal(&parking, &state, json!({ "name": "u" }));
    assert_eq!(other, "this `requestState` belongs to another request");
    let unknown = "unknown or expired `requestState`";
    assert_eq!(refusal(&parking, &format!("{state}x"), json!({ "name": "t" })), unknown);
    assert_eq!(refusal(&Parking::default(), &state, json!({ "name": "t" })), unknown);
    let request = args(json!({ "name": "t" }));
    assert!(parking.resume(&state, &request, Args::default()).is_ok());
    assert_eq!(refusal(&parking, &state, json!({ "name": "t" })), unknown);
}

#[tokio::test]
async fn large_parked_calls_replace_the_oldest() {
    let parking = Parking::default();
    let request = |name: &str| args(json!({ "name": name, "a": vec![0; 60_000] }));
    let mut states = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let rounds = Rounds::begin(request(name), Args::default(), |words, _| {
            Box::pin(async move {
                let _told = words.ask(Topic::Roots, None, String::new()).await;
                Ok(McpResult::json("{}"))
            })
        });
        states.push(park(&parking, rounds).await.0);
    }
    let resumes =
        |state: &str, name| parking.resume(state, &request(name), Args::default()).is_ok();
    assert!(!resumes(&states[0], "a") && !resumes(&states[1], "b"), "the memory is bounded");
    assert!(resumes(&states[2], "c") && resumes(&states[3], "d"));
}

#[tokio::test]
async fn unanswered_input_request_is_repeated() {
    let parking = Parking::default();
    let (state, asked) = park(&parking, asking(TWO)).await;
    let request = args(json!({ "name": "t" }));
    let rounds = parking.resume(&state, &request, args(json!({ "other": {} }))).unwrap();
    let (_, again) = park(&parking, rounds).await;
    assert_eq!(asked, again);
}

#[tokio::test]
async fn early_input_response_cannot_answer_an_approval_request() {
    let given = || args(json!({ "roots": { "r": 1 }, "elicitation-1": { "action": "accept" } }));
    let told = done(asking_given(&[(Some("roots"), Topic::Roots)], given())).await;
    assert_eq!(told, json!({ "told": ["{\"r\":1}"] }));
    let (_, asked) = park(&Parking::default(), asking_given(TWO, given())).await;
    assert!(asked["elicitation-1"].is_object(), "an approval is always asked for");
}

#[tokio::test]
async fn concurrent_input_requests_get_distinct_keys() {
    let rounds = Rounds::begin(Args::default(), Args::default(), |words, _| {
        Box::pin(async move {
            let ask = |key| words.ask(Topic::Elicitation, key, String::new());
            let _told =
                tokio::join!(ask(Some("elicitation-1")), ask(None), ask(Some("elicitation-1")));
            Ok(McpResult::json("{}"))
        })
    });
    let (_, asked) = park(&Parking::default(), rounds).await;
    let names: Vec<&String> = asked.as_object().unwrap().keys().collect();
    assert_eq!(names, ["elicitation-1", "elicitation-2", "elicitation-3"]);
}

#[tokio::test(start_paused = true)]
async fn parked_call_is_dropped_after_its_timeout() {
    let parking = Parking::default();
    let (held, freed) = oneshot::channel::<()>();
    let rounds = Rounds::begin(Args::default(), Args::default(), |words, _| {
        Box::pin(async move {
            let _lease = held;
            let _told = words.ask(Topic::Roots, None, String::new()).await;
            Ok(McpResult::json("{}"))
        })
    });
    let (state, _) = park(&parking, rounds).await;
    let parked = Instant::now();
    assert!(freed.await.is_err(), "the call is dropped");
    assert_eq!(parked.elapsed(), PARKED);
    let unknown = "unknown or expired `requestState`";
    assert_eq!(refusal(&parking, &state, json!({})), unknown);
}

#[tokio::test]
async fn oldest_parked_call_is_dropped_above_the_limit() {
    let parking = Parking::default();
    let mut states = Vec::new();
    for _ in 0..=MOST {
        states.push(park(&parking, asking(TWO)).await.0);
    }
    let resumes = |state: &String| {
        parking.resume(state, &args(json!({ "name": "t" })), Args::default()).is_ok()
    };
    assert!(!resumes(&states[0]));
    assert!(states[1..].iter().all(resumes));
}

#[tokio::test]
async fn notifications_go_to_the_client_of_the_current_request() {
    let rounds = Rounds::begin(Args::default(), Args::default(), |words, steps| {
        Box::pin(async move {
            words.say("notifications/message", "{\"n\":1}");
            steps.send(Raw::from_json("{\"progress\":1}".to_owned())).await.unwrap();
            let _told = words.ask(Topic::Roots, None, String::new()).await;
            words.say("notifications/message", "{\"n\":2}");
            steps.send(Raw::from_json("{\"progress\":2}".to_owned())).await.unwrap();
            Ok(McpResult::json("{}"))
        })
    });
    let token = Exact::parse("\"mine\"").unwrap();
    let (first, mut heard) = client();
    let Turn::Asks(mut rounds) = rounds.go_on(&first, Some(&token)).await else { panic!() };
    rounds.take(args(json!({ "roots-1": {} })));
    let mut lines = Vec::new();
    for _ in 0..2 {
        let said = heard.next().await.unwrap();
        lines.push(String::from_utf8(said.frame.to_vec()).unwrap());
    }
    assert!(lines.iter().any(|line| line.contains("\"progressToken\":\"mine\"")), "{lines:?}");
    let (second, mut heard) = client();
    assert!(matches!(rounds.go_on(&second, None).await, Turn::Done(Ok(_))));
    let said = heard.next().await.unwrap();
    assert!(String::from_utf8_lossy(&said.frame).contains("\"n\":2"));
}
