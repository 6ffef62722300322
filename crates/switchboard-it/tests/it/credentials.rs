//! Cached listings are bound to the credential of their request, and two accounts at one URL keep
//! separate tokens.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use switchboard::secret::Secret;
use switchboard::{Environment, Gateway};
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::{Home, World, read};

use crate::remote::served;

/// A gateway with the server `far`, for a user whose environment variable `T` has the value `user`.
fn world(home: &Home, entry: &Value, user: &str) -> World {
    let config = json!({ "mcpServers": { "far": entry } });
    gateway_of(home, &config, user)
}

fn gateway_of(home: &Home, config: &Value, user: &str) -> World {
    gateway_with(home, config, ("T", user))
}

fn gateway_with(home: &Home, config: &Value, variable: (&str, &str)) -> World {
    let (path, own) = (home.path().to_string_lossy(), home.path().join("switchboard"));
    let variables = [("HOME", &*path), ("SWITCHBOARD_HOME", &own.to_string_lossy()), variable];
    let environment = Environment::made_of(variables, home.path());
    let gateway = Gateway::builder(environment).config(read(&config.to_string())).build();
    World::of_gateway(gateway, home.clone())
}

/// The status of `far` before it is connected.
async fn known(home: &Home, entry: &Value, user: &str) -> String {
    let world = world(home, entry, user);
    let status = world.ask("{}").await;
    world.shut_down().await;
    status.lines().nth(1).unwrap_or_default().to_owned()
}

async fn list(home: &Home, entry: &Value, user: &str) {
    let world = world(home, entry, user);
    let listed = world.ask(r#"{ "connect": "far" }"#).await;
    assert!(listed.contains("far_echo"), "{listed}");
    world.shut_down().await;
}

const CACHED: &str = "○ far (30 tools, cached)";
const MISSED: &str = "○ far (not connected)";

fn modern() -> String {
    let everything = include_str!("../../scripts/everything.toml");
    let modern = everything.replacen("[server]", "[server]\nera = 'modern'", 1);
    format!("{modern}\n[http]\nform = 'json'\n")
}

/// Entries with a credential from the variable `T`.
fn entries(url: &str) -> Vec<Value> {
    let with = |more: Value| {
        let mut entry = json!({ "url": url });
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        entry
    };
    vec![
        with(json!({ "bearerToken": "${T}" })),
        with(json!({ "bearerToken": "pre-$env:T" })),
        with(json!({ "bearerTokenEnv": "T" })),
        with(json!({ "headers": { "Authorization": "Bearer ${T}" } })),
        with(json!({ "headers": { "X-User": "${T:-nobody}" } })),
        with(json!({ "headers": { "Cookie": "session={env:T}" } })),
        with(json!({ "auth": { "type": "basic", "username": "${T}", "password": "p" } })),
        with(json!({ "auth": { "type": "basic", "username": "u", "passwordEnv": "T" } })),
        with(json!({ "auth": { "type": "basic", "username": "u", "password": "${T}" } })),
        with(json!({ "auth": { "type": "api-key", "keyEnv": "T" } })),
        with(json!({ "auth": { "type": "api-key", "header": "X-K", "key": "${T}" } })),
        json!({ "url": format!("{url}?key=${{T}}") }),
    ]
}

#[tokio::test]
async fn cached_listing_is_separate_for_each_credential() {
    for script in [served("json", "everything"), modern()] {
        let fixture = HttpFixture::start(&script).await;
        for entry in entries(&fixture.url()) {
            let home = Home::new();
            list(&home, &entry, "alice").await;
            assert_eq!(known(&home, &entry, "alice").await, CACHED, "{entry}");
            assert_eq!(known(&home, &entry, "bob").await, MISSED, "{entry}");
            // From now on both users have a cached listing.
            list(&home, &entry, "bob").await;
            assert_eq!(known(&home, &entry, "alice").await, CACHED, "{entry}");
            assert_eq!(known(&home, &entry, "bob").await, CACHED, "{entry}");
            assert_eq!(known(&home, &entry, "carol").await, MISSED, "{entry}");
        }
    }
}

#[tokio::test]
async fn changed_literal_token_invalidates_the_cached_listing() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let home = Home::new();
    let of = |token: &str| json!({ "url": fixture.url(), "bearerToken": token });
    list(&home, &of("alice"), "").await;
    assert_eq!(known(&home, &of("alice"), "").await, CACHED);
    assert_eq!(known(&home, &of("bob"), "").await, MISSED);
}

