//! Whether a tool reads, writes or destroys, and which of these a query requests.

use super::tokens::{self, Form};
use crate::catalog::Annotations;

/// The effect of a tool, by its annotations or else by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Reads,
    Writes,
    Destroys,
    Unknown,
}

impl Effect {
    pub(super) fn of(annotations: Annotations, name: &str) -> Effect {
        if annotations.only_reads() {
            return Effect::Reads;
        }
        if annotations.destructive == Some(true) {
            return Effect::Destroys;
        }
        match (by_name(name), annotations.read_only) {
            (Effect::Destroys, _) if annotations.destructive.is_none() => Effect::Destroys,
            (_, Some(false)) => Effect::Writes,
            (effect, _) => effect,
        }
    }
}

/// The effect of the first known verb in a name.
fn by_name(name: &str) -> Effect {
    let mut effect = Effect::Unknown;
    tokens::split(name, |word, form| {
        if effect == Effect::Unknown && form == Form::Part {
            effect = by_verb(word);
        }
    });
    effect
}

fn by_verb(word: &str) -> Effect {
    if DESTROYING.contains(&word) {
        Effect::Destroys
    } else if WRITING.contains(&word) {
        Effect::Writes
    } else if READING.contains(&word) {
        Effect::Reads
    } else {
        Effect::Unknown
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
    /// Decided by the first word of a query that is not filler. A query that also contains a
    /// destructive verb does not count as reading only.
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
            Effect::Reads if words.iter().any(|word| DESTROYING.contains(word)) => Intent::Unknown,
            Effect::Reads => Intent::Look,
            Effect::Writes | Effect::Destroys => Intent::Change,
            Effect::Unknown if ASKING.contains(&first) => Intent::Look,
            Effect::Unknown => Intent::Unknown,
        }
    }

    /// The factor for the score of a tool with this effect.
    pub(super) fn share(self, effect: Effect) -> f32 {
        match (self, effect) {
            (Intent::Look, Effect::Destroys) => DESTROYS_FOR_LOOK,
            (Intent::Look, Effect::Writes) => WRITES_FOR_LOOK,
            (Intent::Change, Effect::Reads) => READS_FOR_CHANGE,
            (Intent::Look, Effect::Reads | Effect::Unknown)
            | (Intent::Change, Effect::Writes | Effect::Destroys | Effect::Unknown)
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

/// Words between `how` and the requested verb.
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
    use super::{Annotations, Effect, Intent};

    #[test]
    fn annotations_take_precedence_over_the_name() {
        let none = Annotations::default();
        let reads = Annotations { read_only: Some(true), ..none };
        let writes = Annotations { read_only: Some(false), ..none };
        let spares = Annotations { destructive: Some(false), ..writes };
        let cases = [
            (none, "git_reset", Effect::Destroys),
            (none, "get_deleted", Effect::Reads),
            (none, "createIssue", Effect::Writes),
            (none, "echo", Effect::Unknown),
            (reads, "delete_all", Effect::Reads),
            (writes, "delete_all", Effect::Destroys),
            (writes, "get_page", Effect::Writes),
            (spares, "clear_cache", Effect::Writes),
            (Annotations { destructive: Some(true), ..reads }, "get", Effect::Destroys),
        ];
        for (annotations, name, expected) in cases {
            assert_eq!(Effect::of(annotations, name), expected, "{name} {annotations:?}");
        }
    }

    #[test]
    fn first_verb_decides_the_intent_of_a_query() {
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
