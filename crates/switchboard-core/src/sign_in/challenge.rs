//! Parses the `WWW-Authenticate` headers of a response with status 401 or 403.

use super::scope;

/// The maximum length of a header in bytes.
const LONGEST: usize = 8 * 1024;

/// The challenge with which a server requires a bearer token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The URL of the protected resource metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the token must have.
    pub scopes: Vec<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Whether the token is valid but has insufficient scope.
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// The bearer challenge in the headers of a response: the first with `resource_metadata`, or else
/// the first. After a syntax error, the rest of a header is ignored.
pub fn bearer<'a>(headers: impl IntoIterator<Item = &'a str>) -> Challenge {
    let all: Vec<Challenge> = headers
        .into_iter()
        .filter(|header| header.len() <= LONGEST)
        .flat_map(challenges)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
        .map(|(_, parameters)| of(parameters))
        .collect();
    let pointed = all.iter().find(|challenge| challenge.resource_metadata.is_some());
    pointed.or(all.first()).cloned().unwrap_or_default()
}

fn of(parameters: Vec<(&str, String)>) -> Challenge {
    let mut challenge = Challenge::default();
    for (name, value) in parameters {
        // Of repeated parameters, the first is used, because a second one may have been injected.
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" if challenge.resource_metadata.is_none() => {
                challenge.resource_metadata = Some(value);
            }
            "scope" if challenge.scopes.is_empty() => challenge.scopes = scope::read(&value),
            "error" if challenge.error.is_none() => challenge.error = Some(value),
            _ => {}
        }
    }
    challenge
}

/// An authentication scheme with its parameters.
type Scheme<'a> = (&'a str, Vec<(&'a str, String)>);

/// The challenges in one header. Commas separate both challenges and parameters, so a word is a
/// scheme unless `=` and a value follow it.
fn challenges(header: &str) -> Vec<Scheme<'_>> {
    let mut found: Vec<Scheme<'_>> = Vec::new();
    let mut rest = header;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((word, after)) = word(rest) else { return found };
        let value = after.trim_start_matches([' ', '\t']).strip_prefix('=').map(value);
        rest = match (value, found.last_mut()) {
            (None, _) => {
                found.push((word, Vec::new()));
                after
            }
            (Some(Value::Is(value, after)), Some((_, parameters))) => {
                parameters.push((word, value));
                after
            }
            // A token68 value follows the scheme. Some schemes have one instead of parameters.
            (Some(Value::None), Some(_)) => match after.find(',') {
                Some(comma) => after.get(comma..).unwrap_or_default(),
                None => return found,
            },
            // The header has a parameter without a scheme, or a quote that is not closed.
            (Some(Value::Is(..) | Value::None), None) | (Some(Value::Broken), _) => return found,
        };
    }
}

fn word(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !is_token(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// Whether a character can be part of a token. `/` is included for token68 values.
fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/".contains(c)
}

enum Value<'a> {
    Is(String, &'a str),
    /// No value follows the name.
    None,
    Broken,
}

fn value(text: &str) -> Value<'_> {
    let text = text.trim_start_matches([' ', '\t']);
    let Some(quoted) = text.strip_prefix('"') else {
        return match word(text) {
            Some((value, after)) => Value::Is(value.to_owned(), after),
            None => Value::None,
        };
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Value::Is(value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            plain => value.push(plain),
        }
    }
    Value::Broken
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(headers: &[&str], metadata: Option<&str>, scopes: &[&str], error: Option<&str>) {
        let expected = Challenge {
            resource_metadata: metadata.map(str::to_owned),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            error: error.map(str::to_owned),
        };
        assert_eq!(bearer(headers.iter().copied()), expected, "{headers:?}");
    }

    #[test]
    fn www_authenticate_parameters_are_parsed_in_any_form() {
        let url = "https://a.example/.well-known/oauth-protected-resource";
        check(&[&format!("Bearer resource_metadata=\"{url}\"")], Some(url), &[], None);
        check(
            &["bearer  Scope = \"a b\" , error=invalid_token"],
            None,
            &["a", "b"],
            Some("invalid_token"),
        );
        check(
            &["Bearer realm=\"a, b\\\" scope=x\", scope=\"files:read\""],
            None,
            &["files:read"],
            None,
        );
        check(&["Bearer"], None, &[], None);
        check(&["Bearer ,, scope=a"], None, &["a"], None);
        check(&[], None, &[], None);
    }

    #[test]
    fn authentication_schemes_except_bearer_are_ignored() {
        let headers = ["Basic realm=\"x\", Bearer scope=\"a\", DPoP algs=\"ES256\", scope=\"no\""];
        check(&headers, None, &["a"], None);
        check(&["Negotiate YWJj/d+==, Bearer scope=a"], None, &["a"], None);
        check(&["Negotiate, Bearer scope=a"], None, &["a"], None);
        check(&["Basic scope=\"no\""], None, &[], None);
        check(&["Basic realm=x", "Bearer scope=a"], None, &["a"], None);
    }

    #[test]
    fn challenge_with_resource_metadata_takes_precedence() {
        let headers =
            ["Bearer scope=\"first\"", "Bearer resource_metadata=\"u\", scope=\"second\""];
        check(&headers, Some("u"), &["second"], None);
        check(&["Bearer scope=\"a\", Bearer resource_metadata=\"u\""], Some("u"), &[], None);
    }

    #[test]
    fn www_authenticate_parameters_inside_quoted_text_are_ignored() {
        let headers =
            ["Bearer error_description=\"scope=admin resource_metadata=https://evil\", scope=a"];
        check(&headers, None, &["a"], None);
        check(&["Bearer scope=a, scope=admin, SCOPE=root"], None, &["a"], None);
    }

    #[test]
    fn malformed_challenge_ends_parsing_of_only_its_header() {
        check(&["Bearer scope=\"a\", error=\"unfinished"], None, &["a"], None);
        check(&["=x, Bearer scope=a"], None, &[], None);
        check(&["scope=a"], None, &[], None);
        check(&["\u{7}\"", "Bearer scope=a"], None, &["a"], None);
        let long = format!("Bearer scope=a, error=\"{}\"", "x".repeat(LONGEST));
        check(&[&long], None, &[], None);
    }

    proptest! {
        #[test]
        fn arbitrary_challenge_never_panics_and_quoting_round_trips(text in "\\PC{0,200}", value in "[ -~]{0,60}") {
            bearer([text.as_str()]);
            let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Basic a=b, Bearer x=\"{quoted}\", error=\"{quoted}\", scope=s");
            let read = bearer([header.as_str()]);
            prop_assert_eq!(read.error, Some(value));
            prop_assert_eq!(read.scopes, vec!["s".to_owned()]);
        }
    }
}
