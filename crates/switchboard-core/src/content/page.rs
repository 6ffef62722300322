//! Pages of a stored text: a range of its lines, or the lines that match a pattern.

use super::guard::TextLimits;
use super::lines::Lines;
use crate::hidden;
use crate::pattern::{Pattern, TooSlow};
use crate::render::words;

/// Which lines of a stored text a page shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Window {
    /// The number of lines before the page.
    pub offset: usize,
    /// The maximum number of lines, or of matches, on the page.
    pub limit: Option<usize>,
}

/// A page of a stored text.
#[derive(Debug, PartialEq, Eq)]
pub struct ResultPage {
    pub body: String,
    /// The last line of the page. It tells which lines are shown, and the offset of the next page.
    pub foot: String,
    /// The number of lines of the text, or the number of matches from the offset on.
    pub total: usize,
    pub shown: usize,
    /// The offset of the next page; `None` on the last page.
    pub next: Option<usize>,
}

impl ResultPage {
    pub fn text(&self) -> String {
        let ResultPage { body, foot, .. } = self;
        if body.is_empty() { foot.clone() } else { format!("{body}\n{foot}") }
    }
}

/// The maximum number of bytes of the last line of a page, with its line break.
const FOOT_BYTES: usize = 200;

/// The lines of `text` that `window` selects, up to the size of `limits`.
pub fn page(text: &str, window: Window, limits: &TextLimits) -> ResultPage {
    let mut room = Room::of(limits, window.limit);
    let (mut total, mut shown, mut next) = (0, 0, None);
    let mut part = 0..0;
    for (index, line) in Lines::of(text, limits).spans().enumerate() {
        total = index + 1;
        if index < window.offset || next.is_some() {
            continue;
        }
        if shown == 0 {
            part = line.start..line.start;
        }
        // The size is measured from the end of the previous line, so that it includes the line
        // break.
        if room.take(line.end - part.end) {
            part.end = line.end;
            shown += 1;
        } else {
            next = Some(index);
        }
    }
    let place = if shown == 0 {
        format!("no lines from offset {}, {} in all", window.offset, words::plural(total, "line"))
    } else {
        let first = words::thousands(window.offset + 1);
        let last = words::thousands(window.offset.saturating_add(shown));
        format!("lines {first}-{last} of {}", words::thousands(total))
    };
    let body = text.get(part).unwrap_or_default().to_owned();
    ResultPage { foot: foot(&place, next, &body), body, total, shown, next }
}

/// The lines of `text` that match the pattern, each with its number. The limit of `window` is a
/// number of matches. Fails when `is_over` says that the search took long enough.
pub fn grep(
    text: &str,
    pattern: &Pattern,
    window: Window,
    limits: &TextLimits,
    is_over: &dyn Fn() -> bool,
) -> Result<ResultPage, TooSlow> {
    let lines = Lines::of(text, limits);
    let mut room = Room::of(limits, window.limit);
    let (mut count, mut matches, mut shown, mut next) = (0, 0, 0, None);
    let mut body = String::new();
    for line in text.split_terminator('\n') {
        // The whole line is searched, because a match may span two pieces of it.
        let mut found = pattern.match_from(line, 0, is_over)?;
        for piece in lines.pieces(line) {
            let index = count;
            count += 1;
            if index < window.offset {
                continue;
            }
            // The next match begins after the previous one, so that a match of the whole line is
            // not searched again for each piece.
            if let Some(earlier) = found.take_if(|found| found.start < piece.start) {
                found = pattern.match_from(line, earlier.end.max(piece.start), is_over)?;
            }
            let is_last = piece.end == line.len();
            let at = found.as_ref().map(|found| found.start);
            let Some(at) = at.filter(|at| *at < piece.end || is_last) else { continue };
            matches += 1;
            let entry = format!("{}: {}\n", index + 1, excerpt(line, at, lines.longest));
            if next.is_none() && room.take(entry.len()) {
                body.push_str(&entry);
                shown += 1;
            } else {
                next = next.or(Some(index));
            }
        }
    }
    body.truncate(body.trim_end_matches('\n').len());
    let place = format!(
        "{} of {} in {}",
        words::thousands(shown),
        words::plural(matches, "match"),
        words::plural(count.saturating_sub(window.offset), "line"),
    );
    Ok(ResultPage { foot: foot(&place, next, &body), body, total: matches, shown, next })
}

/// The last line of a page. It counts the hidden characters of the page, because the note about the
/// whole result may not be on this page.
fn foot(place: &str, next: Option<usize>, body: &str) -> String {
    let next = next.map(|next| format!(" · next offset: {next}")).unwrap_or_default();
    let hidden = hidden::find(body).map(|hidden| hidden.in_data()).filter(|count| *count > 0);
    let hidden =
        hidden.map(|count| format!(" · {} in this part", words::plural(count, "hidden character")));
    format!("[{place}{next}{}]", hidden.unwrap_or_default())
}

