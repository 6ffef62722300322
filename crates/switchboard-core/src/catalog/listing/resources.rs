//! The resources of a server: which ones the configuration excludes, and the names with which rules
//! match them.

use std::borrow::Cow;
use std::collections::HashSet;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;
use unicode_normalization::UnicodeNormalization;

use super::super::entry::{Entry, LARGEST_DEFINITION, resource_slug};
use super::{ListingPolicy, ToolFilter};
use crate::name::{ServerName, ToolName};
use crate::nesting::plain;

/// How many nested levels of percent-encoding are decoded.
const MOST_ESCAPES: usize = 4;

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    pub uri: String,
    #[serde(default)]
    pub name: String,
    pub description: Option<String>,
    pub mime_type: Option<String>,
    /// The definition of the resource as JSON, as the server wrote it.
    #[serde(skip)]
    pub raw: Box<str>,
}

/// A resource template: a URI with placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    pub uri_template: String,
    #[serde(default)]
    pub name: String,
    /// The definition of the template as JSON, as the server wrote it.
    #[serde(skip)]
    pub raw: Box<str>,
}

/// The resources and templates that `includeTools` and `excludeTools` exclude.
#[derive(Debug)]
pub(super) struct LeftOut {
    server: ServerName,
    filter: ToolFilter,
    resources: Vec<Resource>,
    templates: Vec<ResourceTemplate>,
}

/// The resources and templates that may be read, and the excluded ones.
pub(super) type Admitted = (Vec<Resource>, Vec<ResourceTemplate>, LeftOut);

/// Splits the listed resources and templates into those that the filter includes, and those that it
/// excludes.
pub(super) fn admitted(
    server: &ServerName,
    policy: &ListingPolicy,
    resources: impl Iterator<Item = Resource>,
    templates: impl Iterator<Item = ResourceTemplate>,
) -> Admitted {
    let filter = ToolFilter::new(policy);
    let (resources, left_resources) = resources.partition(|resource: &Resource| {
        resource.entry().is_none_or(|entry| filter.admits(server, &entry.names()))
    });
    let (templates, left_templates) =
        templates.partition(|template: &ResourceTemplate| filter.admits(server, &template.names()));
    let left_out = LeftOut {
        server: server.clone(),
        filter,
        resources: left_resources,
        templates: left_templates,
    };
    (resources, templates, left_out)
}

impl super::Listing {
    /// Whether `includeTools` or `excludeTools` excludes this resource, in any spelling of its URI.
    pub fn hides(&self, uri: &str) -> bool {
        let LeftOut { server, filter, resources, .. } = &self.left_out;
        if filter.admits_all() {
            return false;
        }
        let names = self.names_of_resource(uri);
        if filter.excludes(server, &names.all()) {
            return true;
        }
        if self.resources.iter().any(|resource| resource.uri == uri) {
            return false;
        }
        let addresses = spellings(uri);
        let left_out = |resource: &Resource| addresses.contains(&canonical(&resource.uri));
        resources.iter().any(left_out) || !filter.includes(server, &names.own)
    }

    /// The names with which rules match the resource of this URI.
    pub(in super::super) fn names_of_resource(&self, uri: &str) -> ResourceNames {
        let left = &self.left_out;
        let resources = || self.resources.iter().chain(&left.resources);
        let templates = || self.templates.iter().chain(&left.templates);
        let (exact, others): (Vec<&Resource>, Vec<&Resource>) =
            resources().partition(|resource| resource.uri == uri);
        let addresses = spellings(uri);
        let same = |resource: &&Resource| addresses.contains(&canonical(&resource.uri));
        let is_listed = !exact.is_empty();
        let listed = exact.into_iter().chain(others.into_iter().filter(same));
        let mut own: Vec<ToolName> =
            listed.flat_map(|resource| readings(resource.own_name())).collect();
        let fits: Vec<&ResourceTemplate> =
            templates().filter(|template| template.admits(uri)).collect();
        let is_known = is_listed || (!fits.is_empty() && is_plain(uri));
        own.extend(fits.into_iter().flat_map(ResourceTemplate::names));
        own.extend(reading(uri));
        let mut perhaps = Vec::new();
        if !is_known {
            perhaps.extend(resources().flat_map(|resource| readings(resource.own_name())));
            perhaps.extend(resources().filter_map(|resource| reading(&resource.uri)));
            perhaps.extend(templates().flat_map(ResourceTemplate::names));
        }
        let mut seen = HashSet::new();
        own.retain(|name| seen.insert(name.clone()));
        perhaps.retain(|name| seen.insert(name.clone()));
        ResourceNames { own, perhaps }
    }

