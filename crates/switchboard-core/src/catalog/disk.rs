//! How a server's lists are written to a file: checksummed, so that any doubt is a miss.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::RawListing;

const MAGIC: &str = "switchboard-listing";
const VERSION: u32 = 1;

/// Lists are asked for again after this, unless the server says how long they hold.
pub const LISTING_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What a file holds besides the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// Of the definition that the lists belong to.
    pub definition: &'a str,
    /// Seconds since the epoch.
    pub listed_at: u64,
}

/// The bytes of a cache file: a header line, then the lists as JSON.
pub fn encode(listing: &RawListing, stamp: Stamp<'_>) -> Vec<u8> {
    let body = serde_json::to_vec(listing).unwrap_or_default();
    let sum = checksum(&body, stamp);
    let Stamp { definition, listed_at } = stamp;
    let mut file =
        format!("{MAGIC} {VERSION} {definition} {listed_at} {} {sum}\n", body.len()).into_bytes();
    file.extend_from_slice(&body);
    file
}

/// The lists of a file that is whole, of this version, about this definition, and not too old.
pub fn decode(file: &[u8], definition: &str, now: u64) -> Option<RawListing> {
    let end = file.iter().position(|byte| *byte == b'\n')?;
    let (header, rest) = file.split_at_checked(end)?;
    let body = rest.get(1..)?;
    let header = std::str::from_utf8(header).ok()?;
    let mut fields = header.split(' ');
    let mut next = || fields.next();
    if next()? != MAGIC || next()? != VERSION.to_string() || next()? != definition {
        return None;
    }
    let listed_at: u64 = next()?.parse().ok()?;
    let length: usize = next()?.parse().ok()?;
    if body.len() != length || next()? != checksum(body, Stamp { definition, listed_at }) {
        return None;
    }
    let listing: RawListing = serde_json::from_slice(body).ok()?;
    let lifetime = listing
        .ttl_ms
        .map_or(LISTING_LIFETIME, |ttl| Duration::from_millis(ttl).min(LISTING_LIFETIME));
    // A time in the future is a clock that was set back; the lists are not younger for it.
    let age = Duration::from_secs(now.saturating_sub(listed_at));
    (age < lifetime || age.is_zero() && !lifetime.is_zero()).then_some(listing)
}

fn checksum(body: &[u8], stamp: Stamp<'_>) -> String {
    let mut hash = Sha256::new();
    hash.update(stamp.listed_at.to_le_bytes());
    hash.update(stamp.definition);
    hash.update(body);
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    const DAY: u64 = 24 * 60 * 60;

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
    fn lists_come_back_word_for_word() {
        let read = decode(&file(None), "abc", 1_000_000 + DAY).unwrap();
        assert_eq!(read.tools[0].get(), listing(None).tools[0].get());
        assert_eq!(read.instructions.as_deref(), Some("use with care"));
    }

    #[test]
    fn lists_of_another_definition_or_too_old_are_a_miss() {
        assert!(decode(&file(None), "abd", 1_000_000).is_none());
        assert!(decode(&file(None), "abc", 1_000_000 + 7 * DAY).is_none());
        assert!(decode(&file(Some(60_000)), "abc", 1_000_061).is_none());
        assert!(decode(&file(Some(60_000)), "abc", 1_000_059).is_some());
        assert!(decode(&file(Some(0)), "abc", 1_000_000).is_none());
    }

    #[test]
    fn a_truncated_file_is_a_miss_at_every_byte() {
        let whole = file(None);
        for end in 0..whole.len() {
            assert!(decode(&whole[..end], "abc", 1_000_000).is_none(), "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn a_flipped_bit_is_a_miss(at in any::<proptest::sample::Index>(), bit in 0..8u8) {
            let mut damaged = file(None);
            let at = at.index(damaged.len());
            damaged[at] ^= 1 << bit;
            prop_assert!(decode(&damaged, "abc", 1_000_000).is_none());
        }
    }
}
