//! Many processes that share one sign-in while its token ends again and again, and all of them call
//! at once.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::authority::{Authority, Record, Setup};
use crate::client::text;
use crate::program::{Installed, Programs};

/// How it went.
#[derive(Debug)]
pub struct Renewals {
    /// Calls that came back with what they were given.
    pub right: usize,
    /// What came back instead.
    pub wrong: Vec<String>,
    /// What the authority saw, which takes a refresh token once, and a second time for theft.
    pub record: Record,
    /// How long it took after each end until everybody had an answer.
    pub times: Vec<Duration>,
}

/// Lets the token of so many gateways end so many times.
pub async fn renewals(programs: Programs, processes: usize, expiries: usize) -> Renewals {
    let authority = Authority::start(Setup::default()).await;
    let config = json!({ "mcpServers": { "far": { "url": authority.mcp_url() } } });
    let installed = Installed::with(programs, &config.to_string());
    let signed_in = installed.sign_in("far").await;
    assert_eq!(signed_in.code, Some(0), "{}", signed_in.stderr);
    let mut clients = Vec::new();
    for _ in 0..processes {
        clients.push(installed.connect(json!({})).await);
    }
    let (mut right, mut wrong, mut times) = (0, Vec::new(), Vec::new());
    for expiry in 0..expiries {
        authority.expire_tokens();
        let ended = Instant::now();
        let mut calls = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            let given = format!("{number} after {expiry}");
            let call = json!({ "tool": "far_echo", "args": { "text": given } });
            calls.push((client.call(call).await, given));
        }
        for (client, (call, given)) in clients.iter_mut().zip(calls) {
            let answer = text(&client.answer_to(&call).await);
            if answer == given {
                right += 1;
            } else {
                wrong.push(answer);
            }
        }
        times.push(ended.elapsed());
    }
    Renewals { right, wrong, record: authority.ledger().now(), times }
}
