//! A gateway in an isolated world: a temporary home, a configuration, and scripted servers that
//! run in process.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value, json};
use switchboard::approval::ApprovalAnswer;
use switchboard::capabilities::CapabilitySet;
use switchboard::config::layers::{self, Approvals, Config, ConfigSource, Layer, Tier};
use switchboard::config::parse;
use switchboard::config::transport::Transport;
use switchboard::dial::in_process::InProcess;
use switchboard::failure::Failure;
use switchboard::reply::Reply;
use switchboard::request::{self, CallRequest, Request};
use switchboard::{Environment, Gateway, Session, explain, render};
use switchboard_server::stdio::serve_over;
use switchboard_server::{HostKind, Offer};
use switchboard_wire::pipe::{self, End};
use switchboard_wire::stdio::{Input, Output};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::client::Client;
use crate::fixture::{FixtureState, Script, act};
use crate::host::ScriptedHost;

/// The command of a server that runs in process; its first argument names the script.
const FIXTURE: &str = "fixture-server";

/// Builds a [`World`].
///
/// ```ignore
/// let world = World::with(r#"{ "mcpServers": { "demo": { "command": "fixture-server", "args": ["everything"] } } }"#)
///     .answers([ApprovalAnswer::Once])
///     .start();
/// assert_eq!(world.ask(r#"{ "tool": "demo_echo", "args": { "text": "hi" } }"#).await, "hi");
/// ```
#[derive(Debug)]
pub struct Setup {
    config: String,
    scripts: BTreeMap<String, Vec<Arc<Script>>>,
    answers: Vec<ApprovalAnswer>,
    home: Home,
    capabilities: Capabilities,
}

/// Which client capabilities servers are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Capabilities {
    Usual,
    OfFirstClient,
    These(CapabilitySet),
}

/// The files of a gateway; deleted when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Home {
    directory: Arc<TempDir>,
}

/// A running gateway, one session of it, and a handle on each of its servers.
pub struct World {
    pub gateway: Gateway,
    pub session: Session,
    pub host: ScriptedHost,
    home: Home,
    fixtures: BTreeMap<String, FixtureState>,
}

impl Home {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        Self { directory: Arc::new(directory) }
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn environment(&self) -> Environment {
        let home = self.path().to_string_lossy();
        let own = self.path().join("switchboard");
        let own = own.to_string_lossy();
        Environment::made_of([("HOME", &home), ("SWITCHBOARD_HOME", &own)], self.path())
    }
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    /// Defines the script `name`. Repeated, it defines the script of the second connection, and so
    /// on; the last one stays.
    #[must_use]
    pub fn script(mut self, name: &str, script: &str) -> Self {
        let script = Script::parse(script).expect("a test's script is valid");
        self.scripts.entry(name.to_owned()).or_default().push(Arc::new(script));
        self
    }

    /// The user's answers to approval questions, in order.
    #[must_use]
    pub fn answers(mut self, answers: impl IntoIterator<Item = ApprovalAnswer>) -> Self {
        self.answers.extend(answers);
        self
    }

    /// Uses the home of an earlier world.
    #[must_use]
    pub fn home(mut self, home: Home) -> Self {
        self.home = home;
        self
    }

    /// Offers servers the capabilities of the first client, as `serve` does.
    #[must_use]
    pub fn for_clients(mut self) -> Self {
        self.capabilities = Capabilities::OfFirstClient;
        self
    }

    /// Offers servers these capabilities.
    #[must_use]
    pub fn offering(mut self, set: CapabilitySet) -> Self {
        self.capabilities = Capabilities::These(set);
        self
    }

    /// Starts the gateway. Needs a tokio runtime.
    pub fn start(self) -> World {
        let config = read(&self.config);
        let mut builder = Gateway::builder(self.home.environment());
        builder = match self.capabilities {
            Capabilities::Usual => builder,
            Capabilities::OfFirstClient => builder.capabilities_of_first_client(),
            Capabilities::These(set) => builder.capabilities(set),
        };
        let mut fixtures = BTreeMap::new();
        for (name, server) in &config.servers {
            let Some(script) = fixture_of(&server.transport) else { continue };
            let state = FixtureState::default();
            let acts = self.acts(script);
            builder = builder.server(name, Troupe::new(acts, state.clone()));
            fixtures.insert(name.clone(), state);
        }
        let gateway = builder.config(config).build();
        let host = ScriptedHost::answering(self.answers);
        let session = gateway.session(host.clone());
        World { gateway, session, host, home: self.home, fixtures }
    }

    fn acts(&self, script: &str) -> Vec<Arc<Script>> {
        match self.scripts.get(script) {
            Some(acts) => acts.clone(),
            None => vec![Arc::new(Script::load(script).expect("a built-in script"))],
        }
    }
}

impl World {
    /// A world with this text as the user's configuration file.
    pub fn with(config: &str) -> Setup {
        Setup {
            config: config.to_owned(),
            scripts: BTreeMap::new(),
            answers: Vec::new(),
            home: Home::new(),
            capabilities: Capabilities::Usual,
        }
    }

    /// A world with one server of this name and script.
    pub fn of(server: &str, script: &str) -> Setup {
        World::with(&format!(
            r#"{{ "mcpServers": {{ "{server}": {{ "command": "{FIXTURE}", "args": ["{script}"] }} }} }}"#
        ))
    }

