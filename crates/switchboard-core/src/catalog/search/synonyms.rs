//! Synonyms, so that a search does not depend on the choice of word.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::stemming::WordStemmer;

/// The synonyms of a stem.
pub(super) fn of(stem: &str) -> &'static [String] {
    BY_STEM.get(stem).map_or(&[], Vec::as_slice)
}

static BY_STEM: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let stemmer = WordStemmer::default();
    let stem = |word: &&str| stemmer.stem(word).into_owned();
    let mut others: HashMap<String, Vec<String>> = HashMap::new();
    for (short, long) in ABBREVIATIONS {
        others.entry(stem(short)).or_default().extend(long.iter().map(stem));
    }
    for group in GROUPS {
        for word in *group {
            let rest = group.iter().filter(|other| *other != word).map(stem);
            others.entry(stem(word)).or_default().extend(rest);
        }
    }
    others
});

/// Abbreviations with their long forms. An abbreviation in a query also finds the long form, but a
/// long form does not find the abbreviation.
const ABBREVIATIONS: &[(&str, &[&str])] =
    &[("pr", &["pull", "request"]), ("mr", &["merge", "request"]), ("vm", &["virtual", "machine"])];

const GROUPS: &[&[&str]] = &[
    &["add", "create", "make", "new"],
    &["airline", "flight"],
    &["accommodation", "hotel", "lodging"],
    &["auth", "authentication", "login"],
    &["bitcoin", "crypto"],
    &["bucket", "storage"],
    &["bug", "defect", "issue"],
    &["business", "company", "organization"],
    &["calendar", "event", "meeting"],
    &["capture", "screenshot"],
    &["change", "edit", "modify", "update"],
    &["chat", "conversation"],
    &["command", "shell", "terminal"],
    &["config", "configuration"],
    &["contact", "people", "person", "user"],
    &["container", "pod"],
    &["cost", "price"],
    &["credential", "password", "secret"],
    &["database", "db"],
    &["delete", "remove"],
    &["deploy", "release"],
    &["directory", "dir", "folder"],
    &["document", "doc"],
    &["download", "fetch", "get", "retrieve"],
    &["email", "mail"],
    &["environment", "env"],
    &["equity", "share", "stock"],
    &["execute", "run"],
    &["film", "movie"],
    &["find", "lookup", "search"],
    &["forecast", "weather"],
    &["image", "img", "photo", "picture"],
    &["instance", "machine", "vm"],
    &["internet", "web", "website"],
    &["issue", "ticket"],
    &["iteration", "sprint"],
    &["job", "position"],
    &["kubernetes", "k8s"],
    &["link", "url"],
    &["list", "show"],
    &["memo", "note"],
    &["message", "msg"],
    &["music", "song", "track"],
    &["post", "send"],
    &["repository", "repo"],
    &["summarize", "summary"],
    &["task", "todo"],
    &["travel", "trip"],
];
