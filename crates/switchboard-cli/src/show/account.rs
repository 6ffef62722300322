//! The token cost of the tools for a model, as a table.

use std::fmt::Write;

use switchboard::catalog::account::{Account, Cost};
use switchboard::render::words::{clean_line, thousands};
use switchboard::reply::{Overview, ServerLine};

use super::NAME;
use crate::style::Palette;

const DIRECT: &str = "listed directly";
const SHOWN: &str = "shown to hosts";

/// The table of token costs: a line for each server, the sum, the cost as the tools are served, and
/// the difference.
pub(crate) fn table(overview: &Overview, account: &Account, palette: Palette) -> String {
    let names = overview.servers.iter().map(|server| clean_line(server.name.as_str(), NAME));
    let width = names.map(|name| name.chars().count()).max().unwrap_or_default();
    let width = width.max(DIRECT.len());
    let mut out = String::new();
    let heading = format!("{:width$}  {:>6}  {:>9}", "", "tools", "tokens");
    let _ = writeln!(out, "{}", palette.heading(heading));
    for server in &overview.servers {
        let name = clean_line(server.name.as_str(), NAME);
        let padding = " ".repeat(width - name.chars().count());
        let _ = writeln!(out, "{}{padding}  {}", palette.name(name), facts(server, account));
    }
    let _ = writeln!(out, "{DIRECT:width$}  {}", numbers(account.direct()));
    let _ = writeln!(out, "{SHOWN:width$}  {}  {}", numbers(account.shown), account.toolset);
    if let Some(saved) = account.saved() {
        let _ = writeln!(out, "{}", difference(saved, account, width));
    }
    out
}

/// The difference as text. A server without a listing can only increase the savings.
fn difference(saved: i64, account: &Account, width: usize) -> String {
    let is_known = account.not_listed.is_empty();
    let (word, bound) = if saved < 0 { ("extra", "at most") } else { ("saved", "at least") };
    let tokens = usize::try_from(saved.unsigned_abs()).unwrap_or(usize::MAX);
    let share = tokens as f64 * 100.0 / account.direct().tokens.max(1) as f64;
    let bound = if is_known { String::new() } else { format!(", {bound}") };
    format!("{word:width$}  {:>6}  {:>9}  {share:.0} %{bound}", "", thousands(tokens))
}

fn facts(server: &ServerLine, account: &Account) -> String {
    match account.servers.get(&server.name) {
        Some(cost) => numbers(*cost),
        None if account.not_listed.contains(&server.name) => unknown("not listed yet"),
        None => unknown(server.status.as_str()),
    }
}

fn numbers(Cost { tools, tokens }: Cost) -> String {
    format!("{:>6}  {:>9}", thousands(tools), thousands(tokens))
}

fn unknown(why: &str) -> String {
    format!("{:>6}  {:>9}  {why}", "?", "?")
}