    /// A world around a gateway that the test made itself.
    pub fn of_gateway(gateway: Gateway, home: Home) -> World {
        let host = ScriptedHost::default();
        let session = gateway.session(host.clone());
        World { gateway, session, host, home, fixtures: BTreeMap::new() }
    }

    /// The result text of one `mcp` call.
    pub async fn ask(&self, arguments: &str) -> String {
        match self.answer(arguments).await {
            Ok(reply) => render::text::reply(&reply),
            Err(failure) => render::text::failure(&failure),
        }
    }

    async fn answer(&self, arguments: &str) -> Result<Reply, Failure> {
        let arguments = serde_json::from_str(arguments).expect("a test writes valid JSON");
        let parsed = request::parse(arguments).map_err(explain::request_error)?;
        self.session.handle(parsed.request).await
    }

    /// An initialized MCP client of this gateway.
    pub async fn client(&self, capabilities: Value) -> Client {
        self.client_of(HostKind::Any, capabilities).await
    }

    /// An initialized MCP client in a host of this kind.
    pub async fn client_of(&self, host: HostKind, capabilities: Value) -> Client {
        let mut client = self.silent_client(host);
        client.initialize("2025-11-25", capabilities).await;
        client
    }

    /// An initialized MCP client that is offered these tools.
    pub async fn client_shown(&self, offer: Offer, host: HostKind) -> Client {
        let mut client = self.connected(offer, host);
        client.initialize("2025-11-25", json!({})).await;
        client
    }

    /// A client that is not initialized.
    pub fn silent_client(&self, host: HostKind) -> Client {
        self.connected(Offer::Auto, host)
    }

    /// A client that is not initialized, and is offered these tools.
    pub fn connected(&self, offer: Offer, host: HostKind) -> Client {
        let (ours, theirs) = pipe::pair();
        let streams: (Input, Output) = (Box::new(theirs.reader), Box::new(theirs.writer));
        let stop = CancellationToken::new();
        // Ends with the client's streams or the test.
        tokio::spawn(serve_over(streams, self.gateway.clone(), (offer, host), stop));
        Client::over(ours.reader, ours.writer)
    }

    /// Calls a tool and returns its text.
    pub async fn call(&self, tool: &str, args: Value) -> Result<String, Failure> {
        let reply = self.session.handle(Request::Call(call(tool, args))).await?;
        Ok(render::text::reply(&reply))
    }

    /// Replaces the user's configuration file by this text.
    pub fn apply(&self, config: &str) {
        self.gateway.apply(&read(config));
    }

    /// The handle on a server of the configuration.
    pub fn fixture(&self, server: &str) -> &FixtureState {
        self.fixtures.get(server).expect("the configuration has this fixture")
    }

    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Shuts the gateway down and returns its home.
    pub async fn shut_down(self) -> Home {
        self.gateway.shutdown().await;
        self.home
    }
}

/// Advances the paused clock and runs every task that becomes ready.
pub async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
    // The clock advances only when no task is ready.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Replaces text that differs between runs: ids of stored results, and times.
pub fn filtered(text: &str) -> String {
    let text = match stored_id(text) {
        Some(id) => text.replace(id, "ID"),
        None => text.to_owned(),
    };
    let times = Regex::new(r"\b\d+ ?(ms|s|m|h)\b").expect("a valid pattern");
    times.replace_all(&text, "[TIME]").replace("failed just now:", "failed [TIME] ago:")
}

/// The id of the stored result in a truncated result.
pub fn stored_id(text: &str) -> Option<&str> {
    let (_, rest) = text.rsplit_once("result: ")?;
    let end = rest.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(rest.len());
    rest.get(..end).filter(|id| id.len() == 10)
}

/// A call request, as a face makes it.
pub fn call(tool: &str, args: Value) -> CallRequest {
    let args: Map<String, Value> = args.as_object().cloned().unwrap_or_default();
    CallRequest::new(tool, None, args.into())
}

/// Parses the text of a user's configuration file.
pub fn read(text: &str) -> Config {
    let source = ConfigSource { path: "mcp.json".into(), tier: Tier::User };
    let file = parse::parse(text, &source);
    let nothing = Approvals {
        project_root: "/",
        file_hashes: &|_| Vec::new(),
        is_approved: &|_| false,
        was_approved: &|_| false,
    };
    let config = layers::merge(&[Layer { source, file }], &nothing);
    assert!(config.diagnostics.is_empty(), "the test's configuration: {:?}", config.diagnostics);
    config
}

/// The script name of a server that runs in process.
fn fixture_of(transport: &Transport) -> Option<&str> {
    match transport {
        Transport::Stdio { command, args } if command.source() == FIXTURE => {
            args.first().map(|script| script.source())
        }
        _ => None,
    }
}

/// Runs the next script for each connection, and the last one for all further ones.
pub struct Troupe {
    acts: Vec<Arc<Script>>,
    connections: AtomicUsize,
    state: FixtureState,
}

impl Troupe {
    pub fn new(acts: Vec<Arc<Script>>, state: FixtureState) -> Self {
        Self { acts, connections: AtomicUsize::new(0), state }
    }
}

impl InProcess for Troupe {
    fn serve(&self, end: End) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let script =
            self.acts.get(before).or(self.acts.last()).expect("a sequence has at least one script");
        let acting =
            act(Arc::clone(script), self.state.clone(), end.reader, end.writer, tokio::io::sink());
        Box::pin(async move {
            acting.await;
        })
    }
}
