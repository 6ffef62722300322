//! One line of the message trace: a JSON-RPC message with its secrets masked, limited in length and
//! safe for a terminal.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use crate::config::secrecy::{self, HIDDEN};
use crate::nesting::string_length;
use crate::render::words::{bytes, visible_json};

/// The maximum number of bytes of a message that are shown.
const MOST_BYTES: usize = 16 * 1024;

/// The maximum number of secrets of one connection. A further secret replaces the shortest one.
const MOST_SECRETS: usize = 1_000;

/// The minimum length of a secret that is masked inside of strings. A shorter secret, such as `1`
/// or `info`, is masked only if it is the whole string.
const SHORTEST: usize = 6;

/// The secrets that a trace must not show. `Debug` does not print them either.
#[derive(Default)]
pub struct KnownSecrets {
    /// The secrets, escaped as in a JSON string. Longer secrets come first, because one secret may
    /// contain another.
    escaped: Vec<String>,
}

impl fmt::Debug for KnownSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KnownSecrets(…)")
    }
}

impl KnownSecrets {
    pub fn add(&mut self, secret: &str) {
        let secret = secret.trim();
        if secret.is_empty() {
            return;
        }
        let mut escaped = String::new();
        secret.chars().for_each(|c| push_escaped(&mut escaped, c));
        if self.escaped.contains(&escaped) {
            return;
        }
        if self.escaped.len() >= MOST_SECRETS {
            self.escaped.pop();
        }
        let longer = |known: &String| known.len() >= escaped.len();
        let at = self.escaped.partition_point(longer);
        self.escaped.insert(at, escaped);
    }

    /// Adds to the secrets the value of a header, and the credential after a scheme such as
    /// `Bearer`.
    pub fn add_header(&mut self, value: &str) {
        self.add(value);
        if let Some((_, credential)) = value.trim().split_once(' ') {
            self.add(credential);
        }
    }

    /// Adds to the secrets the environment variables of a program: those that its entry sets, and
    /// others whose names suggest a secret.
    pub fn add_variables<'a>(
        &mut self,
        variables: impl Iterator<Item = (&'a str, &'a str)>,
        is_set: impl Fn(&str) -> bool,
    ) {
        for (name, value) in variables {
            if is_set(name) || secrecy::names_a_secret(name) {
                self.add(value);
            }
        }
    }

    /// Adds to the secrets the arguments of a program that may be secret.
    pub fn add_arguments(&mut self, words: &[String]) {
        let shown = secrecy::arguments(words.iter().map(String::as_str));
        for (word, shown) in words.iter().zip(shown) {
            let same = word.chars().zip(shown.chars()).take_while(|(a, b)| a == b);
            let same: usize = same.map(|(c, _)| c.len_utf8()).sum();
            if same < word.len() {
                self.add(word.get(same..).unwrap_or(word));
            }
        }
    }

    /// Adds to the secrets the parts of a URL that may be secret.
    pub fn add_url(&mut self, url: &str) {
        let shown = secrecy::address(url);
        let parts = |text: &str| -> Vec<String> {
            text.split(['/', '?', '&', '=', '#', '@', ':']).map(str::to_owned).collect()
        };
        let shown = parts(&shown);
        for part in parts(url).iter().filter(|part| !shown.contains(part)) {
            self.add(part);
        }
    }

    /// The trace line of a message, given as the bytes that were sent.
    pub fn trace_line(&self, message: &[u8]) -> String {
        let text = String::from_utf8_lossy(message);
        let masked = self.mask(text.trim());
        let line = visible_json(&masked).replace('\n', " ");
        if line.len() <= MOST_BYTES {
            return line;
        }
        let shown = line.get(..line.floor_char_boundary(MOST_BYTES)).unwrap_or_default();
        format!("{shown}… ({} in all)", bytes(message.len()))
    }

    fn mask(&self, text: &str) -> String {
        let mut text = mask_by_name(&canonical(text));
        for secret in &self.escaped {
            let (secret, mask): (Cow<'_, str>, _) = match secret.len() < SHORTEST {
                true => (format!("\"{secret}\"").into(), format!("\"{HIDDEN}\"")),
                false => (secret.as_str().into(), HIDDEN.to_owned()),
            };
            if text.contains(&*secret) {
                text = text.replace(&*secret, &mask);
            }
        }
        text
    }
}

