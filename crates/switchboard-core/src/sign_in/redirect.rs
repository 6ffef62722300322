//! The redirect URI of a sign-in: a listener on this machine, or a web page elsewhere.

use url::Url;

use crate::render::words::clean_line;

/// The text in the configuration that means any port.
const PLACEHOLDER: &str = "{port}";

const HOSTS: [&str; 2] = ["127.0.0.1", "localhost"];

/// Where the authorization server redirects the browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Return {
    /// A listener of Switchboard on this machine.
    Here(Redirect),
    /// A web page elsewhere, whose URL the user pastes.
    Elsewhere(String),
}

/// The redirect URI of a listener on 127.0.0.1, before its port is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    host: &'static str,
    port: Option<u16>,
    /// The path and query exactly as configured, because authorization servers compare redirect
    /// URIs as text.
    rest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRedirect {
    #[error("`{text}` is not a valid redirect URI")]
    NotAnAddress { text: String },
    #[error("`{text}` has no port: add one, or `{PLACEHOLDER}` for any")]
    NoPort { text: String },
    #[error("`{text}` is not encrypted, so its host must be `127.0.0.1` or `localhost`")]
    Insecure { text: String },
    #[error("`{text}` is not normalized: write `{written}`")]
    NotCanonical { text: String, written: String },
}

impl Default for Redirect {
    /// A redirect URI with any port (RFC 8252, section 7.3).
    fn default() -> Redirect {
        Redirect { host: "127.0.0.1", port: None, rest: "/callback".to_owned() }
    }
}

impl Redirect {
    /// The configured port; `None` for any port.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path of the redirect URI, which the browser requests.
    pub fn path(&self) -> &str {
        match self.rest.split('?').next() {
            None | Some("") => "/",
            Some(path) => path,
        }
    }

    /// The redirect URI with this port. All other parts are as in the configuration.
    pub fn uri(&self, port: u16) -> String {
        format!("http://{}:{port}{}", self.host, self.rest)
    }
}

impl Return {
    /// Parses the redirect URI of the configuration.
    pub fn of(text: &str) -> Result<Return, BadRedirect> {
        let shown = || clean_line(text, 200).into_owned();
        let Some(after_scheme) = text.strip_prefix("http://") else {
            return elsewhere(text).ok_or_else(|| BadRedirect::NotAnAddress { text: shown() });
        };
        let end = after_scheme.find(['/', '?', '#']).unwrap_or(after_scheme.len());
        let (authority, rest) = after_scheme.split_at(end);
        let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
        let host = HOSTS.into_iter().find(|name| *name == host);
        let host = host.ok_or_else(|| BadRedirect::Insecure { text: shown() })?;
        let port = match port {
            PLACEHOLDER => None,
            digits => {
                let port = digits.parse().ok().filter(|port| *port != 0);
                Some(port.ok_or_else(|| BadRedirect::NoPort { text: shown() })?)
            }
        };
        let redirect = Redirect { host, port, rest: rest.to_owned() };
        // The URI is parsed with port 1, because a parsed URL omits the default port of its scheme.
        let plain = redirect.uri(1);
        let url = Url::parse(&plain)
            .ok()
            .filter(|url| url.fragment().is_none())
            .ok_or_else(|| BadRedirect::NotAnAddress { text: shown() })?;
        let written = url.as_str().strip_prefix(&format!("http://{host}:1")).unwrap_or_default();
        if written != rest && written.strip_prefix('/') != Some(rest) {
            return Err(BadRedirect::NotCanonical {
                text: shown(),
                written: clean_line(&format!("http://{authority}{written}"), 200).into_owned(),
            });
        }
        Ok(Return::Here(redirect))
    }
}

fn elsewhere(text: &str) -> Option<Return> {
    let url = Url::parse(text).ok().filter(|_| text.starts_with("https://"))?;
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    plain.then(|| Return::Elsewhere(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The result of parsing a redirect URI: its port, its path, and the URI with port 4000.
    fn outcome(text: &str) -> String {
        match Return::of(text) {
            Ok(Return::Here(redirect)) => {
                let port = redirect.port().map_or("any".to_owned(), |port| port.to_string());
                format!("{port} {} {}", redirect.path(), redirect.uri(4000))
            }
            Ok(Return::Elsewhere(address)) => format!("elsewhere {address}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn gateway_listens_only_for_http_loopback_redirect_uris() {
        let check = |text: &str, expected: &str| assert_eq!(outcome(text), expected, "{text}");
        check("http://127.0.0.1:{port}/callback", "any /callback http://127.0.0.1:4000/callback");
        check("http://localhost:3118/cb/x", "3118 /cb/x http://localhost:4000/cb/x");
        check("http://localhost:3118/cb?a=b", "3118 /cb http://localhost:4000/cb?a=b");
        check("http://localhost:3118", "3118 / http://localhost:4000");
        check("http://localhost:3118?a", "3118 / http://localhost:4000?a");
        check("http://localhost:80/cb", "80 /cb http://localhost:4000/cb");
        check("https://example.com/paste", "elsewhere https://example.com/paste");
        check("https://localhost:3118/cb", "elsewhere https://localhost:3118/cb");

        let no_port = |text: &str| {
            check(text, &format!("`{text}` has no port: add one, or `{{port}}` for any"));
        };
        no_port("http://127.0.0.1/callback");
        no_port("http://127.0.0.1:/callback");
        no_port("http://127.0.0.1:0/callback");
        no_port("http://127.0.0.1:65536/callback");
        no_port("http://127.0.0.1:-1/callback");
        no_port("http://127.0.0.1:{PORT}/callback");
        no_port("http://127.0.0.1:3000@evil.example/cb");

        let insecure = |text: &str| {
            let rule = "is not encrypted, so its host must be `127.0.0.1` or `localhost`";
            check(text, &format!("`{text}` {rule}"));
        };
        insecure("http://example.com:3000/cb");
        insecure("http://user@localhost:3000/cb");
        insecure("http://0.0.0.0:3000/cb");
        insecure("http://[::1]:3000/cb");
        insecure("http://LOCALHOST:3000/cb");
        insecure("http://localhost.evil.example:3000/cb");

        let not_an_address = |text: &str| {
            check(text, &format!("`{text}` is not a valid redirect URI"));
        };
        not_an_address("http://localhost:3000/cb#x");
        not_an_address("cursor://callback");
        not_an_address("javascript:alert(1)");
        not_an_address("https://user:pw@example.com/cb");
        not_an_address("https://example.com/cb#x");
        not_an_address("");

        check(
            "http://localhost:3000/a/../b",
            "`http://localhost:3000/a/../b` is not normalized: \
             write `http://localhost:3000/b`",
        );
    }

    #[test]
    fn default_redirect_uri_uses_loopback_and_any_port() {
        let redirect = Redirect::default();
        assert_eq!((redirect.port(), redirect.path()), (None, "/callback"));
        assert_eq!(redirect.uri(4000), "http://127.0.0.1:4000/callback");
    }

    proptest! {
        #[test]
        fn listening_redirect_uri_is_always_loopback(
            text in prop_oneof![any::<String>(), "http://(127.0.0.1|localhost):[0-9{port}]{1,6}\\PC*"],
        ) {
            if let Ok(Return::Here(redirect)) = Return::of(&text) {
                let url = Url::parse(&redirect.uri(4000)).unwrap();
                prop_assert!(HOSTS.contains(&url.host_str().unwrap()));
                prop_assert_eq!(url.port(), Some(4000));
                prop_assert_eq!(url.path(), redirect.path());
            }
        }
    }
}
