//! Properties of the cache files that hold a server's lists.

use serde_json::value::RawValue;
use switchboard_core::catalog::RawListing;
use switchboard_core::catalog::disk::{self, Stamp};

const DEFINITION: &str = "fuzz";
const NOW: u64 = 1_000_000;

/// Any bytes either parse as a listing that stays the same when it is written again, or are a cache
/// miss. A damaged file is a miss.
pub(crate) fn is_whole_or_a_miss(input: &[u8]) {
    if let Ok((listing, _)) = disk::decode(input, DEFINITION, NOW) {
        assert_eq!(text(&again(&listing)), text(&listing));
    }
    let tools = std::str::from_utf8(input).ok().and_then(|text| {
        let tool = RawValue::from_string(text.to_owned()).ok()?;
        Some(vec![tool])
    });
    let instructions = Some(String::from_utf8_lossy(input).into_owned());
    let listing =
        RawListing { tools: tools.unwrap_or_default(), instructions, ..RawListing::default() };
    let file = disk::encode(&listing, Stamp { definition: DEFINITION, listed_at: NOW });
    assert_eq!(text(&again(&listing)), text(&listing));
    // The input determines the position and the value of the damaged byte.
    let seed = input.iter().fold(7_usize, |sum, byte| sum.wrapping_mul(31) + usize::from(*byte));
    let mut damaged = file.clone();
    let at = seed % file.len();
    if let Some(byte) = damaged.get_mut(at) {
        *byte ^= 1 << (seed % 8);
    }
    assert!(disk::decode(&damaged, DEFINITION, NOW).is_err(), "byte {at} was changed");
    assert!(disk::decode(file.get(..at).unwrap_or_default(), DEFINITION, NOW).is_err());
}

fn again(listing: &RawListing) -> RawListing {
    let file = disk::encode(listing, Stamp { definition: DEFINITION, listed_at: NOW });
    disk::decode(&file, DEFINITION, NOW).expect("a file that was just written is valid").0
}

fn text(listing: &RawListing) -> String {
    serde_json::to_string(listing).expect("a listing is JSON")
}
