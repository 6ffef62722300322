//! Size limits of every reply to a model, in one table. The limits hold whatever a server sends.
//!
//! Sizes are measured as a weight, which needs no tokenizer: an ASCII byte weighs one, any other
//! byte two. English and code have about four bytes a token. In the worst case, random characters
//! of any script, a weight of five costs four tokens. So even hostile text stays within its budget
//! of tokens, and real tools cost far less.

/// The size limit of one kind of reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    pub bytes: usize,
    /// The limit in tokens of the `o200k` tokenizer, in the worst case.
    pub tokens: usize,
}

impl Budget {
    const fn of(weight: usize) -> Budget {
        Budget { bytes: weight, tokens: weight / 5 * 4 }
    }

    /// A counter of the unused part of this budget, which is at first the whole budget.
    pub(crate) fn room(self) -> Room {
        Room { left: self.bytes }
    }
}

/// The size limit of the reply to `mcp({})`: all servers, and the parameters of `mcp`.
pub const STATUS: Budget = Budget::of(12_000);

/// The size limit of a page of search results with the default `limit`.
pub const SEARCH: Budget = Budget::of(3_200);

/// The size limit of a page of search results with a `limit` above the default.
pub const LONG_SEARCH: Budget = Budget::of(16_000);

/// The size limit of a page of the tools of one server, or of all servers.
pub const TOOLS: Budget = Budget::of(24_000);

/// The size limit of the description of one tool.
pub const DESCRIBE: Budget = Budget::of(32_000);

/// The size limit of the `instructions` of one server.
pub const INSTRUCTIONS: Budget = Budget::of(17_000);

/// The size limit of a list of resources or prompts.
pub const LISTS: Budget = Budget::of(24_000);

/// The size limit of an error with its hints and the expected parameters.
pub const FAILURE: Budget = Budget::of(8_000);

/// The weight of a text: an ASCII byte weighs one, any other byte two.
pub fn weight(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| !byte.is_ascii()).count()
}

/// The unused part of a budget.
#[derive(Debug)]
pub(crate) struct Room {
    left: usize,
}

impl Room {
    /// Subtracts the weight of the text from the unused budget; `false` if the text does not fit.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let Some(left) = self.left.checked_sub(weight(text)) else { return false };
        self.left = left;
        true
    }
}

/// Shortens a text to a weight of `max`. A shortened text ends in `…`.
pub(crate) fn cut(mut text: String, max: usize) -> String {
    if weight(&text) <= max {
        return text;
    }
    let mut room = Room { left: max.saturating_sub(weight("…")) };
    let fits = |(_, c): &(usize, char)| room.take(c.encode_utf8(&mut [0; 4]));
    let end = text.char_indices().take_while(fits).map(|(at, c)| at + c.len_utf8()).last();
    text.truncate(end.unwrap_or(0));
    text.push('…');
    text
}

#[cfg(test)]
mod hostile;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_ascii_bytes_count_double_in_text_weight() {
        assert_eq!(weight("plain"), 5);
        assert_eq!(weight("é"), 4);
        assert_eq!(weight("語"), 6);
    }

    #[test]
    fn truncated_text_has_whole_characters_within_weight_limit() {
        assert_eq!(cut("short".to_owned(), 5), "short");
        assert_eq!(cut("a longer text".to_owned(), 12), "a long…");
        assert_eq!(cut("語語語語".to_owned(), 20), "語語…");
        assert_eq!(cut("語".to_owned(), 0), "…");
    }

    /// Random characters that are not part of any word of the tokenizer cost the most tokens.
    #[test]
    fn token_count_is_below_four_fifths_of_text_weight() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move |below: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % u64::from(below)) as u32
        };
        let ranges = [
            (0x21, 0x7e),
            (0x30, 0x7a),
            (0x61, 0x7a),
            (0xc0, 0x24f),
            (0x300, 0x36f),
            (0x400, 0x52f),
            (0x600, 0x6ff),
            (0x3400, 0x4dbf),
            (0x4e00, 0x9fff),
            (0xa000, 0xa48c),
            (0xac00, 0xd7a3),
            (0xe000, 0xf8ff),
            (0x1f300, 0x1f9ff),
            (0x20000, 0x2a6df),
            (0xf0000, 0xffffd),
        ];
        for (first, last) in ranges {
            let text: String = (0..4_000)
                .filter_map(|_| char::from_u32(first + random(last - first + 1)))
                .collect();
            let tokens = bpe_openai::o200k_base().count(&text);
            assert!(tokens * 5 <= weight(&text) * 4, "{first:x}: {tokens} tokens");
        }
    }
}