    /// Whether this server has the resource of this URI: it lists the resource, or has a template
    /// that matches the URI and begins with a scheme.
    pub(in super::super) fn claims(&self, address: &Address<'_>) -> bool {
        let mut templates = self.templates.iter().chain(&self.left_out.templates);
        let known = self.addresses.get_or_init(|| {
            let resources = self.resources.iter().chain(&self.left_out.resources);
            resources.map(|resource| canonical(&resource.uri)).collect()
        });
        known.contains(address.canonical())
            || templates.any(|template| template.has_literal_scheme() && template.fits(address))
    }

    pub(in super::super) fn has_template(&self, template: &ResourceTemplate) -> bool {
        let template = canonical(&template.uri_template);
        self.templates.iter().any(|own| canonical(&own.uri_template) == template)
    }
}

/// The names with which rules match a resource.
pub(in super::super) struct ResourceNames {
    /// Names of the listed resource, of resources and templates with an equivalent URI, and of the
    /// URI itself.
    own: Vec<ToolName>,
    /// Names of all other resources of the server, if it is unclear which resource the URI means.
    /// The server could return any of these resources, so all their rules apply.
    perhaps: Vec<ToolName>,
}

impl ResourceNames {
    pub(in super::super) fn all(&self) -> Vec<ToolName> {
        self.own.iter().chain(&self.perhaps).cloned().collect()
    }
}

/// Whether the URI has no part that servers could interpret differently.
fn is_plain(uri: &str) -> bool {
    let Some((scheme, path)) = uri.split_once(':') else { return false };
    let path = path.strip_prefix("//").unwrap_or(path);
    let odd = |c: char| !c.is_ascii_graphic() || "%\\?#|@".contains(c);
    let steps = path.trim_start_matches('/').split('/').any(|part| matches!(part, "" | "." | ".."));
    let is_lower = scheme.chars().all(|c| !c.is_ascii_uppercase());
    let has_host = scheme == "file" && !path.starts_with('/');
    is_lower && !path.contains(odd) && !steps && !has_host
}

/// A URI, and the spellings of it that are compared with other URIs.
pub(in super::super) struct Address<'u> {
    uri: &'u str,
    /// The canonical URI without query and fragment, followed by the whole canonical URI.
    spellings: Vec<String>,
}

impl Address<'_> {
    pub(in super::super) fn of(uri: &str) -> Address<'_> {
        Address { uri, spellings: spellings(uri) }
    }

    fn canonical(&self) -> &str {
        self.spellings.last().map(String::as_str).unwrap_or_default()
    }
}

/// The definition of a resource or template, with limited nesting; `None` if it is too large to be
/// parsed.
fn small_enough(raw: &RawValue) -> Option<Cow<'_, str>> {
    (raw.get().len() <= LARGEST_DEFINITION).then(|| plain(raw.get()))
}

impl Resource {
    pub(super) fn read(raw: &RawValue) -> Option<Resource> {
        let raw = small_enough(raw)?;
        let resource: Resource = serde_json::from_str(&raw).ok()?;
        Some(Resource { raw: raw.into(), ..resource })
    }

    fn own_name(&self) -> &str {
        if self.name.is_empty() { &self.uri } else { &self.name }
    }

