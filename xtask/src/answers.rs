//! Measures the tokens of search results and descriptions, over a benchmark and over real tool
//! lists.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use switchboard_core::catalog::{
    Catalog, Listing, ListingPolicy, RawListing, Resolution, Shelf, Standing,
};
use switchboard_core::config::values::ToolPrefix;
use switchboard_core::name::ServerName;
use switchboard_core::render::text;
use switchboard_core::reply::Reply;
use switchboard_core::request::SearchRequest;

use crate::printer;
use crate::search_run::{Query, SearchRunError, read_lines};

/// Prints one table: the tokens of search answers over `queries`, and the tokens of descriptions and
/// signatures relative to the definitions in `lists`, a folder of `tools/list` results.
pub(crate) fn run(corpus: &Path, queries: &Path, lists: &Path) -> Result<(), SearchRunError> {
    let mut servers: BTreeMap<String, Vec<Box<RawValue>>> = BTreeMap::new();
    for line in read_lines::<Box<RawValue>>(corpus)? {
        if let Ok(ToolServer { server }) = serde_json::from_str(line.get()) {
            servers.entry(server).or_default().push(line);
        }
    }
    let searched = catalog(servers);
    let answers: Vec<f64> = read_lines::<Query>(queries)?
        .iter()
        .filter_map(|query| found(&searched, &query.query))
        .map(|answer| tokens(&answer))
        .collect();
    let described = catalog(read_lists(lists)?);
    let (mut descriptions, mut signatures, mut lossy) = (Vec::new(), Vec::new(), Vec::new());
    for tool in described.tools() {
        let name = tool.shown.to_string();
        let Ok(Resolution::Tool(resolved)) = described.resolve(&name, None) else { continue };
        let schema = resolved.entry.input_value();
        let definition = json!({
            "name": resolved.entry.name.as_str(),
            "description": resolved.entry.description,
            "inputSchema": schema,
        });
        let whole = tokens(&definition.to_string());
        let description = resolved.describe();
        signatures.push(tokens(&description.signature) / whole);
        let text = text::reply(&Reply::Described(Box::new(description)));
        descriptions.push(tokens(&text) / whole);
        if let Some(fact) = switchboard_properties::lost(&schema, &text).first() {
            lossy.push(format!("{name}: {fact}"));
        }
    }
    printer::say("                                median    p99    max");
    printer::say(&row("search answer, tokens", &answers, 0));
    printer::say(&row("describe / definition", &descriptions, 3));
    printer::say(&row("signature / definition", &signatures, 3));
    printer::say(&format!(
        "{} tools of the lists, {} of them lose something in describe",
        descriptions.len(),
        lossy.len()
    ));
    for loss in lossy {
        printer::say(&format!("  {loss}"));
    }
    Ok(())
}

#[derive(Deserialize)]
struct ToolServer {
    server: String,
}

fn read_lists(lists: &Path) -> Result<BTreeMap<String, Vec<Box<RawValue>>>, SearchRunError> {
    #[derive(Deserialize)]
    struct ToolsResult {
        tools: Vec<Box<RawValue>>,
    }
    let unread = |cause| SearchRunError::Read { path: lists.to_owned(), cause };
    let mut servers = BTreeMap::new();
    for file in fs::read_dir(lists).map_err(unread)? {
        let path = file.map_err(unread)?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).map_err(unread)?;
        let answer: ToolsResult = serde_json::from_str(&text)
            .map_err(|cause| SearchRunError::Line { path, line: cause.line(), cause })?;
        servers.insert(name, answer.tools);
    }
    Ok(servers)
}

/// The catalog of a gateway that has listed all these servers.
fn catalog(servers: BTreeMap<String, Vec<Box<RawValue>>>) -> Catalog {
    let policy = ListingPolicy { max_tools: usize::MAX, ..ListingPolicy::default() };
    let shelves = servers.into_iter().filter_map(|(name, tools)| {
        let name = ServerName::new(&name).ok()?;
        let raw = RawListing { tools, ..RawListing::default() };
        let listing = Listing::build(name.clone(), &raw, &policy);
        let shelf = Shelf::new(ToolPrefix::default(), Standing::Active);
        Some((name, shelf.with_listing(listing.into())))
    });
    Catalog::new(shelves.collect())
}

/// The answer to `mcp({ search })`.
fn found(catalog: &Catalog, query: &str) -> Option<String> {
    let request = SearchRequest::words(query);
    Some(text::reply(&Reply::Found(catalog.search(&request).ok()?)))
}

fn tokens(text: &str) -> f64 {
    bpe_openai::o200k_base().count(text) as f64
}

/// Median, 99th percentile and maximum.
fn row(what: &str, figures: &[f64], digits: usize) -> String {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or(f64::NAN)
    };
    let (median, high, most) = (at(50), at(99), at(100));
    format!("{what:<30} {median:>7.digits$} {high:>6.digits$} {most:>6.digits$}")
}
