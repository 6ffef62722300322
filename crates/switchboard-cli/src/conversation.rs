//! One command's conversation with its servers: asks, shows that it waits, prints what comes.

use std::cell::Cell;

use switchboard::catalog::ResolveError;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::name::ServerName;
use switchboard::render::json;
use switchboard::render::words::{list, plural};
use switchboard::reply::{Description, Reply, ServerStatus};
use switchboard::request::{PageRequest, Request};
use switchboard::{Progress, Session};

use crate::args::Format;
use crate::boot::App;
use crate::report;
use crate::show::{self, Look};
use crate::spinner::Spinner;

/// Everything on one page: a person can scroll.
pub(crate) const ALL: PageRequest = PageRequest { offset: 0, limit: usize::MAX };

pub(crate) struct Conversation<'a> {
    pub(crate) app: &'a App,
    pub(crate) session: Session,
    pub(crate) spinner: Spinner,
}

impl Conversation<'_> {
    /// Asks; what takes long is shown as `doing`, or as the connects that it waits for.
    pub(crate) async fn ask(&self, request: Request, doing: &str) -> Result<Reply, Failure> {
        self.spinner.during(async || self.stage(doing).await, self.session.handle(request)).await
    }

    /// The same, with the steps that the server reports.
    pub(crate) async fn ask_with_progress(
        &self,
        request: Request,
        progress: Progress,
        doing: impl AsyncFn() -> String,
    ) -> Result<Reply, Failure> {
        let caller = self.session.caller().with_progress(progress);
        let work = self.session.handle_as(request, caller);
        self.spinner.during(async || self.stage(&doing().await).await, work).await
    }

    async fn stage(&self, doing: &str) -> String {
        let Ok(Reply::Status(overview)) = self.session.handle(Request::Status).await else {
            return doing.to_owned();
        };
        let connecting = overview.servers.iter().filter(|s| s.status == ServerStatus::Connecting);
        let names: Vec<&str> = connecting.map(|server| server.name.as_str()).collect();
        if names.is_empty() {
            return doing.to_owned();
        }
        format!("connecting to {}", list(&names, 3))
    }

    /// Lists what was never listed: one server, or all of them unless the settings forbid it. Gives
    /// why, if nothing at all is listed because all failed.
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

    /// A server that fails is named and does not stop the others.
    async fn list_missing(&self) -> Option<Failure> {
        let gateway = self.session.gateway();
        let left = Cell::new(gateway.catalog().not_listed_yet().len());
        let failed = Cell::new(None);
        let listing = gateway.list_missing(|_, failure, still| {
            left.set(still);
            if let Some(failure) = failure {
                failed.set(Some(failure.clone()));
                self.spinner.warn(&report::line(failure));
            }
        });
        let stage = async || format!("listing {}", plural(left.get(), "server"));
        self.spinner.during(stage, listing).await;
        let catalog = gateway.catalog();
        let mut usable = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
        let nothing = usable.all(|(name, _)| catalog.listing(name).is_none());
        failed.take().filter(|_| nothing)
    }

    /// The tool that is meant. When nothing fits, servers that were never listed are listed first.
    pub(crate) async fn describe(
        &self,
        tool: &str,
        server: Option<&str>,
    ) -> Result<Box<Description>, Failure> {
        let request =
            || Request::Describe { tool: tool.to_owned(), server: server.map(str::to_owned) };
        let mut reply = self.ask(request(), "looking for the tool").await;
        if let Err(failure) = &reply
            && failure.code == Code::UnknownTool
            && failure.hints.iter().any(|hint| matches!(hint, Hint::NotListedYet(_)))
        {
            self.list_unlisted(server).await?;
            reply = self.ask(request(), "looking for the tool").await;
        }
        match reply? {
            Reply::Described(description) => Ok(description),
            other => unreachable!("a description was asked for, not {other:?}"),
        }
    }

    /// The configured server that `name` means, usable or not.
    pub(crate) fn server(&self, name: &str) -> Result<ServerName, Failure> {
        self.session.gateway().catalog().server(name).map_err(|error| {
            let close = match &error {
                ResolveError::UnknownServer { suggestions, .. } => suggestions.clone(),
                ResolveError::NotFound { .. }
                | ResolveError::Ambiguous { .. }
                | ResolveError::Disabled(_)
                | ResolveError::Pending { .. } => Vec::new(),
            };
            let failure = Failure::new(Code::UnknownServer, Subject::Request, error);
            let failure =
                if close.is_empty() { failure } else { failure.hint(Hint::DidYouMean(close)) };
            failure.hint(Hint::ListServers)
        })
    }

    /// Says which servers were not asked; those that failed were named already.
    pub(crate) fn mention(&self, not_listed: &[ServerName], pending: &[ServerName]) {
        let printer = self.app.printer;
        let tried = self.session.gateway().settings().first_listing;
        if !tried && !not_listed.is_empty() {
            printer.note(&report::not_listed(not_listed, printer.err));
        }
        if !pending.is_empty() {
            printer.note(&report::pending(pending, printer.err));
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
