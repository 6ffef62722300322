//! Decides when a server is started, stopped and retried: a state machine without a clock.
//!
//! The actor of the server passes [`Input`]s with the time since its start, and carries out the
//! [`Effect`]s. Times are `Duration`s, waiting callers and connections are numbers. So every rule
//! is tested without a process, a task or a wait.

mod events;

use std::collections::VecDeque;
use std::time::Duration;

use crate::config::values::Lifecycle;

pub use events::{ConnectRefusal, Effect, Generation, Input, Urgency, Usage, Waiter};

const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
const LONGEST_KEEP_ALIVE_BACKOFF: Duration = Duration::from_secs(300);
const HEALTH_CHECK: Duration = Duration::from_secs(30);

/// If the next retry is due within this time, a call waits for it. Otherwise the call is refused.
const WORTH_WAITING: Duration = Duration::from_secs(5);

/// A server that fails this often within [`CRASH_WINDOW`], without a response in between, is not
/// restarted automatically.
const CRASHES: usize = 8;
const CRASH_WINDOW: Duration = Duration::from_secs(180);

/// The lifecycle settings of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub lifecycle: Lifecycle,
    /// How long an unused server keeps running; `None` if it is never stopped.
    pub idle: Option<Duration>,
}

impl Policy {
    /// The policy for a connection that only one session uses: it is not opened before that session
    /// needs it.
    #[must_use]
    pub fn of_a_session(self) -> Policy {
        let lifecycle = match self.lifecycle {
            Lifecycle::Lazy | Lifecycle::Eager => Lifecycle::Lazy,
            Lifecycle::KeepAlive | Lifecycle::LazyKeepAlive => Lifecycle::LazyKeepAlive,
        };
        Policy { lifecycle, ..self }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    #[default]
    Down,
    Dialling,
    Up,
    Ended,
}

/// The lifecycle state of one server.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    policy: Policy,
    phase: Phase,
    generation: Generation,
    waiters: Vec<Waiter>,
    /// The time from which no lease is known to be held. It has a meaning only while the connection
    /// is up.
    idle_since: Duration,
    /// The time of the next ping, while a keep-alive server is up.
    ping_at: Option<Duration>,
    failures: u32,
    failed_at: Duration,
    /// When the last dial began.
    dialled_at: Duration,
    /// The time of the next automatic dial, if `wanted`.
    retry_at: Duration,
    /// The time until which calls are refused, after a failed dial.
    refuse_until: Duration,
    crashes: VecDeque<Duration>,
    /// Whether a lost connection is dialled again after the backoff. True for keep-alive servers.
    wanted: bool,
}