#[tokio::test]
async fn replaced_stored_token_invalidates_cached_listings() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let home = Home::new();
    let entry = json!({ "url": fixture.url(), "bearerTokenStore": true });
    let set = async |token: &str| {
        let world = world(&home, &entry, "");
        world.gateway.set_token("far", Secret::new(token)).await.unwrap();
        world.shut_down().await;
    };
    set("alice").await;
    list(&home, &entry, "").await;
    assert_eq!(known(&home, &entry, "").await, CACHED);
    set("bob").await;
    assert_eq!(known(&home, &entry, "").await, MISSED);
    list(&home, &entry, "").await;
    assert_eq!(known(&home, &entry, "").await, CACHED);
    let world = world(&home, &entry, "");
    world.gateway.remove_token("far").await.unwrap();
    world.shut_down().await;
    assert_eq!(known(&home, &entry, "").await, MISSED);
}

#[tokio::test]
async fn changed_token_causes_reconnection_and_relisting() {
    let fixture = HttpFixture::start(&served("events", "everything")).await;
    let home = Home::new();
    let entry = json!({ "url": fixture.url(), "bearerTokenStore": true });
    let world = world(&home, &entry, "");
    world.gateway.set_token("far", Secret::new("alice")).await.unwrap();
    world.ask(r#"{ "connect": "far" }"#).await;
    world.gateway.set_token("far", Secret::new("bob")).await.unwrap();
    let mut catalog = world.gateway.watch();
    world.ask(r#"{ "tool": "far_change_tools", "args": { "name": "of_bob" } }"#).await;
    // The new connection causes one listing, and the added tool causes another.
    while !world.ask("{}").await.contains("31 tools") {
        catalog.changed().await.unwrap();
    }
    let requests = fixture.requests();
    let call = requests.iter().rfind(|request| request.what() == "tools/call").unwrap();
    assert_eq!(call.header("authorization"), Some("Bearer bob"));
    world.shut_down().await;
    assert_eq!(known(&home, &entry, "").await, "○ far (31 tools, cached, 1 new)");
}

#[tokio::test]
async fn changed_command_token_invalidates_only_private_cached_listings() {
    for (script, expected) in [(modern(), MISSED), (served("json", "everything"), CACHED)] {
        let fixture = HttpFixture::start(&script).await;
        let home = Home::new();
        let file = home.path().join("token");
        let entry =
            json!({ "url": fixture.url(), "bearerToken": format!("!cat {}", file.display()) });
        fs::write(&file, "alice").unwrap();
        list(&home, &entry, "").await;
        fs::write(&file, "bob").unwrap();
        assert_eq!(known(&home, &entry, "").await, expected);
    }
}

#[tokio::test]
async fn new_token_of_a_token_command_causes_relisting() {
    for script in [modern(), served("json", "everything")] {
        let fixture = HttpFixture::start(&script).await;
        let home = Home::new();
        let file = home.path().join("token");
        let entry =
            json!({ "url": fixture.url(), "bearerToken": format!("!cat {}", file.display()) });
        let ttl = ("SWITCHBOARD_TOKEN_COMMAND_TTL_MS", "0");
        fs::write(&file, "alice").unwrap();
        let world = gateway_with(&home, &json!({ "mcpServers": { "far": entry } }), ttl);
        let listed_as = || -> Vec<String> {
            let requests = fixture.requests();
            let lists = requests.iter().filter(|request| request.what() == "tools/list");
            let mut tokens: Vec<String> =
                lists.map(|list| list.header("authorization").unwrap_or("-").to_owned()).collect();
            // The requests for the pages of one listing are merged.
            tokens.dedup();
            tokens
        };
        let echo = r#"{ "tool": "far_echo", "args": { "text": "hi" } }"#;
        for (token, expected) in [
            ("alice", &["Bearer alice"][..]),
            ("alice", &["Bearer alice"]),
            ("bob", &["Bearer alice", "Bearer bob"]),
            ("bob", &["Bearer alice", "Bearer bob"]),
        ] {
            fs::write(&file, token).unwrap();
            assert_eq!(world.ask(echo).await, "hi");
            assert_eq!(listed_as(), expected, "{token}");
        }
        world.shut_down().await;
    }
}

#[tokio::test]
async fn cache_file_names_and_contents_do_not_reveal_tokens() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let entry = json!({ "url": fixture.url(), "bearerToken": "canary-4711" });
    let names = |home: &Home| -> Vec<String> {
        let folder = fs::read_dir(home.path().join("switchboard/cache/listings")).unwrap();
        let names = folder.flatten().map(|file| file.file_name().into_string().unwrap());
        names.filter(|name| name.ends_with(".listing")).collect()
    };
    let (one, other) = (Home::new(), Home::new());
    list(&one, &entry, "").await;
    list(&other, &entry, "").await;
    assert_eq!(names(&one).len(), 1);
    assert_ne!(names(&one), names(&other), "another key gives another file name");
    let content = fs::read(one.path().join("switchboard/cache/listings").join(&names(&one)[0]));
    assert!(!String::from_utf8_lossy(&content.unwrap()).contains("canary"));
    // With a damaged key, the cached listing is not found.
    for damage in [&b""[..], b"short", &[7; 32]] {
        fs::write(one.path().join("switchboard/state/listings.key"), damage).unwrap();
        assert_eq!(known(&one, &entry, "").await, MISSED);
    }
    list(&one, &entry, "").await;
    assert_eq!(known(&one, &entry, "").await, CACHED);
}

#[tokio::test]
async fn cached_listings_expire_after_a_month() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let home = Home::new();
    let entry = json!({ "url": fixture.url(), "bearerTokenEnv": "T" });
    list(&home, &entry, "alice").await;
    list(&home, &entry, "bob").await;
    let folder = home.path().join("switchboard/cache/listings");
    let listings = || -> Vec<_> {
        let files = fs::read_dir(&folder).unwrap().flatten().map(|file| file.path());
        files.filter(|path| path.extension().is_some_and(|end| end == "listing")).collect()
    };
    let [old, fresh] = &listings()[..] else { panic!("{:?}", listings()) };
    age(old, 31);
    age(fresh, 29);
    known(&home, &entry, "carol").await;
    assert_eq!(listings(), std::slice::from_ref(fresh));
}

