//! Asks a server for its lists, page by page, and knows when to stop.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard_core::catalog::RawListing;
use switchboard_wire::era::ServerHello;
use switchboard_wire::peer::Patience;
use switchboard_wire::{Peer, Raw, RequestError};

use super::DialError;

/// What a walk over a list may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) timeout: Duration,
    pub(super) max_pages: usize,
    pub(super) max_items: usize,
}

/// Everything that the server advertises, within one deadline for all pages.
pub(super) async fn list_all(
    peer: &Peer,
    hello: &ServerHello,
    bounds: Bounds,
) -> Result<RawListing, DialError> {
    let after = bounds.timeout;
    let late = DialError::TimedOut { stage: "tools/list", after, stderr: Vec::new() };
    tokio::time::timeout(after, walk_all(peer, hello, bounds)).await.unwrap_or(Err(late))
}

/// Only the tools are vital: a server whose other lists
/// fail is still of use.
async fn walk_all(
    peer: &Peer,
    hello: &ServerHello,
    bounds: Bounds,
) -> Result<RawListing, DialError> {
    let mut listing = RawListing {
        instructions: hello.instructions.clone(),
        server_name: hello.server_name.clone(),
        server_version: hello.server_version.clone(),
        without_tools: !hello.capabilities.tools,
        ..RawListing::default()
    };
    if hello.capabilities.tools {
        let (tools, ttl_ms) = walk(peer, "tools/list", "tools", bounds).await?;
        listing.tools = tools;
        listing.ttl_ms = ttl_ms;
    }
    if hello.capabilities.resources
        && let Ok((resources, _)) = walk(peer, "resources/list", "resources", bounds).await
    {
        listing.resources = resources;
        let templates = walk(peer, "resources/templates/list", "resourceTemplates", bounds).await;
        listing.resource_templates = templates.map(|(items, _)| items).unwrap_or_default();
    }
    if hello.capabilities.prompts
        && let Ok((prompts, _)) = walk(peer, "prompts/list", "prompts", bounds).await
    {
        listing.prompts = prompts;
    }
    Ok(listing)
}

type Items = (Vec<Box<RawValue>>, Option<u64>);

async fn walk(
    peer: &Peer,
    method: &'static str,
    what: &'static str,
    bounds: Bounds,
) -> Result<Items, DialError> {
    let mut items = Vec::new();
    let mut ttl_ms = None;
    let mut cursors = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..bounds.max_pages {
        let page = ask(peer, method, cursor.as_deref(), bounds.timeout).await?;
        let page = read_page(&page, what).ok_or(DialError::MalformedList { what })?;
        items.extend(page.items);
        ttl_ms = ttl_ms.or(page.ttl_ms);
        match page.next_cursor {
            None => return Ok((items, ttl_ms)),
            Some(_) if items.len() > bounds.max_items => return Ok((items, ttl_ms)),
            // A cursor that comes again leads in a circle.
            Some(next) if !cursors.insert(next.clone()) => {
                return Err(DialError::EndlessList { what });
            }
            Some(next) => cursor = Some(next),
        }
    }
    Err(DialError::EndlessList { what })
}

async fn ask(
    peer: &Peer,
    method: &'static str,
    cursor: Option<&str>,
    timeout: Duration,
) -> Result<Raw, DialError> {
    let params = match cursor {
        Some(cursor) => serde_json::json!({ "cursor": cursor }).to_string(),
        None => "{}".to_owned(),
    };
    let patience = Patience { timeout: Some(timeout), progress: None };
    peer.request(method, |_| params, patience).await.map_err(|error| match error {
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

struct Page {
    items: Vec<Box<RawValue>>,
    next_cursor: Option<String>,
    ttl_ms: Option<u64>,
}

/// Reads one page; `None` if it has no list where one must be.
fn read_page(raw: &Raw, what: &'static str) -> Option<Page> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        #[serde(default)]
        tools: Option<Vec<Box<RawValue>>>,
        #[serde(default)]
        resources: Option<Vec<Box<RawValue>>>,
        #[serde(default)]
        resource_templates: Option<Vec<Box<RawValue>>>,
        #[serde(default)]
        prompts: Option<Vec<Box<RawValue>>>,
        #[serde(default)]
        next_cursor: Option<String>,
        #[serde(default)]
        ttl_ms: Option<u64>,
    }
    let fields: Fields = raw.parse().ok()?;
    let items = match what {
        "tools" => fields.tools,
        "resources" => fields.resources,
        "resourceTemplates" => fields.resource_templates,
        _ => fields.prompts,
    };
    Some(Page { items: items?, next_cursor: fields.next_cursor, ttl_ms: fields.ttl_ms })
}

#[cfg(test)]
mod tests {
    use switchboard_core::catalog::RawListing;
    use switchboard_wire::envelope::Malformed;
    use switchboard_wire::era::{Era, Revision, ServerCapabilities};
    use switchboard_wire::peer::{self, Limits};
    use switchboard_wire::{Handler, Notification, Responder, pipe};

    use super::*;

    /// Answers every page after a while, and there is always one more.
    struct Dripping(u64);

    impl Handler for Dripping {
        fn request(&mut self, _: String, _: Option<Raw>, responder: Responder) {
            self.0 += 1;
            let page = format!("{{\"tools\":[],\"nextCursor\":\"{}\"}}", self.0);
            tokio::spawn(async move {
                let never = std::future::pending::<()>();
                let _later = tokio::time::timeout(Duration::from_secs(9), never).await;
                responder.result(|out| out.push_str(&page)).await;
            });
        }

        fn notification(&mut self, _: Notification) {}

        fn malformed(&mut self, _: &Malformed, _: &Peer) {}
    }

    async fn list_of_dripping_pages(timeout: Duration) -> Result<RawListing, DialError> {
        let (near, far) = pipe::pair();
        let (peer, reader, writer) = peer::open(near.reader, near.writer, Limits::default());
        let (_, far_reader, far_writer) = peer::open(far.reader, far.writer, Limits::default());
        let hello = ServerHello {
            era: Era::Legacy(Revision::NEWEST),
            capabilities: ServerCapabilities { tools: true, ..ServerCapabilities::default() },
            server_name: "dripping".to_owned(),
            server_version: String::new(),
            instructions: None,
            raw: Raw::from_json("{}".to_owned()),
        };
        let bounds = Bounds { timeout, max_pages: 1_000, max_items: 1_000 };
        let (mut one, mut other) = (Dripping(0), Dripping(0));
        tokio::select! {
            listed = list_all(&peer, &hello, bounds) => listed,
            _ = reader.run(&mut one) => panic!("the reader ended"),
            _ = writer.run() => panic!("the writer ended"),
            _ = far_reader.run(&mut other) => panic!("the far reader ended"),
            _ = far_writer.run() => panic!("the far writer ended"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pages_that_each_come_in_time_do_not_stretch_the_deadline_of_the_list() {
        let begun = tokio::time::Instant::now();
        let listed = list_of_dripping_pages(Duration::from_secs(10)).await;
        assert!(matches!(listed, Err(DialError::TimedOut { .. })), "{listed:?}");
        assert_eq!(begun.elapsed().as_secs(), 10);
    }
}
