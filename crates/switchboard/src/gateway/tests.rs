//! Property: requests that only read leave the roster and every connection as they are.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use switchboard_core::exact::Args;
use switchboard_core::name::ServerName;
use switchboard_core::request::{CallRequest, LIST_LIMIT, PageRequest, Request, SearchRequest};
use tokio::time::timeout;

use super::{Gateway, Roster};
use crate::demo::Demo;
use crate::env::Environment;
use crate::host::Headless;
use crate::session::Session;
use crate::upstream::UpstreamState;

/// The servers. `asking` sends requests to its client, so each session needs a connection of its
/// own.
const SERVERS: [&str; 3] = ["one", "two", "asking"];

/// The number of gateways; each gets [`STEPS`] requests.
const GATEWAYS: u64 = 40;
const STEPS: usize = 40;

/// Lets the paused clock run, until the actors have done what was requested.
async fn settle() {
    let _elapsed = timeout(Duration::from_millis(100), pending::<()>()).await;
}

/// The roster, and the state of each connection of the gateway.
fn observed(gateway: &Gateway) -> (Arc<Roster>, Vec<(String, UpstreamState)>) {
    let roster = gateway.roster();
    let state = |member: &super::roster::Member| member.upstream.status().state;
    let states = roster.members.iter().map(|(key, member)| (format!("{key:?}"), state(member)));
    let mut states: Vec<(String, UpstreamState)> = states.collect();
    states.sort_by(|(one, _), (other, _)| one.cmp(other));
    (roster, states)
}

fn server(random: &mut Rng) -> String {
    SERVERS[random.usize(..SERVERS.len())].to_owned()
}

fn read_only_request(random: &mut Rng) -> Request {
    let server = server(random);
    match random.u8(..6) {
        0 => Request::Status,
        1 => Request::List { server, page: PageRequest { offset: 0, limit: LIST_LIMIT } },
        2 => Request::Search(SearchRequest::words("add numbers")),
        3 => Request::Describe { tool: format!("{server}_echo"), server: None },
        4 => Request::Resources { server: Some(server) },
        _ => Request::Prompts { server: None },
    }
}

fn changing_request(random: &mut Rng) -> Request {
    let server = server(random);
    match random.u8(..3) {
        0 => Request::Connect { server },
        1 => Request::Disconnect { server },
        _ => {
            let args = Args::parse(r#"{ "text": "a" }"#).unwrap();
            Request::Call(CallRequest::new(format!("{server}_echo"), None, args))
        }
    }
}

/// A gateway that has listed all servers, and sessions of both kinds.
async fn listed() -> (Gateway, [Session; 3]) {
    let environment = Environment::made_of([("SWITCHBOARD_HOME", "/nowhere")], "/");
    let builder = Gateway::builder(environment);
    let gateway = SERVERS.iter().fold(builder, |builder, name| builder.server(name, Demo)).build();
    let sessions =
        [gateway.session(Headless), gateway.session(Headless), gateway.private_session(Headless)];
    for server in SERVERS {
        let connect = Request::Connect { server: server.to_owned() };
        assert!(sessions[0].handle(connect).await.is_ok());
    }
    let asking = ServerName::new("asking").unwrap();
    let plan = gateway.directory().plan(&asking).unwrap();
    gateway.directory().mark_asking(&asking, &plan);
    (gateway, sessions)
}

#[tokio::test(start_paused = true)]
async fn read_only_requests_change_neither_roster_nor_connections() {
    for seed in 0..GATEWAYS {
        let mut random = Rng::with_seed(seed);
        let (gateway, sessions) = listed().await;
        for _ in 0..STEPS {
            let session = &sessions[random.usize(..sessions.len())];
            if random.u8(..4) == 0 {
                assert!(session.handle(changing_request(&mut random)).await.is_ok());
                settle().await;
            }
            let request = read_only_request(&mut random);
            let (roster, states) = observed(&gateway);
            assert!(session.handle(request.clone()).await.is_ok(), "seed {seed}: {request:?}");
            drop((session.connecting(), session.connections(), session.catalog()));
            let (roster_after, states_after) = observed(&gateway);
            assert!(Arc::ptr_eq(&roster, &roster_after), "seed {seed}: {request:?}");
            assert_eq!(states, states_after, "seed {seed}: {request:?}");
        }
        drop(sessions);
        gateway.shutdown().await;
    }
}
