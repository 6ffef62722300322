//! Single rules of the state machine, and invariants under random sequences of inputs.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn lazy() -> Machine {
    machine(Lifecycle::Lazy)
}

fn machine(lifecycle: Lifecycle) -> Machine {
    Machine::new(Policy { lifecycle, idle: Some(10 * MINUTE) })
}

fn call(waiter: Waiter) -> Input {
    Input::Acquire { waiter, urgency: Urgency::Call }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Passes each `(second, input)` to the machine, and compares all effects.
fn check(machine: &mut Machine, inputs: &[(u64, Input)], expected: &[Effect]) {
    let seen: Vec<Effect> =
        inputs.iter().flat_map(|(at, input)| machine.on(seconds(*at), *input)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn one_dial_serves_all_waiting_calls() {
    check(
        &mut lazy(),
        &[(0, call(1)), (0, call(2)), (1, Input::Dialled { generation: 1 }), (2, call(3))],
        &[
            Effect::Dial { generation: 1 },
            Effect::Grant { waiter: 1, generation: 1 },
            Effect::Grant { waiter: 2, generation: 1 },
            Effect::Grant { waiter: 3, generation: 1 },
        ],
    );
}

const HELD: Usage = Usage { held: true, left_at: None, worked: false };

fn left_at(second: u64) -> Usage {
    Usage { held: false, left_at: Some(seconds(second)), worked: true }
}

fn wake(usage: Usage) -> Input {
    Input::Wake { usage }
}

#[test]
fn held_lease_outlives_idle_timeout() {
    let mut machine = lazy();
    machine.on(seconds(0), call(1));
    machine.on(seconds(0), Input::Dialled { generation: 1 });
    assert_eq!(machine.wake_at(), Some(10 * MINUTE));
    check(&mut machine, &[(600, wake(HELD))], &[]);
    assert_eq!(machine.wake_at(), Some(20 * MINUTE));
    let left = left_at(601);
    check(&mut machine, &[(1_200, wake(left))], &[]);
    assert_eq!(machine.wake_at(), Some(seconds(601) + 10 * MINUTE));
    check(&mut machine, &[(1_201, wake(left))], &[Effect::Close { generation: 1 }]);
    assert_eq!(machine.phase(), Phase::Down);
}

/// A machine after `count` failed dials, with the time of the last failure.
fn after_failures(count: u64) -> (Machine, Duration) {
    let mut machine = lazy();
    let mut now = Duration::ZERO;
    for generation in 1..=count {
        now = machine.retry_at;
        machine.on(now, call(generation));
        machine.on(now, Input::DialFailed { generation, jitter: 1.0 });
    }
    (machine, now)
}

#[test]
fn call_during_backoff_is_refused_until_it_ends() {
    let (mut machine, now) = after_failures(5);
    let refusal = ConnectRefusal::Backoff { since: Duration::ZERO, retry_in: seconds(8) };
    assert_eq!(machine.on(now, call(6)), [Effect::Refuse { waiter: 6, refusal }]);
    assert_eq!(machine.wake_at(), None);
    let refusal = ConnectRefusal::Backoff { since: seconds(2), retry_in: seconds(6) };
    let refused = machine.on(now + seconds(2), call(7));
    assert_eq!(refused, [Effect::Refuse { waiter: 7, refusal }]);
    assert_eq!(machine.on(now + seconds(8), call(8)), [Effect::Dial { generation: 6 }]);
}

#[test]
fn call_waits_for_a_retry_due_within_five_seconds() {
    let (mut machine, now) = after_failures(5);
    let usage = Usage::default();
    assert_eq!(machine.on(now + seconds(3), call(6)), []);
    assert_eq!(machine.on(now + seconds(4), call(7)), []);
    assert_eq!(machine.wake_at(), Some(now + seconds(8)));
    assert_eq!(machine.on(now + seconds(7), wake(usage)), []);
    assert_eq!(machine.on(now + seconds(8), wake(usage)), [Effect::Dial { generation: 6 }]);
    let granted = |waiter| Effect::Grant { waiter, generation: 6 };
    let dialled = machine.on(now + seconds(9), Input::Dialled { generation: 6 });
    assert_eq!(dialled, [granted(6), granted(7)]);
}

#[test]
fn explicit_connect_serves_calls_waiting_for_the_retry() {
    let (mut machine, now) = after_failures(1);
    assert_eq!(machine.on(now, call(2)), []);
    let explicit = Input::Acquire { waiter: 3, urgency: Urgency::Explicit };
    assert_eq!(machine.on(now, explicit), [Effect::Dial { generation: 2 }]);
    let granted = |waiter| Effect::Grant { waiter, generation: 2 };
    assert_eq!(machine.on(now, Input::Dialled { generation: 2 }), [granted(2), granted(3)]);
}

#[test]
fn disconnect_refuses_calls_waiting_for_the_retry() {
    let (mut machine, now) = after_failures(1);
    machine.on(now, call(2));
    let refused = Effect::Refuse { waiter: 2, refusal: ConnectRefusal::Disconnected };
    assert_eq!(machine.on(now, Input::Disconnect), [refused]);
    assert_eq!(machine.wake_at(), None);
}

#[test]
fn explicit_connect_does_not_wait_for_backoff() {
    let mut machine = lazy();
    machine.on(seconds(0), call(1));
    machine.on(seconds(0), Input::DialFailed { generation: 1, jitter: 1.0 });
    let explicit = Input::Acquire { waiter: 2, urgency: Urgency::Explicit };
    check(&mut machine, &[(0, explicit)], &[Effect::Dial { generation: 2 }]);
}

#[test]
fn call_after_missing_sign_in_redials_without_backoff() {
    let mut machine = Machine::new(Policy { lifecycle: Lifecycle::KeepAlive, idle: None });
    machine.on(seconds(0), Input::Begin);
    machine.on(seconds(0), Input::DialFailed { generation: 1, jitter: 1.0 });
    let explicit = Input::Acquire { waiter: 1, urgency: Urgency::Explicit };
    let refused = Effect::Refuse { waiter: 1, refusal: ConnectRefusal::DialFailed };
    check(
        &mut machine,
        &[(0, explicit), (0, Input::NotSignedIn { generation: 2 })],
        &[Effect::Dial { generation: 2 }, refused],
    );
    assert_eq!(machine.wake_at(), Some(MINUTE));
    check(&mut machine, &[(0, call(2))], &[Effect::Dial { generation: 3 }]);
    check(&mut machine, &[(0, Input::NotSignedIn { generation: 2 })], &[]);
}

#[test]
fn backoff_doubles_up_to_a_minute() {
    let mut machine = lazy();
    let mut now = Duration::ZERO;
    let mut waits = Vec::new();
    for generation in 1..=7 {
        machine.on(now, call(generation));
        machine.on(now, Input::DialFailed { generation, jitter: 1.0 });
        waits.push((machine.retry_at - now).as_millis());
        now = machine.retry_at;
    }
    assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000]);
}

#[test]
fn jitter_spreads_the_retry_over_half_the_backoff() {
    let wait = |jitter: f64| {
        let mut machine = lazy();
        machine.on(seconds(0), call(1));
        machine.on(seconds(0), Input::DialFailed { generation: 1, jitter });
        machine.retry_at.as_millis()
    };
    assert_eq!([0.0, 0.5, 1.0].map(wait), [250, 375, 500]);
}

#[test]
fn eight_crashes_in_a_row_open_the_circuit() {
    let mut machine = lazy();
    let mut now = Duration::ZERO;
    for generation in 1..=8 {
        machine.on(now, call(generation));
        machine.on(now, Input::DialFailed { generation, jitter: 0.0 });
        if generation < 8 {
            now = machine.retry_at;
        }
    }
    let effects = machine.on(now, call(9));
    assert!(
        matches!(
            effects[..],
            [Effect::Refuse { waiter: 9, refusal: ConnectRefusal::CrashLoop { crashes: 8, .. } }]
        ),
        "{effects:?}"
    );
}

#[test]
fn call_after_first_crash_redials_without_backoff() {
    let mut machine = lazy();
    machine.on(seconds(0), call(1));
    machine.on(seconds(0), Input::Dialled { generation: 1 });
    machine.on(seconds(2), Input::Lost { generation: 1, usage: left_at(1), jitter: 0.5 });
    check(&mut machine, &[(2, call(2))], &[Effect::Dial { generation: 2 }]);
}

#[test]
fn server_that_answers_between_crashes_is_always_redialed() {
    let mut machine = lazy();
    for generation in 1..=3 * CRASHES as u64 {
        check(&mut machine, &[(0, call(generation))], &[Effect::Dial { generation }]);
        machine.on(seconds(0), Input::Dialled { generation });
        let worked = Usage { worked: true, ..HELD };
        machine.on(seconds(0), Input::Lost { generation, usage: worked, jitter: 1.0 });
    }
}

#[test]
fn second_crash_without_an_answer_starts_the_backoff() {
    let mut machine = lazy();
    for generation in 1..=2 {
        machine.on(seconds(0), call(generation));
        machine.on(seconds(0), Input::Dialled { generation });
        machine.on(seconds(0), Input::Lost { generation, usage: HELD, jitter: 1.0 });
    }
    check(&mut machine, &[(0, call(3))], &[]);
    assert_eq!(machine.wake_at(), Some(seconds(1)));
}

#[test]
fn forgotten_session_with_answered_calls_is_always_redialed() {
    let mut machine = lazy();
    for generation in 1..=3 * CRASHES as u64 {
        let dial = [Effect::Dial { generation }];
        check(&mut machine, &[(0, call(generation))], &dial);
        machine.on(seconds(0), Input::Dialled { generation });
        let worked = Usage { worked: true, ..Usage::default() };
        machine.on(seconds(0), Input::Forgotten { generation, usage: worked, jitter: 0.5 });
    }
}

#[test]
fn second_forgotten_session_without_an_answer_starts_the_backoff() {
    let mut machine = lazy();
    for generation in 1..=2 {
        machine.on(seconds(0), call(generation));
        machine.on(seconds(0), Input::Dialled { generation });
        machine.on(seconds(0), Input::Forgotten { generation, usage: HELD, jitter: 1.0 });
    }
    check(&mut machine, &[(0, call(3))], &[]);
    assert_eq!(machine.wake_at(), Some(seconds(1)));
}

#[test]
fn disconnect_during_a_stuck_dial_refuses_waiting_calls() {
    check(
        &mut lazy(),
        &[
            (0, call(1)),
            (9, Input::Disconnect),
            (10, Input::Dialled { generation: 1 }),
            (11, call(2)),
        ],
        &[
            Effect::Dial { generation: 1 },
            Effect::Close { generation: 1 },
            Effect::Refuse { waiter: 1, refusal: ConnectRefusal::Disconnected },
            Effect::Close { generation: 1 },
            Effect::Dial { generation: 2 },
        ],
    );
}

#[test]
fn eager_server_starts_at_once_but_not_after_crash() {
    let mut machine = machine(Lifecycle::Eager);
    check(&mut machine, &[(0, Input::Begin)], &[Effect::Dial { generation: 1 }]);
    machine.on(seconds(1), Input::Dialled { generation: 1 });
    machine.on(seconds(2), Input::Lost { generation: 1, usage: Usage::default(), jitter: 0.0 });
    assert_eq!(machine.wake_at(), None);
}

#[test]
fn failed_ping_closes_and_redials_a_keep_alive_server() {
    let mut machine = machine(Lifecycle::KeepAlive);
    machine.on(seconds(0), Input::Begin);
    machine.on(seconds(0), Input::Dialled { generation: 1 });
    assert_eq!(machine.wake_at(), Some(seconds(30)));
    check(&mut machine, &[(30, wake(Usage::default()))], &[Effect::Ping { generation: 1 }]);
    check(
        &mut machine,
        &[(35, Input::PingFailed { generation: 1, jitter: 1.0 })],
        &[Effect::Close { generation: 1 }],
    );
    assert_eq!(machine.wake_at(), Some(seconds(35) + Duration::from_millis(500)));
    check(&mut machine, &[(36, wake(Usage::default()))], &[Effect::Dial { generation: 2 }]);
}

#[test]
fn keep_alive_server_in_use_is_not_pinged() {
    let mut machine = machine(Lifecycle::KeepAlive);
    machine.on(seconds(0), Input::Begin);
    machine.on(seconds(0), Input::Dialled { generation: 1 });
    check(&mut machine, &[(30, wake(HELD))], &[]);
    check(&mut machine, &[(60, wake(left_at(45)))], &[Effect::Ping { generation: 1 }]);
}

#[test]
fn lazy_keep_alive_server_is_pinged_after_first_use() {
    let mut machine = machine(Lifecycle::LazyKeepAlive);
    check(&mut machine, &[(0, Input::Begin)], &[]);
    machine.on(seconds(0), call(1));
    machine.on(seconds(0), Input::Dialled { generation: 1 });
    assert_eq!(machine.wake_at(), Some(seconds(30)), "a ping, never an idle stop");
    machine.on(seconds(2), Input::Lost { generation: 1, usage: Usage::default(), jitter: 0.0 });
    assert!(machine.wake_at().is_some());
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Begin,
    Acquire(Urgency),
    Release,
    Dialled,
    DialFailed,
    Lost,
    Forgotten,
    Pong,
    PingFailed,
    Disconnect,
    Wake,
    Shutdown,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => Just(Step::Begin),
        6 => Just(Step::Acquire(Urgency::Call)),
        2 => Just(Step::Acquire(Urgency::Explicit)),
        6 => Just(Step::Release),
        5 => Just(Step::Dialled),
        3 => Just(Step::DialFailed),
        2 => Just(Step::Lost),
        2 => Just(Step::Forgotten),
        1 => Just(Step::Pong),
        1 => Just(Step::PingFailed),
        1 => Just(Step::Disconnect),
        4 => Just(Step::Wake),
        1 => Just(Step::Shutdown),
    ]
}

