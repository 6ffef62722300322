//! All kinds of requests except calls. Most are answered from a snapshot of the catalog; a few
//! connect a server.

mod resources;
mod status;

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::approval::Access;
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::pin::Pin;
use switchboard_core::catalog::{Catalog, Resolved, Shelf};
use switchboard_core::config::values::Pins;
use switchboard_core::exact::Args;
use switchboard_core::failure::Failure;
use switchboard_core::name::ServerName;
use switchboard_core::render::caution;
use switchboard_core::reply::{Reply, SearchPage, ToolPage, Unavailable};
use switchboard_core::request::{LIST_LIMIT, PageRequest, ResultView, SearchRequest};
use tokio::time::Instant;

pub(crate) use self::resources::{
    prompt, prompts, read_resource, refuse_denied, resources, target,
};
pub(crate) use self::status::server_line;
use crate::auth::Started;
use crate::blocking::blocking;
use crate::call;
use crate::call::guess::call_meant;
use crate::explain;
use crate::session::Session;
use crate::upstream::lease::Caller;
use crate::upstream::{Status, UpstreamState};

/// How long a search waits for the first listing of a server, from the start of that listing.
const FIRST_LISTING: Duration = Duration::from_secs(3);

/// Lists a server's tools. Connects a server that was never listed.
pub(crate) async fn list(
    session: &Session,
    server: &str,
    page: PageRequest,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let server = catalog.active_server(server).map_err(explain::resolve)?;
    let catalog = listed(session, catalog, &server).await?;
    Ok(Reply::Tools(page_for(caller, &catalog, &server, page)))
}

/// A page of a server's tools, with marks on those that a read-only caller cannot call.
fn page_for(
    caller: &Caller,
    catalog: &Catalog,
    server: &ServerName,
    page: PageRequest,
) -> ToolPage {
    let mut page = catalog.page(Some(server), page);
    if caller.access == Access::ReadOnly {
        catalog.mark_writes(page.tools.iter_mut());
    }
    page
}

/// A snapshot that contains this server's lists. Connects the server if it was never listed.
pub(crate) async fn listed(
    session: &Session,
    catalog: Arc<Catalog>,
    server: &ServerName,
) -> Result<Arc<Catalog>, Failure> {
    if catalog.listing(server).is_some() {
        return Ok(catalog);
    }
    let _listed = session.lease(server).await?;
    Ok(session.catalog())
}

/// Searches tools. With arguments, calls the best match if it is unambiguous.
pub(crate) async fn search(
    session: &Session,
    mut request: SearchRequest,
    caller: &Caller,
) -> Result<Reply, Failure> {
    first_listings(session).await;
    let catalog = session.catalog();
    if !catalog.is_indexed() {
        let catalog = Arc::clone(&catalog);
        blocking(move || catalog.index()).await;
    }
    let mut page = catalog.search(&request).map_err(explain::search)?;
    sort_out_unlisted(session, &catalog, &mut page);
    if caller.access == Access::ReadOnly {
        catalog.mark_writes(page.hits.iter_mut().map(|hit| &mut hit.line));
    }
    let Some(args) = request.args.take() else {
        return Ok(Reply::Found(page));
    };
    let called = match meant(session, &catalog, (&page, &request), &args) {
        Ok(best) => {
            let (query, select) = (page.query.clone(), request.select);
            let call = call_meant(session, &catalog, &query, (best, args), select, caller);
            Box::pin(call).await?
        }
        Err(why) => Err(why),
    };
    called.or_else(|why| {
        page.not_called = Some(Box::new(why));
        Ok(Reply::Found(page))
    })
}

/// Moves servers that are starting or failed recently from `not_listed` to `unavailable`: an
/// explicit connect would not help.
fn sort_out_unlisted(session: &Session, catalog: &Catalog, page: &mut SearchPage) {
    let failure = |server: &ServerName| catalog.shelf(server).and_then(Shelf::failure).cloned();
    page.not_listed.retain(|server| {
        let state = session.find_upstream(server).map(|upstream| upstream.status().state);
        let why = match (state, failure(server)) {
            (Some(UpstreamState::Connecting { .. }), _) => Unavailable::Starting,
            (_, Some(failure)) => Unavailable::Failed { reason: failure.reason },
            (_, None) => return true,
        };
        page.unavailable.push((server.clone(), why));
        false
    });
}

