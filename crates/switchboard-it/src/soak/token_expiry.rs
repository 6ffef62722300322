//! Many processes share one sign-in and call at the same time while its token expires repeatedly.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::authority::{Authority, Record, Setup};
use crate::client::text;
use crate::program::{Installed, Programs};

/// The figures of a run.
#[derive(Debug)]
pub struct ExpiryFigures {
    /// Calls with the right result.
    pub right: usize,
    /// The wrong results.
    pub wrong: Vec<String>,
    /// The record of the authorization server, to which a second use of a refresh token is theft.
    pub record: Record,
    /// The time from each expiry until all processes had a result.
    pub times: Vec<Duration>,
}

/// Expires the shared token of this many gateways this many times.
pub async fn expire_tokens(programs: Programs, processes: usize, expiries: usize) -> ExpiryFigures {
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
    ExpiryFigures { right, wrong, record: authority.ledger().now(), times }
}
