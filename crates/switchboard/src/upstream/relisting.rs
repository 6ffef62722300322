//! Decides when the lists of a server are requested again: one relisting at a time, with growing
//! pauses while the server keeps reporting changes.

use std::time::Duration;

use tokio::time::Instant;

/// The pause before the second relisting; it doubles with each further relisting.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// If no relisting has run for this time, or for twice the pause if that is longer, a change
/// starts a relisting at once.
const QUIET: Duration = Duration::from_secs(1);

/// When the lists of one connection were requested, and when they are requested next.
#[derive(Debug, Default)]
pub(super) struct Relisting {
    state: WalkState,
    pause: Duration,
    /// When the last relisting ended.
    ended: Option<Instant>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum WalkState {
    #[default]
    Idle,
    Running,
    /// The lists have changed again since the relisting began.
    Outdated,
    /// No relisting runs; the next one begins at this time.
    Waiting(Instant),
}

impl Relisting {
    /// Records that the server reported a changed list. Returns whether a relisting must begin at
    /// once.
    pub(super) fn changed(&mut self, now: Instant) -> bool {
        match self.state {
            WalkState::Idle => self.schedule(now),
            WalkState::Running | WalkState::Outdated => {
                self.state = WalkState::Outdated;
                false
            }
            WalkState::Waiting(_) => false,
        }
    }

    /// Records that the server reported a changed list during the first listing.
    pub(super) fn changed_meanwhile(&mut self) {
        self.state = WalkState::Outdated;
    }

    /// Records the end of the first listing. Returns whether a relisting must begin because the
    /// lists changed meanwhile.
    pub(super) fn catch_up(&mut self) -> bool {
        let outdated = self.state == WalkState::Outdated;
        self.state = if outdated { WalkState::Running } else { WalkState::Idle };
        outdated
    }

    /// Begins a relisting. Returns false if one is already under way.
    pub(super) fn begin(&mut self) -> bool {
        match self.state {
            WalkState::Running | WalkState::Outdated => false,
            WalkState::Idle | WalkState::Waiting(_) => {
                self.state = WalkState::Running;
                true
            }
        }
    }

    /// Records the end of a relisting; the next one may follow after a pause.
    pub(super) fn ended(&mut self, now: Instant) {
        let outdated = self.state == WalkState::Outdated;
        self.state = WalkState::Idle;
        self.ended = Some(now);
        if outdated {
            self.schedule(now);
        }
    }

    /// When the next relisting begins; `None` if none is scheduled.
    pub(super) fn due_at(&self) -> Option<Instant> {
        match self.state {
            WalkState::Waiting(at) => Some(at),
            WalkState::Idle | WalkState::Running | WalkState::Outdated => None,
        }
    }

    /// Cancels the scheduled relisting, if there is one.
    pub(super) fn stop(&mut self) {
        self.state = WalkState::Idle;
    }

    fn schedule(&mut self, now: Instant) -> bool {
        let quiet = QUIET.max(self.pause * 2);
        if self.ended.is_none_or(|ended| now.duration_since(ended) >= quiet) {
            self.pause = Duration::ZERO;
            self.state = WalkState::Running;
            return true;
        }
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.state = WalkState::Waiting(now + self.pause);
        false
    }
}

/// Sleeps until `at`; never completes if it is `None`.
pub(super) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of listings if a server reports a change every millisecond for this long.
    fn walks(time: Duration) -> u32 {
        let mut relisting = Relisting::default();
        let start = Instant::now();
        let mut walks = 0;
        let mut now = start;
        while now < start + time {
            let due = relisting.due_at().is_some_and(|at| at <= now) && relisting.begin();
            if relisting.changed(now) || due {
                walks += 1;
                now += Duration::from_millis(1);
                relisting.changed(now);
                relisting.ended(now);
            }
            now += Duration::from_millis(1);
        }
        walks
    }

    #[test]
    fn list_change_storm_causes_few_listings() {
        assert!(walks(Duration::from_secs(1)) <= 6, "{}", walks(Duration::from_secs(1)));
        assert!(walks(Duration::from_secs(60)) <= 13);
        assert!(walks(Duration::from_secs(3_600)) <= 135);
    }

    #[test]
    fn list_change_after_quiet_period_is_listed_at_once() {
        let mut relisting = Relisting::default();
        let now = Instant::now();
        assert!(relisting.changed(now));
        relisting.ended(now);
        assert!(!relisting.changed(now), "after a pause");
        assert_eq!(relisting.due_at(), Some(now + FIRST_PAUSE));
        assert!(relisting.begin(), "an explicit refresh");
        assert!(!relisting.begin(), "a walk is under way");
        relisting.ended(now);
        assert_eq!(relisting.due_at(), None);
        assert!(relisting.changed(now + QUIET));
    }
}
