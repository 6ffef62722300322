//! The last connection failure of a server, remembered across processes: its reason and time, and
//! when the server is tried again.

use std::time::Duration;

use super::sealed::Seal;
use crate::spelled::spelled_enum;

const SEAL: Seal = Seal { magic: "switchboard-failure", version: 2 };

/// How long the status of a server shows a failure. Afterwards it is `not-connected` again.
pub const FAILURE_IS_NEWS: Duration = Duration::from_secs(10 * 60);

/// For this time after a failure, only commands that name the server connect to it.
pub const RETRY_PAUSE: Duration = Duration::from_secs(2 * 60);

/// The maximum number of characters of a stored reason.
const LONGEST_REASON: usize = 1_000;

spelled_enum! {
    pub enum FailureKind {
        Failed = "failed",
        /// A command stopped waiting while the server was being installed or starting.
        NotReady = "not-ready",
    }
}

/// A failed or unfinished attempt to connect, of this process or another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownFailure {
    /// The time of the failure, in seconds since the epoch.
    pub at: u64,
    pub kind: FailureKind,
    pub reason: Box<str>,
}

impl KnownFailure {
    pub fn new(at: u64, kind: FailureKind, reason: &str) -> KnownFailure {
        KnownFailure { at, kind, reason: reason.chars().take(LONGEST_REASON).collect() }
    }

    /// The time since the failure. `None` if the failure is no longer shown, or if the clock was
    /// set back.
    pub fn ago(&self, now: u64) -> Option<Duration> {
        let ago = Duration::from_secs(now.checked_sub(self.at)?);
        Some(ago).filter(|ago| *ago < FAILURE_IS_NEWS)
    }

    /// The time until commands that do not name the server connect to it again.
    pub fn retry_in(&self, now: u64) -> Option<Duration> {
        RETRY_PAUSE.checked_sub(self.ago(now)?).filter(|wait| !wait.is_zero())
    }

    /// The content of the failure file for this definition of the server.
    pub fn encode(&self, definition: &str) -> Vec<u8> {
        SEAL.close(&[definition, &self.at.to_string(), self.kind.as_str()], self.reason.as_bytes())
    }

    /// The failure in a file, if the file is undamaged and belongs to this definition.
    pub fn decode(file: &[u8], definition: &str) -> Option<KnownFailure> {
        let ([owner, at, kind], reason) = SEAL.open(file)?;
        let reason = std::str::from_utf8(reason).ok()?;
        let kind = *FailureKind::ALL.iter().find(|known| known.as_str() == kind)?;
        (owner == definition).then_some(KnownFailure::new(at.parse().ok()?, kind, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_failure_shown_for_ten_minutes_is_retried_earlier() {
        let failure = KnownFailure::new(1_000, FailureKind::Failed, "no such program");
        let seconds = Duration::from_secs;
        let check = |now, ago, retry_in| {
            assert_eq!((failure.ago(now), failure.retry_in(now)), (ago, retry_in), "{now}");
        };
        check(999, None, None);
        check(1_000, Some(seconds(0)), Some(seconds(120)));
        check(1_119, Some(seconds(119)), Some(seconds(1)));
        check(1_120, Some(seconds(120)), None);
        check(1_599, Some(seconds(599)), None);
        check(1_600, None, None);
    }

    #[test]
    fn failure_file_is_ignored_if_damaged_or_definition_changed() {
        let failure = KnownFailure::new(1_000, FailureKind::NotReady, "exit code 1: Größe");
        let file = failure.encode("abc");
        assert_eq!(KnownFailure::decode(&file, "abc"), Some(failure));
        assert_eq!(KnownFailure::decode(&file, "abd"), None);
        for end in 0..file.len() {
            assert_eq!(KnownFailure::decode(&file[..end], "abc"), None, "cut at {end}");
        }
    }

    #[test]
    fn stored_failure_reason_is_limited_in_length() {
        assert_eq!(
            KnownFailure::new(0, FailureKind::Failed, &"é".repeat(5_000)).reason.chars().count(),
            1_000
        );
    }
}
