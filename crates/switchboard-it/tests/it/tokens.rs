//! Tokens that a user sets: read without echo, stored in the keyring or a file, sent to one URL,
//! and shown nowhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};
use switchboard_it::client::Client;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::keyring::{Keyring, Temper};
use switchboard_it::program::{Installed, Ran};
use switchboard_it::terminal;
use tokio::io::AsyncWriteExt;

use crate::PROGRAMS;
use crate::remote::served;

const CANARY: &str = "canary-4711";

/// A user with one server, `far`, whose token is stored.
struct User {
    installed: Installed,
    fixture: HttpFixture,
    /// An additional environment variable.
    variable: (&'static str, String),
}

impl User {
    async fn new(settings: Value) -> User {
        let fixture = HttpFixture::start(&served("json", "everything")).await;
        let entry = json!({ "url": fixture.url(), "bearerTokenStore": true });
        let config = json!({ "settings": settings, "mcpServers": { "far": entry } });
        let installed = Installed::with(PROGRAMS, &config.to_string());
        User { installed, fixture, variable: ("NOTHING", String::new()) }
    }

    async fn with_keyring(keyring: &Keyring) -> User {
        let variable = ("DBUS_SESSION_BUS_ADDRESS", keyring.address().to_owned());
        User { variable, ..User::new(json!({})).await }
    }

    async fn run(&self, line: &str, input: &str) -> Ran {
        let mut command = self.installed.command();
        command.env(self.variable.0, &self.variable.1).args(line.split(' '));
        let piped = std::process::Stdio::piped;
        command.stdin(piped()).stdout(piped()).stderr(piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _unread = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = child.wait_with_output().await.unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(!format!("{stdout}{stderr}").contains(CANARY), "{line}: {stdout}{stderr}");
        Ran { code: output.status.code(), stdout, stderr }
    }

    async fn set(&self) -> Ran {
        self.run("token set far", &format!("{CANARY}\n")).await
    }

    async fn call(&self) -> Ran {
        self.run("call far_echo text=hello", "").await
    }

    /// The storage location of each token, as `token status` reports it.
    async fn places(&self) -> Vec<String> {
        let ran = self.run("token status far --json", "").await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let status: Value = serde_json::from_str(&ran.stdout).unwrap();
        let tokens = status["tokens"].as_array().unwrap();
        tokens.iter().map(|token| token["kept"].as_str().unwrap().to_owned()).collect()
    }

    /// The values of the `Authorization` header, without consecutive duplicates.
    fn shown_to_server(&self) -> Vec<String> {
        let requests = self.fixture.requests();
        let headers =
            requests.iter().map(|it| it.header("authorization").unwrap_or("-").to_owned());
        let mut seen: Vec<String> = headers.collect();
        seen.dedup();
        seen
    }

    fn token_files(&self) -> Vec<PathBuf> {
        let directory = self.installed.home().join("switchboard/state/tokens");
        let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|is| is == "token")).collect()
    }
}

#[tokio::test]
async fn stored_token_can_be_used_listed_and_removed() {
    let user = User::new(json!({})).await;
    let missing = user.call().await;
    assert_eq!(missing.code, Some(3), "{missing:?}");
    assert!(missing.stderr.contains("`switchboard token set far`"), "{missing:?}");
    assert!(user.fixture.requests().is_empty());

    let set = user.set().await;
    assert_eq!(set.code, Some(0), "{set:?}");
    assert!(set.stderr.contains("not encrypted"), "{set:?}");
    let called = user.call().await;
    assert_eq!((called.code, called.stdout.trim()), (Some(0), "hello"), "{called:?}");
    assert_eq!(user.shown_to_server(), [format!("Bearer {CANARY}")]);
    assert_eq!(user.places().await, ["file"]);
    let [file] = &user.token_files()[..] else { panic!("one token is one file") };
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(file), mode(file.parent().unwrap())), (0o600, 0o700));

    let removed = user.run("token remove far", "").await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(user.token_files().is_empty());
    assert_eq!(user.places().await, [""; 0]);
    assert_eq!(user.call().await.code, Some(3));
    let again = user.run("token remove far", "").await;
    assert_eq!(again.stderr, "no token is stored for `far`\n");
}

#[tokio::test]
async fn token_is_stored_in_an_available_keyring() {
    let keyring = Keyring::start(Temper::Obliging);
    let user = User::with_keyring(&keyring).await;
    let set = user.set().await;
    assert_eq!(set.stderr, "the token of `far` is stored in the keyring\n");
    assert_eq!(keyring.secrets(), [("switchboard".to_owned(), CANARY.to_owned())]);
    assert!(user.token_files().is_empty());
    assert_eq!(user.places().await, ["keyring"]);
    assert_eq!(user.call().await.code, Some(0));
    assert_eq!(user.shown_to_server(), [format!("Bearer {CANARY}")]);
    // A new token replaces the stored one.
    user.run("token set far", "other").await;
    assert_eq!(keyring.secrets(), [("switchboard".to_owned(), "other".to_owned())]);
    user.run("token remove far", "").await;
    assert_eq!(keyring.secrets(), []);
}

#[tokio::test]
async fn unusable_keyring_falls_back_to_a_file_with_notice() {
    for temper in [Temper::Locked, Temper::Asking, Temper::Absent, Temper::Silent] {
        let keyring = Keyring::start(temper);
        let user = User::with_keyring(&keyring).await;
        let set = user.set().await;
        assert_eq!(set.code, Some(0), "{temper:?}: {set:?}");
        assert!(set.stderr.contains("not encrypted"), "{temper:?}: {set:?}");
        assert_eq!(keyring.secrets(), [], "{temper:?}");
        assert_eq!(user.call().await.code, Some(0), "{temper:?}");
    }
}

