//! Estimates the number of tokens of a text, without the large dictionary of an exact tokenizer.
//!
//! The text is split into pieces as `o200k` does before it uses its dictionary. Most pieces of tool
//! definitions are one token. The rest have an average number that depends on kind and length. The
//! averages come from the definitions of 5,128 tools. `cargo xtask bench tokens` measures the
//! accuracy, and a test in this file checks it.

/// A number of tokens, in thousandths.
type Milli = u64;
const TOKEN: Milli = 1_000;

/// Sequences of punctuation, typical of JSON, that are one token although they are long.
const JOINTS: [&str; 6] = ["\":{\"", "\":[\"", ".\",\"", "\"},{\"", "\":\"\",\"", "},{\""];

/// The estimated number of tokens of a text.
pub fn about(text: &str) -> usize {
    let mut rest = text;
    let mut sum: Milli = 0;
    while let Some((piece, cost)) = next_piece(rest) {
        sum += cost;
        rest = rest.get(piece.len()..).unwrap_or_default();
    }
    usize::try_from((sum + TOKEN / 2) / TOKEN).unwrap_or(usize::MAX)
}

/// The first piece of the text and its tokens. A piece is a word with at most one punctuation
/// character before it, up to three digits, punctuation or white space. The pre-tokenizer of
/// `o200k` does not split it further.
fn next_piece(text: &str) -> Option<(&str, Milli)> {
    let word = |bytes| (head(text, bytes), word_cost(head(text, bytes)));
    let mut chars = text.chars();
    let first = chars.next()?;
    let second = chars.next();
    if first.is_alphabetic() {
        return Some(word(word_length(text)));
    }
    if first.is_numeric() {
        let digits = text.chars().take(3).take_while(|c| c.is_numeric());
        return Some((head(text, digits.map(char::len_utf8).sum()), TOKEN));
    }
    if second.is_some_and(char::is_alphabetic) && !matches!(first, '\r' | '\n') {
        let lead = first.len_utf8();
        return Some(word(lead + word_length(text.get(lead..).unwrap_or_default())));
    }
    let opens = if first == ' ' { second } else { Some(first) };
    if opens.is_some_and(|c| !c.is_whitespace() && !c.is_alphanumeric()) {
        let lead = usize::from(first == ' ');
        let signs = text.get(lead..).unwrap_or_default();
        let more = span(signs, |c| !c.is_whitespace() && !c.is_alphanumeric());
        let piece = head(text, lead + more);
        return Some((piece, punctuation_cost(piece)));
    }
    let run = span(text, char::is_whitespace);
    let last = head(text, run).chars().next_back().map_or(0, char::len_utf8);
    // The last space belongs to the next word.
    let kept = if run < text.len() && run > last { run - last } else { run };
    Some((head(text, kept), TOKEN))
}

/// The length of the word at the beginning of the text: upper-case letters and the lower-case
/// letters after them. The next upper-case letter begins another word.
fn word_length(text: &str) -> usize {
    let capitals = span(text, char::is_uppercase);
    let small = text.get(capitals..).unwrap_or_default();
    capitals + span(small, |c| c.is_alphabetic() && !c.is_uppercase())
}

/// The length in bytes of the characters at the beginning for which `belongs` is true.
fn span(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

fn head(text: &str, bytes: usize) -> &str {
    text.get(..bytes).unwrap_or(text)
}

fn punctuation_cost(text: &str) -> Milli {
    if JOINTS.contains(&text) {
        return TOKEN;
    }
    if !text.is_ascii() {
        return TOKEN + 500 * text.chars().skip(1).count() as Milli;
    }
    match text.len() {
        0..=3 => TOKEN,
        // The text repeats one character, as in a drawn line or box.
        length if is_one_sign(text) => TOKEN + 20 * length as Milli,
        4..=5 => 2 * TOKEN,
        length => 3 * TOKEN + 300 * (length as Milli - 6),
    }
}

fn is_one_sign(text: &str) -> bool {
    let mut signs = text.trim_start().bytes();
    let first = signs.next();
    signs.all(|sign| Some(sign) == first)
}

/// The tokens of a word: one, and a fraction for every letter above a limit.
fn word_cost(text: &str) -> Milli {
    let lead = text.chars().next().filter(|c| !c.is_alphabetic());
    let word = text.get(lead.map_or(0, char::len_utf8)..).unwrap_or_default();
    if !word.is_ascii() {
        return foreign_cost(word).max(TOKEN);
    }
    let rest = word.get(1..).unwrap_or_default();
    let capitals = rest.bytes().any(|c| c.is_ascii_uppercase());
    let capital = word.bytes().next().is_some_and(|c| c.is_ascii_uppercase());
    let (free, each) = match (lead, capital, capitals) {
        (None, _, true) => (2, 277),
        (None, true, false) => (2, 16),
        (None, false, false) => (2, 7),
        (Some(' '), _, true) => (2, 168),
        (Some(' '), true, false) => (2, 38),
        (Some(' '), false, false) => (4, 8),
        (Some(_), _, true) => (1, 190),
        (Some(_), true, false) => (1, 217),
        (Some(_), false, false) => (2, 80),
    };
    // Very long words are rarely in the dictionary.
    let long = 250 * word.len().saturating_sub(12) as Milli;
    TOKEN + each * word.len().saturating_sub(free) as Milli + long
}

/// The tokens of a word in another script. The dictionary covers some scripts better than others.
fn foreign_cost(word: &str) -> Milli {
    let each = |c: char| match c {
        '\0'..='\u{24f}' => 310,
        '\u{250}'..='\u{5ff}' if c.is_uppercase() => 900,
        '\u{250}'..='\u{5ff}' => 400,
        '\u{ac00}'..='\u{d7af}' => 800,
        '\u{2e80}'..='\u{9fff}' => 730,
        _ => 600,
    };
    word.chars().map(each).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tool_card;

    fn pieces(mut text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        while let Some((piece, _)) = next_piece(text) {
            text = text.strip_prefix(piece).unwrap();
            found.push(piece);
        }
        found
    }

    #[test]
    fn text_pieces_equal_those_of_the_o200k_tokenizer() {
        for text in [
            r#"{"name":"get_currentTime","inputSchema":{"type":"object"}}"#,
            "HTTPServer userID IDs v1234.5 — a/b\\nnext  two   spaces ",
            "查询 12306 车票, ñandú Ωmega",
        ] {
            let expected: Vec<&str> = bpe_openai::o200k_base().split(text).collect();
            assert_eq!(pieces(text), expected);
        }
    }

    #[test]
    fn estimated_tool_card_tokens_are_within_three_per_cent() {
        let card = tool_card::definition();
        let exact = bpe_openai::o200k_base().count(&card) as f64;
        let about = about(&card) as f64;
        assert!((about / exact - 1.0).abs() <= 0.03, "{about} for {exact}");
    }

    proptest! {
        #[test]
        fn token_estimate_never_exceeds_the_byte_count(text in ".*") {
            prop_assert_eq!(pieces(&text).concat(), &*text);
            prop_assert!(about(&text) <= text.len() + 1);
        }
    }
}
