//! Properties of the functions that clean untrusted text for a terminal or a log.

use switchboard_core::render::words::{clean_block, clean_line, visible};

/// Cleaned text has no control characters or characters that reorder or hide text. Its length is
/// bounded, and cleaning it again changes nothing.
pub(crate) fn is_harmless(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for max in [0, 1, 7, 80, usize::MAX] {
        let line = clean_line(&text, max);
        check(&line, "");
        assert!(line.chars().count() <= max);
        assert_eq!(clean_line(&line, max), line);
        let block = clean_block(&text, max);
        check(&block, "\n\t");
        assert!(block.len() <= max);
        assert_eq!(clean_block(&block, max), block);
    }
    check(&visible(&text), "");
}

fn check(text: &str, allowed: &str) {
    let bad = |c: char| (c.is_control() || is_directional(c)) && !allowed.contains(c);
    assert_eq!(text.chars().find(|c| bad(*c)), None, "{text:?}");
}

fn is_directional(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
