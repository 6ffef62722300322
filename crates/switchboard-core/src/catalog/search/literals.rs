//! Literals of a query: URLs, paths, file names, times. Each is replaced by a shape, such as
//! `<url>`, and is not split into words.

use super::tokens::{self, WordForm};

/// A query with its literals taken out.
#[derive(Debug)]
pub(super) struct QueryText {
    /// The text of the query without its literals.
    pub(super) text: String,
    /// All words of the query in lower case, including those in literals.
    pub(super) words: Vec<String>,
    /// The shape of each literal, in order.
    pub(super) shapes: Vec<&'static str>,
}

/// Separates literals and words. A query of nothing but literals is split into words.
pub(super) fn extract(query: &str) -> QueryText {
    let mut shapes = Vec::new();
    let mut text = String::with_capacity(query.len());
    let unquoted = without_quotes(query, &mut shapes);
    let mut starts_sentence = true;
    for token in unquoted.split_whitespace() {
        let bare = token.trim_matches(|c: char| "()[]{}<>,;:!?\"'`".contains(c));
        let bare = bare.strip_suffix('.').unwrap_or(bare);
        let shape = shape(bare);
        shapes.extend(shape);
        match shape {
            Some(URL | PATH | FILE | MEDIA | HASH | EMAIL | BRANCH) => {}
            Some(_) => text.extend([token, " "]),
            None => {
                if !starts_sentence && is_name(bare) {
                    shapes.push(NAME);
                }
                text.extend([token, " "]);
            }
        }
        starts_sentence = token.ends_with(['.', '!', '?', ':']);
    }
    let mut words = words(&text);
    if words.is_empty() {
        text = query.to_owned();
        words = self::words(&text);
    }
    QueryText { text, words, shapes }
}

const URL: &str = "<url>";
const PATH: &str = "<path>";
const FILE: &str = "<file>";
const MEDIA: &str = "<media>";
const HASH: &str = "<hash>";
const EMAIL: &str = "<email>";
const BRANCH: &str = "<branch>";
const CLOCK: &str = "<clock>";
const NUMBER: &str = "<number>";
const PLUS: &str = "<plus>";
const SIZE: &str = "<size>";
const NAME: &str = "<name>";
const QUOTED: &str = "<quoted>";

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    tokens::split(text, |typed, form| {
        if form == WordForm::Part && words.len() < super::query::MOST_WORDS {
            words.push(typed.to_owned());
        }
    });
    words
}

/// Replaces quoted text by its shape. An apostrophe inside a word does not begin a quote.
fn without_quotes(query: &str, shapes: &mut Vec<&'static str>) -> String {
    let mut text = String::with_capacity(query.len());
    let mut rest = query;
    while let Some(at) = rest.find(['"', '\'', '`', '\u{201c}']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(before);
        let Some(mark) = from.chars().next() else { break };
        let inside = from.get(mark.len_utf8()..).unwrap_or_default();
        let closing = if mark == '\u{201c}' { '\u{201d}' } else { mark };
        let opens = !before.ends_with(char::is_alphanumeric);
        let ends = |(end, _): &(usize, &str)| {
            let after = inside.get(end + closing.len_utf8()..).unwrap_or_default();
            !after.starts_with(char::is_alphanumeric)
        };
        match inside.match_indices(closing).find(ends).filter(|_| opens) {
            Some((end, _)) => {
                let quoted = inside.get(..end).unwrap_or_default();
                shapes.push(shape(quoted).unwrap_or(QUOTED));
                text.push(' ');
                rest = inside.get(end + closing.len_utf8()..).unwrap_or_default();
            }
            None => {
                text.push(mark);
                rest = inside;
            }
        }
    }
    text.push_str(rest);
    text
}

fn shape(token: &str) -> Option<&'static str> {
    if token == "+" {
        return Some(PLUS);
    }
    let lower = token.to_lowercase();
    let ending = lower.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_path = lower.starts_with(['/', '~', '\\'])
        || lower.starts_with("./")
        || lower.starts_with("../")
        || lower.get(1..3) == Some(":\\");
    if lower.contains("://") || lower.starts_with("www.") {
        Some(URL)
    } else if is_path && lower.len() > 1 || lower.contains('/') && !ending.is_empty() {
        Some(of_ending(ending).unwrap_or(PATH))
    } else if lower.contains('@') && lower.contains('.') && !lower.starts_with('@') {
        Some(EMAIL)
    } else if BRANCHES.iter().any(|kind| lower.starts_with(kind)) {
        Some(BRANCH)
    } else if of_ending(ending).is_some() && !LIBRARIES.contains(&&*lower) {
        of_ending(ending)
    } else if DOMAINS.contains(&ending) {
        Some(URL)
    } else {
        of_digits(&lower)
    }
}

