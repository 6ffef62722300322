//! Searches, lists and describes tools in the catalog snapshot, without a connection.

use std::sync::Arc;

use super::search::{self, Document, Fit, Hit, Ranking, RankingPage};
use super::{Catalog, EntryKind, Listing, ResolveError, Resolved};
use crate::hidden::strip;
use crate::name::ServerName;
use crate::pattern::{Case, Pattern, PatternError};
use crate::reply::{Description, ReachedBy, SearchHit, SearchPage, ToolLine, ToolPage};
use crate::request::{Matching, PageRequest, SearchRequest, Signatures};
use crate::schema;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Server(#[from] ResolveError),
    #[error("the search is not a supported regular expression")]
    Pattern(#[from] PatternError),
}

impl Catalog {
    /// Whether the search indexes of all listings are built.
    pub fn is_indexed(&self) -> bool {
        self.listings(None).all(|listing| listing.is_indexed())
    }

    /// Builds the missing search indexes. Without this call, the first search builds them.
    pub fn index(&self) {
        Listing::indexed(&self.listings(None).collect::<Vec<_>>());
    }

    /// A page of the tools that match a search, best first.
    pub fn search(&self, request: &SearchRequest) -> Result<SearchPage, SearchError> {
        let within = request.server.as_deref().map(|name| self.active_server(name)).transpose()?;
        let listings: Vec<&Arc<Listing>> = self.listings(within.as_ref()).collect();
        let mut ranking = match request.matching {
            Matching::Words => search::rank(&Listing::indexed(&listings), &request.query),
            Matching::Pattern => {
                self.matching(&listings, &Pattern::compile(&request.query, Case::Ignored)?)
            }
        };
        let best = ranking.hits.first().filter(|_| ranking.fit == Fit::Clear);
        let clear = best.and_then(|hit| Some(Arc::clone(&self.tool_of(&listings, hit)?.shown)));
        let denied = self.remove_denied(&listings, &mut ranking);
        let Ranking { hits, fit, good } = ranking;
        let page = RankingPage::of(&hits, request.page.offset, request.page.limit);
        let hits = page.items.iter().filter_map(|hit| {
            let tool = self.tool_of(&listings, hit)?;
            let input = tool.entry.input_value();
            Some(SearchHit {
                line: ToolLine::of(tool),
                score: hit.score,
                signature: schema::signature(&tool.shown, &input),
                notes: schema::notes(&input),
            })
        });
        let (not_listed, pending) = self.unseen(within.as_ref());
        Ok(SearchPage {
            query: request.query.clone(),
            hits: hits.collect(),
            total: page.total,
            offset: page.offset,
            next: page.next,
            fit,
            good,
            denied,
            clear,
            with_signatures: request.signatures == Signatures::Shown,
            not_listed,
            unavailable: Vec::new(),
            pending,
            not_called: None,
        })
    }

    /// A page of the tools of one server, or of all servers.
    pub fn page(&self, server: Option<&ServerName>, request: PageRequest) -> ToolPage {
        let tools: Vec<&Resolved> = match server {
            Some(server) => self.tools_of(server).collect(),
            None => self.tools().collect(),
        };
        let page = RankingPage::of(&tools, request.offset, request.limit);
        let listing = server.and_then(|server| self.listing(server));
        let (not_listed, pending) = self.unseen(server);
        ToolPage {
            server: server.cloned(),
            tools: page.items.iter().map(|tool| ToolLine::of(tool)).collect(),
            denied: self.denied_count(server),
            total: page.total,
            offset: page.offset,
            next: page.next,
            skipped: listing.map(|listing| listing.skipped.clone()).unwrap_or_default(),
            without_tools: listing.is_some_and(|listing| listing.without_tools),
            has_instructions: listing.is_some_and(|listing| listing.instructions.is_some()),
            not_listed,
            pending,
        }
    }

    /// Removes denied tools from a ranking, and returns their number. If a denied tool matches
    /// best, no other tool is a clear match.
    fn remove_denied(&self, listings: &[&Arc<Listing>], ranking: &mut Ranking) -> usize {
        if self.denied_count(None) == 0 {
            return 0;
        }
        let is_denied = |tool: &Resolved| self.denied_by(&tool.shown).is_some();
        // For each tool of each listing, whether a `deny` rule matches it.
        let denied =
            listings.iter().map(|it| self.all_tools_of(&it.server).map(is_denied).collect());
        let denied: Vec<Vec<bool>> = denied.collect();
        let is_denied =
            |hit: &Hit| denied.get(hit.listing).and_then(|it| it.get(hit.document)) == Some(&true);
        let Ranking { hits, fit, good } = ranking;
        if hits.first().is_some_and(is_denied) {
            *fit = (*fit).min(Fit::Plausible);
        }
        *good = hits.iter().take(*good).filter(|hit| !is_denied(hit)).count();
        let all = hits.len();
        hits.retain(|hit| !is_denied(hit));
        all - hits.len()
    }

    /// The tool to which a search hit refers.
    pub(super) fn tool_of(&self, listings: &[&Arc<Listing>], hit: &Hit) -> Option<&Resolved> {
        self.all_tools_of(&listings.get(hit.listing)?.server).nth(hit.document)
    }

    /// The tools whose shown or original name matches a regular expression, in listing order.
    fn matching(&self, listings: &[&Arc<Listing>], pattern: &Pattern) -> Ranking {
        let mut hits = Vec::new();
        for (listing, at) in listings.iter().zip(0..) {
            let documents = listing.documents().zip(self.all_tools_of(&listing.server));
            for (document, (text, tool)) in documents.enumerate() {
                if pattern.is_match(&tool.shown) || text.matches(pattern) {
                    hits.push(Hit { listing: at, document, score: 1.0 });
                }
            }
        }
        Ranking { good: hits.len(), fit: Fit::Plausible, hits }
    }

    /// The servers whose tools are missing in a reply about all servers: servers that were never
    /// listed, and pending servers.
    fn unseen(&self, within: Option<&ServerName>) -> (Vec<ServerName>, Vec<ServerName>) {
        match within {
            Some(_) => (Vec::new(), Vec::new()),
            None => (self.not_listed_yet(), self.pending()),
        }
    }

    pub(super) fn listings<'a>(
        &'a self,
        within: Option<&'a ServerName>,
    ) -> impl Iterator<Item = &'a Arc<Listing>> {
        self.shelves()
            .filter(move |(server, shelf)| {
                shelf.is_active() && within.is_none_or(|within| within == *server)
            })
            .filter_map(|(_, shelf)| shelf.listing.as_ref())
    }
}

