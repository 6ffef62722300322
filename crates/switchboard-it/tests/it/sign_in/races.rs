//! Many processes with one sign-in: the first refreshes the token for all, and no process
//! overwrites newer tokens of another.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use rustix::process::Signal;
use serde_json::json;
use switchboard::auth::Forgotten;
use switchboard::failure::Code;
use switchboard_it::authority::{Authority, Manner, Setup, visit};
use switchboard_it::client::Client;
use switchboard_it::harness::pass;
use switchboard_it::processes::send_signal;
use switchboard_it::program::Installed;
use switchboard_it::soak::token_expiry::{ExpiryFigures, expire_tokens};

use super::far::{config, echo, kept, sign_in, tally, world, world_in};
use crate::PROGRAMS;

const CROWD: usize = 8;

#[tokio::test]
async fn concurrent_processes_refresh_a_token_once() {
    let ExpiryFigures { right, wrong, record, .. } = expire_tokens(PROGRAMS, CROWD, 40).await;
    assert_eq!(wrong, [""; 0]);
    assert_eq!(right, CROWD * 40);
    let happened = (record.redemptions, record.replays, record.revocations, record.sign_ins);
    assert_eq!(happened, (40, 0, 0, 1));
}

/// An installation that is signed in to `far`.
async fn installed(authority: &Authority) -> Installed {
    let installed = Installed::with(PROGRAMS, &config(authority));
    let ended = installed.sign_in("far").await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    installed
}

/// Makes one call in each of many concurrent processes; all must succeed.
async fn call_at_once(installed: &Installed) {
    let calls = (0..CROWD).map(|number| async move {
        let ran = installed.run(["call", "far_echo", &format!("text={number}")]).await;
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("{number}\n")), "{}", ran.stderr);
    });
    join_all(calls).await;
}

#[tokio::test]
async fn concurrent_commands_refresh_a_token_once() {
    let authority = Authority::start(Setup::default()).await;
    let installed = installed(&authority).await;
    for round in 1..=4 {
        authority.expire_tokens();
        call_at_once(&installed).await;
        assert_eq!(tally(&authority), [round, 0, 1]);
    }
}

#[tokio::test]
async fn process_killed_during_refresh_blocks_no_other_process() {
    let authority = Authority::start(Setup::default()).await;
    let installed = installed(&authority).await;
    authority.expire_tokens();
    authority.alter(|setup| setup.token_answers.push_back(Manner::Hang));
    let mut holder = installed.connect(json!({})).await;
    holder.call(json!({ "tool": "far_echo", "args": { "text": "lost" } })).await;
    authority.ledger().until(|record| record.refusals == 1).await;
    let killing = async { send_signal(holder.pid(), Signal::KILL) };
    tokio::join!(call_at_once(&installed), killing);
    assert_eq!(tally(&authority), [1, 0, 1]);
}

