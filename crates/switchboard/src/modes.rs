//! Every mode of a session but the call: answers from snapshots, and a few that connect.

use std::sync::Arc;
use std::time::Duration;

use switchboard_core::approval::Access;
use switchboard_core::catalog::guess::NotCalled;
use switchboard_core::catalog::known_failure::{FAILURE_IS_NEWS, KnownFailure};
use switchboard_core::catalog::pin::Pin;
use switchboard_core::catalog::prompts::PromptItem;
use switchboard_core::catalog::resolve::Checked;
use switchboard_core::catalog::{Catalog, Listing, Prompt, Shelf, Standing};
use switchboard_core::config::layers::PendingCause;
use switchboard_core::config::values::Pins;
use switchboard_core::content::CallOutput;
use switchboard_core::exact::Args;
use switchboard_core::failure::Failure;
use switchboard_core::hidden::strip;
use switchboard_core::host_profile::HostProfile;
use switchboard_core::introduction::{self, DigestServer};
use switchboard_core::name::ServerName;
use switchboard_core::nesting::plain;
use switchboard_core::render::caution;
use switchboard_core::reply::{
    Clue, Origin, Output, Overview, PastFailure, Reply, SearchPage, ServerLine, ServerStatus,
    ToolPage, TrustLevel, Unavailable,
};
use switchboard_core::request::{LIST_LIMIT, Matching, PageRequest, ResultView, SearchRequest};

use tokio::time::Instant;

use crate::auth::{SignedIn, Started};
use crate::blocking::blocking;
use crate::blueprint::Overridden;
use crate::call;
use crate::directory;
use crate::explain::{self, chain};
use crate::gateway::FileNotices;
use crate::relay::Reference;
use crate::session::Session;
use crate::upstream::lease::Caller;
use crate::upstream::{State, Status, Upstream};

/// How long a search waits for the first listing of a server, from its beginning on.
const FIRST_LISTING: Duration = Duration::from_secs(3);

pub(crate) fn overview(session: &Session) -> Overview {
    let catalog = session.catalog();
    let servers: Vec<ServerLine> =
        catalog.shelves().map(|(name, _)| server_line(session, &catalog, name)).collect();
    let connected =
        servers.iter().filter(|server| server.status == ServerStatus::Connected).count();
    let FileNotices { stale, mistakes } = session.gateway.file_notices();
    Overview { servers, tools: catalog.tool_count(), connected, stale, mistakes }
}

/// The `instructions` of this gateway as a server, with a digest unless the settings forbid it.
pub(crate) fn introduction(session: &Session, host: &HostProfile) -> String {
    if !session.gateway.settings().digest {
        return introduction::instructions(host, None);
    }
    let catalog = session.catalog();
    let usable = catalog.shelves().filter(|(_, shelf)| shelf.is_active());
    let facts: Vec<_> = usable
        .map(|(name, _)| (name, session.gateway.facts(name).description, catalog.listing(name)))
        .collect();
    let servers: Vec<DigestServer<'_>> = facts
        .iter()
        .map(|(name, description, listing)| DigestServer {
            name: name.as_str(),
            description: description.as_deref(),
            tools: listing
                .map(|_| catalog.tools_of(name).map(|tool| tool.entry.name.as_str()).collect()),
        })
        .collect();
    introduction::instructions(host, Some(&servers))
}