/// Follows the effects alone, and checks the invariants.
#[derive(Default)]
struct Observer {
    dialling: Option<Generation>,
    up: Option<Generation>,
    held: HashMap<Generation, usize>,
    waiting: Vec<Waiter>,
}

impl Observer {
    fn see(&mut self, effect: Effect, forced: bool) {
        match effect {
            Effect::Dial { generation } => {
                assert_eq!(self.dialling, None, "two dials under way");
                assert_eq!(self.up, None, "a dial while connected");
                self.dialling = Some(generation);
            }
            Effect::Grant { waiter, generation } => {
                assert_eq!(self.up, Some(generation), "a grant of a connection that is not up");
                self.answer(waiter);
                *self.held.entry(generation).or_default() += 1;
            }
            Effect::Refuse { waiter, .. } => self.answer(waiter),
            Effect::Close { generation } => {
                let held = self.held.get(&generation).copied().unwrap_or(0);
                assert!(forced || held == 0, "closed under a lease");
                self.dialling = self.dialling.filter(|dialling| *dialling != generation);
                self.up = self.up.filter(|up| *up != generation);
            }
            Effect::Ping { generation } => assert_eq!(self.up, Some(generation)),
        }
    }

    fn usage(&self, generation: Generation, left_at: Option<Duration>) -> Usage {
        let held = self.held.get(&generation).is_some_and(|held| *held > 0);
        Usage { held, left_at, worked: left_at.is_some() }
    }