#[tokio::test]
async fn concurrent_sign_ins_open_one_authorization_page() {
    let authority = Authority::start(Setup::default()).await;
    let installed = Installed::with(PROGRAMS, &config(&authority));
    let mut crowd: Vec<Client> = (0..CROWD).map(|_| auth(&installed)).collect();
    let begun =
        crowd.iter_mut().map(|process| process.line_unless_said("another process is signing in"));
    let links: Vec<String> = join_all(begun).await.into_iter().flatten().collect();
    let [link] = links.as_slice() else {
        panic!("not exactly one process printed a link: {links:?}")
    };
    assert_eq!(visit(link.trim_end()).await, 200);
    for process in crowd {
        let ended = process.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
    call_at_once(&installed).await;
    let record = authority.ledger().now();
    assert_eq!((record.visits, record.sign_ins), (1, 1));
}

#[tokio::test]
async fn process_killed_during_sign_in_blocks_no_other_process() {
    let authority = Authority::start(Setup::default()).await;
    let installed = Installed::with(PROGRAMS, &config(&authority));
    let mut first = auth(&installed);
    first.line().await;
    let mut second = auth(&installed);
    second.has_said("another process is signing in").await;
    send_signal(first.pid(), Signal::KILL);
    let link = second.line().await;
    assert_eq!(visit(link.trim_end()).await, 200);
    let ended = second.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    call_at_once(&installed).await;
}

fn auth(installed: &Installed) -> Client {
    Client::start(installed.command().args(["auth", "far"]))
}

#[tokio::test]
async fn process_with_outdated_token_uses_the_refreshed_token() {
    let authority = Authority::start(Setup::default()).await;
    let sleeper = world(&authority).await;
    assert_eq!(echo(&sleeper, "awake").await.unwrap(), "awake");
    let other = world_in(sleeper.home(), &authority);
    for _ in 0..2 {
        authority.expire_tokens();
        assert_eq!(echo(&other, "on").await.unwrap(), "on");
    }
    // The token of `sleeper` is two refreshes old, and the stored token has expired, too.
    authority.expire_tokens();
    assert_eq!(echo(&sleeper, "awake").await.unwrap(), "awake");
    assert_eq!(echo(&other, "on").await.unwrap(), "on");
    assert_eq!(tally(&authority), [3, 0, 1]);
}

/// Holds back the response to the next token refresh. The returned future completes when the
/// authorization server has issued the new tokens.
async fn granted(authority: &Authority) -> impl Future<Output = ()> {
    authority.alter(|setup| setup.token_answers.push_back(Manner::Late));
    authority.expire_tokens();
    let before = authority.ledger().now().redemptions;
    let ledger = authority.ledger();
    async move {
        ledger.until(|record| record.redemptions > before).await;
    }
}

/// Releases the held response after all other tasks have run as far as they can.
async fn release_last(authority: &Authority) {
    // The paused clock advances only when all tasks are idle.
    tokio::time::pause();
    pass(Duration::from_secs(5)).await;
    authority.release();
    tokio::time::resume();
}

#[tokio::test]
async fn token_refresh_completes_after_its_call_is_abandoned() {
    let authority = Authority::start(Setup::default()).await;
    let world = world(&authority).await;
    assert_eq!(echo(&world, "before").await.unwrap(), "before");
    let granted = granted(&authority).await;
    tokio::select! {
        outcome = echo(&world, "given up") => panic!("{outcome:?}"),
        () = granted => {}
    }
    authority.release();
    assert_eq!(echo(&world, "after").await.unwrap(), "after");
    assert_eq!(tally(&authority), [1, 0, 1]);
}

#[tokio::test]
async fn gateway_shutdown_does_not_lose_a_refreshed_token() {
    let authority = Authority::start(Setup::default()).await;
    let world = world(&authority).await;
    assert_eq!(echo(&world, "before").await.unwrap(), "before");
    let granted = granted(&authority).await;
    tokio::select! {
        outcome = echo(&world, "given up") => panic!("{outcome:?}"),
        () = granted => {}
    }
    let (home, ()) = tokio::join!(world.shut_down(), async { authority.release() });
    assert_eq!(echo(&world_in(&home, &authority), "after").await.unwrap(), "after");
    assert_eq!(tally(&authority), [1, 0, 1]);
}

#[tokio::test]
async fn refresh_does_not_overwrite_a_concurrent_sign_in() {
    let authority = Authority::start(Setup::default()).await;
    let renewing = world(&authority).await;
    let other = world_in(renewing.home(), &authority);
    assert_eq!(echo(&renewing, "before").await.unwrap(), "before");
    // From now on only the token of a new sign-in has enough scope.
    authority.alter(|setup| {
        setup.scopes = vec!["write".to_owned()];
        setup.tool_scopes = BTreeMap::from([("echo".to_owned(), "write".to_owned())]);
    });
    let granted = granted(&authority).await;
    let signing_in = async {
        granted.await;
        let released = async {
            authority.ledger().until(|record| record.sign_ins == 2).await;
            release_last(&authority).await;
        };
        tokio::join!(sign_in(&other), released);
    };
    let (_either, ()) = tokio::join!(echo(&renewing, "either"), signing_in);
    let third = world_in(renewing.home(), &authority);
    assert_eq!(echo(&third, "after").await.unwrap(), "after");
    assert_eq!(echo(&renewing, "after").await.unwrap(), "after");
}

#[tokio::test]
async fn refresh_does_not_undo_a_concurrent_sign_out() {
    let authority = Authority::start(Setup::default()).await;
    let renewing = world(&authority).await;
    let other = world_in(renewing.home(), &authority);
    assert_eq!(echo(&renewing, "before").await.unwrap(), "before");
    let far = other.gateway.usable("far").unwrap();
    let account = other.gateway.sign_in(&far).await.unwrap();
    let granted = granted(&authority).await;
    let signing_out = async {
        granted.await;
        let (forgotten, ()) = tokio::join!(account.forget(), release_last(&authority));
        assert_eq!(forgotten.unwrap(), Forgotten::Revoked);
    };
    let (_either, ()) = tokio::join!(echo(&renewing, "either"), signing_out);
    let tokens = kept(renewing.home().path());
    assert!(tokens.keys().all(|name| !name.ends_with(".token")), "{:?}", tokens.keys());
    let failure = echo(&renewing, "after").await.unwrap_err();
    assert_eq!(failure.code, Code::SignInRequired, "{failure}");
    assert_eq!(authority.ledger().now().revocations, 1);
}