pub(crate) fn server_line(session: &Session, catalog: &Catalog, name: &ServerName) -> ServerLine {
    let listing = catalog.listing(name);
    let upstream = session.find_upstream(name);
    let underway = upstream.as_ref().and_then(Upstream::underway);
    let upstream = upstream.map(|upstream| upstream.status());
    let standing = catalog.shelf(name).map_or(Standing::Active, |shelf| shelf.standing);
    let shelf = catalog.shelf(name);
    let known = shelf.and_then(Shelf::failure).and_then(past_failure);
    let status = match status_of(standing, upstream.as_ref(), listing.is_some()) {
        // Another process tried a while ago.
        ServerStatus::Cached | ServerStatus::NotConnected if known.is_some() => {
            ServerStatus::Failed
        }
        status => status,
    };
    let failure = upstream
        .and_then(|status| status.last_failure)
        .map(|failure| PastFailure { ago: failure.at.elapsed(), cause: chain(&*failure.cause) })
        .or(known);
    let facts = session.gateway.facts(name);
    ServerLine {
        name: name.clone(),
        status,
        tools: listing
            .filter(|_| standing == Standing::Active)
            .map(|_| catalog.tools_of(name).count()),
        denied: catalog.denied_count(Some(name)),
        resources: listing.map_or(0, |listing| listing.resources.len()),
        lifecycle: facts.lifecycle,
        trust: if status == ServerStatus::Pending { TrustLevel::Pending } else { facts.trust },
        failure: failure.filter(|_| matches!(status, ServerStatus::Failed | ServerStatus::Pending)),
        underway: underway.filter(|_| status == ServerStatus::Connecting),
        description: facts.description,
        note: match (facts.overridden, standing) {
            (Overridden::WhenTrusted, _) => {
                Some("the project's own definition is pending".to_owned())
            }
            (Overridden::No, Standing::Pending(PendingCause::Changed)) => {
                Some("it has changed since it was approved".to_owned())
            }
            (Overridden::No, _) => listing.and_then(|listing| note(listing)),
        },
        drift: catalog.shelf(name).map(Shelf::drift).unwrap_or_default(),
    }
}

fn past_failure(failure: &KnownFailure) -> Option<PastFailure> {
    let ago = failure.ago(directory::now())?;
    Some(PastFailure { ago, cause: failure.reason.to_string() })
}

fn note(listing: &Listing) -> Option<String> {
    match listing.skipped.len() {
        0 => listing.without_tools.then(|| "it offers no tools".to_owned()),
        count => Some(format!("{count} left out")),
    }
}

fn status_of(standing: Standing, upstream: Option<&Status>, listed: bool) -> ServerStatus {
    match (standing, upstream) {
        (Standing::Disabled, _) => return ServerStatus::Disabled,
        (Standing::Pending(_), _) => return ServerStatus::Pending,
        (Standing::Active, None) => {}
        (Standing::Active, Some(status)) => match (status.state, &status.last_failure) {
            (State::Connected, _) => return ServerStatus::Connected,
            (State::Unwelcome, _) => return ServerStatus::NeedsAuth,
            (State::Connecting { .. }, _) => return ServerStatus::Connecting,
            (State::Down, Some(failure)) if failure.cause.needs_trust() => {
                return ServerStatus::Pending;
            }
            (State::Down, Some(failure)) if failure.cause.needs_sign_in() => {
                return ServerStatus::NeedsAuth;
            }
            (State::Down, Some(failure)) if failure.at.elapsed() < FAILURE_IS_NEWS => {
                return ServerStatus::Failed;
            }
            (State::Down, _) => {}
        },
    }
    if listed { ServerStatus::Cached } else { ServerStatus::NotConnected }
}

/// Lists a server's tools; one that was never listed is connected for it.
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

/// A page of a server's tools, as the caller reaches them.
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

/// A snapshot that has this server's lists.
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

/// Finds tools; with arguments, calls the one that is clearly meant.
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
    let within = request.server.as_deref();
    match meant(session, &catalog, (&page, request.matching, within), args, caller.access) {
        Ok(checked) => {
            Box::pin(call::guess(session, &catalog, checked, Clue::Search, request.select, caller))
                .await
        }
        Err(why) => {
            page.not_called = Some(Box::new(why));
            Ok(Reply::Found(page))
        }
    }
}

/// Leaves in `not_listed` the servers that connecting may help: not those that start already, or
/// failed a moment ago.
fn sort_out_unlisted(session: &Session, catalog: &Catalog, page: &mut SearchPage) {
    let failure = |server: &ServerName| catalog.shelf(server).and_then(Shelf::failure).cloned();
    page.not_listed.retain(|server| {
        let state = session.find_upstream(server).map(|upstream| upstream.status().state);
        let why = match (state, failure(server)) {
            (Some(State::Connecting { .. }), _) => Unavailable::Starting,
            (_, Some(failure)) => Unavailable::Failed { reason: failure.reason },
            (_, None) => return true,
        };
        page.unavailable.push((server.clone(), why));
        false
    });
}

