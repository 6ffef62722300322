//! Decides which parts of a configuration may be secret, and masks these parts.

use super::expand::{Surroundings, expand};
use super::values::Template;

/// The text that replaces a possible secret.
pub(crate) const HIDDEN: &str = "…";

/// The keys of objects whose values are often secrets, whatever their names.
const HOLDERS: &[&str] = &["env", "environment", "headers", "http_headers", "authorizationParams"];

/// Whether the values in the object under `key` may be secrets.
pub(super) fn holds_secrets(key: &str) -> bool {
    HOLDERS.contains(&key)
}

/// Whether the string under `key` may be a secret. Names of environment variables are not secrets.
pub(super) fn is_secret_at(key: &str) -> bool {
    let folded = key.to_ascii_lowercase();
    let names_a_variable = folded.ends_with("env") || folded.ends_with("env_var");
    names_a_secret(key) && !names_a_variable
}

/// Masks a value that may be a token. A value that consists only of variables is shown.
pub(super) fn value(text: &str) -> String {
    // The program of a `!command` is shown, because it tells where the secret comes from.
    if let Some(command) = text.strip_prefix('!').filter(|rest| !rest.starts_with('!')) {
        return format!("!{}", program(command));
    }
    variables(text)
}

/// The program of a command line that prints a secret. The arguments are masked, because they may
/// contain the secret: `-c "echo SECRET"`.
pub(super) fn program(line: &str) -> String {
    let line = line.trim();
    let (program, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let program = if program.contains('=') { HIDDEN } else { program };
    if arguments.is_empty() { program.to_owned() } else { format!("{program} {HIDDEN}") }
}

/// The text, if it consists only of variables; otherwise the mask.
pub(super) fn variables(text: &str) -> String {
    if is_made_of_variables(text) { text.to_owned() } else { HIDDEN.to_owned() }
}

fn is_made_of_variables(text: &str) -> bool {
    let nothing = |_: &str| Some(String::new());
    let with = Surroundings { variable: &nothing, home: Some(""), project: Some("") };
    let Ok(literal) = expand(&Template::new(text), &with) else { return false };
    let mut words = literal.split(|c: char| !c.is_alphanumeric());
    literal != text && words.all(|word| word.is_empty() || is_scheme(word))
}

/// Whether a word is an authentication scheme or a URL scheme.
fn is_scheme(word: &str) -> bool {
    let schemes = ["bearer", "basic", "token", "http", "https"];
    schemes.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Masks the secrets in a URL or a command line.
pub(super) fn line(text: &str) -> String {
    command_line(text.split(' '))
}

/// Masks possible secrets in the arguments of a command line.
pub fn command_line<'w>(words: impl Iterator<Item = &'w str>) -> String {
    arguments(words).collect::<Vec<_>>().join(" ")
}

/// Prefixes of the tokens and API keys of well-known services.
pub(crate) const TOKEN_PREFIXES: [&str; 17] = [
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "AKIA",
    "AIza",
    "eyJ",
];

/// The arguments of a command line. A value is masked if it looks like a token, or follows a word
/// such as `--token` or `Authorization:`.
pub(crate) fn arguments<'w>(words: impl Iterator<Item = &'w str>) -> impl Iterator<Item = String> {
    let mut after_a_name = false;
    words.map(move |word| {
        if after_a_name {
            after_a_name = is_scheme(word);
            return value(word);
        }
        after_a_name = names_a_secret(word)
            && (word.ends_with([':', '=']) || word.starts_with('-') && !word.contains(['=', ':']));
        if after_a_name { word.to_owned() } else { argument(word) }
    })
}

/// Masks one argument: the secrets of a URL, or the value of `NAME=VALUE` if the name suggests a
/// secret.
fn argument(word: &str) -> String {
    let head = word.split_once("://").map_or(word, |(scheme, _)| scheme);
    let mut from = 0;
    for (at, _) in head.match_indices(['=', ':']) {
        if names_a_secret(head.get(from..at).unwrap_or_default()) {
            let (kept, secret) = word.split_at_checked(at + 1).unwrap_or((word, ""));
            return format!("{kept}{}", value(secret));
        }
        from = at + 1;
    }
    if head.len() < word.len() {
        return address(word);
    }
    let (name, token) = word.split_at(word.rfind('=').map_or(0, |at| at + 1));
    if is_token(token) { format!("{name}{}", value(token)) } else { word.to_owned() }
}

/// Whether a word looks like a token of a well-known service.
fn is_token(word: &str) -> bool {
    let begins = |start: &&str| word.len() >= start.len() + 12 && word.starts_with(*start);
    TOKEN_PREFIXES.iter().chain(&["sk-"]).any(begins) && !word.contains('/')
}

/// Masks literal text in the secret parts of a URL: user and password, query, fragment, and path
/// segments that may be keys.
pub fn address(text: &str) -> String {
    let (text, fragment) = text.split_once('#').map_or((text, ""), |(text, _)| (text, "#…"));
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    let mut shown = before.to_owned();
    if let Some((scheme, rest)) = before.split_once("://") {
        let (authority, path) = rest.split_once('/').map_or((rest, None), |(a, p)| (a, Some(p)));
        let authority = match authority.rsplit_once('@') {
            Some((user, host)) => format!("{}@{host}", value(user)),
            None => authority.to_owned(),
        };
        let path = path.map(|path| format!("/{}", self::path(path))).unwrap_or_default();
        shown = format!("{scheme}://{authority}{path}");
    }
    for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, text)) => shown.push_str(&format!("{name}={}", value(text))),
            None => shown.push_str(HIDDEN),
        }
    }
    shown + fragment
}

