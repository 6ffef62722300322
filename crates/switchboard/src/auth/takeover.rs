//! Tokens that `pi-mcp-adapter` stored below Pi's directory. Switchboard reads these tokens,
//! never changes them, and uses them only for the URL that they were issued for.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};
use switchboard_core::name::ServerName;
use url::Url;

use crate::paths::{self, Paths};
use crate::secret::{Secret, hex};

/// The maximum size of a file with tokens.
const LARGEST: u64 = 256 * 1024;

/// The fields of an older token file that Switchboard uses.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OlderGrant {
    server_url: String,
    #[serde(default)]
    pub(crate) tokens: OlderTokens,
    #[serde(default, rename = "clientInfo")]
    pub(crate) client: OlderClient,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OlderTokens {
    pub(crate) access_token: Option<Secret>,
    pub(crate) refresh_token: Option<Secret>,
    /// When the access token expires, in seconds since 1970; may be in the past.
    pub(crate) expires_at: Option<f64>,
    pub(crate) scope: Option<String>,
    issuer: Option<String>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OlderClient {
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) redirect_uris: Vec<String>,
    issuer: Option<String>,
}

impl OlderGrant {
    /// The authorization server that issued the tokens, if the file names one.
    pub(crate) fn issuer(&self) -> Option<&str> {
        self.tokens.issuer.as_deref().or(self.client.issuer.as_deref())
    }
}

/// The grant of `pi-mcp-adapter` for a server, if it was issued for this URL. Files that other
/// users can write are ignored: another user could otherwise choose the account that Switchboard
/// uses.
pub(crate) fn left_behind(paths: &Paths, server: &ServerName, url: &str) -> Option<OlderGrant> {
    let url = Url::parse(url).ok()?;
    let root = paths.others.pi.join("mcp-oauth");
    folders(server).find_map(|folder| {
        let folder = root.join(folder);
        let path = folder.join("tokens.json");
        let guarded = is_guarded(&root, Metadata::is_dir) && is_guarded(&folder, Metadata::is_dir);
        let is_small_file = |data: &Metadata| data.is_file() && data.len() <= LARGEST;
        if !guarded || !is_guarded(&path, is_small_file) {
            return None;
        }
        let file = paths::read_private(&path).ok()??;
        let left: OlderGrant = serde_json::from_slice(&file).ok()?;
        Some(left).filter(|left| Url::parse(&left.server_url).is_ok_and(|theirs| theirs == url))
    })
}

/// Whether the tokens of `pi-mcp-adapter` for this URL were taken over before. After a
/// sign-out, they must not be taken over again.
pub(crate) fn was_taken(paths: &Paths, url: &str) -> bool {
    mark(paths, url).exists()
}

pub(crate) fn mark_taken(paths: &Paths, url: &str) {
    // An error is ignored: without the mark, the tokens may be taken over a second time.
    let _made = paths::create_private(&mark(paths, url));
}

fn mark(paths: &Paths, url: &str) -> PathBuf {
    let digest = Sha256::digest(url);
    let name = hex(digest.iter().take(16));
    paths.tokens().join(format!("{name}.taken"))
}

/// The possible directories of a server's tokens, named after the hash of the server's name or, if
/// the name is valid as a file name, after the name itself.
fn folders(server: &ServerName) -> impl Iterator<Item = PathBuf> {
    let name = server.as_str();
    let plain = !name.contains(['/', '\\', '\0']) && !name.starts_with('.');
    let hashed = PathBuf::from(format!("sha256-{}", hex(&Sha256::digest(name))));
    std::iter::once(hashed).chain(plain.then(|| PathBuf::from(name)))
}

