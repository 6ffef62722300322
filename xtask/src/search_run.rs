//! Ranks a benchmark's queries over its tools, for a scorer to judge.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use switchboard_core::catalog::Annotations;
use switchboard_core::catalog::search::{Document, Indexer, Postings, rank, stem};
use thiserror::Error;

/// The number of tools that a run names for each query.
const RANKED: usize = 100;

/// Reads tools and queries from files with one JSON object per line. Writes for each query the ids
/// of its best tools: `{"id": …, "ranked": […]}`.
pub(crate) fn run(corpus: &Path, queries: &Path, out: &Path) -> Result<(), SearchRunError> {
    let mut servers: BTreeMap<String, Vec<Tool>> = BTreeMap::new();
    for tool in read_lines::<Tool>(corpus)? {
        servers.entry(tool.server.clone()).or_default().push(tool);
    }
    let mut indexer = Indexer::default();
    let index = |tools: &Vec<Tool>| indexer.index(tools.iter().map(Tool::document));
    let listings: Vec<Postings> = servers.values().map(index).collect();
    let listings: Vec<&Postings> = listings.iter().collect();
    let servers: Vec<&Vec<Tool>> = servers.values().collect();

    let written = |cause| SearchRunError::Write { path: out.to_owned(), cause };
    let mut output = BufWriter::new(File::create(out).map_err(written)?);
    for query in read_lines::<Query>(queries)? {
        let hits = rank(&listings, &query.query).hits;
        let tools = hits.iter().filter_map(|hit| servers.get(hit.listing)?.get(hit.document));
        let ranked = tools.take(RANKED).map(|tool| tool.id.as_str()).collect();
        serde_json::to_writer(&mut output, &Ranking { id: &query.id, ranked })
            .map_err(io::Error::from)
            .and_then(|()| output.write_all(b"\n"))
            .map_err(written)?;
    }
    output.flush().map_err(written)
}

/// Reads a file with one word per line. Writes for each word a line with the word, a tab and its
/// stem, for the trainer of the search's table.
pub(crate) fn words(words: &Path, out: &Path) -> Result<(), SearchRunError> {
    let text = fs::read_to_string(words)
        .map_err(|cause| SearchRunError::Read { path: words.to_owned(), cause })?;
    let mut output = String::new();
    for word in text.lines() {
        output.extend([word, "\t", &stem(word), "\n"]);
    }
    fs::write(out, output).map_err(|cause| SearchRunError::Write { path: out.to_owned(), cause })
}

#[derive(Debug, Error)]
pub(crate) enum SearchRunError {
    #[error("cannot read `{}`", path.display())]
    Read {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("cannot parse line {line} of `{}`", path.display())]
    Line {
        path: PathBuf,
        line: usize,
        #[source]
        cause: serde_json::Error,
    },
    #[error("cannot write `{}`", path.display())]
    Write {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    server: String,
    name: String,
    title: Option<String>,
    description: Option<String>,
    #[serde(rename = "inputSchema")]
    input_schema: Option<Box<RawValue>>,
}

impl Tool {
    fn document(&self) -> Document<'_> {
        Document {
            server: &self.server,
            name: &self.name,
            title: self.title.as_deref(),
            description: self.description.as_deref().unwrap_or_default(),
            input_schema: self.input_schema.as_deref().map_or("", RawValue::get),
            keywords: &[],
            annotations: Annotations::default(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Query {
    id: String,
    pub(crate) query: String,
}

#[derive(Serialize)]
struct Ranking<'a> {
    id: &'a str,
    ranked: Vec<&'a str>,
}

pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, SearchRunError> {
    let text = fs::read_to_string(path)
        .map_err(|cause| SearchRunError::Read { path: path.to_owned(), cause })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(index, line)| {
            serde_json::from_str(line).map_err(|cause| SearchRunError::Line {
                path: path.to_owned(),
                line: index + 1,
                cause,
            })
        })
        .collect()
}
