//! The listing of one server: unparsed for the cache, and parsed for use.

mod resources;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entry::{Entry, LARGEST_DEFINITION, own_name};
use super::search::{self, Postings};
use super::shadowed::drop_shadowed;
use crate::config::values::ToolPrefix;
use crate::globs::Globs;
use crate::hidden::{self, Hidden, strip};
use crate::name::{ServerName, ToolId, ToolName};
use crate::nesting::plain;
use crate::restriction::{BareServer, Restriction};

pub(super) use resources::Address;
use resources::LeftOut;
pub use resources::{Resource, ResourceTemplate};

/// The maximum number of arguments of one prompt that are parsed.
const MOST_ARGUMENTS: usize = 200;

/// The unparsed lists that a server sent. The cache stores them in this form.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RawListing {
    pub tools: Vec<Box<RawValue>>,
    pub resources: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_templates: Vec<Box<RawValue>>,
    pub prompts: Vec<Box<RawValue>>,
    pub instructions: Option<String>,
    pub server_name: String,
    pub server_version: String,
    /// Whether the server declared that it has no tools.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
    /// Whether the server sent server-to-client requests: roots, sampling or elicitation.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_client: bool,
    /// The `ttlMs` of the lists; `None` if the server sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// The `cacheScope` of the lists; `None` if the server sends none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<CacheScope>,
    /// The sign-in that was used to request the lists. It is not stored in the cache.
    #[serde(skip)]
    pub identity: Option<String>,
    /// The era of the server when the lists were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
}

/// `cacheScope`: which credentials may use cached lists. The greater of two scopes is the narrower
/// one: one private list or page makes the whole listing private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    Public,
    /// Only the credential that requested the lists may use them.
    Private,
}

/// The era of a server, remembered for the next connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// Session-based revisions, which open a session with `initialize`.
    Legacy,
    /// The stateless revision: every request identifies the client.
    Modern,
}

/// The settings that decide which tools of a server are listed, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingPolicy {
    pub prefix: ToolPrefix,
    pub include: Option<Vec<String>>,
    pub exclude: Vec<String>,
    /// Each tool name or glob of `searchKeywords`, with its keywords.
    pub keywords: Vec<(String, Vec<String>)>,
    pub resources: ResourceTools,
    pub max_tools: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceTools {
    /// Resources are listed as tools that read them.
    #[default]
    Exposed,
    Hidden,
}

/// One server's parsed listing.
#[derive(Debug)]
pub struct Listing {
    pub server: ServerName,
    pub entries: Vec<Arc<Entry>>,
    pub resources: Vec<Resource>,
    /// The resources that `includeTools` and `excludeTools` exclude, which cannot be read either.
    left_out: LeftOut,
    /// The canonical URIs of all resources of the server; computed when first needed.
    addresses: OnceLock<HashSet<String>>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    pub instructions: Option<Instructions>,
    pub server_name: String,
    pub server_version: String,
    /// The definitions that were skipped, each with the reason.
    pub skipped: Vec<String>,
    /// The skipped tools and prompts whose names equal other names once hidden characters are
    /// removed.
    pub shadowed: Vec<String>,
    /// The hidden text in resources and templates, with their URIs.
    pub hidden_in_resources: Vec<(String, Hidden)>,
    /// Whether the server declared that it has no tools.
    pub without_tools: bool,
    keywords: Vec<Vec<String>>,
    /// The search index; built by the first search.
    postings: OnceLock<Postings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    /// The hidden text of the prompt's definition. It was removed from all fields but the name.
    pub hidden: Option<Box<Hidden>>,
    /// The definition of the prompt, with hidden text removed.
    pub raw: Box<str>,
    /// The definition of the prompt exactly as the server wrote it; `None` if it has no hidden
    /// text.
    pub original: Option<Box<str>>,
}

/// The `instructions` of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instructions {
    /// The instructions, with hidden text removed.
    pub text: String,
    pub hidden: Option<Hidden>,
    /// The instructions exactly as the server wrote them; `None` if they have no hidden text.
    original: Option<String>,
}