    /// The tool that reads this resource; `None` if no valid tool name can be made.
    pub(super) fn entry(&self) -> Option<Entry> {
        let own = reading(self.own_name())?;
        let others = readings(self.own_name()).chain(reading(&self.uri));
        let others: Vec<ToolName> = others.filter(|name| *name != own).collect();
        let names = [own].into_iter().chain(others).collect();
        Entry::resource(names, self.uri.clone(), self.description.clone())
    }
}

impl ResourceTemplate {
    pub(super) fn read(raw: &RawValue) -> Option<ResourceTemplate> {
        let raw = small_enough(raw)?;
        let template: ResourceTemplate = serde_json::from_str(&raw).ok()?;
        Some(ResourceTemplate { raw: raw.into(), ..template })
    }

    /// The names of the tools that read resources of this template.
    fn names(&self) -> Vec<ToolName> {
        let named = (!self.name.is_empty()).then(|| readings(&self.name));
        named.into_iter().flatten().chain(reading(&self.uri_template)).collect()
    }

    /// Whether the template begins with a scheme. Without one, such as in `{+uri}`, it matches URIs
    /// of any server.
    fn has_literal_scheme(&self) -> bool {
        self.uri_template.split('{').next().is_some_and(|literal| literal.contains(':'))
    }

    /// Whether the template matches `uri` in any equivalent spelling.
    pub fn admits(&self, uri: &str) -> bool {
        self.fits(&Address::of(uri))
    }

    fn fits(&self, address: &Address<'_>) -> bool {
        let template = canonical(&self.uri_template);
        let mut spellings = address.spellings.iter();
        fills(&self.uri_template, address.uri) || spellings.any(|text| fills(&template, text))
    }
}

/// Whether `uri` contains the literal parts of a template, in order.
fn fills(template: &str, uri: &str) -> bool {
    let mut literals = template.split('{');
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

/// The name of the tool that reads the resource `name`; `None` if it would be invalid.
fn reading(name: &str) -> Option<ToolName> {
    ToolName::new(&format!("read_{}", resource_slug(name))).ok()
}

/// The names by which rules find the resource `name`: the name of the tool that reads it, and
/// `read_` with the unchanged name.
fn readings(name: &str) -> impl Iterator<Item = ToolName> {
    let written = ToolName::new(&format!("read_{name}")).ok();
    reading(name).into_iter().chain(written)
}

/// The canonical URI without query and fragment, and the whole canonical URI.
fn spellings(uri: &str) -> Vec<String> {
    let whole = canonical(uri);
    let cut = uri.split(['?', '#']).next().map(canonical);
    cut.filter(|cut| *cut != whole).into_iter().chain([whole.clone()]).collect()
}

/// The canonical form of a URI, equal for all URIs that a server may treat as equal. Such URIs can
/// differ in letter case, percent-encoding, dots, repeated slashes, backslashes, characters that
/// URL parsers drop, Unicode forms of a letter, and a `file` hostname that means this machine.
fn canonical(uri: &str) -> String {
    let mut text = plainer(uri);
    for _ in 0..MOST_ESCAPES {
        let plain = plainer(&percent_decode_str(&text).decode_utf8_lossy());
        if plain == text {
            break;
        }
        text = plain;
    }
    let text = text.replace('\\', "/");
    let (scheme, path) = text.split_once(':').unwrap_or(("", &text));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let is_here = |host: &&str| matches!(*host, "localhost" | "127.0.0.1" | "[::1]");
    if scheme == "file" && parts.first().is_some_and(is_here) {
        parts.remove(0);
    }
    format!("{scheme}:{}", parts.join("/"))
}

fn plainer(text: &str) -> String {
    let seen = text.chars().filter(|c| !c.is_control() && !c.is_whitespace());
    let text: String = seen.nfkc().collect();
    text.to_lowercase()
}

#[cfg(test)]
mod tests;