const WORD_ENDS: [char; 3] = ['-', '_', '.'];

/// The path segments that are often followed by a key.
const SECRETS: [&str; 8] =
    ["token", "tokens", "key", "keys", "secret", "secrets", "apikey", "password"];

/// Masks the segments of a URL path that may be API keys. Words, versions and variables are shown.
fn path(path: &str) -> String {
    let mut after_a_name = false;
    let shown = path.split('/').map(|segment| {
        let hidden = after_a_name && !segment.is_empty();
        after_a_name = segment.split(WORD_ENDS).any(|word| SECRETS.contains(&word));
        if !hidden && is_plain(segment) { segment.to_owned() } else { value(segment) }
    });
    shown.collect::<Vec<_>>().join("/")
}

/// Whether a segment consists of words without digits in one letter case, of years or of versions.
fn is_plain(segment: &str) -> bool {
    const LONGEST_WORD: usize = 16;
    const LONGEST_NUMBER: usize = 4;
    const MOST_WORDS: usize = 4;
    let is_number = |word: &str| {
        let digits = word.strip_prefix('v').unwrap_or(word);
        digits.len() <= LONGEST_NUMBER && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_word = |word: &str| {
        let rest = word.strip_prefix(|c: char| c.is_ascii_uppercase()).unwrap_or(word);
        word.len() <= LONGEST_WORD && rest.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    let mut words = segment.split(WORD_ENDS);
    words.clone().count() <= MOST_WORDS && words.all(|word| is_number(word) || is_word(word))
}

/// Whether a comment is prose. Other comments may be entries that were commented out.
pub(super) fn is_prose(comment: &str) -> bool {
    let bare = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        names_a_secret(word)
    };
    !comment.contains(['"', '=']) && !comment.contains("://") && !comment.split(' ').any(bare)
}

pub(crate) fn names_a_secret(name: &str) -> bool {
    let name = name.trim_end_matches([':', '=']).to_ascii_lowercase();
    let words = ["token", "secret", "passw", "authorization", "credential", "apikey", "cookie"];
    words.iter().any(|word| name.contains(word)) || name.ends_with("key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_command_lines_and_urls_are_masked() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected, "{text}");
        check("npx -y pkg --token hunter2 -v", "npx -y pkg --token … -v");
        check("x --api-key=hunter2 --token=${T}", "x --api-key=… --token=${T}");
        check("x --header Authorization: Bearer hunter2 y", "x --header Authorization: … … y");
        check("x --header=Authorization:hunter2", "x --header=Authorization:…");
        check("x --url=https://me:hunter2@h/p?k=hunter2", "x --url=https://…@h/p?k=…");
        check("x --token=https://hunter2", "x --token=…");
        check("docker run -e GITHUB_TOKEN=hunter2 img:1.2", "docker run -e GITHUB_TOKEN=… img:1.2");
        check("x ghp_0123456789abcdef -p eyJhbGciOiJIUzI1NiJ9.e30", "x … -p …");
        check("x KEY=sk-ant-0123456789ab sk-short eyJ", "x KEY=… sk-short eyJ");
        check("https://${U}@h?${Q}&q=${Q}", "https://${U}@h?…&q=${Q}");
        check("https://h", "https://h");
        check("https://h/", "https://h/");
        check("https://h/api/v1/mcp/", "https://h/api/v1/mcp/");
        check("https://h/my-team/Sales_2026/mcp.json", "https://h/my-team/Sales_2026/mcp.json");
        check("https://h/${A}/x", "https://h/${A}/x");
        for secret in [
            "hunter2",
            "HUNTER",
            "sk-ant-AbC",
            "550e8400-e29b-41d4-a716-446655440000",
            "correcthorsebatterystaple",
            "correct-horse-battery-staple-again",
            "31415926535",
            "a%62c",
            "naïve",
        ] {
            check(&format!("https://h/s/{secret}/mcp"), "https://h/s/…/mcp");
            check(&format!("wss://h/{secret}#{secret}"), "wss://h/…#…");
        }
        check("https://h/a;token=x/mcp", "https://h/…/mcp");
        check(
            "https://h/oauth-authorization-server/tenant",
            "https://h/oauth-authorization-server/tenant",
        );
        check("https://h/token/hunter/mcp", "https://h/token/…/mcp");
        assert_eq!(value("!vault read --token hunter2"), "!vault …");
        assert_eq!(value("!sh -c \"echo hunter2\""), "!sh …");
        assert_eq!(value("! ./token.sh"), "!./token.sh");
        assert_eq!(value("!T=hunter2 x"), "!… …");
        assert_eq!(value("!!hunter2"), "…");
    }

    #[test]
    fn comment_is_shown_only_if_it_is_prose() {
        let check = |text: &str, expected: bool| assert_eq!(is_prose(text), expected, "{text}");
        check(" What holds for all of them: it's short.", true);
        check(r#" "PAT": "hunter2""#, false);
        check(" PAT = 'hunter2'", false);
        check(" my token: hunter2", false);
        check(" see https://me:hunter2@h", false);
    }
}
