//! Misbehaving servers in short runs; `cargo xtask soak` has the long runs and the measurements.

use std::time::Duration;

use switchboard_it::ordeal::{Answers, Commits, Nuisance, answers, commits, neighbour, obituary};
use switchboard_it::soak::{Soak, soak};

use crate::PROGRAMS;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_to_a_crashing_server_are_answered_exactly_once() {
    let Answers { right, failed, wrong } = answers(PROGRAMS, 50, 6).await;
    assert_eq!((right + failed.values().sum::<usize>(), wrong), (300, 0), "{failed:?}");
    assert!(right > 0, "no call was answered");
}

#[tokio::test]
async fn write_with_unknown_outcome_is_not_retried() {
    assert_eq!(commits(PROGRAMS, 5).await, Commits { unknown: 5, twice: 0 });
}

#[tokio::test]
async fn noisy_server_costs_its_neighbour_and_memory_little() {
    for nuisance in Nuisance::ALL {
        let noticed = neighbour(PROGRAMS, nuisance, 40).await;
        assert!(noticed.grew < 32 * 1024 * 1024, "{nuisance:?}: {noticed:?}");
    }
}

#[tokio::test]
async fn pending_call_fails_when_its_server_is_killed() {
    // Other tests measure the delay. An unnoticed end would block the call for a minute.
    obituary(PROGRAMS).await;
}

#[tokio::test]
async fn soak_answers_every_call_once_and_leaks_nothing() {
    let plan = Soak { length: Duration::from_secs(3), servers: 4, seed: 1 };
    let soaked = soak(PROGRAMS, plan).await;
    assert!(soaked.answers.right > 0, "{soaked:?}");
    let [before, after] = soaked.at_rest;
    let failures = (soaked.answers.wrong, soaked.lost, soaked.twice, after.children, soaked.left);
    assert_eq!(failures, (0, 0, 0, 0, 0), "{soaked:?}");
    // The session keeps the directory of its large results open.
    let grown = after.gateway_files.checked_sub(before.gateway_files);
    assert!(grown.is_some_and(|files| files <= 1), "{soaked:?}");
    assert_eq!(after.reaper_files, before.reaper_files, "{soaked:?}");
}