/// The shape of a token that contains a digit.
fn of_digits(lower: &str) -> Option<&'static str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = lower.trim_start_matches(['-', '+', '$', '#']);
    let hour = number.trim_end_matches("am").trim_end_matches("pm");
    if hour.split(':').all(digits) && (hour.contains(':') || hour.len() < number.len()) {
        Some(CLOCK)
    } else if number.split(['.', ',']).all(digits) {
        Some(NUMBER)
    } else if number.split(['x', '×']).all(digits) {
        Some(SIZE)
    } else {
        let is_hash = (6..=40).contains(&lower.len())
            && lower.bytes().all(|byte| byte.is_ascii_hexdigit())
            && lower.bytes().any(|byte| byte.is_ascii_digit());
        is_hash.then_some(HASH)
    }
}

fn of_ending(ending: &str) -> Option<&'static str> {
    if MEDIA_FILES.contains(&ending) {
        Some(MEDIA)
    } else {
        TEXT_FILES.contains(&ending).then_some(FILE)
    }
}

/// Whether a word inside a sentence looks like a proper name: only its first letter is a capital.
fn is_name(token: &str) -> bool {
    let token = token.strip_suffix("'s").unwrap_or(token);
    let mut chars = token.chars();
    chars.next().is_some_and(char::is_uppercase)
        && token.chars().count() > 2
        && chars.all(char::is_lowercase)
}

const BRANCHES: &[&str] =
    &["feature/", "feat/", "fix/", "bugfix/", "hotfix/", "release/", "chore/", "origin/"];

const DOMAINS: &[&str] =
    &["ai", "app", "co", "com", "de", "dev", "edu", "eu", "gov", "io", "net", "org", "uk"];

/// Names of libraries that look like file names.
const LIBRARIES: &[&str] =
    &["chart.js", "d3.js", "express.js", "next.js", "node.js", "nuxt.js", "three.js", "vue.js"];

const MEDIA_FILES: &[&str] = &[
    "avi", "bmp", "flac", "gif", "heic", "ico", "jpeg", "jpg", "m4a", "mov", "mp3", "mp4", "ogg",
    "png", "svg", "tiff", "wav", "webm", "webp",
];

const TEXT_FILES: &[&str] = &[
    "bak", "bin", "c", "cfg", "conf", "cpp", "cs", "css", "csv", "doc", "docx", "env", "go", "h",
    "htm", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "lock", "log",
    "lua", "md", "pdf", "php", "ppt", "pptx", "py", "rb", "rs", "sh", "sql", "svelte", "swift",
    "tex", "toml", "ts", "tsx", "txt", "vue", "xls", "xlsx", "xml", "yaml", "yml", "zip",
];

#[cfg(test)]
mod tests {
    use super::extract;

    #[test]
    fn literals_in_a_query_are_replaced_by_placeholders() {
        let cases: [(&str, &str, &[&str]); 9] = [
            ("go to https://a.example/login now", "go to now", &["<url>"]),
            ("visit example.com", "visit", &["<url>"]),
            ("read ~/notes.md, then /srv/app", "read then", &["<file>", "<path>"]),
            ("look at assets/logo.png", "look at", &["<media>"]),
            ("say 'hi there' to Bob", "say to bob", &["<quoted>", "<name>"]),
            ("don't show 4f2a9bc", "don t show", &["<hash>"]),
            ("15:30 plus 3", "15 30 plus 3", &["<clock>", "<number>"]),
            ("next.js on feature/x", "next js on", &["<branch>"]),
            ("https://a.example/login", "https a example login", &["<url>"]),
        ];
        for (query, words, shapes) in cases {
            let spoken = extract(query);
            let found = (spoken.words.join(" "), spoken.shapes);
            assert_eq!(found, (words.to_owned(), shapes.to_vec()), "{query}");
        }
    }
}
