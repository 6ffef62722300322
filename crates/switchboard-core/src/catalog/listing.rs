//! What one server said it offers: kept raw for the cache, read tolerantly for use.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::entry::Entry;
use super::search::{self, Postings};
use crate::config::values::ToolPrefix;
use crate::globs::Globs;
use crate::name::{ServerName, ToolId};

/// The lists of a server, word for word; what the cache holds.
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
    /// The server declared that it has no tools at all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_tools: bool,
    /// The server asked something of its client: roots, words of its model, of its user.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_client: bool,
    /// How long the server says that its lists hold. Whether it lets others have them is of no
    /// concern: what is kept is kept for one user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
    /// What the server was when it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
}

/// How a server speaks: it is remembered, so that it is greeted in the right way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Era {
    /// With sessions, which `initialize` opens.
    Legacy,
    /// Without: every request says who asks.
    Modern,
}

/// What the configuration says about a server's tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListingPolicy {
    pub prefix: ToolPrefix,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Name or glob, and the words that find such tools.
    pub keywords: Vec<(String, Vec<String>)>,
    pub resources: ResourceTools,
    pub max_tools: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResourceTools {
    /// Resources can be read like tools.
    #[default]
    Exposed,
    Hidden,
}

/// One server's offer, ready for use.
#[derive(Debug)]
pub struct Listing {
    pub server: ServerName,
    pub entries: Vec<Arc<Entry>>,
    pub resources: Vec<Resource>,
    /// The resources that the filter leaves out, which are not read either.
    hidden: HashSet<String>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
    pub instructions: Option<String>,
    pub server_name: String,
    pub server_version: String,
    /// Definitions that were left out, each with a reason.
    pub skipped: Vec<String>,
    /// The server declared that it has no tools at all.
    pub without_tools: bool,
    keywords: Vec<Vec<String>>,
    /// Built by the first search.
    postings: OnceLock<Postings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    /// As the server wrote it.
    pub raw: Box<str>,
}

/// Many resources at once: an address with places to fill in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceTemplate {
    pub uri_template: String,
    /// As the server wrote it.
    pub raw: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub name: String,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    /// As the server wrote it.
    pub raw: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub description: Option<String>,
    pub required: bool,
}

impl Listing {
    /// Reads what a server listed. One malformed definition is left out; the others stay.
    pub fn build(server: ServerName, raw: &RawListing, policy: &ListingPolicy) -> Listing {
        let mut skipped = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        for (index, definition) in raw.tools.iter().enumerate() {
            match Entry::tool(definition) {
                Ok(entry) => entries.push(entry),
                Err(error) => skipped.push(format!("tool {}: {error}", index + 1)),
            }
        }
        let filter = Filter::new(&server, policy);
        let resources = raw.resources.iter().filter_map(|raw| read_resource(raw));
        let (resources, hidden): (Vec<Resource>, Vec<Resource>) = resources
            .partition(|resource| resource_entry(resource).is_none_or(|tool| filter.admits(&tool)));
        if policy.resources == ResourceTools::Exposed {
            entries.extend(resources.iter().filter_map(resource_entry));
        }
        drop_repeated(&mut entries, &mut skipped);
        entries.retain(|entry| filter.admits(entry));
        if entries.len() > policy.max_tools {
            skipped.push(format!("{} tools over the limit", entries.len() - policy.max_tools));
            entries.truncate(policy.max_tools);
        }
        let keywords = entries.iter().map(|entry| keywords_of(entry, &policy.keywords)).collect();
        Listing {
            entries: entries.into_iter().map(Arc::new).collect(),
            resources,
            hidden: hidden.into_iter().map(|resource| resource.uri).collect(),
            templates: raw.resource_templates.iter().filter_map(|raw| read_template(raw)).collect(),
            prompts: distinct(raw.prompts.iter().filter_map(|raw| read_prompt(raw))),
            instructions: raw.instructions.clone(),
            server_name: raw.server_name.clone(),
            server_version: raw.server_version.clone(),
            skipped,
            without_tools: raw.without_tools,
            keywords,
            postings: OnceLock::new(),
            server,
        }
    }

    pub fn tool_count(&self) -> usize {
        self.entries.len()
    }

    /// Whether the configuration leaves this resource out.
    pub fn hides(&self, uri: &str) -> bool {
        self.hidden.contains(uri)
    }

    pub(super) fn is_indexed(&self) -> bool {
        self.postings.get().is_some()
    }

