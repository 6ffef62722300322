//! A protected MCP server with its authorization server: strict by default, faulty where a
//! [`Setup`] says so, with a [`Ledger`] of all requests.
//!
//! ```ignore
//! let authority = Authority::start(Setup::default()).await;
//! // … the gateway is pointed at `authority.mcp_url()`, and gives a link …
//! assert_eq!(visit(link).await, 200);
//! authority.ledger().until(|record| record.sign_ins == 1).await;
//! authority.expire_tokens();
//! ```

mod authorize;
mod books;
mod browser;
mod documents;
mod guard;
mod ledger;
mod register;
mod route;
mod setup;
mod token;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub use browser::{get, post_form, post_json, redirect_of, visit};
pub use ledger::{Endpoint, Ledger, Record, Seen, fingerprint};
pub use setup::{
    AuthMethod, Challenge, Consent, Document, ExpiresIn, Iss, KnownClient, Layout, Manner,
    MetadataPlace, Poll, Refresh, Registration, ResourcePlace, Setup, SetupError, StepUp, Usual,
};

use crate::fixture;
use books::{Books, secret};
use route::Role;

/// The tenant of the issuer after a migration.
const MOVED: &str = "/moved";

/// A protected MCP server with its authorization server, on loopback, in this process. Dropping it
/// closes all connections.
pub struct Authority {
    stage: Arc<Stage>,
    _serving: JoinSet<()>,
    /// The authorization server's tasks; `None` while it is closed, or if it shares the MCP origin.
    desk: Option<JoinSet<()>>,
    /// Reserves the port of the authorization server.
    port: Option<TcpSocket>,
}

/// The state that all requests share.
struct Stage {
    setup: Mutex<Setup>,
    books: Mutex<Books>,
    ledger: Ledger,
    /// Releases a late response.
    released: Notify,
    mcp: Arc<fixture::Stage>,
    /// The origins of the MCP server and of the authorization server.
    mcp_origin: String,
    origin: String,
}

impl Authority {
    pub async fn start(setup: Setup) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", setup.port)).await.expect("a free port");
        let mcp_origin = origin(&listener);
        let (port, origin) = match setup.layout {
            Layout::Together => (None, mcp_origin.clone()),
            Layout::Apart => {
                let port = socket(0);
                let address = port.local_addr().expect("a bound socket has an address");
                (Some(port), format!("http://{address}"))
            }
        };
        let stage = Arc::new(Stage {
            mcp: fixture::Stage::of(&setup.script, None),
            setup: Mutex::new(setup),
            books: Mutex::default(),
            ledger: Ledger::new(),
            released: Notify::new(),
            mcp_origin,
            origin,
        });
        let role = if port.is_some() { Role::Resource } else { Role::Both };
        let serving = stage.serve(listener, role);
        let mut authority = Self { stage, _serving: serving, desk: None, port };
        authority.open();
        authority
    }

    /// Stops listening at the authorization server's own origin until [`Self::open`].
    pub async fn close(&mut self) {
        if let Some(mut desk) = self.desk.take() {
            desk.shutdown().await;
        }
    }

    pub fn open(&mut self) {
        let Some(port) = &self.port else { return };
        let port = port.local_addr().expect("a bound socket has an address").port();
        let listener = socket(port).listen(1024).expect("the port is reserved");
        self.desk = Some(self.stage.serve(listener, Role::Authority));
    }

    /// Releases a late response.
    pub fn release(&self) {
        self.stage.released.notify_one();
    }

    /// The URL of the MCP server, which is also the `resource` of token requests.
    pub fn mcp_url(&self) -> String {
        self.stage.mcp_url()
    }

    /// The current issuer.
    pub fn issuer(&self) -> String {
        self.stage.issuer()
    }

    pub fn ledger(&self) -> Ledger {
        self.stage.ledger.clone()
    }

    /// Changes the setup, from the next request on.
    pub fn alter(&self, change: impl FnOnce(&mut Setup)) {
        change(&mut lock(&self.stage.setup));
    }

    /// Expires every access token; refresh tokens stay valid.
    pub fn expire_tokens(&self) {
        lock(&self.stage.books).expire_tokens();
    }

    /// Ends every sign-in, as if the user had withdrawn their consent.
    pub fn end_sign_ins(&self) {
        lock(&self.stage.books).end_all();
    }

    /// Expires the secrets of dynamically registered clients.
    pub fn expire_secrets(&self) {
        let setup = self.stage.setup();
        for client in &mut lock(&self.stage.books).clients {
            client.secret = client.secret.as_ref().map(|_| secret(&setup, "secret"));
        }
    }

    /// Moves to another issuer, to which all clients are unknown.
    pub fn migrate(&self) {
        lock(&self.stage.books).moved = true;
    }

    /// Approves or denies the device with this user code; `false` if it is unknown.
    pub fn answer_device(&self, user_code: &str, consent: Consent) -> bool {
        self.stage.answer_device(user_code, consent)
    }
}

impl Stage {
    fn serve(self: &Arc<Self>, listener: TcpListener, role: Role) -> JoinSet<()> {
        let stage = Arc::clone(self);
        fixture::serve(listener, None, move |head, body| {
            let stage = Arc::clone(&stage);
            async move { route::answer(&stage, role, &head, &body).await }
        })
    }

    fn setup(&self) -> Setup {
        lock(&self.setup).clone()
    }

    fn mcp_url(&self) -> String {
        format!("{}/mcp", self.mcp_origin)
    }

    fn issuer(&self) -> String {
        let moved = lock(&self.books).moved;
        let tenant = if moved { MOVED.to_owned() } else { self.setup().tenant };
        format!("{}{tenant}", self.origin)
    }
}

fn origin(listener: &TcpListener) -> String {
    format!("http://{}", listener.local_addr().expect("a bound socket has an address"))
}

/// A socket that can share the port of the authorization server.
fn socket(port: u16) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket can be created");
    socket.set_reuseport(true).expect("a socket can share its port");
    socket.bind(([127, 0, 0, 1], port).into()).expect("a free port");
    socket
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
