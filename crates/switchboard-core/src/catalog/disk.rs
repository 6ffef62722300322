//! The cache file of a server's listing. Its checksum ensures that a damaged file is not used.

use std::time::Duration;

use super::sealed::Seal;
use super::{Era, RawListing};

const SEAL: Seal = Seal { magic: "switchboard-listing", version: 2 };

/// The lifetime of cached lists. It does not depend on `ttlMs`, because SDKs send 0 by default.
pub const LISTING_LIFETIME: Duration = Duration::from_secs(7 * DAY);

/// The age from which cached lists are refreshed in the background if they are also stale by
/// `ttlMs`.
const REFRESH_AGE: Duration = Duration::from_secs(DAY);

const DAY: u64 = 24 * 60 * 60;

/// The age from which a cache file with unchanged lists is written again, so that it does not
/// expire.
const RENEWAL: Duration = Duration::from_secs(10 * 60);

/// The header data of a cache file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// The hash of the server's definition when the lists were requested.
    pub definition: &'a str,
    /// The time when the lists were requested, in seconds since the epoch.
    pub listed_at: u64,
}

/// Why the lists of a cache file cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The file is damaged, or was written by another version of Switchboard.
    Damaged,
    /// The file was written for another definition of the server, which may list other tools.
    Foreign,
    /// The cached lists are older than [`LISTING_LIFETIME`].
    Expired,
    /// The cached lists are private to one credential, and the credential in use now is unknown.
    OtherCredential,
}

/// Whether Switchboard connects to the server just to refresh its cached lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refresh {
    #[default]
    NotDue,
    /// The cached lists are stale by the `ttlMs` of the server, and older than a day.
    Due,
}

/// The content of the cache file for these lists.
pub fn encode(listing: &RawListing, stamp: Stamp<'_>) -> Vec<u8> {
    let body = serde_json::to_vec(listing).unwrap_or_default();
    SEAL.close(&[stamp.definition, &stamp.listed_at.to_string()], &body)
}

/// The content that replaces the cache file `present`. `None` if the file has the same lists and
/// was written recently.
pub fn renewed(present: Option<&[u8]>, listing: &RawListing, stamp: Stamp<'_>) -> Option<Vec<u8>> {
    let body = serde_json::to_vec(listing).unwrap_or_default();
    let is_current = |file: &[u8]| {
        let ([owner, listed_at], known) = SEAL.open(file)?;
        let age = stamp.listed_at.checked_sub(listed_at.parse().ok()?)?;
        Some(owner == stamp.definition && known == body && age < RENEWAL.as_secs())
    };
    if present.and_then(is_current) == Some(true) {
        return None;
    }
    Some(SEAL.close(&[stamp.definition, &stamp.listed_at.to_string()], &body))
}

/// The lists in a cache file, if the file is undamaged, was written for this definition and has not
/// expired.
pub fn decode(file: &[u8], definition: &str, now: u64) -> Result<(RawListing, Refresh), Miss> {
    let ([owner, listed_at], body) = SEAL.open(file).ok_or(Miss::Damaged)?;
    if owner != definition {
        return Err(Miss::Foreign);
    }
    let listed_at: u64 = listed_at.parse().map_err(|_| Miss::Damaged)?;
    let listing: RawListing = serde_json::from_slice(body).map_err(|_| Miss::Damaged)?;
    // A listing time in the future means that the clock was set back. Its age is then zero.
    let age = Duration::from_secs(now.saturating_sub(listed_at));
    if age >= LISTING_LIFETIME {
        return Err(Miss::Expired);
    }
    let ttl = listing.ttl_ms.map(Duration::from_millis);
    let due = ttl.is_some_and(|ttl| age >= ttl.max(REFRESH_AGE));
    Ok((listing, if due { Refresh::Due } else { Refresh::NotDue }))
}

