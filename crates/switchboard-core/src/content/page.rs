//! Reads a stored text by lines: a page of it, or the lines that match a pattern.

use super::guard::Limits;
use crate::pattern::Pattern;
use crate::render::words;

/// Which lines of a stored text to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// How many lines of the text to pass over.
    pub offset: usize,
    /// How many lines to show, at most.
    pub limit: Option<usize>,
}

/// A part of a stored text; its last line says which part, and how to go on.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    pub text: String,
    /// Lines of the text, or matches from the offset on.
    pub total: usize,
    pub shown: usize,
    /// The offset of what comes next.
    pub next: Option<usize>,
}

/// The lines of `text` in `window`, as many as `limits` allow.
pub fn page(text: &str, window: Window, limits: &Limits) -> Page {
    let mut sheet = Sheet::new(limits, window.limit);
    let mut total = 0;
    for (index, line) in text.split_terminator('\n').enumerate() {
        total = index + 1;
        if index >= window.offset {
            sheet.add(index, line);
        }
    }
    let last = window.offset.saturating_add(sheet.shown);
    let place = if sheet.shown == 0 {
        format!("no lines from offset {}, {} in all", window.offset, words::plural(total, "line"))
    } else {
        let first = words::thousands(window.offset + 1);
        format!("lines {first}-{} of {}", words::thousands(last), words::thousands(total))
    };
    sheet.finish(&place, total)
}

/// The lines of `text` in `window` that match, each with its number; the limit counts matches.
pub fn grep(text: &str, pattern: &Pattern, window: Window, limits: &Limits) -> Page {
    let mut sheet = Sheet::new(limits, window.limit);
    let mut matches = 0;
    let mut lines = 0;
    for (index, line) in text.split_terminator('\n').enumerate() {
        lines = index + 1;
        if index < window.offset || !pattern.is_match(line) {
            continue;
        }
        matches += 1;
        if sheet.next.is_none() {
            sheet.add(index, &format!("{}: {}", index + 1, excerpt(pattern, line)));
        }
    }
    let place = format!(
        "{} of {} in {}",
        words::thousands(sheet.shown),
        words::plural(matches, "match"),
        words::plural(lines.saturating_sub(window.offset), "line"),
    );
    sheet.finish(&place, matches)
}

/// The line, or what stands around the match in a line too long to show.
fn excerpt(pattern: &Pattern, line: &str) -> String {
    const MAX_BYTES: usize = 2_000;
    const BEFORE: usize = 500;
    if line.len() <= MAX_BYTES {
        return line.to_owned();
    }
    let found = pattern.first_match(line).unwrap_or(0);
    let start = line.floor_char_boundary(found.saturating_sub(BEFORE));
    let end = line.floor_char_boundary(start + MAX_BYTES);
    let left = if start > 0 { "…" } else { "" };
    let right = if end < line.len() { "…" } else { "" };
    format!("{left}{}{right}", line.get(start..end).unwrap_or_default())
}

/// Collects lines until a budget is used up.
struct Sheet {
    text: String,
    bytes_left: usize,
    lines_left: usize,
    shown: usize,
    next: Option<usize>,
    /// The first line, where it alone was too long, and its length.
    cut: Option<(usize, usize)>,
}

impl Sheet {
    fn new(limits: &Limits, limit: Option<usize>) -> Sheet {
        /// What the last line may take.
        const FOOT_BYTES: usize = 200;
        let limits = limits.workable();
        Sheet {
            text: String::new(),
            bytes_left: limits.max_bytes - FOOT_BYTES,
            lines_left: limit.unwrap_or(usize::MAX).min(limits.max_lines - 1),
            shown: 0,
            next: None,
            cut: None,
        }
    }

