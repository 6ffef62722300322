//! The lifetime of an access token, and the time to refresh it.

use std::time::Duration;

use serde_json::Value;

/// The maximum lifetime of a token. Longer lifetimes are reduced to it.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How long before its expiry a token is refreshed. A short-lived token is refreshed when a fifth
/// of its lifetime is left.
const AHEAD: Duration = Duration::from_secs(60);
const SHARE: u32 = 5;

/// The time for which a new token is used at least. Otherwise a token with lifetime zero would be
/// refreshed for each request.
const GRACE: Duration = Duration::from_secs(10);

/// The lifetime that `expires_in` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// The lifetime is unknown. The token is used until a server refuses it.
    Unknown,
    /// The lifetime is known. A token with lifetime zero is valid for the time `GRACE`.
    For(Duration),
}

impl Lifetime {
    /// Parses `expires_in` in every form that authorization servers send: numbers, numeric strings,
    /// negative and infinite values.
    pub fn read(expires_in: Option<&Value>) -> Lifetime {
        let seconds = match expires_in {
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => None,
        };
        match seconds {
            None => Lifetime::Unknown,
            Some(seconds) if seconds.is_nan() => Lifetime::Unknown,
            Some(seconds) => {
                let longest = LONGEST.as_secs_f64();
                Lifetime::For(Duration::from_secs_f64(seconds.clamp(0.0, longest)))
            }
        }
    }

    pub fn duration(self) -> Option<Duration> {
        match self {
            Lifetime::Unknown => None,
            Lifetime::For(duration) => Some(duration),
        }
    }
}

/// Whether a token can be used, and whether it should be refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Fresh,
    /// The token is valid, but due for a refresh.
    Ageing,
    Spent,
}

/// The condition of a token of this age. `None` means that the clock was changed. The token is then
/// used until the server refuses it.
pub fn condition(lifetime: Lifetime, age: Option<Duration>) -> Condition {
    let (Lifetime::For(lifetime), Some(age)) = (lifetime, age) else { return Condition::Fresh };
    if age < GRACE {
        return Condition::Fresh;
    }
    let left = lifetime.saturating_sub(age);
    if left.is_zero() {
        Condition::Spent
    } else if left <= AHEAD.min(lifetime / SHARE) {
        Condition::Ageing
    } else {
        Condition::Fresh
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_lifetime_is_parsed_in_every_format() {
        let seconds =
            |value: Value| Lifetime::read(Some(&value)).duration().map(|life| life.as_secs());
        assert_eq!(seconds(json!(3600)), Some(3600));
        assert_eq!(seconds(json!("3600")), Some(3600));
        assert_eq!(seconds(json!(3599.9)), Some(3599));
        assert_eq!(seconds(json!(0)), Some(0));
        assert_eq!(seconds(json!(-1)), Some(0));
        assert_eq!(seconds(json!(u64::MAX)), Some(LONGEST.as_secs()));
        assert_eq!(seconds(json!(1e300)), Some(LONGEST.as_secs()));
        assert_eq!(seconds(json!("inf")), Some(LONGEST.as_secs()));
        for unknown in
            [json!(null), json!("soon"), json!("nan"), json!([1]), json!({}), json!(true)]
        {
            assert_eq!(seconds(unknown.clone()), None, "{unknown}");
        }
        assert_eq!(Lifetime::read(None), Lifetime::Unknown);
    }

    #[test]
    fn token_is_refreshed_before_expiry() {
        let check = |lifetime: u64, age: u64, expected: Condition| {
            let lifetime = Lifetime::For(Duration::from_secs(lifetime));
            let found = condition(lifetime, Some(Duration::from_secs(age)));
            assert_eq!(found, expected, "{lifetime:?} {age}");
        };
        check(3600, 3539, Condition::Fresh);
        check(3600, 3540, Condition::Ageing);
        check(3600, 3600, Condition::Spent);
        check(100, 79, Condition::Fresh);
        check(100, 80, Condition::Ageing);
        check(0, 9, Condition::Fresh);
        check(0, 10, Condition::Spent);
        check(5, 11, Condition::Spent);
    }

    #[test]
    fn token_of_unknown_lifetime_or_age_is_used() {
        assert_eq!(condition(Lifetime::Unknown, Some(LONGEST)), Condition::Fresh);
        assert_eq!(condition(Lifetime::For(Duration::ZERO), None), Condition::Fresh);
    }
}
