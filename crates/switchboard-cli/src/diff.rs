//! What a change did to a file, as a short unified diff without secrets.

use std::fmt::Write;

use similar::{ChangeTag, TextDiff};
use switchboard::config::install::Target;
use switchboard::config::mask::{masked, masked_of_host};
use switchboard::edit::Edited;
use switchboard::render::words::{clean_block, clean_line};

use crate::style::Palette;

/// Unchanged lines around a change.
const CONTEXT: usize = 2;
const LONGEST_LINE: usize = 500;

/// The file and the lines that changed.
pub(crate) fn text(edited: &Edited, palette: Palette) -> String {
    of_masked(edited, (masked(&edited.before), masked(&edited.after)), palette)
}

/// The same for the file of a host.
pub(crate) fn of_host(edited: &Edited, target: Target, palette: Palette) -> String {
    let masked = |text| masked_of_host(text, target);
    of_masked(edited, (masked(&edited.before), masked(&edited.after)), palette)
}

/// Masking keeps the lines, so a line is compared as it is and shown as it may be.
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
    let shown = |lines: &[&str], index: Option<usize>| {
        let line = index.and_then(|index| lines.get(index).copied()).unwrap_or_default();
        clean_block(line, LONGEST_LINE).into_owned()
    };
    let diff = TextDiff::from_lines(&edited.before, &edited.after);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        let _ = writeln!(out, "{}", palette.aside(hunk.header().to_string().trim_end()));
        for change in hunk.iter_changes() {
            let _ = match change.tag() {
                ChangeTag::Equal => {
                    writeln!(out, " {}", palette.aside(shown(&after, change.new_index())))
                }
                ChangeTag::Delete => {
                    let line = format!("-{}", shown(&before, change.old_index()));
                    writeln!(out, "{}", palette.error(line))
                }
                ChangeTag::Insert => {
                    let line = format!("+{}", shown(&after, change.new_index()));
                    writeln!(out, "{}", palette.command(line))
                }
            };
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_shown_with_its_surroundings_and_without_secrets() {
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
}
