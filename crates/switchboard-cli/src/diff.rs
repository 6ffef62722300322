//! The change of a file, as a short unified diff without secrets.

use std::fmt::Write;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, Hunk, InternedInput};
use switchboard::config::install::Target;
use switchboard::config::mask::{masked, masked_of_host};
use switchboard::edit::Edited;
use switchboard::render::words::{clean_block, clean_line};

use crate::style::Palette;

/// The number of unchanged lines that are shown around a change.
const CONTEXT: usize = 2;
const LONGEST_LINE: usize = 500;

/// The path of a changed file and a diff of the change, with masked secrets.
pub(crate) fn text(edited: &Edited, palette: Palette) -> String {
    of_masked(edited, (masked(&edited.before), masked(&edited.after)), palette)
}

/// As [`text`], but for a host's file, of which only servers are shown.
pub(crate) fn of_host(edited: &Edited, target: Target, palette: Palette) -> String {
    let masked = |text| masked_of_host(text, target);
    of_masked(edited, (masked(&edited.before), masked(&edited.after)), palette)
}

/// Compares the unmasked lines and shows the masked ones. Masking does not change the number of
/// lines.
fn of_masked(
    edited: &Edited,
    masked: (Option<String>, Option<String>),
    palette: Palette,
) -> String {
    let path = edited.path.to_string_lossy();
    let mut out = format!("{}\n", palette.name(clean_line(&path, 1_000)));
    let (Some(before), Some(after)) = masked else {
        return out;
    };
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let shown = |lines: &[&str], index: usize| {
        clean_block(lines.get(index).copied().unwrap_or_default(), LONGEST_LINE).into_owned()
    };
    let input = InternedInput::new(edited.before.as_str(), edited.after.as_str());
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let changes: Vec<Hunk> = diff.hunks().collect();
    for hunk in grouped(&changes) {
        let (old, new) = with_context(hunk, &before, &after);
        let header = format!("@@ -{} +{} @@", range(&old), range(&new));
        let _ = writeln!(out, "{}", palette.aside(header));
        let mut next = new.start;
        let unchanged = |out: &mut String, lines: Range<usize>| {
            for line in lines {
                let _ = writeln!(out, " {}", palette.aside(shown(&after, line)));
            }
        };
        for change in hunk {
            let (removed, added) = (line_range(&change.before), line_range(&change.after));
            unchanged(&mut out, next..added.start);
            next = added.end;
            for line in removed {
                let _ = writeln!(out, "{}", palette.error(format!("-{}", shown(&before, line))));
            }
            for line in added {
                let _ = writeln!(out, "{}", palette.command(format!("+{}", shown(&after, line))));
            }
        }
        unchanged(&mut out, next..new.end);
    }
    out
}

/// Groups changes into hunks: changes whose context overlaps are in one hunk.
fn grouped(changes: &[Hunk]) -> impl Iterator<Item = &[Hunk]> {
    changes.chunk_by(|one, next| {
        line_range(&next.after).start <= line_range(&one.after).end + 2 * CONTEXT
    })
}

/// The line ranges of a hunk before and after the change, with context.
fn with_context(hunk: &[Hunk], before: &[&str], after: &[&str]) -> (Range<usize>, Range<usize>) {
    let around = |part: fn(&Hunk) -> Range<usize>, lines: &[&str]| {
        let start = hunk.first().map_or(0, |change| part(change).start).saturating_sub(CONTEXT);
        let end = hunk.last().map_or(0, |change| part(change).end) + CONTEXT;
        start..end.min(lines.len())
    };
    let old = around(|change| line_range(&change.before), before);
    let new = around(|change| line_range(&change.after), after);
    (old, new)
}

fn line_range(lines: &Range<u32>) -> Range<usize> {
    lines.start as usize..lines.end as usize
}

/// A range in a hunk header. Lines are counted from 1; an empty range names the line before it.
fn range(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_shows_context_and_masks_secrets() {
        let before = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\", \"env\": { \"T\": \"s3cret\" } }\n  }\n}\n";
        let after = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\", \"env\": { \"T\": \"0ther\" } }\n  }\n}\n";
        let path = "config/mcp.json".into();
        let edited = Edited { path, before: before.to_owned(), after: after.to_owned() };
        insta::assert_snapshot!(text(&edited, Palette::Plain), @r#"
        config/mcp.json
        @@ -1,5 +1,5 @@
         {
           "mcpServers": {
        -    "a": { "command": "a", "env": { "T": "…" } }
        +    "a": { "command": "a", "env": { "T": "…" } }
           }
         }
        "#);
    }

    #[test]
    fn diff_shows_distant_changes_in_separate_hunks() {
        let lines = |changed: &[usize]| -> String {
            let line =
                |n: usize| format!("{}{n}\n", if changed.contains(&n) { "new " } else { "" });
            (1..=20).map(line).collect()
        };
        let check = |before: String, after: String| {
            let masked = (Some(before.clone()), Some(after.clone()));
            of_masked(&Edited { path: "f".into(), before, after }, masked, Palette::Plain)
        };
        insta::assert_snapshot!(check(lines(&[]), lines(&[1, 5, 20])), @r"
        f
        @@ -1,7 +1,7 @@
        -1
        +new 1
         2
         3
         4
        -5
        +new 5
         6
         7
        @@ -18,3 +18,3 @@
         18
         19
        -20
        +new 20
        ");
        insta::assert_snapshot!(check(String::new(), "a\nb\n".to_owned()), @r"
        f
        @@ -0,0 +1,2 @@
        +a
        +b
        ");
        insta::assert_snapshot!(check("a\nb\nc\nd\n".to_owned(), "a\nd\n".to_owned()), @r"
        f
        @@ -1,4 +1,2 @@
         a
        -b
        -c
         d
        ");
    }
}