/// The era of the server that a cache file records, even if its lists have expired. `None` if the
/// file is damaged or belongs to another definition.
pub fn era(file: &[u8], definition: &str) -> Option<Era> {
    let ([owner, _listed_at], body) = SEAL.open(file)?;
    let listing: RawListing = serde_json::from_slice(body).ok()?;
    listing.era.filter(|_| owner == definition)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    fn listing(ttl_ms: Option<u64>) -> RawListing {
        let tool = r#"{"name":"a","inputSchema":{},"vendor":{"z":1.0,"a":2}}"#;
        RawListing {
            tools: vec![RawValue::from_string(tool.to_owned()).unwrap()],
            instructions: Some("use with care".to_owned()),
            ttl_ms,
            ..RawListing::default()
        }
    }

    fn file(ttl_ms: Option<u64>) -> Vec<u8> {
        encode(&listing(ttl_ms), Stamp { definition: "abc", listed_at: 1_000_000 })
    }

    #[test]
    fn unchanged_cached_listing_is_rewritten_only_after_ten_minutes() {
        let at = |listed_at| Stamp { definition: "abc", listed_at };
        let writes = |ttl_ms, listed_at| {
            let present = file(ttl_ms);
            renewed(Some(&present), &listing(ttl_ms), at(listed_at)).is_some()
        };
        assert!(!writes(None, 1_000_000) && !writes(None, 1_000_599));
        assert!(writes(None, 1_000_600), "so that they do not expire");
        assert!(writes(None, 999_999), "the clock was set back");
        assert!(!writes(Some(0), 1_000_599) && writes(Some(0), 1_000_600));
        assert!(renewed(None, &listing(None), at(1)).is_some());
        assert!(renewed(Some(b"damaged"), &listing(None), at(1)).is_some());
        assert!(renewed(Some(&file(None)), &listing(Some(5)), at(1_000_000)).is_some());
        let other = Stamp { definition: "abd", listed_at: 1_000_000 };
        assert!(renewed(Some(&file(None)), &listing(None), other).is_some());
    }

    #[test]
    fn stored_listing_is_decoded_unchanged() {
        let (read, _) = decode(&file(None), "abc", 1_000_000 + DAY).unwrap();
        assert_eq!(read.tools[0].get(), listing(None).tools[0].get());
        assert_eq!(read.instructions.as_deref(), Some("use with care"));
    }

    #[test]
    fn cached_listing_is_unused_if_expired_or_definition_changed() {
        let check = |ttl, definition, age, expected| {
            let found = decode(&file(ttl), definition, 1_000_000 + age);
            assert_eq!(found.map(|(_, refresh)| refresh), expected, "{ttl:?} {age}");
        };
        check(None, "abd", 0, Err(Miss::Foreign));
        for ttl in [None, Some(0), Some(60_000), Some(u64::MAX)] {
            check(ttl, "abc", 7 * DAY, Err(Miss::Expired));
        }
    }

    #[test]
    fn listing_with_ttl_is_refreshed_at_most_once_daily() {
        let check = |ttl, age, expected| {
            let found = decode(&file(ttl), "abc", 1_000_000 + age);
            assert_eq!(found.map(|(_, refresh)| refresh), Ok(expected), "{ttl:?} {age}");
        };
        for age in [0, 61, DAY - 1] {
            check(Some(0), age, Refresh::NotDue);
            check(Some(60_000), age, Refresh::NotDue);
        }
        check(Some(0), DAY, Refresh::Due);
        check(Some(2 * DAY * 1_000), DAY, Refresh::NotDue);
        check(Some(2 * DAY * 1_000), 2 * DAY, Refresh::Due);
        check(None, 7 * DAY - 1, Refresh::NotDue);
    }

    #[test]
    fn stored_era_is_used_unless_the_definition_changed() {
        let stamp = Stamp { definition: "abc", listed_at: 1_000_000 };
        let of = |era| encode(&RawListing { era, ..listing(Some(0)) }, stamp);
        let modern = of(Some(Era::Modern));
        assert_eq!(decode(&modern, "abc", 1_000_000 + 7 * DAY).map(drop), Err(Miss::Expired));
        assert_eq!(era(&modern, "abc"), Some(Era::Modern));
        assert_eq!(era(&modern, "abd"), None);
        assert_eq!(era(&modern[1..], "abc"), None);
        assert_eq!(era(&of(None), "abc"), None);
    }

    #[test]
    fn truncated_listing_file_is_a_cache_miss() {
        let whole = file(None);
        for end in 0..whole.len() {
            let cut = decode(&whole[..end], "abc", 1_000_000);
            assert_eq!(cut.map(drop), Err(Miss::Damaged), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn listing_file_with_flipped_bit_is_a_cache_miss(at in any::<proptest::sample::Index>(), bit in 0..8u8) {
            let mut damaged = file(None);
            let at = at.index(damaged.len());
            damaged[at] ^= 1 << bit;
            prop_assert!(decode(&damaged, "abc", 1_000_000).is_err());
        }
    }
}
