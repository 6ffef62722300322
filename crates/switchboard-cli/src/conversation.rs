//! The session of one command: sends requests, shows progress, prints replies.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::time::Duration;

use switchboard::Session;
use switchboard::config::layers::Config;
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint};
use switchboard::name::ServerName;
use switchboard::render::words::{list, plural};
use switchboard::render::{json, remedy};
use switchboard::reply::{ConnectStage, Reply, Underway};
use switchboard::request::{PageRequest, Request};
use tokio::time::{Instant, interval_at};

use crate::args::Format;
use crate::boot::App;
use crate::report;
use crate::show::{self, Look};
use crate::spinner::Spinner;

/// One page with all items, because the user can scroll.
pub(crate) const ALL: PageRequest = PageRequest { offset: 0, limit: usize::MAX };

/// Interval for checking slow connects if no spinner shows them.
const CONNECT_POLL: Duration = Duration::from_millis(500);

/// After this time, a note names a server whose installation or start the command waits for.
const INSTALLS: Duration = Duration::from_secs(2);
const STARTS: Duration = Duration::from_secs(10);

pub(crate) struct Conversation<'a> {
    pub(crate) app: &'a App,
    pub(crate) session: Session,
    /// The configuration of the session's servers.
    pub(crate) config: Config,
    pub(crate) spinner: Spinner,
    /// The slow connects that a note has named, so that no note repeats.
    noted: RefCell<BTreeSet<(ServerName, ConnectStage)>>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        app: &'a App,
        session: Session,
        config: Config,
        spinner: Spinner,
    ) -> Conversation<'a> {
        Conversation { app, session, config, spinner, noted: RefCell::default() }
    }

    /// Sends a request. If it takes long, the text `doing` is shown, or the servers whose connects
    /// it waits for.
    pub(crate) async fn ask(&self, request: Request, doing: &str) -> Result<Reply, Failure> {
        self.wait(async || doing.to_owned(), self.session.handle(request)).await
    }

    /// Runs `work`, and shows the servers that are connecting meanwhile.
    pub(crate) async fn wait<T>(
        &self,
        doing: impl AsyncFn() -> String,
        work: impl Future<Output = T>,
    ) -> T {
        if self.app.printer.is_watched() {
            let stage = async || match self.connecting() {
                Some(connecting) => connecting,
                None => doing().await,
            };
            return self.spinner.during(stage, work).await;
        }
        let mut polls = interval_at(Instant::now() + CONNECT_POLL, CONNECT_POLL);
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                outcome = &mut work => return outcome,
                _ = polls.tick() => self.note_connects(),
            }
        }
    }

    /// The servers that are connecting, such as `installing a, connecting to b and c`; `None` if
    /// there are none.
    fn connecting(&self) -> Option<String> {
        let underway = self.session.connecting();
        let at = |stage: ConnectStage, doing: &str| {
            let names = underway.iter().filter(|(_, underway)| underway.stage == stage);
            let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
            (!names.is_empty()).then(|| format!("{doing} {}", list(&names, 3)))
        };
        let parts = [
            at(ConnectStage::Installing, "installing"),
            at(ConnectStage::Starting, "connecting to"),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    fn note_connects(&self) {
        for (server, Underway { stage, since }) in self.session.connecting() {
            let (after, clause) = match stage {
                ConnectStage::Installing => (INSTALLS, "is being installed first"),
                ConnectStage::Starting => (STARTS, "is still starting"),
            };
            if after <= since && self.noted.borrow_mut().insert((server.clone(), stage)) {
                self.app.printer.note(&format!("note: the server `{server}` {clause}"));
            }
        }
    }

    /// Lists servers that were never listed: one server, or all unless the settings forbid it.
    /// Returns a failure if every server failed and no listing is cached.
    pub(crate) async fn list_unlisted(
        &self,
        server: Option<&str>,
    ) -> Result<Option<Failure>, Failure> {
        match server {
            Some(server) => {
                let request = Request::List { server: server.to_owned(), page: ALL };
                self.ask(request, "listing").await.map(|_| None)
            }
            None if self.session.gateway().settings().first_listing => {
                Ok(self.list_missing().await)
            }
            None => Ok(None),
        }
    }

    /// Lists all servers that were never listed. The failure of one server is reported and does not
    /// stop the others.
    async fn list_missing(&self) -> Option<Failure> {
        let gateway = self.session.gateway();
        let left = Cell::new(gateway.catalog().not_listed_yet().len());
        let failed = Cell::new(None);
        let listing = gateway.list_missing_briefly(|_, failure, still| {
            left.set(still);
            if let Some(failure) = failure {
                failed.set(Some(failure.clone()));
                self.spinner.warn(&report::line(failure, self.app.printer.err));
            }
        });
        let stage = async || format!("listing {}", plural(left.get(), "server"));
        self.wait(stage, listing).await;
        let catalog = gateway.catalog();
        let mut usable = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let nothing = usable.all(|(name, _)| catalog.listing(name).is_none());
        failed.take().filter(|_| nothing)
    }

    /// Looks up a tool. If it is unknown, servers that were never listed are listed first.
    pub(crate) async fn look_up<T>(
        &self,
        server: Option<&str>,
        look_up: impl AsyncFn() -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let doing = async || "looking for the tool".to_owned();
        let found = match self.wait(doing, look_up()).await {
            Err(failure)
                if failure.code == Code::UnknownTool
                    && failure.hints.iter().any(|hint| matches!(hint, Hint::NotListedYet(_))) =>
            {
                self.list_unlisted(server).await?;
                self.wait(doing, look_up()).await
            }
            found => found,
        };
        if let Err(Failure { code: Code::UnknownTool, .. }) = &found {
            self.mention(&[], &self.session.catalog().pending());
        }
        found
    }

    /// The configured server with this name, whether it can be used or not.
    pub(crate) fn server(&self, name: &str) -> Result<ServerName, Failure> {
        self.session.gateway().catalog().server(name).map_err(explain::resolve)
    }

    /// Prints the names of the servers without a listing and of the pending servers. Failed
    /// servers were reported already.
    pub(crate) fn mention(&self, not_listed: &[ServerName], pending: &[ServerName]) {
        let printer = self.app.printer;
        let tried = self.session.gateway().settings().first_listing;
        if !tried && !not_listed.is_empty() {
            printer.note(&remedy::not_listed(not_listed, &printer.err));
        }
        if !pending.is_empty() {
            printer.note(&remedy::pending(pending, &printer.err));
        }
    }

    pub(crate) fn print(&self, reply: &Reply, format: Format) -> std::io::Result<()> {
        let printer = self.app.printer;
        if format.json {
            return printer.json(&json::reply(reply));
        }
        let look = Look { palette: printer.out, columns: printer.columns };
        printer.text(&show::reply(reply, look))
    }
}
