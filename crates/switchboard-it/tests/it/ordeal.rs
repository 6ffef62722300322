//! Misbehaving servers in short runs; `cargo xtask soak` has the long runs and the measurements.

use std::time::Duration;

use switchboard_it::soak::load::{LoadPlan, run_load};
use switchboard_it::soak::misbehavior::{
    Answers, Commits, Misbehavior, answers, commits, measure_beside, time_to_report_exit,
};

use crate::PROGRAMS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_crashing_server_are_answered_exactly_once() {
    let Answers { right, failed, wrong } = answers(PROGRAMS, 50, 6).await;
    assert_eq!((right + failed.values().sum::<usize>(), wrong), (300, 0), "{failed:?}");
    assert!(right > 0, "no call was answered");
}

#[tokio::test]
async fn write_call_with_unknown_outcome_is_not_retried() {
    assert_eq!(commits(PROGRAMS, 5).await, Commits { unknown: 5, twice: 0 });
}

#[tokio::test]
async fn misbehaving_server_does_not_exhaust_the_gateway_memory() {
    for misbehavior in Misbehavior::ALL {
        let effect = measure_beside(PROGRAMS, misbehavior, 40).await;
        assert!(effect.grew < 32 * 1024 * 1024, "{misbehavior:?}: {effect:?}");
    }
}

#[tokio::test]
async fn call_in_flight_fails_if_server_is_killed() {
    // Other tests measure the delay. If the gateway did not notice the end, the call would block
    // for a minute.
    time_to_report_exit(PROGRAMS).await;
}

#[tokio::test]
async fn soak_answers_every_call_once_and_leaks_no_process() {
    let plan = LoadPlan { length: Duration::from_secs(3), servers: 4, seed: 1 };
    let soaked = run_load(PROGRAMS, plan).await;
    assert!(soaked.answers.right > 0, "{soaked:?}");
    let [before, after] = soaked.at_rest;
    let failures = (soaked.answers.wrong, soaked.lost, soaked.twice, after.children, soaked.left);
    assert_eq!(failures, (0, 0, 0, 0, 0), "{soaked:?}");
    // The session keeps the directory of its large results open.
    let grown = after.gateway_files.checked_sub(before.gateway_files);
    assert!(grown.is_some_and(|files| files <= 1), "{soaked:?}");
    assert_eq!(after.reaper_files, before.reaper_files, "{soaked:?}");
}