/// Waits briefly for servers whose first listing is under way: a host may search as soon as it has
/// started the gateway.
async fn first_listings(session: &Session) {
    let gateway = &session.gateway;
    let mut changes = gateway.changes();
    loop {
        let waited_for = |server: &ServerName| {
            let status = session.find_upstream(server).map(|upstream| upstream.status());
            let began = match status {
                Some(Status { state: UpstreamState::Connecting { since }, .. }) => Some(since),
                Some(Status { state: UpstreamState::Down, last_failure: None }) | None => {
                    gateway.first_listing_began(server)
                }
                Some(_) => None,
            };
            began.map(|began| began + FIRST_LISTING).filter(|end| *end > Instant::now())
        };
        let missing = session.catalog().not_listed_yet();
        let Some(end) = missing.iter().filter_map(waited_for).max() else { return };
        tokio::select! {
            more = changes.next() => if !more { return },
            () = tokio::time::sleep_until(end) => {}
        }
    }
}

/// The tool that a search with arguments calls; an error if no match is clearly the best or
/// `searchCalls` is off.
fn meant(
    session: &Session,
    catalog: &Catalog,
    (page, request): (&SearchPage, &SearchRequest),
    args: &Args,
) -> Result<Resolved, NotCalled> {
    if !session.gateway.settings().search_calls {
        return Err(NotCalled::Off);
    }
    let within = request.server.as_deref();
    catalog.meant(page, request.matching, within, args).ok_or(NotCalled::Unclear)
}

pub(crate) async fn describe(
    session: &Session,
    tool: &str,
    server: Option<&str>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let (catalog, found) = call::resolve(session, session.catalog(), tool, server).await?;
    let mut description = found.describe();
    description.denied = catalog.denied_by(&found.shown).map(str::to_owned);
    if caller.access == Access::ReadOnly {
        catalog.mark_writes(std::iter::once(&mut description.line));
    }
    Ok(Reply::Described(Box::new(description)))
}

pub(crate) fn instructions(session: &Session, server: &str) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let server = catalog.active_server(server).map_err(explain::resolve)?;
    let listing = catalog.listing(&server);
    let Some(instructions) = listing.and_then(|listing| listing.instructions.as_ref()) else {
        return Err(explain::no_instructions(&server, listing.is_some()));
    };
    let pin = catalog.shelf(&server).map(|shelf| shelf.instructions_pin()).unwrap_or_default();
    if session.gateway().settings().pins == Pins::Block && pin != Pin::Same {
        return Err(explain::blocked_instructions(&server, pin));
    }
    let mut text = String::new();
    for caution in caution::of_instructions(pin, instructions.hidden.as_ref()) {
        text.push_str(&format!("({caution})\n"));
    }
    text.push_str(&instructions.text);
    Ok(Reply::Instructions { server, text })
}

/// Connects a server regardless of back-off, or lists it again if it is already connected.
pub(crate) async fn connect(
    session: &Session,
    server: &str,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let server = session.catalog().active_server(server).map_err(explain::resolve)?;
    let _lease = session.refreshed(&server).await?;
    let page = PageRequest { offset: 0, limit: LIST_LIMIT };
    Ok(Reply::Connected(page_for(caller, &session.catalog(), &server, page)))
}

/// Begins a sign-in that continues in the background, because a request cannot wait for the user.
pub(crate) async fn sign_in(session: &Session, server: &str) -> Result<Reply, Failure> {
    let gateway = session.gateway();
    let server = gateway.usable(server)?;
    let sign_in = gateway.sign_in(&server).await?;
    let (started, waiting) = sign_in.begin_beside().await?;
    if let Some(waiting) = waiting {
        gateway.run_beside(waiting);
    }
    Ok(match started {
        Started::Done(done) => Reply::SignedIn { server, scopes: done.grant.scopes },
        Started::Page(link) => Reply::SignInBegun { server, link },
    })
}

pub(crate) async fn complete_sign_in(
    session: &Session,
    server: &str,
    answer: &str,
) -> Result<Reply, Failure> {
    let gateway = session.gateway();
    let server = gateway.usable(server)?;
    let done = gateway.sign_in(&server).await?.complete(answer).await?;
    Ok(Reply::SignedIn { server, scopes: done.grant.scopes })
}

pub(crate) async fn disconnect(session: &Session, server: &str) -> Result<Reply, Failure> {
    let server = session.catalog().active_server(server).map_err(explain::resolve)?;
    session.close_connection(&server).await;
    Ok(Reply::Disconnected { servers: vec![server] })
}

pub(crate) async fn result(
    session: &Session,
    id: String,
    view: ResultView,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let form = caller.result_form();
    let page =
        session.results.read(&id, view, form).await.map_err(|error| explain::result(error, &id))?;
    Ok(Reply::Stored { id, page })
}
