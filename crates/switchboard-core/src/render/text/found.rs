//! Renders search results within a budget: the first tools in full, all others on one line each.

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

/// The maximum number of tools that are shown in full, if their scores are near the best one.
const FULL_HITS: usize = 3;

/// The minimum number of tools that are shown, even with low scores, because scores can be wrong.
const FEWEST_HITS: usize = 5;

/// The maximum weight of description and parameters, for the first tool and for all others.
const FIRST: HitBudget = HitBudget { description: 240, notes: 360 };
const OTHER: HitBudget = HitBudget { description: 140, notes: 160 };

/// The maximum length of one parameter's description.
const NOTE: usize = 100;

/// The maximum length of the reason why no tool was called.
const REASON: usize = 400;

/// The maximum number of failed servers that are named, and the maximum length of each one's
/// reason.
const MOST_FAILED: usize = 3;
const FAILURE: usize = 120;

/// The weight that is reserved for the line about the next page.
const NEXT: usize = 64;

struct HitBudget {
    description: usize,
    notes: usize,
}

/// The text if no tool matches. For words in another script, it suggests English, because nearly
/// all descriptions are in English.
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
        // The first tool of a page is always shown, so that the next page begins further on.
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

/// The line about a tool that was not called: the reason, and how to call it.
fn not_called(why: &NotCalled) -> String {
    let tool = why.tool().map_or("tool".to_owned(), |shown| format!("tool: \"{shown}\""));
    let why = cut(why.to_string(), REASON);
    format!("Not called: {why}. To call: mcp({{ {tool}, args }})\n")
}

/// The budget of a page of search results.
pub(crate) fn budget_of(page: &SearchPage) -> Budget {
    if page.hits.len() > DEFAULT_LIMIT { budget::LONG_SEARCH } else { budget::SEARCH }
}

/// How many tools match well enough to be shown. If the caller requested a later or larger page,
/// all tools of the page are shown.
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

/// The signature, description and parameters of a tool.
fn in_full(hit: &SearchHit, words: HitBudget) -> String {
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

/// The lines about servers that are still starting, and about servers that just failed, with the
/// reason.
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

/// The lines about the tools and servers that are missing in the search results.
fn unseen(out: &mut String, page: &SearchPage) {
    if page.denied > 0 {
        let _ = writeln!(out, "{} denied by rules", plural(page.denied, "matching tool"));
    }
    not_listed(out, &page.not_listed);
    unavailable(out, &page.unavailable);
    pending(out, &page.pending);
}