impl Prompt {
    /// The instructions exactly as the server wrote them.
    pub fn definition(&self) -> &str {
        self.original.as_ref().unwrap_or(&self.raw)
    }
}

impl Instructions {
    pub(super) fn of(original: &str) -> Instructions {
        let (text, hidden) = (strip(original).into_owned(), hidden::find(original));
        Instructions { text, original: hidden.is_some().then(|| original.to_owned()), hidden }
    }

    pub fn original(&self) -> &str {
        self.original.as_ref().unwrap_or(&self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

impl Listing {
    /// Parses the lists of a server. Malformed definitions are skipped.
    pub fn build(server: ServerName, raw: &RawListing, policy: &ListingPolicy) -> Listing {
        let mut skipped = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for (index, definition) in raw.tools.iter().enumerate() {
            match Entry::tool(definition) {
                Ok(entry) => entries.push(entry),
                Err(error) => skipped.push(format!("tool {}: {error}", index + 1)),
            }
        }
        let resources = raw.resources.iter().filter_map(|raw| Resource::read(raw));
        let templates = raw.resource_templates.iter();
        let templates = templates.filter_map(|raw| ResourceTemplate::read(raw));
        let (resources, templates, left_out) =
            resources::admitted(&server, policy, resources, templates);
        if policy.resources == ResourceTools::Exposed {
            entries.extend(resources.iter().filter_map(Resource::entry));
        }
        drop_repeated(&mut entries, &mut skipped);
        let mut prompts = distinct(raw.prompts.iter().filter_map(|raw| read_prompt(raw)));
        let shadowed = drop_shadowed(&mut entries, &mut prompts);
        skipped.extend(shadowed.iter().cloned());
        let filter = ToolFilter::new(policy);
        entries.retain(|entry| filter.admits(&server, &entry.names()));
        if entries.len() > policy.max_tools {
            skipped.push(format!("{} tools beyond `maxTools`", entries.len() - policy.max_tools));
            entries.truncate(policy.max_tools);
        }
        let keywords = entries.iter().map(|entry| keywords_of(entry, &policy.keywords)).collect();
        Listing {
            entries: entries.into_iter().map(Arc::new).collect(),
            resources,
            left_out,
            addresses: OnceLock::new(),
            templates,
            prompts,
            instructions: raw.instructions.as_deref().map(Instructions::of),
            server_name: strip(&raw.server_name).into_owned(),
            server_version: strip(&raw.server_version).into_owned(),
            skipped,
            shadowed,
            hidden_in_resources: hidden_in_resources(raw),
            without_tools: raw.without_tools,
            keywords,
            postings: OnceLock::new(),
            server,
        }
    }

    pub fn tool_count(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.postings.get().is_some()
    }

    /// The search indexes of these listings. Missing indexes are built.
    pub(super) fn indexed<'a>(listings: &[&'a Arc<Listing>]) -> Vec<&'a Postings> {
        let missing = listings.iter().filter(|listing| !listing.is_indexed());
        let missing: Vec<&Arc<Listing>> = missing.copied().collect();
        let tools = missing.iter().map(|listing| listing.tool_count()).sum();
        search::index_all(&missing, tools, |listing, indexer| {
            listing.postings.get_or_init(|| indexer.index(listing.documents()));
        });
        listings.iter().filter_map(|listing| listing.postings.get()).collect()
    }

    pub(super) fn keywords(&self) -> impl Iterator<Item = &[String]> {
        self.keywords.iter().map(Vec::as_slice)
    }
}

/// Removes every definition whose name is already used by an earlier one.
fn drop_repeated(entries: &mut Vec<Entry>, skipped: &mut Vec<String>) {
    let mut seen = HashSet::new();
    entries.retain(|entry| {
        let first = seen.insert(entry.name.clone());
        if !first {
            skipped.push(format!("`{}` is listed twice", entry.name));
        }
        first
    });
}