fn age(path: &Path, days: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(days * 24 * 60 * 60);
    fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

#[tokio::test]
async fn accounts_of_one_endpoint_have_separate_tokens() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let home = Home::new();
    let entry = |account: Value| {
        let mut entry = json!({ "url": fixture.url(), "bearerTokenStore": true });
        if !account.is_null() {
            entry["account"] = account;
        }
        entry
    };
    let config = json!({ "mcpServers": {
        "work": entry(json!("work")), "home": entry(json!("me@home")), "plain": entry(Value::Null),
    } });
    let world = gateway_of(&home, &config, "");
    for name in ["work", "home", "plain"] {
        world.gateway.set_token(name, Secret::new(format!("token-{name}"))).await.unwrap();
    }
    for name in ["plain", "work", "home"] {
        let call = json!({ "tool": format!("{name}_echo"), "args": { "text": "hi" } });
        assert_eq!(world.ask(&call.to_string()).await, "hi");
        let last = fixture.requests().pop().unwrap();
        let expected = format!("Bearer token-{name}");
        assert_eq!(last.header("authorization"), Some(expected.as_str()));
    }
    let tokens = world.gateway.tokens(None).await.unwrap();
    let mut of: Vec<(Option<String>, String)> =
        tokens.into_iter().map(|token| (token.account, token.servers[0].to_string())).collect();
    of.sort();
    let expected = [(None, "plain"), (Some("me@home"), "home"), (Some("work"), "work")];
    assert_eq!(of, expected.map(|(account, name)| (account.map(str::to_owned), name.to_owned())));
    world.gateway.remove_token("work").await.unwrap();
    assert_eq!(world.gateway.tokens(Some("work")).await.unwrap(), []);
    assert_eq!(world.gateway.tokens(Some("home")).await.unwrap().len(), 1);
    world.shut_down().await;
}