    fn answer(&mut self, waiter: Waiter) {
        let before = self.waiting.len();
        self.waiting.retain(|waiting| *waiting != waiter);
        assert_eq!(
            self.waiting.len() + 1,
            before,
            "granted or refused twice, or without a request"
        );
    }
}

proptest! {
    #[test]
    fn any_input_sequence_keeps_the_lifecycle_invariants(
        steps in proptest::collection::vec((any_step(), 0..400u64), 1..120),
        lifecycle in proptest::sample::select(vec![
            Lifecycle::Lazy, Lifecycle::Eager, Lifecycle::KeepAlive, Lifecycle::LazyKeepAlive]),
    ) {
        let mut machine = machine(lifecycle);
        let mut observer = Observer::default();
        let mut now = Duration::ZERO;
        let mut next_waiter = 0;
        let mut left_at = None;
        for (step, pause) in steps {
            now += seconds(pause);
            let current = observer.dialling.or(observer.up).unwrap_or(machine.generation);
            let input = match step {
                Step::Begin => Input::Begin,
                Step::Acquire(urgency) => {
                    next_waiter += 1;
                    observer.waiting.push(next_waiter);
                    Input::Acquire { waiter: next_waiter, urgency }
                }
                Step::Release => {
                    let Some((generation, held)) =
                        observer.held.iter_mut().find(|(_, held)| **held > 0) else { continue };
                    *held -= 1;
                    left_at = (Some(*generation) == observer.up).then_some(now).or(left_at);
                    continue;
                }
                Step::Dialled => {
                    let Some(generation) = observer.dialling.take() else { continue };
                    observer.up = Some(generation);
                    Input::Dialled { generation }
                }
                Step::DialFailed => {
                    let Some(generation) = observer.dialling.take() else { continue };
                    Input::DialFailed { generation, jitter: 0.5 }
                }
                Step::Lost => {
                    let Some(generation) = observer.up.take() else { continue };
                    Input::Lost { generation, usage: observer.usage(generation, left_at), jitter: 0.5 }
                }
                Step::Forgotten => {
                    let Some(generation) = observer.up.take() else { continue };
                    let usage = observer.usage(generation, left_at);
                    Input::Forgotten { generation, usage, jitter: 0.5 }
                }
                Step::Pong => Input::Pong { generation: current },
                Step::PingFailed => Input::PingFailed { generation: current, jitter: 0.5 },
                Step::Disconnect => Input::Disconnect,
                Step::Wake => Input::Wake { usage: observer.usage(current, left_at) },
                Step::Shutdown => Input::Shutdown,
            };
            let forced = matches!(
                input, Input::Disconnect | Input::Shutdown | Input::PingFailed { .. });
            // `Begin` is sent only once, before any other input.
            if matches!(input, Input::Begin) && machine.generation > 0 { continue }
            for effect in machine.on(now, input) {
                observer.see(effect, forced);
            }
            if observer.dialling.is_none() && !observer.waiting.is_empty() {
                prop_assert_eq!(machine.phase(), Phase::Down, "a waiter was left behind");
                let wait = machine.wake_at().map(|at| at.saturating_sub(now));
                prop_assert!(wait.is_some_and(|wait| wait <= WORTH_WAITING));
            }
            let timer_means_something = match machine.phase() {
                Phase::Up => true,
                Phase::Down => {
                    let expected = machine.stays_up() || !observer.waiting.is_empty();
                    machine.wake_at().is_none() || expected
                }
                Phase::Dialling | Phase::Ended => machine.wake_at().is_none(),
            };
            prop_assert!(timer_means_something);
        }
    }
}

#[test]
fn backoff_is_as_long_as_the_failed_dial() {
    let mut machine = lazy();
    machine.on(seconds(0), call(1));
    machine.on(seconds(30), Input::DialFailed { generation: 1, jitter: 1.0 });
    assert_eq!(machine.wake_at(), None);
    let refused = |retry_in| ConnectRefusal::Backoff { since: seconds(1), retry_in };
    let expected = Effect::Refuse { waiter: 2, refusal: refused(seconds(29)) };
    assert_eq!(machine.on(seconds(31), call(2)), [expected]);
    assert_eq!(machine.on(seconds(60), call(3)), [Effect::Dial { generation: 2 }]);
    machine.on(seconds(360), Input::DialFailed { generation: 2, jitter: 1.0 });
    assert_eq!(machine.on(seconds(420), call(4)), [Effect::Dial { generation: 3 }], "at most 60 s");
}
