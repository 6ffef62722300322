//! Hostile servers and authorization servers: each is refused with a clear message before a page is
//! opened, a program started, a token stored, or a request sent to a third party.
//!
//! The tests run in a network where every address belongs to this machine, so each request is seen.

mod answers;
mod documents;
mod names;

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard::Gateway;
use switchboard::auth::{Begun, Pending, SignInMethod, SignedIn};
use switchboard::dial::names::Names;
use switchboard::dial::spawn::{Program, Promise, Spawner, Started};
use switchboard::failure::Failure;
use switchboard_it::authority::{Authority, Consent, Setup, visit};
use switchboard_it::harness::{Home, read};
use switchboard_it::network::{Canaries, within};

/// A user with one server that requires authentication.
struct Victim {
    authority: Authority,
    /// The origin of the authorization server.
    issuer: String,
    gateway: Gateway,
    home: Home,
    started: Arc<AtomicUsize>,
}

/// A spawner that starts no program, and counts the attempts.
struct Watched(Arc<AtomicUsize>);

impl Spawner for Watched {
    fn start<'a>(&'a self, _: &'a Program) -> Promise<'a, io::Result<Started>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Err(io::ErrorKind::PermissionDenied.into())))
    }
}

impl Victim {
    /// In `setup`, `{AS}` is replaced by the origin of the authorization server, and `{MCP}` by
    /// that of the MCP server.
    async fn of(setup: &Value, names: impl Names + 'static) -> Victim {
        let authority = Authority::start(Setup::default()).await;
        let (issuer, server) = (authority.issuer(), origin(&authority));
        let setup = setup.to_string().replace("{AS}", &issuer).replace("{MCP}", &server);
        let setup: Setup = serde_json::from_str(&setup).expect("the setup of the test is valid");
        authority.alter(|before| *before = setup);
        let config = json!({ "mcpServers": { "tracker": { "url": authority.mcp_url() } } });
        let home = Home::new();
        let started = Arc::new(AtomicUsize::new(0));
        let gateway = Gateway::builder(home.environment())
            .config(read(&config.to_string()))
            .names(names)
            .spawner(Watched(Arc::clone(&started)))
            .build();
        Victim { authority, issuer, gateway, home, started }
    }

    async fn begin(&self, way: SignInMethod) -> Result<Begun, Failure> {
        let server = self.gateway.usable("tracker")?;
        self.gateway.sign_in(&server).await?.begin(way).await
    }

    /// Signs in like a user who opens every page.
    async fn sign_in(&self, way: SignInMethod) -> Result<SignedIn, Failure> {
        match self.begin(way).await? {
            Begun::Done(done) => Ok(done),
            Begun::Page(mut pending) => visited(&mut pending).await,
            Begun::Device(pending) => pending.finished().await,
        }
    }

    /// The error that the user reads, without varying parts. Asserts that no program ran and no
    /// token was stored.
    fn refusal(&self, outcome: Result<SignedIn, Failure>) -> String {
        let failure = outcome.expect_err("it is refused");
        assert_eq!(self.started.load(Ordering::Relaxed), 0, "{failure}");
        assert_eq!(self.kept(), Vec::<String>::new(), "{failure}");
        let said = format!("{}: {}", failure.code.as_str(), failure.chain()[1..].join(": "));
        assert!(said.len() < 600 && !said.contains(char::is_control), "{said:?}");
        said.replace(&self.issuer, "{AS}").replace(&origin(&self.authority), "{MCP}")
    }

    /// The files in the token directory, without the lock files of processes.
    fn kept(&self) -> Vec<String> {
        let folder = self.home.path().join("switchboard/state/tokens");
        let entries = fs::read_dir(folder).expect("the lock files are in this directory");
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| !name.ends_with(".turn")).collect()
    }
}

/// Opens the page as the user would; returns the outcome of the sign-in.
async fn visited(pending: &mut Pending) -> Result<SignedIn, Failure> {
    let link = pending.link().to_string();
    let (signed_in, _) = tokio::join!(pending.finished(), visit(&link));
    signed_in
}

fn origin(authority: &Authority) -> String {
    authority.mcp_url().trim_end_matches("/mcp").to_owned()
}

/// A resolver that knows no hostname.
struct Nameless;

impl Names for Nameless {
    fn addresses<'a>(&'a self, _: &'a str) -> Promise<'a, io::Result<Vec<SocketAddr>>> {
        Box::pin(std::future::ready(Err(io::ErrorKind::NotFound.into())))
    }
}

/// Two lines for each row: the name of the case and the resulting error.
async fn table(rows: &[(&str, SignInMethod, Value)]) -> String {
    let mut lines = Vec::new();
    for (what, way, setup) in rows {
        let victim = Victim::of(setup, Nameless).await;
        let outcome = victim.sign_in(*way).await;
        lines.push(format!("{what}\n    {}", victim.refusal(outcome)));
    }
    lines.join("\n")
}

/// Runs a test in a network that records requests to other hosts, and checks that there are none.
fn unseen<F: Future<Output = ()>>(module: &str, test: &str, body: impl FnOnce() -> F) {
    within(module, test, || {
        let canaries = Canaries::start(|_, _| String::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(body());
        assert_eq!(canaries.seen(), Vec::<IpAddr>::new());
    });
}

fn metadata(field: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { "fields": { field: value.into() } } })
}

fn resource(field: &str, value: impl Into<Value>) -> Value {
    json!({ "resource": { "fields": { field: value.into() } } })
}

/// A response with these bytes and content type JSON.
fn raw(body: &[u8]) -> Value {
    json!({ "raw": { "headers": [["content-type", "application/json"]], "body": body } })
}

/// The control for the other tests: without an attack, sign-in succeeds.
#[tokio::test]
async fn sign_in_with_a_benign_authorization_server_succeeds() {
    for way in [SignInMethod::Page, SignInMethod::Device] {
        let victim = Victim::of(&json!({}), Nameless).await;
        let signed_in = match victim.begin(way).await.unwrap() {
            Begun::Device(pending) => {
                assert!(victim.authority.answer_device(pending.user_code(), Consent::Given));
                pending.finished().await.unwrap()
            }
            Begun::Page(mut pending) => visited(&mut pending).await.unwrap(),
            Begun::Done(_) => panic!("a new user is already signed in"),
        };
        assert_eq!(signed_in.grant.issuer, victim.authority.issuer());
        assert!(!victim.kept().is_empty());
    }
}