/// The line, or if it is too long, the part around the match.
fn excerpt(line: &str, found: usize, longest: usize) -> String {
    if line.len() <= longest {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(found.saturating_sub(longest / 4));
    let end = line.floor_char_boundary(start + longest);
    let left = if start > 0 { "…" } else { "" };
    let right = if end < line.len() { "…" } else { "" };
    format!("{left}{}{right}", line.get(start..end).unwrap_or_default())
}

/// The bytes and lines that still fit on a page.
struct Room {
    bytes: usize,
    lines: usize,
}

impl Room {
    fn of(limits: &TextLimits, limit: Option<usize>) -> Room {
        let limits = limits.workable();
        Room {
            bytes: limits.max_bytes - FOOT_BYTES,
            lines: limit.unwrap_or(usize::MAX).min(limits.max_lines - 1),
        }
    }

    /// Subtracts a line of `bytes` bytes from the free space; `false` if the line does not fit.
    fn take(&mut self, bytes: usize) -> bool {
        if self.lines == 0 || bytes > self.bytes {
            return false;
        }
        self.lines -= 1;
        self.bytes -= bytes;
        true
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
    fn last_line_of_a_result_page_states_line_range() {
        let check = |at: Window, expected: &str| {
            assert_eq!(page(&numbered(1_200), at, &TextLimits::DEFAULT).text(), expected);
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
    fn result_page_footer_ignores_non_breaking_spaces() {
        let text = format!("a{}b", "\u{a0}".repeat(40));
        assert!(hidden::find(&text).is_some(), "a description with them is marked");
        assert_eq!(foot("lines 1 to 2", None, &text), "[lines 1 to 2]");
    }

    #[test]
    fn last_line_of_a_page_counts_its_hidden_characters() {
        let text = "plain\nmid\u{200b}\u{e0041}dle\nend\u{1b}[8m\n";
        let read = |at: Window| page(text, at, &TextLimits::DEFAULT).foot;
        assert_eq!(read(window(0, 1)), "[lines 1-1 of 3 · next offset: 1]");
        let middle = "[lines 2-2 of 3 · next offset: 2 · 2 hidden characters in this part]";
        assert_eq!(read(window(1, 1)), middle);
        let pattern = Pattern::compile("end", Case::Matters).unwrap();
        let found =
            grep(text, &pattern, Window::default(), &TextLimits::DEFAULT, &|| false).unwrap();
        assert_eq!(found.foot, "[1 of 1 match in 3 lines · 4 hidden characters in this part]");
    }

    #[test]
    fn pages_of_a_giant_line_concatenate_to_the_line() {
        let json = format!("[{}1]", "1234567890,".repeat(20_000));
        let mut read = String::new();
        let mut next = Some(0);
        let mut pages = 0;
        while let Some(offset) = next {
            let page = page(&json, Window { offset, limit: None }, &TextLimits::DEFAULT);
            read.push_str(&page.body);
            (next, pages) = (page.next, pages + 1);
        }
        assert_eq!((read, pages), (json.clone(), 5));
        let two = page(&json, window(3, 2), &TextLimits::DEFAULT);
        assert_eq!(two.body, json[6_000..10_000], "nothing is put between the pieces");
        assert_eq!(two.foot, "[lines 4-5 of 111 · next offset: 5]");
    }

    #[test]
    fn grep_returns_numbered_lines() {
        let check = |pattern: &str, at: Window, expected: &str| {
            let pattern = Pattern::compile(pattern, Case::Matters).unwrap();
            assert_eq!(
                grep(&numbered(120), &pattern, at, &TextLimits::DEFAULT, &|| false).unwrap().text(),
                expected
            );
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
    fn grep_in_a_giant_line_shows_text_around_matches() {
        let gap = "é".repeat(8_500);
        // The second match crosses the border between two pieces of the line.
        let text = format!("{gap}NEEDLE{}NEEDLE{gap}", "x".repeat(2_991));
        let pattern = Pattern::compile("NEEDLE", Case::Matters).unwrap();
        let found =
            grep(&text, &pattern, Window::default(), &TextLimits::DEFAULT, &|| false).unwrap();
        let lines: Vec<&str> = found.body.lines().collect();
        assert_eq!((lines.len(), found.total), (2, 2), "{}", found.foot);
        for (line, number) in lines.into_iter().zip(["9: …é", "10: …x"]) {
            assert!(line.starts_with(number), "{}", &line[..20]);
            assert!(line.contains("NEEDLE") && line.len() < 2_020);
        }
    }

    #[test]
    fn grep_matches_do_not_overlap_in_a_giant_line() {
        let text = format!("{} and {}", "x".repeat(100_000), "x".repeat(50_000));
        for (pattern, matches) in [("x+", 2), ("x.*", 1)] {
            let pattern = Pattern::compile(pattern, Case::Matters).unwrap();
            let found =
                grep(&text, &pattern, Window::default(), &TextLimits::DEFAULT, &|| false).unwrap();
            assert_eq!(found.total, matches, "{pattern:?}");
        }
    }

    proptest! {
        #[test]
        fn result_pages_are_bounded_and_cover_every_line(
            lines in proptest::collection::vec("[a-zé]{0,200}", 0..40),
            max_bytes in 0usize..900,
            max_lines in 0usize..20,
        ) {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let limits = TextLimits { max_bytes, max_lines };
            let every_line = |text: &str, at: Window, limits: &TextLimits| {
                grep(text, &Pattern::compile("", Case::Matters).unwrap(), at, limits, &|| false).unwrap()
            };
            for read in [page, every_line] {
                let mut seen = 0;
                let mut next = Some(0);
                while let Some(offset) = next {
                    let page = read(&text, Window { offset, limit: None }, &limits);
                    prop_assert!(page.text().len() <= max_bytes.max(TextLimits::LEAST.max_bytes));
                    prop_assert!(line_count(&page.text()) <= max_lines.max(TextLimits::LEAST.max_lines));
                    prop_assert!(page.next.is_none_or(|next| next > offset));
                    seen += page.shown;
                    next = page.next;
                }
                prop_assert_eq!(seen, Lines::of(&text, &limits).count());
            }
        }
    }
}