impl ToolLine {
    pub fn of(tool: &Resolved) -> ToolLine {
        ToolLine {
            shown: tool.shown.to_string(),
            server: tool.server.clone(),
            tool: strip(tool.entry.name.as_str()).into_owned(),
            description: tool.entry.description.clone(),
            pin: tool.pin,
            claims: tool.claims.as_deref().cloned(),
            hidden: tool.entry.hidden.as_deref().cloned(),
            reached_by: ReachedBy::SameTool,
        }
    }
}

impl Catalog {
    /// Marks tools that only `mcp_write` can call, for replies of the read-only `mcp`.
    pub fn mark_writes<'a>(&self, lines: impl Iterator<Item = &'a mut ToolLine>) {
        for line in lines {
            let found = self.shown(&line.shown);
            if !found.is_some_and(|tool| tool.entry.annotations.only_reads()) {
                line.reached_by = ReachedBy::WriteTool;
            }
        }
    }
}

impl Resolved {
    /// All facts about the tool that `describe` shows.
    pub fn describe(&self) -> Description {
        let input = self.entry.input_value();
        let output = self.entry.output_schema();
        let output_value = output.and_then(|schema| serde_json::from_str(schema).ok());
        Description {
            line: ToolLine::of(self),
            title: self.entry.title.clone(),
            signature: schema::signature(&self.shown, &input),
            parameters: schema::parameters(&input),
            returns: output_value.as_ref().map(schema::output_shape),
            resource: match &self.entry.kind {
                EntryKind::Resource { uri, .. } => Some(uri.clone()),
                EntryKind::Tool | EntryKind::Prompt => None,
            },
            input_schema: self.entry.input_schema().to_owned(),
            output_schema: output.map(str::to_owned),
            annotations: self.entry.raw_annotations().map(str::to_owned),
            denied: None,
        }
    }
}

impl Listing {
    /// The searchable fields of each tool.
    pub(super) fn documents(&self) -> impl Iterator<Item = Document<'_>> {
        self.entries.iter().zip(self.keywords()).map(|(entry, keywords)| Document {
            server: self.server.as_str(),
            name: entry.name.as_str(),
            title: entry.title.as_deref(),
            description: &entry.description,
            input_schema: entry.input_schema(),
            keywords,
            annotations: entry.annotations,
        })
    }
}
