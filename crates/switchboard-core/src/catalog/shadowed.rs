//! Skips tools and prompts whose names, once hidden characters are removed, are empty or equal
//! another name.

use std::collections::HashSet;

use super::entry::Entry;
use super::listing::Prompt;
use crate::hidden::strip;
use crate::render::words::{clean_line, visible};

/// The maximum number of bytes of a name in a reason.
const NAME: usize = 100;

/// Removes tools and prompts with shadowed names, and returns the reason for each.
pub(super) fn drop_shadowed(entries: &mut Vec<Entry>, prompts: &mut Vec<Prompt>) -> Vec<String> {
    let mut reasons = drop_from(entries, "tool", |entry| entry.name.as_str());
    reasons.extend(drop_from(prompts, "prompt", |prompt| &prompt.name));
    reasons
}

fn drop_from<T>(items: &mut Vec<T>, kind: &str, name: impl Fn(&T) -> &str) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut shadowed = shadowed(items.iter().map(&name)).into_iter();
    items.retain(|item| {
        let is_shadowed = shadowed.next().unwrap_or_default();
        is_shadowed.then(|| reasons.push(reason(kind, name(item))));
        !is_shadowed
    });
    reasons
}

/// For each name, whether it is shadowed: without its hidden characters it is empty or equals
/// another name. A name without hidden characters is never shadowed.
fn shadowed<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<bool> {
    let mut taken: HashSet<String> =
        names.clone().filter(|name| strip(name) == *name).map(str::to_owned).collect();
    let is_shadowed = |name: &str| {
        let seen = strip(name);
        seen != name && (seen.trim().is_empty() || !taken.insert(seen.into_owned()))
    };
    names.map(is_shadowed).collect()
}

/// The reason why a tool or prompt was skipped; `kind` is `tool` or `prompt`.
fn reason(kind: &str, name: &str) -> String {
    let (own, seen) = (visible(name), strip(name));
    let (own, seen) = (clean_line(&own, NAME), clean_line(&seen, NAME));
    if seen.is_empty() {
        return format!("the {kind} `{own}` has a name of invisible characters");
    }
    format!("the {kind} `{own}` would be shown as `{seen}`, the name of another {kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_name_equal_except_hidden_characters_is_skipped() {
        let check = |names: &[&str], expected: &[bool]| {
            assert_eq!(shadowed(names.iter().copied()), expected, "{names:?}");
        };
        check(&["read", "re\u{200b}ad"], &[false, true]);
        check(&["re\u{200b}ad", "read"], &[true, false]);
        check(&["re\u{200b}ad", "write"], &[false, false]);
        check(&["re\u{200b}ad", "r\u{e0041}ead", "\u{200b}"], &[false, true, true]);
        check(&["a", "a", "b"], &[false, false, false]);
        let message = reason("tool", "re\u{200b}ad");
        assert_eq!(
            message,
            "the tool `re\\u{200b}ad` would be shown as `read`, the name of another tool"
        );
        let message = reason("tool", "\u{200b}");
        assert_eq!(message, "the tool `\\u{200b}` has a name of invisible characters");
    }
}