impl Machine {
    pub fn new(policy: Policy) -> Machine {
        Machine { policy, ..Machine::default() }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The number of the current connection, up or being dialled. Without one, the number of the
    /// last connection.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Applies one input at the time `now`. Returns the effects to carry out.
    pub fn on(&mut self, now: Duration, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.phase == Phase::Ended {
            if let Input::Acquire { waiter, .. } = input {
                effects.push(Effect::Refuse { waiter, refusal: ConnectRefusal::ShuttingDown });
            }
            return effects;
        }
        match input {
            Input::Begin => {
                if matches!(self.policy.lifecycle, Lifecycle::Eager | Lifecycle::KeepAlive) {
                    self.wanted = self.stays_up();
                    self.dial(now, &mut effects);
                }
            }
            Input::Acquire { waiter, urgency } => self.acquire(now, waiter, urgency, &mut effects),
            Input::Dialled { generation } => self.dialled(now, generation, &mut effects),
            Input::DialFailed { generation, jitter } if self.is(Phase::Dialling, generation) => {
                let took = now.saturating_sub(self.dialled_at);
                self.fail(now, (took, jitter));
                self.refuse_all(ConnectRefusal::DialFailed, &mut effects);
            }
            Input::NotSignedIn { generation } if self.is(Phase::Dialling, generation) => {
                self.down();
                self.failures = 0;
                self.crashes.clear();
                // The user has to sign in first, so the next automatic retry waits for
                // `LONGEST_BACKOFF`. A call may dial again at once.
                self.retry_at = now + LONGEST_BACKOFF;
                self.refuse_all(ConnectRefusal::DialFailed, &mut effects);
            }
            Input::Lost { generation, usage, jitter } if self.is(Phase::Up, generation) => {
                self.learn(now, usage);
                self.lose(now, jitter);
            }
            Input::Forgotten { generation, usage, jitter } if self.is(Phase::Up, generation) => {
                self.forget(now, usage, jitter);
            }
            Input::Pong { generation } if self.is(Phase::Up, generation) => self.failures = 0,
            Input::PingFailed { generation, jitter } if self.is(Phase::Up, generation) => {
                effects.push(Effect::Close { generation });
                self.lose(now, jitter);
            }
            // Inputs about an older connection are ignored.
            Input::DialFailed { .. }
            | Input::NotSignedIn { .. }
            | Input::Lost { .. }
            | Input::Forgotten { .. }
            | Input::Pong { .. }
            | Input::PingFailed { .. } => {}
            Input::Disconnect => self.stop(ConnectRefusal::Disconnected, &mut effects),
            Input::Wake { usage } => self.wake(now, usage, &mut effects),
            Input::Shutdown => {
                self.stop(ConnectRefusal::ShuttingDown, &mut effects);
                self.phase = Phase::Ended;
            }
        }
        effects
    }

    /// Whether the current connection has this number and is in this phase.
    fn is(&self, phase: Phase, generation: Generation) -> bool {
        self.phase == phase && self.generation == generation
    }

    /// The time at which [`Input::Wake`] is due; `None` if no wake-up is due.
    pub fn wake_at(&self) -> Option<Duration> {
        match self.phase {
            Phase::Up => {
                let idle = self.idle_limit();
                [idle.map(|idle| self.idle_since + idle), self.ping_at].into_iter().flatten().min()
            }
            Phase::Down => {
                let by_itself = (self.wanted && self.stays_up()).then_some(self.retry_at);
                let for_a_call = (!self.waiters.is_empty()).then_some(self.refuse_until);
                [by_itself, for_a_call].into_iter().flatten().min()
            }
            Phase::Dialling | Phase::Ended => None,
        }
    }

    fn acquire(
        &mut self,
        now: Duration,
        waiter: Waiter,
        urgency: Urgency,
        effects: &mut Vec<Effect>,
    ) {
        match self.phase {
            Phase::Up => effects.push(Effect::Grant { waiter, generation: self.generation }),
            Phase::Dialling => self.waiters.push(waiter),
            Phase::Down => match self.refusal(now).filter(|_| urgency == Urgency::Call) {
                Some(ConnectRefusal::Backoff { retry_in, .. }) if retry_in <= WORTH_WAITING => {
                    self.waiters.push(waiter);
                }
                Some(refusal) => effects.push(Effect::Refuse { waiter, refusal }),
                None => {
                    self.waiters.push(waiter);
                    self.dial(now, effects);
                }
            },
            // An ended machine is handled at the beginning of `on`.
            Phase::Ended => {}
        }
    }

    fn learn(&mut self, now: Duration, usage: Usage) {
        if usage.worked {
            // After a response, earlier failures are forgotten.
            self.failures = 0;
            self.crashes.clear();
        }
        let last_use = if usage.held { Some(now) } else { usage.left_at };
        self.idle_since = self.idle_since.max(last_use.unwrap_or_default());
    }

    fn dialled(&mut self, now: Duration, generation: Generation, effects: &mut Vec<Effect>) {
        if !self.is(Phase::Dialling, generation) {
            // This dial was cancelled or replaced, so its connection is closed.
            effects.push(Effect::Close { generation });
            return;
        }
        self.phase = Phase::Up;
        self.idle_since = now;
        self.wanted = self.stays_up();
        self.ping_at = self.stays_up().then_some(now + HEALTH_CHECK);
        let granted = std::mem::take(&mut self.waiters);
        effects.extend(granted.into_iter().map(|waiter| Effect::Grant { waiter, generation }));
    }

    fn wake(&mut self, now: Duration, usage: Usage, effects: &mut Vec<Effect>) {
        match self.phase {
            Phase::Up => {
                self.learn(now, usage);
                if let Some(idle) = self.idle_limit()
                    && !usage.held
                    && now >= self.idle_since + idle
                {
                    effects.push(Effect::Close { generation: self.generation });
                    self.down();
                } else if self.ping_at.is_some_and(|at| now >= at) {
                    self.ping_at = Some(now + HEALTH_CHECK);
                    // A server with a call in flight may be too busy to answer a ping.
                    if !usage.held {
                        effects.push(Effect::Ping { generation: self.generation });
                    }
                }
            }
            Phase::Down if self.wanted && self.stays_up() && now >= self.retry_at => {
                self.dial(now, effects);
            }
            Phase::Down if !self.waiters.is_empty() && now >= self.refuse_until => {
                self.dial(now, effects);
            }
            Phase::Down | Phase::Dialling | Phase::Ended => {}
        }
    }

    fn dial(&mut self, now: Duration, effects: &mut Vec<Effect>) {
        self.generation += 1;
        self.dialled_at = now;
        self.phase = Phase::Dialling;
        effects.push(Effect::Dial { generation: self.generation });
    }

    /// Records a failed dial or a lost connection, and sets the next backoff. After a dial that took
    /// long, such as that of a server that hangs, the backoff is as long as the dial, so that a
    /// caller that tries again does not spend most of its time waiting.
    fn fail(&mut self, now: Duration, (took, jitter): (Duration, f64)) {
        self.down();
        self.failed_at = now;
        self.failures = self.failures.saturating_add(1);
        self.crashes.push_back(now);
        self.forget_old_crashes(now);
        let longest = if self.stays_up() { LONGEST_KEEP_ALIVE_BACKOFF } else { LONGEST_BACKOFF };
        let doublings = self.failures.saturating_sub(1).min(16);
        let backoff = FIRST_BACKOFF.saturating_mul(1 << doublings).max(took).min(longest);
        // Half of the backoff is random, so that many gateways do not retry at the same time.
        self.retry_at = now + backoff.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0);
        if self.crashes.len() >= CRASHES
            && let Some(first) = self.crashes.front()
        {
            self.retry_at = self.retry_at.max(*first + CRASH_WINDOW);
        }
        self.refuse_until = self.retry_at;
    }

