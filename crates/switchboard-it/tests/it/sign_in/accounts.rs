//! Several accounts at one URL, each with its own sign-in.

use std::fs;

use serde_json::{Value, json};
use switchboard_it::authority::{Endpoint, Setup, visit};

use super::Desk;

/// A user with three entries at one URL; `plain` names no account.
async fn user() -> Desk {
    let user = Desk::with(Setup::default()).await;
    let url = user.authority.mcp_url();
    let config = json!({ "mcpServers": {
        "plain": { "url": url },
        "work": { "url": url, "account": "work" },
        "home": { "url": url, "account": "home" },
    } });
    user.installed.write("switchboard/mcp.json", &config.to_string());
    user
}

impl Desk {
    async fn sign_in_to(&self, server: &str) {
        let mut auth = self.start(&format!("auth {server}"));
        assert_eq!(visit(&auth.line().await).await, 200);
        let ended = auth.ended().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }

    /// Whether a call reaches `plain`, `work` and `home`.
    async fn signed_in(&self) -> [bool; 3] {
        let mut reached = [false; 3];
        for (at, server) in ["plain", "work", "home"].into_iter().enumerate() {
            let ran = self.run(&format!("call {server}_echo text=hello")).await;
            assert!(matches!(ran.code, Some(0 | 3)), "{ran:?}");
            reached[at] = ran.code == Some(0);
        }
        reached
    }

    fn index(&self) -> std::path::PathBuf {
        self.installed.home().join("switchboard/state/tokens/index.json")
    }
}

#[tokio::test]
async fn sign_in_to_one_account_leaves_other_accounts_unchanged() {
    let user = user().await;
    user.sign_in_to("work").await;
    assert_eq!(user.signed_in().await, [false, true, false]);
    user.sign_in_to("home").await;
    assert_eq!(user.signed_in().await, [false, true, true]);
    assert_eq!(user.tokens().len(), 2);
    user.sign_in_to("plain").await;
    assert_eq!(user.signed_in().await, [true; 3]);
    let out = user.run("logout home").await;
    assert_eq!(out.code, Some(0), "{out:?}");
    assert_eq!(user.signed_in().await, [true, true, false]);
    // A token refresh does not change which accounts are signed in.
    user.authority.expire_tokens();
    assert_eq!(user.signed_in().await, [true, true, false]);
    let status = user.run("token status --json").await;
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    let accounts: Vec<&Value> =
        status["tokens"].as_array().unwrap().iter().map(|token| &token["account"]).collect();
    assert_eq!(accounts.len(), 2);
    assert!(accounts.contains(&&json!("work")) && accounts.contains(&&json!(null)), "{status}");
    let status = user.run("token status work").await;
    assert!(status.stdout.contains("(account work): sign-in"), "{status:?}");
}

/// The token fingerprints of all requests to the server so far.
fn shown(user: &Desk) -> Vec<Option<String>> {
    let record = user.authority.ledger().now();
    record.to(Endpoint::Mcp).into_iter().map(|seen| seen.token.clone()).collect()
}

#[tokio::test]
async fn running_gateway_notices_sign_out_and_new_sign_in() {
    let user = user().await;
    user.sign_in_to("plain").await;
    let mut client = user.installed.connect(json!({})).await;
    let call = json!({ "tool": "plain_echo", "args": { "text": "hi" } });
    assert_eq!(client.mcp(call.clone()).await, "hi");
    let old = shown(&user).pop().unwrap();
    assert!(old.is_some());

    let out = user.run("logout plain").await;
    assert_eq!(out.code, Some(0), "{out:?}");
    let before = shown(&user).len();
    let found = client.mcp(json!({ "search": "echo", "server": "plain" })).await;
    assert!(!found.contains("plain_echo"), "listing of the old sign-in: {found}");
    let refused = client.mcp(call.clone()).await;
    assert!(refused.contains("sign_in_required"), "{refused}");
    let after = shown(&user).split_off(before);
    assert!(!after.contains(&old), "the old token was used: {after:?}");

    user.sign_in_to("plain").await;
    assert_eq!(client.mcp(call).await, "hi");
    assert_ne!(shown(&user).pop().unwrap(), old);
    client.end().await;
}

#[tokio::test]
async fn sign_in_by_an_earlier_version_stays_valid() {
    let user = user().await;
    user.sign_in_to("plain").await;
    // Writes the index of the token store in the format of an earlier version.
    let mut index: Value = serde_json::from_slice(&fs::read(user.index()).unwrap()).unwrap();
    let line = index["entries"][0].as_object_mut().unwrap();
    assert!(line.remove("identity").is_some());
    assert!(!line.contains_key("accountName"));
    fs::write(user.index(), index.to_string()).unwrap();
    assert_eq!(user.signed_in().await, [true, false, false]);
    user.authority.expire_tokens();
    assert_eq!(user.signed_in().await, [true, false, false]);
}

#[tokio::test]
async fn new_sign_in_invalidates_cached_listings() {
    let user = user().await;
    let cached = async || {
        let ran = user.run("status --json").await;
        let status: Value = serde_json::from_str(&ran.stdout).unwrap();
        let servers = status["servers"].as_array().unwrap().clone();
        let plain = servers.into_iter().find(|server| server["name"] == "plain").unwrap();
        plain["tools"].as_u64().is_some_and(|count| count > 0)
    };
    user.sign_in_to("plain").await;
    assert!(!cached().await);
    user.signed_in().await;
    assert!(cached().await);
    // A refreshed token belongs to the same sign-in.
    user.authority.expire_tokens();
    user.signed_in().await;
    assert!(cached().await);
    user.sign_in_to("plain").await;
    assert!(!cached().await);
    user.signed_in().await;
    assert!(cached().await);
    user.run("logout plain").await;
    assert!(!cached().await);
}