    /// The search indexes of listings; those that are missing are made.
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

/// A server that lists a name twice means neither for sure; the first one stands.
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

fn resource_entry(resource: &Resource) -> Option<Entry> {
    let name = if resource.name.is_empty() { &resource.uri } else { &resource.name };
    Entry::resource(name, resource.uri.clone(), None, resource.description.clone()).ok()
}

/// `includeTools` and `excludeTools`: globs over the original and every shown spelling.
struct Filter<'a> {
    server: &'a ServerName,
    include: Globs,
    exclude: Globs,
}

impl<'a> Filter<'a> {
    fn new(server: &'a ServerName, policy: &ListingPolicy) -> Filter<'a> {
        let (include, exclude) = (Globs::new(&policy.include), Globs::new(&policy.exclude));
        Filter { server, include, exclude }
    }

    fn admits(&self, entry: &Entry) -> bool {
        if self.include.is_empty() && self.exclude.is_empty() {
            return true;
        }
        let id = ToolId { server: self.server.clone(), tool: entry.name.clone() };
        let spellings = id.spellings();
        (self.include.is_empty() || self.include.is_match(&spellings))
            && !self.exclude.is_match(&spellings)
    }
}

fn keywords_of(entry: &Entry, keywords: &[(String, Vec<String>)]) -> Vec<String> {
    let name = entry.name.as_str();
    let applies = |pattern: &String| {
        pattern == name || Globs::new(std::slice::from_ref(pattern)).is_match(&[name])
    };
    let matching = keywords.iter().filter(|(pattern, _)| applies(pattern));
    matching.flat_map(|(_, words)| words.iter().cloned()).collect()
}

fn read_resource(raw: &RawValue) -> Option<Resource> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Definition {
        uri: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
    }
    let Definition { uri, name, description, mime_type } = serde_json::from_str(raw.get()).ok()?;
    Some(Resource { uri, name, description, mime_type, raw: raw.get().into() })
}

fn read_template(raw: &RawValue) -> Option<ResourceTemplate> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Definition {
        uri_template: String,
    }
    let Definition { uri_template } = serde_json::from_str(raw.get()).ok()?;
    Some(ResourceTemplate { uri_template, raw: raw.get().into() })
}

impl ResourceTemplate {
    /// Whether `uri` can come of it: what stands between the places to fill in is there, in order.
    pub fn admits(&self, uri: &str) -> bool {
        let mut literals = self.uri_template.split('{');
        let Some(mut rest) = literals.next().and_then(|first| uri.strip_prefix(first)) else {
            return false;
        };
        let mut last = None;
        for part in literals {
            let Some((_, literal)) = part.split_once('}') else { return false };
            let Some((_, after)) = rest.split_once(literal) else { return false };
            rest = after;
            last = Some(literal);
        }
        match last {
            None => rest.is_empty(),
            Some(last) => last.is_empty() || uri.ends_with(last),
        }
    }
}

/// The first of each name: the others could not be asked for.
fn distinct(prompts: impl Iterator<Item = Prompt>) -> Vec<Prompt> {
    let mut seen = HashSet::new();
    prompts.filter(|prompt| seen.insert(prompt.name.clone())).collect()
}

fn read_prompt(raw: &RawValue) -> Option<Prompt> {
    #[derive(Deserialize)]
    struct Definition {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        arguments: Vec<Argument>,
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        #[serde(default)]
        description: Option<String>,
        #[serde(default)]
        required: bool,
    }
    let definition: Definition = serde_json::from_str(raw.get()).ok()?;
    let arguments = definition.arguments.into_iter().map(|argument| PromptArgument {
        name: argument.name,
        description: argument.description,
        required: argument.required,
    });
    Some(Prompt {
        name: definition.name,
        description: definition.description,
        arguments: arguments.collect(),
        raw: raw.get().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_admits_the_addresses_that_can_come_of_it() {
        let check = |template: &str, uri: &str, expected: bool| {
            let template =
                ResourceTemplate { uri_template: template.to_owned(), raw: Box::default() };
            assert_eq!(template.admits(uri), expected, "{} {uri}", template.uri_template);
        };
        check("note://{id}", "note://1", true);
        check("note://{id}", "notes://1", false);
        check("test://template/{id}/data", "test://template/7/data", true);
        check("test://template/{id}/data", "test://template/7/date", false);
        check("test://template/{id}/data", "test://template/7", false);
        check("a://{x}/{y}", "a://1/2", true);
        check("a://{x}/{y}", "a://1", false);
        check("plain://here", "plain://here", true);
        check("plain://here", "plain://here/and/there", false);
        check("a://{unclosed", "a://b", false);
        check("", "", true);
        check("{", "é", false);
    }
}
