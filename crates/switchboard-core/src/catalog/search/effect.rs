//! Whether a tool reads, changes or destroys data, and which of these effects a query requests.

use super::tokens::{self, WordForm};
use crate::catalog::Annotations;

/// The effect of a tool, taken from its annotations, or else from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEffect {
    Reads,
    Writes,
    Destroys,
    Unknown,
}

impl ToolEffect {
    pub(super) fn of(annotations: Annotations, name: &str) -> ToolEffect {
        if annotations.only_reads() {
            return ToolEffect::Reads;
        }
        if annotations.destructive == Some(true) {
            return ToolEffect::Destroys;
        }
        match (by_name(name), annotations.read_only) {
            (ToolEffect::Destroys, _) if annotations.destructive.is_none() => ToolEffect::Destroys,
            (_, Some(false)) => ToolEffect::Writes,
            (effect, _) => effect,
        }
    }
}

/// The effect that the first known verb in a name implies.
fn by_name(name: &str) -> ToolEffect {
    let mut effect = ToolEffect::Unknown;
    tokens::split(name, |word, form| {
        if effect == ToolEffect::Unknown && form == WordForm::Part {
            effect = by_verb(word);
        }
    });
    effect
}

fn by_verb(word: &str) -> ToolEffect {
    if DESTROYING.contains(&word) {
        ToolEffect::Destroys
    } else if WRITING.contains(&word) {
        ToolEffect::Writes
    } else if READING.contains(&word) {
        ToolEffect::Reads
    } else {
        ToolEffect::Unknown
    }
}

/// The effect that a query requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    Look,
    Change,
    Unknown,
}

impl Intent {
    /// The intent that the first significant word of a query implies. A query that also has a
    /// destructive verb is not read-only.
    pub(super) fn of(words: &[&str]) -> Intent {
        let mut rest = words;
        let first = loop {
            let Some((word, after)) = rest.split_first() else { return Intent::Unknown };
            let asks_how_to =
                *word == "how" && after.first().is_some_and(|next| HOW_TO.contains(next));
            if !asks_how_to && !FILLER.contains(word) {
                break *word;
            }
            rest = after;
        };
        match by_verb(first) {
            ToolEffect::Reads if words.iter().any(|word| DESTROYING.contains(word)) => {
                Intent::Unknown
            }
            ToolEffect::Reads => Intent::Look,
            ToolEffect::Writes | ToolEffect::Destroys => Intent::Change,
            ToolEffect::Unknown if ASKING.contains(&first) => Intent::Look,
            ToolEffect::Unknown => Intent::Unknown,
        }
    }

    /// The factor by which the score of a tool with this effect is multiplied.
    pub(super) fn share(self, effect: ToolEffect) -> f32 {
        match (self, effect) {
            (Intent::Look, ToolEffect::Destroys) => DESTROYS_FOR_LOOK,
            (Intent::Look, ToolEffect::Writes) => WRITES_FOR_LOOK,
            (Intent::Change, ToolEffect::Reads) => READS_FOR_CHANGE,
            (Intent::Look, ToolEffect::Reads | ToolEffect::Unknown)
            | (Intent::Change, ToolEffect::Writes | ToolEffect::Destroys | ToolEffect::Unknown)
            | (Intent::Unknown, _) => 1.0,
        }
    }
}

const DESTROYS_FOR_LOOK: f32 = 0.5;
const WRITES_FOR_LOOK: f32 = 0.75;
const READS_FOR_CHANGE: f32 = 0.8;

const FILLER: &[&str] = &[
    "a", "can", "could", "do", "help", "i", "just", "let", "like", "me", "need", "please",
    "should", "the", "to", "us", "want", "we", "would", "you",
];

/// Words that can stand between `how` and the verb of a query.
const HOW_TO: &[&str] = &["can", "could", "do", "should", "to", "would"];

const ASKING: &[&str] = &[
    "are", "did", "does", "have", "how", "is", "was", "were", "what", "when", "where", "which",
    "who", "whose", "why",
];

const READING: &[&str] = &[
    "browse", "check", "compare", "count", "describe", "display", "examine", "fetch", "find",
    "get", "inspect", "list", "look", "lookup", "query", "read", "retrieve", "search", "see",
    "show", "status", "view",
];

const WRITING: &[&str] = &[
    "add", "append", "assign", "change", "commit", "create", "edit", "insert", "install", "make",
    "modify", "move", "post", "publish", "push", "put", "rename", "save", "send", "set", "store",
    "update", "upload", "write",
];

const DESTROYING: &[&str] = &[
    "clear",
    "delete",
    "destroy",
    "discard",
    "drop",
    "erase",
    "forget",
    "kill",
    "overwrite",
    "purge",
    "remove",
    "reset",
    "revoke",
    "terminate",
    "truncate",
    "uninstall",
    "wipe",
];

#[cfg(test)]
mod tests {
    use super::{Annotations, Intent, ToolEffect};

    #[test]
    fn annotations_override_the_verb_in_a_tool_name() {
        let none = Annotations::default();
        let reads = Annotations { read_only: Some(true), ..none };
        let writes = Annotations { read_only: Some(false), ..none };
        let spares = Annotations { destructive: Some(false), ..writes };
        let cases = [
            (none, "git_reset", ToolEffect::Destroys),
            (none, "get_deleted", ToolEffect::Reads),
            (none, "createIssue", ToolEffect::Writes),
            (none, "echo", ToolEffect::Unknown),
            (reads, "delete_all", ToolEffect::Reads),
            (writes, "delete_all", ToolEffect::Destroys),
            (writes, "get_page", ToolEffect::Writes),
            (spares, "clear_cache", ToolEffect::Writes),
            (Annotations { destructive: Some(true), ..reads }, "get", ToolEffect::Destroys),
        ];
        for (annotations, name, expected) in cases {
            assert_eq!(ToolEffect::of(annotations, name), expected, "{name} {annotations:?}");
        }
    }

    #[test]
    fn first_verb_of_a_query_decides_its_intent() {
        let cases = [
            ("show the history", Intent::Look),
            ("please can you list files", Intent::Look),
            ("which files changed", Intent::Look),
            ("how big is it", Intent::Look),
            ("how do i create a file", Intent::Change),
            ("find and delete old files", Intent::Unknown),
            ("delete a branch", Intent::Change),
            ("screenshot", Intent::Unknown),
            ("", Intent::Unknown),
        ];
        for (query, expected) in cases {
            let words: Vec<&str> = query.split_whitespace().collect();
            assert_eq!(Intent::of(&words), expected, "{query}");
        }
    }
}
