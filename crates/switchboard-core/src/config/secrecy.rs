//! What in a configuration may be secret, and what is shown of it.

use super::expand::{Surroundings, expand};
use super::values::Template;

/// What stands for a value that may be secret.
pub(super) const HIDDEN: &str = "…";

/// Objects whose values are as often secrets as not, whatever their names.
const HOLDERS: &[&str] = &["env", "environment", "headers", "http_headers", "authorizationParams"];

/// Whether what stands below a key of a file is a secret.
pub(super) fn holds_secrets(key: &str) -> bool {
    HOLDERS.contains(&key)
}

/// Whether a string at a key of a file is one. Names of variables are none.
pub(super) fn is_secret_at(key: &str) -> bool {
    let folded = key.to_ascii_lowercase();
    let names_a_variable = folded.ends_with("env") || folded.ends_with("env_var");
    names_a_secret(key) && !names_a_variable
}

/// A value that may be a token: what it is made of may be shown if that is variables alone.
pub(super) fn value(text: &str) -> String {
    // A command is no secret, and says where the secret is.
    if let Some(command) = text.strip_prefix('!').filter(|rest| !rest.starts_with('!')) {
        return format!("!{}", line(command));
    }
    if is_made_of_variables(text) { text.to_owned() } else { HIDDEN.to_owned() }
}

fn is_made_of_variables(text: &str) -> bool {
    let nothing = |_: &str| Some(String::new());
    let with = Surroundings { variable: &nothing, home: Some(""), project: Some("") };
    let Ok(literal) = expand(&Template::new(text), &with) else { return false };
    let mut words = literal.split(|c: char| !c.is_alphanumeric());
    literal != text && words.all(|word| word.is_empty() || is_scheme(word))
}

/// Says how a secret is used, and nothing about it.
fn is_scheme(word: &str) -> bool {
    let schemes = ["bearer", "basic", "token", "http", "https"];
    schemes.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// An address without what people hide in it, or a command line as its arguments.
pub(super) fn line(text: &str) -> String {
    arguments(text.split(' ')).collect::<Vec<_>>().join(" ")
}

/// Arguments are shown, but not what follows a word such as `--token` or `Authorization:`.
pub(super) fn arguments<'w>(words: impl Iterator<Item = &'w str>) -> impl Iterator<Item = String> {
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

/// One word: an address, or the value after a name that says what it is.
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
    if head.len() == word.len() { word.to_owned() } else { address(word) }
}

/// Without literals in the query and before the host.
fn address(text: &str) -> String {
    let (before, query) = text.split_once('?').unwrap_or((text, ""));
    let mut shown = before.to_owned();
    if let Some((scheme, rest)) = before.split_once("://")
        && let Some((user, _)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
    {
        let host = rest.get(user.len()..).unwrap_or_default();
        shown = format!("{scheme}://{}{host}", value(user));
    }
    for (index, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        shown.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, text)) => shown.push_str(&format!("{name}={}", value(text))),
            None => shown.push_str(HIDDEN),
        }
    }
    shown
}

/// Whether a comment is prose. Anything else may be an entry that somebody keeps for later.
pub(super) fn is_prose(comment: &str) -> bool {
    let bare = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        names_a_secret(word)
    };
    !comment.contains(['"', '=']) && !comment.contains("://") && !comment.split(' ').any(bare)
}

fn names_a_secret(name: &str) -> bool {
    let name = name.trim_end_matches([':', '=']).to_ascii_lowercase();
    let words = ["token", "secret", "passw", "authorization", "credential", "apikey", "cookie"];
    words.iter().any(|word| name.contains(word)) || name.ends_with("key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_name_is_hidden_however_it_is_written() {
        let check = |text: &str, expected: &str| assert_eq!(line(text), expected, "{text}");
        check("npx -y pkg --token hunter2 -v", "npx -y pkg --token … -v");
        check("x --api-key=hunter2 --token=${T}", "x --api-key=… --token=${T}");
        check("x --header Authorization: Bearer hunter2 y", "x --header Authorization: … … y");
        check("x --header=Authorization:hunter2", "x --header=Authorization:…");
        check("x --url=https://me:hunter2@h/p?k=hunter2", "x --url=https://…@h/p?k=…");
        check("x --token=https://hunter2", "x --token=…");
        check("docker run -e GITHUB_TOKEN=hunter2 img:1.2", "docker run -e GITHUB_TOKEN=… img:1.2");
        check("https://${U}@h?${Q}&q=${Q}", "https://${U}@h?…&q=${Q}");
        assert_eq!(value("!vault read --token hunter2"), "!vault read --token …");
        assert_eq!(value("!!hunter2"), "…");
    }

    #[test]
    fn a_comment_is_shown_if_it_is_prose() {
        let check = |text: &str, expected: bool| assert_eq!(is_prose(text), expected, "{text}");
        check(" What holds for all of them: it's short.", true);
        check(r#" "PAT": "hunter2""#, false);
        check(" PAT = 'hunter2'", false);
        check(" my token: hunter2", false);
        check(" see https://me:hunter2@h", false);
    }
}
