//! Failing authorization servers, expired tokens and insufficient scopes: valid tokens are kept,
//! and retries are bounded.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use serde_json::json;
use switchboard::auth::SignInMethod;
use switchboard::failure::{Code, Failure};
use switchboard::render;
use switchboard_it::authority::{
    AuthMethod, Authority, Endpoint, ExpiresIn, KnownClient, Manner, Seen, Setup, StepUp,
};
use switchboard_it::client::text;
use switchboard_it::fixture::HttpFixture;
use switchboard_it::harness::World;
use switchboard_it::http_client::mcp_call;
use switchboard_it::program::Installed;
use tokio::time::Instant;

use super::far::{echo, kept, sign_in, tally, world, world_in};
use crate::PROGRAMS;
use crate::remote::served;

/// Whether the server is connected when the failure begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Connected,
    NotYet,
}

/// The text of a failure for a model.
fn told(failure: &Failure, authority: &Authority) -> String {
    render::text::failure(failure).replace(&authority.issuer(), "[ISSUER]")
}

/// Makes a call with an expired token, which must fail and keep the stored tokens.
async fn fails(world: &World, authority: &Authority, server: Server) -> String {
    if server == Server::Connected {
        assert_eq!(echo(world, "before").await.unwrap(), "before");
    }
    authority.expire_tokens();
    let before = kept(world.home().path());
    let failure = echo(world, "lost").await.unwrap_err();
    assert_eq!(failure.code, Code::ConnectFailed, "{failure}");
    assert_eq!(kept(world.home().path()), before);
    told(&failure, authority)
}

