//! What a search found: the first hits ready to be called, the rest a line each, within a budget.

use std::fmt::Write;

use super::{LINE, NAMES, cut, marks, not_listed, pending, server_name, tool_line};
use crate::budget::{self, Budget, weight};
use crate::catalog::guess::NotCalled;
use crate::catalog::search::Fit;
use crate::name::ServerName;
use crate::render::lead::lead;
use crate::render::words::{clean_line, list, plural};
use crate::reply::{SearchHit, SearchPage, Unavailable};
use crate::request::DEFAULT_LIMIT;

/// Hits that are shown with all that a call needs, if they fit about as well as the best.
const FULL_HITS: usize = 3;

/// Hits that are shown although they fit worse than the best; a search can be wrong about that.
const FEWEST_HITS: usize = 5;

/// What the description and the parameters of a hit weigh: of the first one, and of others.
const FIRST: Words = Words { description: 240, notes: 360 };
const OTHER: Words = Words { description: 140, notes: 160 };

/// What is said of one parameter.
const NOTE: usize = 100;

/// Why nothing was called.
const REASON: usize = 400;

/// How many failed servers are named, and how much is said of each.
const MOST_FAILED: usize = 3;
const FAILURE: usize = 120;

/// Kept free for the line that says where the next page begins.
const NEXT: usize = 64;

struct Words {
    description: usize,
    notes: usize,
}

/// Hardly a tool is described in any other language than English.
fn nothing(query: &str) -> String {
    let foreign = query.chars().any(|c| !c.is_ascii() && c.is_alphabetic());
    let advice = if foreign { " Try English words." } else { "" };
    format!("No tool matches \"{}\".{advice}\n", clean_line(query, LINE))
}

pub(super) fn found(page: &SearchPage) -> String {
    if page.hits.is_empty() {
        let mut out = match page.total {
            0 => nothing(&page.query),
            total => format!("No more: {total} in all.\n"),
        };
        unseen(&mut out, page);
        return out;
    }
    let mut out = page.not_called.as_deref().map(not_called).unwrap_or_default();
    if page.fit == Fit::Weak && page.offset == 0 {
        out.push_str("Nothing fits well; other words may find more. Nearest:\n");
    }
    let mut rest = String::new();
    unseen(&mut rest, page);
    let mut room = budget_of(page).room();
    room.take(&out);
    room.take(&rest);
    room.take(&" ".repeat(NEXT));
    let full = full_hits(page);
    let mut shown = 0;
    for (index, hit) in page.hits.iter().take(worth_a_line(page)).enumerate() {
        let whole = (index < full).then(|| in_full(hit, if index == 0 { FIRST } else { OTHER }));
        let line = || format!("- {}\n", tool_line(&hit.line));
        let text = whole.into_iter().chain([line()]).find(|text| room.take(text));
        // Whatever else there is to say, the first one has its line: the next page begins after it.
        let Some(text) = text.or_else(|| (index == 0).then(line)) else { break };
        out.push_str(&text);
        shown += 1;
    }
    let next = page.offset + shown;
    if next < page.total {
        let _ = writeln!(out, "{next} of {}; next page: offset {next}", page.total);
    }
    out + &rest
}

/// Why nothing was called, and how to call what was probably meant.
fn not_called(why: &NotCalled) -> String {
    let tool = why.tool().map_or("tool".to_owned(), |shown| format!("tool: \"{shown}\""));
    let why = cut(why.to_string(), REASON);
    format!("Not called: {why}. To call: mcp({{ {tool}, args }})\n")
}

/// What a page of a search may hold.
pub(in crate::render) fn budget_of(page: &SearchPage) -> Budget {
    if page.hits.len() > DEFAULT_LIMIT { budget::LONG_SEARCH } else { budget::SEARCH }
}

/// How many hits are shown as far as the ranking goes; who asks for more gets all of them.
fn worth_a_line(page: &SearchPage) -> usize {
    let asked_for_more = page.offset > 0 || page.hits.len() > DEFAULT_LIMIT;
    if asked_for_more { page.hits.len() } else { page.good.max(FEWEST_HITS) }
}

fn full_hits(page: &SearchPage) -> usize {
    match page.fit {
        _ if !page.with_signatures => 0,
        Fit::Clear | Fit::Weak => 1,
        Fit::Plausible => page.good.saturating_sub(page.offset).clamp(1, FULL_HITS),
    }
}

/// Signature, what it does, and what its parameters mean.
fn in_full(hit: &SearchHit, words: Words) -> String {
    let mut out = format!("{}{}\n", hit.signature, marks(&hit.line));
    let about = lead(&hit.line.description, words.description);
    if !about.is_empty() {
        let _ = writeln!(out, "  {about}");
    }
    let mut left = words.notes;
    for note in &hit.notes {
        let line = format!("  {}: {}\n", note.parameter, lead(&note.text, NOTE));
        let Some(less) = left.checked_sub(weight(&line)) else { break };
        left = less;
        out.push_str(&line);
    }
    out
}

/// Servers that are not there yet, or failed a moment ago and why.
fn unavailable(out: &mut String, servers: &[(ServerName, Unavailable)]) {
    let (mut starting, mut failed) = (Vec::new(), Vec::new());
    for (server, why) in servers {
        match why {
            Unavailable::Starting => starting.push(server_name(server)),
            Unavailable::Failed { reason } => {
                failed.push(format!("{} ({})", server_name(server), clean_line(reason, FAILURE)));
            }
        }
    }
    if !starting.is_empty() {
        let (count, names) = (plural(starting.len(), "server"), list(&starting, NAMES));
        let _ = writeln!(out, "{count} still starting: {names} (search again in a few seconds)");
    }
    if !failed.is_empty() {
        let (count, names) = (plural(failed.len(), "server"), list(&failed, MOST_FAILED));
        let _ = writeln!(out, "{count} failed: {names}");
    }
}

/// What the search could not look at.
fn unseen(out: &mut String, page: &SearchPage) {
    if page.denied > 0 {
        let _ = writeln!(out, "{} denied by rules", plural(page.denied, "matching tool"));
    }
    not_listed(out, &page.not_listed);
    unavailable(out, &page.unavailable);
    pending(out, &page.pending);
}
