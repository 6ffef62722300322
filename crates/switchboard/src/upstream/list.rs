//! Requests the lists of a server page by page, within limits.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Map;
use serde_json::value::RawValue;
use switchboard_core::catalog::{self, CacheScope, RawListing};
use switchboard_core::schema;
use switchboard_wire::era::{Era, ServerHello};
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, Raw, RequestError};

use super::DialError;
use crate::dial::http::SignedIn;

/// The maximum number of resources, templates or prompts of one server. For tools, the limit is the
/// larger of this number and `maxTools`.
const LEAST_ITEMS: usize = 10_000;

/// A query for all lists of a server, with its bounds.
#[derive(Clone, Copy)]
pub(super) struct ListQuery<'a> {
    pub(super) peer: &'a Peer,
    pub(super) hello: &'a ServerHello,
    /// The `_meta` of every request to a stateless server.
    pub(super) meta: Option<&'a RawValue>,
    /// Whether some parameters of calls are also sent as headers.
    pub(super) mirrors_headers: bool,
    pub(super) signed_in: &'a SignedIn,
    pub(super) timeout: Duration,
    pub(super) max_pages: usize,
    pub(super) max_items: usize,
    /// The maximum size, in bytes, of all pages of all lists together: memory holds several copies
    /// until they are cached.
    pub(super) max_bytes: usize,
}

/// Requests all lists that the server declares, within one deadline for all pages.
pub(super) async fn list_all(query: ListQuery<'_>) -> Result<RawListing, DialError> {
    let after = query.timeout;
    let late = DialError::TimedOut { stage: "tools/list", after, stderr: Vec::new() };
    tokio::time::timeout(after, walk_all(query)).await.unwrap_or(Err(late))
}

/// Requests all lists. Fails only if the tools cannot be listed: a server whose other lists fail is
/// still usable.
async fn walk_all(query: ListQuery<'_>) -> Result<RawListing, DialError> {
    let hello = query.hello;
    let mut room = query.max_bytes;
    let mut listing = RawListing {
        instructions: hello.instructions.clone(),
        server_name: hello.server_name.clone(),
        server_version: hello.server_version.clone(),
        without_tools: !hello.capabilities.tools,
        era: Some(match hello.era {
            Era::Legacy(_) => catalog::Era::Legacy,
            Era::Modern => catalog::Era::Modern,
        }),
        ..RawListing::default()
    };
    if hello.capabilities.tools {
        let tools = walk(query, "tools/list", "tools", &mut room).await?;
        (listing.tools, listing.scope, listing.ttl_ms) = (tools.items, tools.scope, tools.ttl_ms);
        if query.mirrors_headers {
            listing.tools.retain(|tool| can_be_called(tool));
        }
    }
    if hello.capabilities.resources
        && let Ok(resources) = walk(query, "resources/list", "resources", &mut room).await
    {
        listing.resources = resources.items;
        listing.scope = listing.scope.max(resources.scope);
        let templates = walk(query, "resources/templates/list", "resourceTemplates", &mut room);
        if let Ok(templates) = templates.await {
            listing.resource_templates = templates.items;
            listing.scope = listing.scope.max(templates.scope);
        }
    }
    if hello.capabilities.prompts
        && let Ok(prompts) = walk(query, "prompts/list", "prompts", &mut room).await
    {
        listing.prompts = prompts.items;
        listing.scope = listing.scope.max(prompts.scope);
    }
    listing.identity = query.signed_in.identity();
    Ok(listing)
}

/// A list, or one page of it.
#[derive(Default)]
struct RawList {
    items: Vec<Box<RawValue>>,
    ttl_ms: Option<u64>,
    scope: Option<CacheScope>,
}

/// Whether all headers that the tool's schema requires can be sent. A tool with an invalid header
/// is not listed.
fn can_be_called(tool: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ToolSchema {
        input_schema: serde_json::Value,
    }
    // The search for the key avoids parsing: nearly all tools require no header.
    if !tool.get().contains("x-mcp-header") {
        return true;
    }
    let definition = serde_json::from_str::<ToolSchema>(tool.get());
    let checked = definition.map(|tool| schema::mirrored(&tool.input_schema, &Map::new()));
    if let Ok(Err(error)) = &checked {
        tracing::warn!(%error, "omitted a tool with invalid headers");
    }
    matches!(checked, Ok(Ok(_)))
}

async fn walk(
    query: ListQuery<'_>,
    method: &'static str,
    what: &'static str,
    room: &mut usize,
) -> Result<RawList, DialError> {
    let mut list = RawList::default();
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..query.max_pages {
        let page = ask(query, method, cursor.as_deref()).await?;
        let Some(left) = room.checked_sub(page.as_str().len()) else {
            tracing::warn!(what, limit = query.max_bytes, "omitted the rest of the lists");
            *room = 0;
            return Ok(list);
        };
        *room = left;
        let (page, next) = read_page(&page, what).ok_or(DialError::MalformedList { what })?;
        let free = query.max_items.max(LEAST_ITEMS).saturating_sub(list.items.len());
        // One item above the limit is kept, which shows later that items were omitted.
        list.items.extend(page.items.into_iter().take(free + 1));
        list.ttl_ms = list.ttl_ms.or(page.ttl_ms);
        list.scope = list.scope.max(page.scope);
        match next {
            None => return Ok(list),
            Some(_) if list.items.len() > query.max_items => return Ok(list),
            // A server that repeats a cursor would be queried forever.
            Some(next) if !cursors.insert(next.clone()) => {
                return Err(DialError::EndlessList { what });
            }
            Some(next) => cursor = Some(next),
        }
    }
    Err(DialError::EndlessList { what })
}