/// Decodes and re-encodes JSON escapes, so that a secret is found in any escaped form.
fn canonical(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let escape = behind.chars().next();
        let after = escape.and_then(|c| behind.get(c.len_utf8()..)).unwrap_or_default();
        let hex = after.get(..4).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        rest = after;
        match (escape, hex.and_then(char::from_u32)) {
            (Some('u'), Some(c)) => {
                push_escaped(&mut out, c);
                rest = after.get(4..).unwrap_or_default();
            }
            (Some('/'), _) => out.push('/'),
            (escape, _) => {
                out.push('\\');
                out.extend(escape);
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn push_escaped(out: &mut String, c: char) {
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        c if c < ' ' => {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Masks strings whose key suggests a secret, and possible secrets in URLs. The text is scanned
/// token by token, so that nesting does not matter and text that is not JSON is masked too.
fn mask_by_name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut key_names_secret = false;
    while let Some((before, behind)) = rest.split_once('"') {
        if !before.chars().all(|c| c == ':' || c.is_whitespace()) {
            key_names_secret = false;
        }
        out.push_str(before);
        let end = string_length(behind.as_bytes());
        let content = behind.get(..end).unwrap_or(behind);
        let after = behind.get(end..).unwrap_or_default();
        let closing = after.get(..1).unwrap_or_default();
        rest = after.get(1..).unwrap_or_default();
        let is_key = rest.trim_start().starts_with(':');
        let shown: Cow<'_, str> = match (is_key, key_names_secret) {
            (false, true) if !content.is_empty() => HIDDEN.into(),
            (false, _) if is_address_with_secrets(content) => secrecy::address(content).into(),
            (true | false, _) => content.into(),
        };
        // Switchboard chooses the progress token, so it is not a secret.
        key_names_secret = is_key && content != "progressToken" && secrecy::names_a_secret(content);
        let _ = write!(out, "\"{shown}{closing}");
    }
    out.push_str(rest);
    out
}

fn is_address_with_secrets(text: &str) -> bool {
    let is_address = ["http://", "https://", "ws://", "wss://"].iter().any(|s| text.starts_with(s));
    is_address && text.contains(['?', '@', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(secrets: &[&str]) -> KnownSecrets {
        let mut known = KnownSecrets::default();
        secrets.iter().for_each(|secret| known.add(secret));
        known
    }

    #[test]
    fn message_trace_masks_known_secrets_in_every_encoding() {
        let known = known(&["hunter2!", "a\"b\nc\\d/e", "7"]);
        let check = |message: &str, expected: &str| {
            assert_eq!(known.trace_line(message.as_bytes()), expected, "{message}");
        };
        check(r#"{"a":"x hunter2! y","id":7}"#, r#"{"a":"x … y","id":7}"#);
        check(r#"{"a":"\u0068unter2\u0021"}"#, r#"{"a":"…"}"#);
        check(r#"{"hunter2!":[["hunter2!"]]}"#, r#"{"…":[["…"]]}"#);
        check(r#"{"a":"a\"b\nc\\d\/e"}"#, r#"{"a":"…"}"#);
        check(r#"{"a":"a\u0022b\u000ac\u005cd\u002fe"}"#, r#"{"a":"…"}"#);
        check(r#"{"a":"7","b":"17"}"#, r#"{"a":"…","b":"17"}"#);
        check("no JSON: hunter2!", "no JSON: …");
        check(r#"{"a":"\\u0041"}"#, r#"{"a":"\\u0041"}"#);
        check(r#"{"a":"\"#, r#"{"a":"\"#);
    }

    #[test]
    fn message_trace_masks_strings_under_secret_key_names() {
        let check = |message: &str, expected: &str| {
            let line = KnownSecrets::default().trace_line(message.as_bytes());
            assert_eq!(line, expected, "{message}");
        };
        check(r#"{"apiKey": "abc", "b": "c"}"#, r#"{"apiKey": "…", "b": "c"}"#);
        check(r#"{"password":{"type":"string"}}"#, r#"{"password":{"type":"string"}}"#);
        check(r#"{"progressToken":"p1"}"#, r#"{"progressToken":"p1"}"#);
        check(r#"{"tokens":["a"],"x":"y"}"#, r#"{"tokens":["a"],"x":"y"}"#);
        check(r#"{"url":"https://h/cb?code=abc"}"#, r#"{"url":"https://h/cb?code=…"}"#);
    }

    #[test]
    fn long_messages_are_cut_and_control_characters_escaped() {
        let long = format!("{{\"a\":\"{}\"}}", "x".repeat(100_000));
        let line = KnownSecrets::default().trace_line(long.as_bytes());
        assert!(line.len() < MOST_BYTES + 100, "{}", line.len());
        assert!(line.ends_with("… (97.7 KiB in all)"), "{}", &line[MOST_BYTES..]);
        let line = KnownSecrets::default().trace_line("\"\u{1b}[2J\u{202e}\na\"".as_bytes());
        assert_eq!(line, "\"\\u{1b}[2J\\u{202e} a\"");
    }

    #[test]
    fn secrets_are_collected_from_variables_arguments_headers_and_urls() {
        let mut known = KnownSecrets::default();
        let variables =
            [("MODE", "silent-mode"), ("HOME", "plain-text"), ("MY_TOKEN", "inherited")];
        known.add_variables(variables.into_iter(), |name| name == "MODE");
        known.add_arguments(&["--token".into(), "argued".into(), "--api-key=another".into()]);
        known.add_header("Bearer carried");
        known.add_url("https://h/token/pathkey/mcp?k=queried");
        let message =
            "silent-mode plain-text inherited argued another carried pathkey queried --token";
        assert_eq!(known.trace_line(message.as_bytes()), "… plain-text … … … … … … --token");
        assert_eq!(format!("{known:?}"), "KnownSecrets(…)");
    }
}