    /// Records a lost connection. After the first loss, the next call may dial at once.
    fn lose(&mut self, now: Duration, jitter: f64) {
        let worked = self.failures == 0;
        self.fail(now, (Duration::ZERO, jitter));
        if worked && self.crashes.len() < CRASHES {
            self.refuse_until = now;
        }
    }

    /// Records that the server ended the session: the next dial may follow at once. If the session
    /// was never used, this is treated as a lost connection.
    fn forget(&mut self, now: Duration, usage: Usage, jitter: f64) {
        self.learn(now, usage);
        if usage.worked {
            self.down();
            self.retry_at = now;
        } else {
            self.lose(now, jitter);
        }
    }

    fn forget_old_crashes(&mut self, now: Duration) {
        while self.crashes.front().is_some_and(|at| now.saturating_sub(*at) > CRASH_WINDOW) {
            self.crashes.pop_front();
        }
    }

    fn refusal(&mut self, now: Duration) -> Option<ConnectRefusal> {
        self.forget_old_crashes(now);
        if self.failures == 0 || now >= self.refuse_until {
            return None;
        }
        let retry_in = self.refuse_until - now;
        Some(if self.crashes.len() >= CRASHES {
            ConnectRefusal::CrashLoop { crashes: self.crashes.len(), retry_in }
        } else {
            ConnectRefusal::Backoff { since: now.saturating_sub(self.failed_at), retry_in }
        })
    }

    fn stop(&mut self, refusal: ConnectRefusal, effects: &mut Vec<Effect>) {
        if matches!(self.phase, Phase::Up | Phase::Dialling) {
            effects.push(Effect::Close { generation: self.generation });
        }
        self.refuse_all(refusal, effects);
        self.down();
        self.wanted = false;
        self.failures = 0;
        self.crashes.clear();
    }

    fn refuse_all(&mut self, refusal: ConnectRefusal, effects: &mut Vec<Effect>) {
        let refused = std::mem::take(&mut self.waiters);
        effects.extend(refused.into_iter().map(|waiter| Effect::Refuse { waiter, refusal }));
    }

    fn down(&mut self) {
        self.phase = Phase::Down;
        self.ping_at = None;
    }

    fn stays_up(&self) -> bool {
        matches!(self.policy.lifecycle, Lifecycle::KeepAlive | Lifecycle::LazyKeepAlive)
    }

    fn idle_limit(&self) -> Option<Duration> {
        if self.stays_up() { None } else { self.policy.idle }
    }
}

#[cfg(test)]
mod tests;
