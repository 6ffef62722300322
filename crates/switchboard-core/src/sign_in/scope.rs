//! Selects the scopes to request at a sign-in.

/// The maximum number of scopes and of bytes of each, because the lists come from servers.
const MOST: usize = 64;
const LONGEST: usize = 256;

/// The scope that requests refresh tokens, which work while the user is absent.
pub const OFFLINE: &str = "offline_access";

/// The valid scopes in a text, without repetitions.
pub fn read(text: &str) -> Vec<String> {
    of(text.split_ascii_whitespace())
}

/// The valid scopes among these words, without repetitions.
pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut scopes: Vec<String> = Vec::new();
    for word in words {
        let plain = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
        let fits = !word.is_empty() && word.len() <= LONGEST && word.bytes().all(plain);
        if fits && scopes.len() < MOST && !scopes.iter().any(|known| known == word) {
            scopes.push(word.to_owned());
        }
    }
    scopes
}

/// The scopes of both lists, without repetitions, in their order.
pub fn union(first: &[String], second: &[String]) -> Vec<String> {
    of(first.iter().chain(second).map(String::as_str))
}

/// The scopes that each source names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes<'a> {
    /// The scopes in the user's configuration, which take precedence over all others.
    pub configured: Option<&'a str>,
    /// The scopes in the challenge with which the server refused a request.
    pub challenged: &'a [String],
    /// The scopes in the metadata of the server.
    pub described: &'a [String],
    /// The scopes that were granted before, or that challenges have required since.
    pub held: &'a [String],
    /// The scopes in the metadata of the authorization server.
    pub authority: &'a [String],
}

/// The scopes to request; empty if no source names any.
pub fn wanted(wishes: Wishes<'_>) -> Vec<String> {
    let Wishes { configured, challenged, described, held, authority } = wishes;
    let requested = match configured {
        Some(configured) => read(configured),
        None if challenged.is_empty() => of(described.iter().map(String::as_str)),
        None => of(challenged.iter().map(String::as_str)),
    };
    let mut wanted = union(held, &requested);
    // `offline_access` is only added to other scopes. Without them, it would be the only scope of
    // the token.
    if configured.is_none() && !wanted.is_empty() && authority.iter().any(|scope| scope == OFFLINE)
    {
        wanted = union(&wanted, &[OFFLINE.to_owned()]);
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wishes: [&str; 5], expected: &str) {
        let [configured, challenged, described, held, authority] = wishes;
        let wanted = wanted(Wishes {
            configured: Some(configured).filter(|text| !text.is_empty()),
            challenged: &read(challenged),
            described: &read(described),
            held: &read(held),
            authority: &read(authority),
        });
        assert_eq!(wanted.join(" "), expected, "{wishes:?}");
    }

    #[test]
    fn scopes_come_from_the_most_specific_source() {
        check(["", "", "", "", ""], "");
        check(["", "", "a b", "", ""], "a b");
        check(["", "c", "a b", "", ""], "c");
        check(["d e", "c", "a b", "", ""], "d e");
    }

    #[test]
    fn step_up_sign_in_requests_granted_scopes_again() {
        check(["", "write", "a", "read", ""], "read write");
        check(["", "read", "", "read write", ""], "read write");
    }

    #[test]
    fn offline_access_is_requested_if_supported() {
        check(["", "read", "", "", "openid offline_access"], "read offline_access");
        check(["", "", "", "", "openid offline_access"], "");
        check(["", "read", "", "", "openid"], "read");
        check(["read", "", "", "", "offline_access"], "read");
    }

    #[test]
    fn invalid_or_excess_scopes_are_dropped() {
        assert_eq!(read("a \"b\" c\\d e\u{e9} a\tb"), ["a", "b"].map(str::to_owned));
        let many: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        assert_eq!(read(&many.join(" ")).len(), MOST);
        assert!(read(&"x".repeat(LONGEST + 1)).is_empty());
    }
}