async fn ask(
    ListQuery { peer, meta, timeout, .. }: ListQuery<'_>,
    method: &'static str,
    cursor: Option<&str>,
) -> Result<Raw, DialError> {
    #[derive(Serialize)]
    struct ListParams<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        cursor: Option<&'a str>,
        #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
        meta: Option<&'a RawValue>,
    }
    let params = serde_json::to_string(&ListParams { cursor, meta }).unwrap_or_default();
    let patience = Patience { timeout: Some(timeout), progress: None };
    peer.request(method, params, patience).await.map_err(|error| match error {
        RequestError::Refused(cause) => DialError::Refused { stage: method, cause },
        RequestError::TimedOut(after) => {
            DialError::TimedOut { stage: method, after, stderr: Vec::new() }
        }
        RequestError::Http(error) => error.into(),
        RequestError::AnswerTooLarge { .. } => DialError::MalformedList { what: method },
        RequestError::Closed | RequestError::NotSent => {
            DialError::Exited { exit: super::ExitReason::StreamClosed, stderr: Vec::new() }
        }
    })
}

/// Parses one page and the cursor of the next; `None` if the list is missing or malformed.
fn read_page(raw: &Raw, what: &'static str) -> Option<(RawList, Option<String>)> {
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct ListResult {
        tools: Option<Vec<Box<RawValue>>>,
        resources: Option<Vec<Box<RawValue>>>,
        resource_templates: Option<Vec<Box<RawValue>>>,
        prompts: Option<Vec<Box<RawValue>>>,
        next_cursor: Option<String>,
        ttl_ms: Option<serde_json::Value>,
        cache_scope: Option<serde_json::Value>,
    }
    let fields: ListResult = raw.parse().ok()?;
    let items = match what {
        "tools" => fields.tools,
        "resources" => fields.resources,
        "resourceTemplates" => fields.resource_templates,
        _ => fields.prompts,
    };
    // An invalid time to live is treated as expired.
    let ttl_ms = fields.ttl_ms.map(|ttl| ttl.as_u64().unwrap_or_default());
    // Any scope other than `public` is treated as private.
    let scope = fields.cache_scope.map(|scope| match scope.as_str() {
        Some("public") => CacheScope::Public,
        Some(_) | None => CacheScope::Private,
    });
    Some((RawList { items: items?, ttl_ms, scope }, fields.next_cursor))
}

#[cfg(test)]
mod tests {
    use switchboard_core::catalog::RawListing;
    use switchboard_wire::envelope::Malformed;
    use switchboard_wire::era::{Revision, ServerCapabilities};
    use switchboard_wire::peer::{self, PeerLimits};
    use switchboard_wire::{Handler, Notification, Responder, pipe};

    use super::*;

    /// Answers each page after a delay, and always names a next page.
    struct Dripping {
        pages: u64,
        /// The tool on each page.
        tool: String,
    }

    impl Handler for Dripping {
        fn request(&mut self, _: String, _: Option<Raw>, responder: Responder) {
            self.pages += 1;
            let page = format!(r#"{{"tools":[{}],"nextCursor":"{}"}}"#, self.tool, self.pages);
            tokio::spawn(async move {
                let never = std::future::pending::<()>();
                let _later = tokio::time::timeout(Duration::from_secs(9), never).await;
                responder.result(|out| out.push_str(&page)).await;
            });
        }

        fn notification(&mut self, _: Notification) {}

        fn malformed(&mut self, _: &Malformed, _: &Peer) {}
    }

    async fn list_of_dripping_pages(
        timeout: Duration,
        tool: &str,
    ) -> Result<RawListing, DialError> {
        let (near, far) = pipe::pair();
        let (peer, reader, writer) = peer::open(near.reader, near.writer, PeerLimits::default());
        let (_, far_reader, far_writer) = peer::open(far.reader, far.writer, PeerLimits::default());
        let hello = ServerHello {
            era: Era::Legacy(Revision::NEWEST),
            capabilities: ServerCapabilities { tools: true, ..ServerCapabilities::default() },
            server_name: "dripping".to_owned(),
            server_version: String::new(),
            instructions: None,
            raw_capabilities: Raw::from_json("{}".to_owned()),
            raw_info: Raw::from_json("{}".to_owned()),
        };
        let dripping = || Dripping { pages: 0, tool: tool.to_owned() };
        let (mut one, mut other) = (dripping(), dripping());
        let query = ListQuery {
            peer: &peer,
            hello: &hello,
            meta: None,
            mirrors_headers: false,
            signed_in: &SignedIn::default(),
            timeout,
            max_pages: 1_000,
            max_items: 1_000,
            max_bytes: 10_000,
        };
        tokio::select! {
            listed = list_all(query) => listed,
            _ = reader.run(&mut one) => panic!("the reader ended"),
            _ = writer.run() => panic!("the writer ended"),
            _ = far_reader.run(&mut other) => panic!("the far reader ended"),
            _ = far_writer.run() => panic!("the far writer ended"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_pages_do_not_extend_the_listing_deadline() {
        let begun = tokio::time::Instant::now();
        let listed = list_of_dripping_pages(Duration::from_secs(10), "").await;
        assert!(matches!(listed, Err(DialError::TimedOut { .. })), "{listed:?}");
        assert_eq!(begun.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn listing_stops_at_its_byte_limit() {
        let tool = format!(r#"{{"name":"a","description":"{}"}}"#, "x".repeat(4_000));
        let listed = list_of_dripping_pages(Duration::from_secs(1_000), &tool).await.unwrap();
        assert_eq!(listed.tools.len(), 2);
    }
}