    /// Adds a line, or notes that it is the next one to read.
    fn add(&mut self, index: usize, line: &str) {
        if self.next.is_some() {
            return;
        }
        let too_long = line.len() >= self.bytes_left;
        if self.lines_left == 0 || (too_long && self.shown > 0) {
            self.next = Some(index);
            return;
        }
        let mut line = line;
        if too_long {
            self.cut = Some((index, line.len()));
            line = line.get(..line.floor_char_boundary(self.bytes_left - 1)).unwrap_or_default();
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.bytes_left -= line.len() + 1;
        self.lines_left -= 1;
        self.shown += 1;
    }

    fn finish(mut self, place: &str, total: usize) -> Page {
        self.text.push('[');
        self.text.push_str(place);
        if let Some((index, length)) = self.cut {
            let length = words::bytes(length);
            self.text.push_str(&format!(" · line {} cut, it has {length}", index + 1));
        }
        if let Some(next) = self.next {
            self.text.push_str(&format!(" · next offset: {next}"));
        }
        self.text.push(']');
        Page { text: self.text, total, shown: self.shown, next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::content::guard::line_count;
    use crate::pattern::Case;

    fn numbered(count: usize) -> String {
        (1..=count).map(|n| format!("line {n}\n")).collect()
    }

    fn window(offset: usize, limit: usize) -> Window {
        Window { offset, limit: Some(limit) }
    }

    #[test]
    fn a_page_says_where_it_is() {
        let check = |at: Window, expected: &str| {
            assert_eq!(page(&numbered(1_200), at, &Limits::DEFAULT).text, expected);
        };
        check(window(0, 2), "line 1\nline 2\n[lines 1-2 of 1,200 · next offset: 2]");
        check(window(1_198, 9), "line 1199\nline 1200\n[lines 1,199-1,200 of 1,200]");
        check(window(1_200, 9), "[no lines from offset 1200, 1,200 lines in all]");
        check(
            window(usize::MAX, 9),
            &format!("[no lines from offset {}, 1,200 lines in all]", usize::MAX),
        );
    }

    #[test]
    fn a_giant_line_is_cut_and_the_next_one_reachable() {
        let text = format!("a\n{}\nz", "é".repeat(1_000));
        let limits = Limits { max_bytes: 500, max_lines: 10 };
        let first = page(&text, Window::default(), &limits);
        assert_eq!((first.shown, first.next), (1, Some(1)));
        let second = page(&text, window(1, 9), &limits);
        assert_eq!((second.shown, second.next), (1, Some(2)));
        assert!(
            second
                .text
                .ends_with("\n[lines 2-2 of 3 · line 2 cut, it has 2.0 KiB · next offset: 2]")
        );
        assert!(second.text.len() <= 500);
    }

    #[test]
    fn grep_gives_numbered_lines() {
        let check = |pattern: &str, at: Window, expected: &str| {
            let pattern = Pattern::compile(pattern, Case::Matters).unwrap();
            assert_eq!(grep(&numbered(120), &pattern, at, &Limits::DEFAULT).text, expected);
        };
        check(
            "7$",
            window(0, 2),
            "7: line 7\n17: line 17\n[2 of 12 matches in 120 lines · next offset: 26]",
        );
        check("7$", window(26, 1), "27: line 27\n[1 of 10 matches in 94 lines · next offset: 36]");
        check("(?i)LINE 120", Window::default(), "120: line 120\n[1 of 1 match in 120 lines]");
        check("nothing", Window::default(), "[0 of 0 matches in 120 lines]");
    }

    #[test]
    fn grep_shows_what_surrounds_a_match_in_a_giant_line() {
        let text = format!("{}NEEDLE{}", "é".repeat(9_000), "é".repeat(9_000));
        let found = grep(
            &text,
            &Pattern::compile("NEEDLE", Case::Matters).unwrap(),
            Window::default(),
            &Limits::DEFAULT,
        );
        assert!(found.text.starts_with("1: …é") && found.text.contains("NEEDLE"));
        assert!(found.text.len() < 2_200, "{}", found.text.len());
    }

    proptest! {
        #[test]
        fn pages_are_bounded_and_cover_every_line(
            lines in proptest::collection::vec("[a-zé]{0,40}", 0..80),
            max_bytes in 0usize..900,
            max_lines in 0usize..20,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let limits = Limits { max_bytes, max_lines };
            let every_line = |text: &str, at: Window, limits: &Limits| {
                grep(text, &Pattern::compile("", Case::Matters).unwrap(), at, limits)
            };
            for read in [page, every_line] {
                let mut seen = 0;
                let mut next = Some(0);
                while let Some(offset) = next {
                    let Page { text, shown, next: after, .. } =
                        read(&text, Window { offset, limit: None }, &limits);
                    prop_assert!(text.len() <= max_bytes.max(Limits::LEAST.max_bytes));
                    prop_assert!(line_count(&text) <= max_lines.max(Limits::LEAST.max_lines));
                    prop_assert!(after.is_none_or(|after| after > offset));
                    seen += shown;
                    next = after;
                }
                prop_assert_eq!(seen, lines.len());
            }
        }
    }
}
