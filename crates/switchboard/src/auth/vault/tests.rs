//! The vault in temporary homes, with and without a keyring.

use std::fs;

use super::*;

const SERVER: &str = "https://a.example/mcp";
const ACCOUNT: &str = "0123456789abcdef";
const OTHER: &str = "fedcba9876543210";
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

struct Home {
    directory: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        Home { directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// The vault of a process with these environment variables.
    fn vault(&self, store: CredentialStore, variables: [(&str, &str); 2]) -> Vault {
        let home = self.directory.path().to_str().unwrap();
        let [one, other] = variables;
        let environment = Environment::made_of([("SWITCHBOARD_HOME", home), one, other], "/");
        Vault::new(&Paths::of(&environment), &environment, store)
    }

    fn plain(&self) -> Vault {
        self.vault(CredentialStore::Auto, [("", ""), ("", "")])
    }
}

fn holder(address: &str) -> Holder {
    Holder { address: address.to_owned(), account: None }
}

async fn keep(vault: &Vault, account: &str, secret: &str) -> Result<IndexEntry, VaultError> {
    vault.keep(&holder(SERVER), TokenKind::SignIn, (account, None), Secret::new(secret)).await
}

async fn kept(vault: &Vault) -> Option<String> {
    let entry = vault.find(&holder(SERVER), TokenKind::SignIn).await.unwrap()?;
    vault.read(&entry).await.unwrap().map(|secret| secret.expose().to_owned())
}

#[tokio::test]
async fn stored_secret_is_found_until_it_is_removed() {
    let home = Home::new();
    let vault = home.plain();
    assert_eq!(vault.all().await.unwrap(), []);
    let entry = keep(&vault, ACCOUNT, "first").await.unwrap();
    assert_eq!(entry.place, SecretPlace::File);
    assert_eq!(
        vault.find(&holder(SERVER), TokenKind::SignIn).await.unwrap().as_ref(),
        Some(&entry)
    );
    assert_eq!(vault.find(&holder(SERVER), TokenKind::Given).await.unwrap(), None);
    assert_eq!(vault.find(&holder("https://a.example/"), TokenKind::SignIn).await.unwrap(), None);
    keep(&vault, ACCOUNT, "second").await.unwrap();
    // Another process reads the same secret.
    assert_eq!(kept(&home.plain()).await.as_deref(), Some("second"));
    vault.forget(&entry).await.unwrap();
    assert_eq!(vault.all().await.unwrap(), []);
    assert!(!vault.path_of(ACCOUNT).exists());
    vault.forget(&entry).await.unwrap();
}

#[tokio::test]
async fn storing_a_new_account_removes_the_old_secret() {
    let home = Home::new();
    let vault = home.plain();
    keep(&vault, ACCOUNT, "old").await.unwrap();
    keep(&vault, OTHER, "new").await.unwrap();
    assert_eq!(vault.all().await.unwrap().len(), 1);
    assert_eq!(kept(&vault).await.as_deref(), Some("new"));
    assert!(!vault.path_of(ACCOUNT).exists());
}

#[tokio::test]
async fn required_scopes_survive_a_token_refresh() {
    let home = Home::new();
    let vault = home.plain();
    vault.want(&holder(SERVER), vec!["early".to_owned()]).await.unwrap();
    assert_eq!(vault.all().await.unwrap(), []);
    keep(&vault, ACCOUNT, "token").await.unwrap();
    vault.want(&holder(SERVER), vec!["write".to_owned()]).await.unwrap();
    // A refreshed token has the same scopes as before.
    assert_eq!(keep(&vault, ACCOUNT, "refreshed").await.unwrap().wanted, ["write"]);
    vault.want(&holder(SERVER), Vec::new()).await.unwrap();
    assert_eq!(vault.all().await.unwrap()[0].wanted, [""; 0]);
}

#[tokio::test]
async fn secret_is_stored_only_where_configured() {
    use CredentialStore::{Auto, EncryptedFile, File, Keyring};
    let key = (KEY_VARIABLE, KEY);
    let cases = [
        (Auto, ("", ""), Ok(SecretPlace::File)),
        (Auto, key, Ok(SecretPlace::EncryptedFile)),
        (File, ("", ""), Ok(SecretPlace::File)),
        (File, key, Ok(SecretPlace::EncryptedFile)),
        (EncryptedFile, key, Ok(SecretPlace::EncryptedFile)),
        (
            EncryptedFile,
            ("", ""),
            Err("encrypted token files require `SWITCHBOARD_TOKEN_KEY`, which is not set"),
        ),
        (Keyring, key, Err("cannot use the keyring")),
        (
            Auto,
            (KEY_VARIABLE, "short"),
            Err("`SWITCHBOARD_TOKEN_KEY` is not the base64 of 32 bytes"),
        ),
    ];
    for (store, variable, expected) in cases {
        let home = Home::new();
        let vault = home.vault(store, [variable, ("", "")]);
        let outcome = keep(&vault, ACCOUNT, "canary").await;
        let outcome = outcome.map(|entry| entry.place).map_err(|error| error.to_string());
        assert_eq!(outcome, expected.map_err(str::to_owned), "{store}");
        let found = kept(&vault).await;
        assert_eq!(found.as_deref(), expected.is_ok().then_some("canary"), "{store}");
    }
}

#[tokio::test]
async fn damaged_token_index_is_refused_and_left_unchanged() {
    let home = Home::new();
    let vault = home.plain();
    let entry = keep(&vault, ACCOUNT, "token").await.unwrap();
    let path = home.path("state/tokens/index.json");
    for damaged in ["", "{", "{\"version\": 2, \"entries\": []}"] {
        fs::write(&path, damaged).unwrap();
        let is_damaged = |error: &VaultError| matches!(error, VaultError::Damaged { .. });
        assert!(vault.all().await.is_err_and(|error| is_damaged(&error)), "{damaged}");
        let refused = keep(&vault, ACCOUNT, "next").await.unwrap_err();
        assert!(is_damaged(&refused), "{damaged}: {refused}");
        assert!(vault.forget(&entry).await.is_err_and(|error| is_damaged(&error)));
        assert_eq!(fs::read_to_string(&path).unwrap(), damaged);
    }
}

#[tokio::test]
async fn absent_keyring_is_an_error_unless_store_is_auto() {
    let home = Home::new();
    let nowhere = format!("unix:path={}", home.path("no-bus").display());
    let runtime = home.path("run");
    let cases = [
        ("DBUS_SESSION_BUS_ADDRESS", nowhere.as_str()),
        ("DBUS_SESSION_BUS_ADDRESS", "tcp:host=127.0.0.1,port=1"),
        ("DBUS_SESSION_BUS_ADDRESS", "no address"),
        ("XDG_RUNTIME_DIR", runtime.to_str().unwrap()),
    ];
    for variable in cases {
        let vault = home.vault(CredentialStore::Auto, [variable, ("", "")]);
        assert_eq!(keep(&vault, ACCOUNT, "token").await.unwrap().place, SecretPlace::File);
        let only = home.vault(CredentialStore::Keyring, [variable, ("", "")]);
        let refused = keep(&only, ACCOUNT, "token").await.unwrap_err();
        assert!(matches!(refused, VaultError::Keyring(KeyringError::Absent)), "{refused:?}");
    }
}

#[cfg(not(target_os = "macos"))]
#[tokio::test(start_paused = true)]
async fn hanging_keyring_is_waited_for_only_once() {
    let home = Home::new();
    let socket = home.path("bus");
    let _never_answers = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let address = format!("unix:path={}", socket.display());
    let bus = [("DBUS_SESSION_BUS_ADDRESS", address.as_str()), ("", "")];
    let begun = tokio::time::Instant::now();
    let vault = home.vault(CredentialStore::Auto, bus);
    assert_eq!(keep(&vault, ACCOUNT, "token").await.unwrap().place, SecretPlace::File);
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(kept(&vault).await.as_deref(), Some("token"));
    let only = home.vault(CredentialStore::Keyring, bus);
    let refused = [keep(&only, ACCOUNT, "a").await, keep(&only, ACCOUNT, "b").await];
    let refused = refused.map(|refused| match refused {
        Err(VaultError::Keyring(error)) => format!("{error:?}"),
        Ok(_) | Err(_) => "something else".to_owned(),
    });
    assert_eq!(refused, ["TimedOut", "Absent"]);
}

#[tokio::test]
async fn account_lock_excludes_other_processes() {
    let home = Home::new();
    let (one, other) = (home.plain(), home.plain());
    let held = one.lock(ACCOUNT, DISK).await.unwrap();
    let impatient = other.lock(ACCOUNT, Duration::from_millis(50)).await.unwrap_err();
    assert!(matches!(impatient, VaultError::Held { .. }), "{impatient:?}");
    other.lock(OTHER, DISK).await.unwrap();
    // The process that holds the lock can write the secret.
    keep(&one, ACCOUNT, "token").await.unwrap();
    let waiting = tokio::spawn(async move { other.lock(ACCOUNT, DISK).await.map(drop) });
    drop(held);
    waiting.await.unwrap().unwrap();
}

#[tokio::test]
async fn cancelled_wait_for_account_lock_leaves_it_free() {
    let home = Home::new();
    let vault = home.plain();
    let held = vault.lock(ACCOUNT, DISK).await.unwrap();
    let waiting = vault.clone();
    let waiting = tokio::spawn(async move { waiting.lock(ACCOUNT, DISK).await.map(drop) });
    tokio::task::yield_now().await;
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    drop(held);
    vault.lock(ACCOUNT, DISK).await.unwrap();
}