#[tokio::test]
async fn keyring_setting_forbids_the_file_fallback() {
    let locked = Keyring::start(Temper::Locked);
    let mut user = User::new(json!({ "oauthCredentialStore": "keyring" })).await;
    user.variable = ("DBUS_SESSION_BUS_ADDRESS", locked.address().to_owned());
    let set = user.set().await;
    assert_eq!(set.code, Some(2), "{set:?}");
    assert!(set.stderr.contains("the keyring is locked"), "{set:?}");
    assert!(set.stderr.contains("`oauthCredentialStore`"), "{set:?}");
    assert!(user.token_files().is_empty());
}

#[tokio::test]
async fn token_key_encrypts_the_token_file() {
    let mut user = User::new(json!({})).await;
    user.variable =
        ("SWITCHBOARD_TOKEN_KEY", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned());
    user.set().await;
    assert_eq!(user.places().await, ["encrypted-file"]);
    let file = fs::read(&user.token_files()[0]).unwrap();
    assert!(!file.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()));
    assert_eq!(user.call().await.code, Some(0));
    user.variable.1.clear();
    let without = user.call().await;
    assert_eq!(without.code, Some(2), "{without:?}");
    assert!(without.stderr.contains("`SWITCHBOARD_TOKEN_KEY`"), "{without:?}");
}

#[tokio::test]
async fn typed_token_is_not_echoed() {
    let user = User::new(json!({})).await;
    let mut command = user.installed.command();
    let shown = terminal::run(command.args(["token", "set", "far"]), &format!("{CANARY}\n")).await;
    assert_eq!(shown.code, Some(0), "{}", shown.screen);
    assert!(shown.screen.contains("Token of far:"), "{}", shown.screen);
    assert!(!shown.screen.contains(CANARY), "{}", shown.screen);
    user.call().await;
    assert_eq!(user.shown_to_server(), [format!("Bearer {CANARY}")]);
}

#[tokio::test]
async fn stored_token_is_bound_to_its_url() {
    let user = User::new(json!({})).await;
    user.set().await;
    let elsewhere = HttpFixture::start(&served("json", "everything")).await;
    let entry = json!({ "url": elsewhere.url(), "bearerTokenStore": true });
    let config = json!({ "mcpServers": { "far": entry } }).to_string();
    user.installed.write("switchboard/mcp.json", &config);
    assert_eq!(user.call().await.code, Some(3));
    assert!(elsewhere.requests().is_empty());
    // A token whose server is gone can be removed by its URL.
    let status = user.run("token status", "").await;
    assert!(status.stdout.starts_with("(no server) "), "{status:?}");
    let removed = user.run(&format!("token remove {}", user.fixture.url()), "").await;
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(user.token_files().is_empty());
}

#[tokio::test]
async fn token_set_refuses_invalid_tokens_and_local_servers() {
    let user = User::new(json!({})).await;
    for (line, input, said) in [
        ("token set far", "", "the token is empty"),
        ("token set far", "two words", "not valid in a header"),
        ("token set far", "line\nline", "not valid in a header"),
        ("token set near", "x", "near"),
    ] {
        let ran = user.run(line, input).await;
        assert_eq!(ran.code, Some(2), "{line} {input}: {ran:?}");
        assert!(ran.stderr.contains(said), "{line} {input}: {ran:?}");
    }
    let installed = Installed::with_fixture(PROGRAMS, "near", "");
    let ran = installed.run_with_input(["token", "set", "near"], "x").await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("has no URL"), "{ran:?}");
}

#[tokio::test]
async fn token_set_warns_unless_bearer_token_store_is_true() {
    let user = User::new(json!({})).await;
    let config = json!({ "mcpServers": { "far": { "url": user.fixture.url() } } }).to_string();
    user.installed.write("switchboard/mcp.json", &config);
    let set = user.set().await;
    assert_eq!(set.code, Some(0));
    assert!(set.stderr.contains("`\"bearerTokenStore\": true`"), "{set:?}");
}

#[tokio::test]
async fn running_gateway_uses_new_tokens_and_drops_removed_ones() {
    let user = User::new(json!({})).await;
    user.set().await;
    let mut command = user.installed.command();
    let mut client =
        Client::start(command.env("SWITCHBOARD_TOKEN_COMMAND_TTL_MS", "0").arg("serve"));
    client.initialize("2025-11-25", json!({})).await;
    let echo = json!({ "tool": "far_echo", "args": { "text": "hello" } });
    let shown_last = || {
        let requests = user.fixture.requests();
        let call = requests.iter().rfind(|request| request.what() == "tools/call").unwrap();
        call.header("authorization").unwrap_or("-").to_owned()
    };
    for (line, input, shown) in [
        ("token status", "", format!("Bearer {CANARY}")),
        ("token set far", "other", "Bearer other".to_owned()),
    ] {
        assert_eq!(user.run(line, input).await.code, Some(0), "{line}");
        assert_eq!(client.mcp(echo.clone()).await, "hello", "{line}");
        assert_eq!(shown_last(), shown, "{line}");
    }
    let before = user.fixture.requests().len();
    assert_eq!(user.run("token remove far", "").await.code, Some(0));
    let refused = client.mcp(echo).await;
    assert!(refused.starts_with("sign_in_required"), "{refused}");
    let later = user.fixture.requests().split_off(before);
    assert!(later.iter().all(|request| request.header("authorization").is_none()), "{later:?}");
}