/// Whether the path is no symbolic link, is writable only by this user, and has metadata that
/// `fits` accepts.
fn is_guarded(path: &Path, fits: impl Fn(&Metadata) -> bool) -> bool {
    let Ok(data) = fs::symlink_metadata(path) else { return false };
    let ours = data.uid() == rustix::process::geteuid().as_raw();
    fits(&data) && ours && data.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::env::Environment;

    const URL: &str = "https://a.example/mcp";
    /// The directory for the server name `a`.
    const HASHED: &str = "sha256-ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
    const WHOLE: &str = r#"{
        "tokens": { "accessToken": "at", "refreshToken": "rt", "expiresAt": 1750000000.5,
            "scope": "read write", "issuer": "https://as.example" },
        "clientInfo": { "clientId": "id", "clientSecret": "cs",
            "redirectUris": ["http://localhost:19876/callback"], "clientIdIssuedAt": 1 },
        "codeVerifier": "v", "serverUrl": "https://a.example/mcp" }"#;

    struct Pi {
        directory: tempfile::TempDir,
        paths: Paths,
    }

    impl Pi {
        fn new() -> Pi {
            let directory = tempfile::tempdir().unwrap();
            let at = directory.path().to_str().unwrap();
            let environment = Environment::made_of([("PI_CODING_AGENT_DIR", at)], "/");
            Pi { paths: Paths::of(&environment), directory }
        }

        fn path(&self, below: &str) -> PathBuf {
            self.directory.path().join("mcp-oauth").join(below)
        }

        fn leave(&self, folder: &str, text: &str) {
            fs::create_dir_all(self.path(folder)).unwrap();
            fs::write(self.path(folder).join("tokens.json"), text).unwrap();
        }

        fn left(&self, server: &str, url: &str) -> Option<OlderGrant> {
            left_behind(&self.paths, &ServerName::new(server).unwrap(), url)
        }
    }

    #[test]
    fn pi_adapter_tokens_are_read_from_either_directory() {
        for folder in [HASHED, "a"] {
            let pi = Pi::new();
            assert_eq!(pi.left("a", URL), None);
            pi.leave(folder, WHOLE);
            let expected = OlderGrant {
                server_url: URL.to_owned(),
                tokens: OlderTokens {
                    access_token: Some(Secret::new("at")),
                    refresh_token: Some(Secret::new("rt")),
                    expires_at: Some(1_750_000_000.5),
                    scope: Some("read write".to_owned()),
                    issuer: Some("https://as.example".to_owned()),
                },
                client: OlderClient {
                    client_id: Some("id".to_owned()),
                    client_secret: Some(Secret::new("cs")),
                    redirect_uris: vec!["http://localhost:19876/callback".to_owned()],
                    issuer: None,
                },
            };
            assert_eq!(pi.left("a", URL), Some(expected), "{folder}");
            let file = fs::read_to_string(pi.path(folder).join("tokens.json")).unwrap();
            assert_eq!(file, WHOLE);
        }
    }

    #[test]
    fn pi_adapter_tokens_for_other_servers_are_ignored() {
        let pi = Pi::new();
        pi.leave(HASHED, WHOLE);
        for url in ["https://a.example/", "http://a.example/mcp", "https://b.example/mcp", "mcp"] {
            assert_eq!(pi.left("a", url), None, "{url}");
        }
        assert_eq!(pi.left("b", URL), None);
        assert!(pi.left("a", "https://A.example:443/mcp").is_some());
    }

    #[test]
    fn malformed_pi_adapter_token_file_is_ignored() {
        let large = format!(r#"{{"serverUrl":"{URL}","x":"{}"}}"#, "x".repeat(300_000));
        for text in ["", "{", "[]", "null", r#"{"tokens":{}}"#, r#"{"serverUrl":7}"#, &large] {
            let pi = Pi::new();
            pi.leave(HASHED, text);
            assert_eq!(pi.left("a", URL), None);
        }
        let expiries = [("-5", Some(-5.0)), ("1e300", Some(1e300)), ("null", None)];
        for (written, expected) in expiries {
            let pi = Pi::new();
            let tokens = format!(r#"{{"expiresAt":{written}}}"#);
            pi.leave(HASHED, &format!(r#"{{"serverUrl":"{URL}","tokens":{tokens}}}"#));
            assert_eq!(pi.left("a", URL).unwrap().tokens.expires_at, expected, "{written}");
        }
    }

    #[test]
    fn pi_adapter_token_file_writable_by_others_is_ignored() {
        let file = format!("{HASHED}/tokens.json");
        for (place, mode) in [(&*file, 0o620), (&file, 0o602), (HASHED, 0o770), ("", 0o777)] {
            let pi = Pi::new();
            pi.leave(HASHED, WHOLE);
            fs::set_permissions(pi.path(place), Permissions::from_mode(mode)).unwrap();
            assert_eq!(pi.left("a", URL), None, "{place} {mode:o}");
        }
        for place in [&*file, HASHED] {
            let pi = Pi::new();
            pi.leave(HASHED, WHOLE);
            let elsewhere = pi.path("elsewhere");
            fs::rename(pi.path(place), &elsewhere).unwrap();
            symlink(&elsewhere, pi.path(place)).unwrap();
            assert_eq!(pi.left("a", URL), None, "{place}");
        }
    }

    #[test]
    fn path_traversal_in_name_finds_no_pi_adapter_tokens() {
        let pi = Pi::new();
        pi.leave("../out", WHOLE);
        for name in ["../out", "..", "."] {
            if let Ok(name) = ServerName::new(name) {
                assert_eq!(left_behind(&pi.paths, &name, URL), None);
            }
        }
    }
}