/// `includeTools` and `excludeTools`: globs for the original names and all shown names of tools.
#[derive(Debug)]
struct ToolFilter {
    /// `includeTools`: `None` includes every tool, an empty list no tool.
    include: Option<Globs>,
    exclude: Restriction,
}

impl ToolFilter {
    fn new(policy: &ListingPolicy) -> ToolFilter {
        let include = policy.include.as_deref().map(Globs::new);
        ToolFilter { include, exclude: Restriction::new(&policy.exclude) }
    }

    fn admits_all(&self) -> bool {
        self.include.is_none() && self.exclude.is_empty()
    }

    /// Whether `includeTools` matches at least one of these names, and `excludeTools` none.
    fn admits(&self, server: &ServerName, names: &[ToolName]) -> bool {
        self.admits_all() || (self.includes(server, names) && !self.excludes(server, names))
    }

    fn includes(&self, server: &ServerName, names: &[ToolName]) -> bool {
        let includes =
            |include: &Globs| ids(server, names).any(|id| include.is_match(&id.spellings()));
        self.include.as_ref().is_none_or(includes)
    }

    fn excludes(&self, server: &ServerName, names: &[ToolName]) -> bool {
        ids(server, names).any(|id| self.exclude.find(&id, &[], BareServer::IsATool).is_some())
    }
}

fn ids(server: &ServerName, names: &[ToolName]) -> impl Iterator<Item = ToolId> {
    names.iter().map(|tool| ToolId { server: server.clone(), tool: tool.clone() })
}

fn keywords_of(entry: &Entry, keywords: &[(String, Vec<String>)]) -> Vec<String> {
    let name = entry.name.as_str();
    let applies = |pattern: &String| {
        pattern == name || Globs::new(std::slice::from_ref(pattern)).is_match(&[name])
    };
    let matching = keywords.iter().filter(|(pattern, _)| applies(pattern));
    matching.flat_map(|(_, words)| words.iter().cloned()).collect()
}

fn hidden_in_resources(raw: &RawListing) -> Vec<(String, Hidden)> {
    let rows = raw.resources.iter().chain(&raw.resource_templates);
    let found = rows.filter_map(|row| {
        let hidden = hidden::find_json(row.get())?;
        let resource = Resource::read(row).map(|resource| resource.uri);
        let template = || ResourceTemplate::read(row).map(|template| template.uri_template);
        Some((resource.or_else(template)?, hidden))
    });
    found.collect()
}

/// The first prompt of each name. A later prompt with the same name could not be requested.
fn distinct(prompts: impl Iterator<Item = Prompt>) -> Vec<Prompt> {
    let mut seen = HashSet::new();
    prompts.filter(|prompt| seen.insert(prompt.name.clone())).collect()
}

pub(super) fn read_prompt(raw: &RawValue) -> Option<Prompt> {
    #[derive(Deserialize)]
    struct PromptDefinition<'a> {
        name: String,
        description: Option<String>,
        #[serde(default, borrow)]
        arguments: Vec<&'a RawValue>,
    }
    let original = raw.get();
    if original.len() > LARGEST_DEFINITION {
        return None;
    }
    let hidden = hidden::find_json(original);
    let raw = plain(original);
    let definition: PromptDefinition<'_> = serde_json::from_str(&raw).ok()?;
    let name = match hidden {
        None => definition.name,
        // Requests use the name exactly as the server wrote it, with hidden characters.
        Some(_) => own_name(original).unwrap_or(definition.name),
    };
    let arguments = definition.arguments.iter().take(MOST_ARGUMENTS);
    let arguments = arguments.filter_map(|raw| serde_json::from_str(raw.get()).ok());
    Some(Prompt {
        name,
        description: definition.description,
        arguments: arguments.collect(),
        original: hidden.is_some().then(|| original.into()),
        hidden: hidden.map(Box::new),
        raw: raw.into(),
    })
}

#[cfg(test)]
mod tests;