/// Advances the clock while no request is pending.
async fn later(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Checks that the next call works, with one token refresh and without a new sign-in.
async fn recovers(world: &World, authority: &Authority) {
    let mut outcome = echo(world, "again").await;
    if let Err(Failure { code: Code::Backoff, .. }) = &outcome {
        // A failed server is dialled again only after a backoff, which is as long as the failed dial.
        later(Duration::from_secs(20)).await;
        outcome = echo(world, "again").await;
    }
    assert_eq!(outcome.unwrap(), "again");
    assert_eq!(tally(authority), [1, 0, 1]);
}

#[tokio::test]
async fn tokens_are_kept_if_authorization_server_fails() {
    let manners = [
        Manner::Status(500),
        Manner::Status(503),
        Manner::Busy { retry_after: 7 },
        Manner::Html,
        Manner::Huge,
        Manner::Redirect("https://elsewhere.example/token".to_owned()),
    ];
    let mut seen = Vec::new();
    for manner in &manners {
        for server in [Server::Connected, Server::NotYet] {
            let authority = Authority::start(Setup::default()).await;
            let world = world(&authority).await;
            authority.alter(|setup| setup.token_answers = vec![manner.clone(); 9].into());
            seen.push(fails(&world, &authority, server).await);
            authority.alter(|setup| setup.token_answers.clear());
            recovers(&world, &authority).await;
        }
    }
    let (in_use, not_yet): (Vec<_>, Vec<_>) =
        seen.into_iter().partition(|told| !told.contains("cannot use the server `far`"));
    let not_yet: Vec<String> = not_yet
        .iter()
        .map(|told| told.replace("cannot use the server `far`: cannot connect: ", ""))
        .collect();
    assert_eq!(in_use, not_yet);
    insta::assert_snapshot!(in_use.join("\n"), @"
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the authorization server failed (HTTP status 500)
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the authorization server failed (HTTP status 503)
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the authorization server failed (HTTP status 429)
    Try again in 7s
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the authorization server's response is invalid (HTTP status 200)
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the request to the authorization server failed: the response is larger than 64 KiB
    connect_failed: cannot create the authentication headers of the request: cannot refresh the token at the moment: the authorization server's response is invalid (HTTP status 302)
    ");
}

#[tokio::test]
async fn tokens_are_kept_if_authorization_server_is_unreachable() {
    for server in [Server::Connected, Server::NotYet] {
        let mut authority = Authority::start(Setup::default()).await;
        let world = world(&authority).await;
        authority.close().await;
        let told = fails(&world, &authority, server).await;
        assert!(told.contains("connection refused"), "{server:?}: {told}");
        authority.open();
        recovers(&world, &authority).await;
    }
}

#[tokio::test]
async fn tokens_are_kept_if_authorization_server_never_responds() {
    for server in [Server::Connected, Server::NotYet] {
        let authority = Authority::start(Setup::default()).await;
        let world = world(&authority).await;
        authority.alter(|setup| setup.token_answers = vec![Manner::Hang; 9].into());
        let waiting = async {
            authority.ledger().until(|record| record.refusals == 1).await;
            // All tasks are idle until the timeout.
            tokio::time::pause();
        };
        let (told, ()) = tokio::join!(fails(&world, &authority, server), waiting);
        tokio::time::resume();
        assert!(told.contains("the request timed out"), "{server:?}: {told}");
        authority.alter(|setup| setup.token_answers.clear());
        recovers(&world, &authority).await;
    }
}

#[tokio::test]
async fn token_that_cannot_be_stored_is_used_and_refreshed() {
    let authority = Authority::start(Setup::default()).await;
    let world = world(&authority).await;
    let files = kept(world.home().path());
    let file = files.keys().find_map(|name| name.strip_suffix(".token")).unwrap();
    let lock = world.home().path().join(format!("switchboard/state/tokens/{file}.lock"));
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    for renewals in 1..=3 {
        authority.expire_tokens();
        assert_eq!(echo(&world, "on").await.unwrap(), "on");
        assert_eq!(kept(world.home().path()), files);
        assert_eq!(tally(&authority), [renewals, 0, 1]);
    }
    fs::remove_dir(&lock).unwrap();
    authority.expire_tokens();
    assert_eq!(echo(&world, "on").await.unwrap(), "on");
    // The token is stored again, so other processes can use it.
    let other = world_in(world.home(), &authority);
    authority.expire_tokens();
    assert_eq!(echo(&other, "on").await.unwrap(), "on");
    assert_eq!(tally(&authority), [5, 0, 1]);
}

#[tokio::test]
async fn rejected_refresh_token_requires_sign_in() {
    for server in [Server::Connected, Server::NotYet] {
        let authority = Authority::start(Setup::default()).await;
        let world = world(&authority).await;
        if server == Server::Connected {
            assert_eq!(echo(&world, "before").await.unwrap(), "before");
        }
        authority.end_sign_ins();
        let mut seen = Vec::new();
        for _ in 0..3 {
            let failure = echo(&world, "lost").await.unwrap_err();
            assert_eq!(failure.code, Code::SignInRequired, "{server:?}: {failure}");
            seen.push(told(&failure, &authority));
        }
        assert!(seen[0].contains("the sign-in is no longer valid"), "{server:?}: {seen:?}");
        // The rejected refresh token is sent only once.
        assert_eq!(authority.ledger().now().refusals, 1, "{server:?}: {seen:?}");
        let status = world.ask("{}").await;
        let line = status.lines().find(|line| line.contains("far")).unwrap();
        assert!(line.starts_with('⚠') && line.contains("needs sign-in"), "{server:?}: {line}");
        sign_in(&world).await;
        assert_eq!(echo(&world, "again").await.unwrap(), "again", "{server:?}");
        let status = world.ask("{}").await;
        assert!(status.contains("✓ far"), "{server:?}: {status}");
    }
}

#[tokio::test]
async fn invalid_token_lifetime_causes_no_refresh_loop() {
    use ExpiresIn::{Huge, Missing, Negative, Text, Zero};
    for expires_in in [Zero, Negative, Missing, Huge, Text] {
        let authority = Authority::start(Setup { expires_in, ..Setup::default() }).await;
        let world = world(&authority).await;
        let begun = Instant::now();
        for call in 0..20 {
            let text = call.to_string();
            assert_eq!(echo(&world, &text).await.unwrap(), text, "{expires_in:?}");
        }
        // A token with a lifetime of zero is used for ten seconds.
        let most = usize::try_from(begun.elapsed().as_secs() / 10).unwrap() + 1;
        let [redemptions, replays, sign_ins] = tally(&authority);
        assert!(redemptions <= most, "{expires_in:?}: {redemptions}");
        authority.expire_tokens();
        assert_eq!(echo(&world, "renewed").await.unwrap(), "renewed", "{expires_in:?}");
        assert_eq!((replays, sign_ins), (0, 1), "{expires_in:?}");
    }
}

#[tokio::test]
async fn zero_lifetime_token_is_refreshed_once_per_later_call() {
    let setup = Setup { expires_in: ExpiresIn::Zero, ..Setup::default() };
    let authority = Authority::start(setup).await;
    let world = world(&authority).await;
    assert_eq!(echo(&world, "first").await.unwrap(), "first");
    for call in 1..=5 {
        let before = authority.ledger().now().redemptions;
        later(Duration::from_secs(11)).await;
        assert_eq!(echo(&world, "later").await.unwrap(), "later");
        assert_eq!(authority.ledger().now().redemptions, before + 1, "call {call}");
    }
}

#[tokio::test]
async fn new_authorization_server_gets_no_old_credentials() {
    let authority = Authority::start(Setup::default()).await;
    let world = world(&authority).await;
    assert_eq!(echo(&world, "before").await.unwrap(), "before");
    authority.migrate();
    let failure = echo(&world, "lost").await.unwrap_err();
    assert_eq!(failure.code, Code::SignInRequired, "{failure}");
    sign_in(&world).await;
    assert_eq!(echo(&world, "again").await.unwrap(), "again");
    authority.expire_tokens();
    assert_eq!(echo(&world, "renewed").await.unwrap(), "renewed");
    let record = authority.ledger().now();
    let (new, old): (Vec<_>, Vec<_>) = record
        .requests
        .iter()
        .filter(|seen| seen.endpoint != Endpoint::Mcp)
        .partition(|seen| seen.tenant == "/moved");
    let credentials =
        |seen: &Seen| seen.client.iter().chain(&seen.token).cloned().collect::<Vec<_>>();
    let known: Vec<String> = old.into_iter().flat_map(credentials).collect();
    let shown: Vec<String> = new.into_iter().flat_map(credentials).collect();
    assert!(!known.is_empty() && !shown.is_empty(), "{record:?}");
    assert!(shown.iter().all(|shown| !known.contains(shown)), "{record:?}");
}

#[tokio::test]
async fn configured_client_secret_goes_only_to_its_authorization_server() {
    let client = KnownClient {
        id: "ours".to_owned(),
        secret: Some("shared".to_owned()),
        method: AuthMethod::Basic,
        redirect_uris: Vec::new(),
    };
    let authority = Authority::start(Setup { clients: vec![client], ..Setup::default() }).await;
    let oauth = json!({ "clientId": "ours", "clientSecret": "shared" });
    let far = json!({ "url": authority.mcp_url(), "oauth": oauth });
    let config = json!({ "mcpServers": { "far": far } }).to_string();
    let world = World::with(&config).start();
    sign_in(&world).await;
    assert_eq!(echo(&world, "before").await.unwrap(), "before");
    authority.migrate();
    let failure = echo(&world, "lost").await.unwrap_err();
    assert_eq!(failure.code, Code::SignInRequired, "{failure}");
    let far = world.gateway.usable("far").unwrap();
    let begun = world.gateway.sign_in(&far).await.unwrap().begin(SignInMethod::Page).await;
    let shown = authority.ledger().now();
    let shown: Vec<_> = shown.to(Endpoint::Token);
    let moved: Vec<_> = shown.iter().filter(|seen| seen.tenant == "/moved").collect();
    assert!(begun.is_err() && moved.is_empty(), "{moved:?}");
}

fn scoped(step_up: StepUp) -> Setup {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    Setup {
        challenge_scope: Some("read".to_owned()),
        tool_scopes: BTreeMap::from([("echo".to_owned(), "write".to_owned())]),
        scopes: words(&["read", "write", "delete"]),
        step_up,
        ..Setup::default()
    }
}

/// The scopes of the last authorization request.
fn asked(authority: &Authority) -> String {
    let record = authority.ledger().now();
    record.to(Endpoint::Authorize).last().unwrap().scope.clone().unwrap_or_default()
}

#[tokio::test]
async fn step_up_sign_in_requests_granted_and_missing_scopes() {
    let authority = Authority::start(scoped(StepUp::Granted)).await;
    let world = world(&authority).await;
    assert_eq!(asked(&authority), "read");
    let failure = echo(&world, "lost").await.unwrap_err();
    assert_eq!(failure.code, Code::SignInRequired, "{failure}");
    insta::assert_snapshot!(told(&failure, &authority), @r#"
    sign_in_required: the server answered with HTTP status 403: sign-in required: the server requires more scopes: `read write`
    Begin a sign-in: mcp({ action: "auth-start", server: "far" }), or ask the user to run: switchboard auth far
    "#);
    // A process other than the one that got status 403 signs in.
    let other = world_in(world.home(), &authority);
    sign_in(&other).await;
    assert_eq!(asked(&authority), "read write");
    assert_eq!(echo(&other, "there").await.unwrap(), "there");
    assert_eq!(echo(&world, "here").await.unwrap(), "here");
    assert_eq!(authority.ledger().now().sign_ins, 2);
}

#[tokio::test]
async fn endless_scope_challenge_stops_after_two_sign_ins() {
    let authority = Authority::start(scoped(StepUp::Loop)).await;
    let world = world(&authority).await;
    let mut codes = Vec::new();
    for _ in 0..2 {
        codes.push(echo(&world, "lost").await.unwrap_err().code);
        sign_in(&world).await;
    }
    assert_eq!(codes, [Code::SignInRequired; 2]);
    let failure = echo(&world, "lost").await.unwrap_err();
    assert_eq!(failure.code, Code::ServerError, "{failure}");
    insta::assert_snapshot!(told(&failure, &authority), @"
    server_error: the server answered with HTTP status 403: it forbids this request: the server still requires more scopes after 2 sign-ins for them
    Ask the user to correct `oauth.scope`
    ");
    assert_eq!(authority.ledger().now().sign_ins, 3);
    // Other tools still work.
    assert_eq!(world.call("far_add", json!({ "a": 1, "b": 2 })).await.unwrap(), "3");
}

#[tokio::test]
async fn client_headers_are_not_forwarded_to_servers() {
    let fixture = HttpFixture::start(&served("json", "everything")).await;
    let config = json!({ "mcpServers": { "far": { "url": fixture.url() } } }).to_string();
    let installed = Installed::with(PROGRAMS, &config);
    let server = installed.serve_http().await;
    let client = server.connect(json!({})).await;
    let call = mcp_call(json!(7), json!({ "tool": "far_echo", "args": { "text": "x" } }));
    let cookie = [("Cookie", "session=CANARY")];
    let answer = client.elsewhere("POST", &cookie, &call.to_string()).await.answer().await.unwrap();
    assert_eq!(text(&answer), "x", "{answer}");
    let seen = format!("{:?}", fixture.requests());
    assert!(!seen.contains(&server.token) && !seen.contains("CANARY"), "{seen}");
    assert!(!seen.to_lowercase().contains("\"authorization\""), "{seen}");
}

#[tokio::test]
async fn redirected_request_does_not_carry_the_token() {
    let authority = Authority::start(Setup::default()).await;
    let world = world(&authority).await;
    assert_eq!(echo(&world, "before").await.unwrap(), "before");
    let elsewhere = HttpFixture::start(&served("json", "everything")).await;
    authority.alter(|setup| setup.sends_on = Some(elsewhere.url()));
    let failure = echo(&world, "lost").await.unwrap_err();
    let other = world_in(world.home(), &authority);
    let failure_of_other = echo(&other, "lost").await.unwrap_err();
    assert_eq!(elsewhere.requests().len(), 0, "{failure} {failure_of_other}");
    authority.alter(|setup| setup.sends_on = None);
    assert_eq!(echo(&world, "again").await.unwrap(), "again");
}