/// Waits for servers whose first listing is under way, none of them for long: a host may search as
/// soon as it has started us.
async fn first_listings(session: &Session) {
    let gateway = &session.gateway;
    let mut changes = gateway.changes();
    loop {
        let waited_for = |server: &ServerName| {
            let status = session.find_upstream(server).map(|upstream| upstream.status());
            let began = match status {
                Some(Status { state: State::Connecting { since }, .. }) => Some(since),
                Some(Status { state: State::Down, last_failure: None }) | None => {
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

/// The call that a search with arguments means.
fn meant(
    session: &Session,
    catalog: &Catalog,
    (page, matching, within): (&SearchPage, Matching, Option<&str>),
    args: Args,
    access: Access,
) -> Result<Checked, NotCalled> {
    if !session.gateway.settings().search_calls {
        return Err(NotCalled::Off);
    }
    let best = catalog.meant(page, matching, within, &args);
    let best = best.ok_or(NotCalled::Unclear)?;
    call::harmless(session, &page.query, (best, args), access)
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

/// Connects, whatever failed before; a server that is connected is listed again.
pub(crate) async fn connect(
    session: &Session,
    server: &str,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let server = session.catalog().active_server(server).map_err(explain::resolve)?;
    let upstream = session.open_upstream(&server)?;
    let _lease = upstream.refresh().await.map_err(|error| explain::lease(error, &server))?;
    let page = PageRequest { offset: 0, limit: LIST_LIMIT };
    let page = page_for(caller, &session.catalog(), &server, page);
    Ok(Reply::Connected(page))
}

/// Begins a sign-in, which goes on beside: whoever asked cannot wait for the user.
pub(crate) async fn sign_in(session: &Session, server: &str) -> Result<Reply, Failure> {
    let gateway = session.gateway();
    let server = gateway.usable(server)?;
    let sign_in = gateway.sign_in(&server).await?;
    let (started, waiting) = sign_in.begin_beside().await?;
    if let Some(waiting) = waiting {
        gateway.run_beside(waiting);
    }
    Ok(match started {
        Started::Done(SignedIn { scopes, .. }) => Reply::SignedIn { server, scopes },
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
    let SignedIn { scopes, .. } = gateway.sign_in(&server).await?.complete(answer).await?;
    Ok(Reply::SignedIn { server, scopes })
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

pub(crate) fn resources(session: &Session, server: Option<&str>) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let rows = in_scope(&catalog, server)?.into_iter().flat_map(|server| {
        let listing = catalog.listing(&server).cloned();
        listing.into_iter().flat_map(move |listing| {
            let server = server.clone();
            listing.resources.clone().into_iter().map(move |row| (server.clone(), row))
        })
    });
    Ok(Reply::Resources(rows.collect()))
}

pub(crate) fn prompts(session: &Session, server: Option<&str>) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let mut rows = Vec::new();
    for server in in_scope(&catalog, server)? {
        rows.extend(catalog.prompts_of(&server).map(|item| {
            let name = strip(&item.prompt.name).into_owned();
            let prompt = Prompt { name, description: item.description(), ..item.prompt.clone() };
            (server.clone(), prompt)
        }));
    }
    Ok(Reply::Prompts(rows))
}

fn in_scope(catalog: &Catalog, server: Option<&str>) -> Result<Vec<ServerName>, Failure> {
    match server {
        Some(server) => Ok(vec![catalog.active_server(server).map_err(explain::resolve)?]),
        None => Ok(catalog
            .shelves()
            .filter(|(_, shelf)| shelf.is_active())
            .map(|(name, _)| name.clone())
            .collect()),
    }
}

/// Reads a resource of the server that lists it, or of the one that is named.
pub(crate) async fn read_resource(
    session: &Session,
    uri: &str,
    server: Option<&str>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    // A server may serve more than it lists, so a named one is asked in any case.
    let within = server.map(|server| catalog.active_server(server)).transpose();
    let within = within.map_err(explain::resolve)?;
    let found = catalog.find_resource(uri, within.as_ref()).map_err(explain::resource)?;
    let (owner, uri) = found.ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
    let (owner, uri) = (&owner, uri.as_str());
    // Only its lists say which resources the configuration leaves out.
    let catalog = listed(session, Arc::clone(&catalog), owner).await?;
    let target =
        catalog.resource(owner, uri).ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
    let checked = Checked { target, args: Args::default() };
    let (target, raw) = call::run(session, &catalog, checked, caller).await?;
    let content = CallOutput::of_resource(raw.into_string());
    output(session, (Origin::Resource, target.server, uri), content, caller).await
}

/// The server whose resource, resource template or prompt is meant, and what it calls that.
pub(crate) fn owner(
    session: &Session,
    of: &Reference<'_>,
) -> Result<(ServerName, String), Failure> {
    let catalog = session.catalog();
    match of {
        Reference::Resource(uri) => {
            let found = catalog.find_template(uri).map_err(explain::resource)?;
            let (server, own) = found.ok_or_else(|| explain::unknown_resource(uri, &catalog))?;
            refuse_denied(session, &server, &Reference::Resource(&own))?;
            Ok((server, own))
        }
        Reference::Prompt(name) => {
            let found = find_prompt(&catalog, name, None)?;
            let (server, own) = (found.server.clone(), found.prompt.name.clone());
            refuse_denied(session, &server, &Reference::Prompt(&own))?;
            Ok((server, own))
        }
    }
}

/// Refuses what belongs to a resource or a prompt of a server that may not be read.
pub(crate) fn refuse_denied(
    session: &Session,
    server: &ServerName,
    of: &Reference<'_>,
) -> Result<(), Failure> {
    let catalog = session.catalog();
    let target = match of {
        Reference::Resource(uri) => {
            catalog.resource(server, uri).ok_or_else(|| explain::unknown_resource(uri, &catalog))?
        }
        Reference::Prompt(name) => {
            catalog.prompt(server, name).ok_or_else(|| explain::unknown_prompt(name, &catalog))?
        }
    };
    call::refuse_denied(session, target, &session.caller())
}

fn find_prompt<'a>(
    catalog: &'a Catalog,
    name: &str,
    within: Option<&ServerName>,
) -> Result<PromptItem<'a>, Failure> {
    let found = catalog.find_prompt(name, within).map_err(explain::prompt)?;
    found.ok_or_else(|| explain::unknown_prompt(name, catalog))
}

pub(crate) async fn prompt(
    session: &Session,
    name: &str,
    server: Option<&str>,
    args: Args,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let catalog = session.catalog();
    let within = server.map(|server| catalog.active_server(server)).transpose();
    let within = within.map_err(explain::resolve)?;
    let PromptItem { server, prompt, .. } = find_prompt(&catalog, name, within.as_ref())?;
    let target = catalog
        .prompt(server, &prompt.name)
        .ok_or_else(|| explain::unknown_prompt(name, &catalog))?;
    let checked = Checked { target, args };
    let (target, raw) = call::run(session, &catalog, checked, caller).await?;
    // What a prompt says is no data: it goes to a model as it is.
    let content = CallOutput::of_prompt(plain(raw.as_str()).into_owned());
    output(session, (Origin::Prompt, target.server, name), content, caller).await
}

async fn output(
    session: &Session,
    (origin, server, name): (Origin, ServerName, &str),
    content: CallOutput<'static>,
    caller: &Caller,
) -> Result<Reply, Failure> {
    let form = caller.result_form();
    let hidden = content.hidden_characters();
    let (mut content, result) = session.results.guard(content, form).await;
    if !session.results.is_unstored() {
        content.mark_hidden(hidden);
    }
    let output = Output {
        origin,
        server,
        name: name.to_owned(),
        content,
        result,
        expected: None,
        guessed: None,
        unselected: None,
    };
    Ok(Reply::Output(Box::new(output)))
}
