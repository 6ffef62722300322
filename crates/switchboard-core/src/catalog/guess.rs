//! A tool that nobody named: whether it may be called all the same.

use std::fmt;

use super::resolve::{ArgumentsError, Checked, Resolved};
use super::{Catalog, Item};
use crate::approval::Access;
use crate::config::values::ToolPrefix;
use crate::exact::Args;
use crate::name::look::look;
use crate::name::{ServerName, fold, short};
use crate::schema::{self, Mismatch};

/// Why the tool that was probably meant is not called.
#[derive(Clone, Debug)]
pub enum NotCalled {
    /// The settings say so.
    Off,
    /// No tool is meant more clearly than every other.
    Unclear,
    /// What was written is the name of a denied tool.
    Denied {
        written: String,
        pattern: String,
    },
    /// It is not what was accepted.
    Blocked {
        shown: String,
    },
    /// Its schema cannot be used to check arguments.
    Unchecked {
        shown: String,
    },
    Mismatch {
        shown: String,
        error: ArgumentsError,
    },
    /// It does not declare that it only reads, or only adds.
    MayWrite {
        shown: String,
    },
}

impl NotCalled {
    /// The tool that was probably meant.
    pub fn tool(&self) -> Option<&str> {
        match self {
            NotCalled::Off | NotCalled::Unclear | NotCalled::Denied { .. } => None,
            NotCalled::Blocked { shown }
            | NotCalled::Unchecked { shown }
            | NotCalled::Mismatch { shown, .. }
            | NotCalled::MayWrite { shown } => Some(shown),
        }
    }
}

impl fmt::Display for NotCalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotCalled::Off => f.write_str("searches call nothing here"),
            NotCalled::Unclear => f.write_str("no tool fits far better than the others"),
            NotCalled::Denied { written, pattern } => {
                write!(f, "`{written}` matches the `deny` rule `{pattern}`")
            }
            NotCalled::Blocked { shown } => write!(f, "{shown} is not what the user accepted"),
            NotCalled::Unchecked { shown } => {
                write!(f, "arguments of {shown} cannot be checked")
            }
            NotCalled::Mismatch { shown, error } => write!(f, "{error} ({shown})"),
            NotCalled::MayWrite { shown } => {
                write!(f, "{shown} does not declare that it only reads or only adds")
            }
        }
    }
}

impl Resolved {
    /// The call, if it does little harm should another tool have been meant: the tool declares that
    /// it only reads, or for a caller that may write, that it only adds; and every argument is one of
    /// its own.
    pub fn check_unnamed(self, args: Args, access: Access) -> Result<Checked, NotCalled> {
        let shown = self.shown.to_string();
        let checked = self.check_strictly(args)?;
        let annotations = checked.target.entry.annotations;
        let adds = access == Access::Full && annotations.only_adds();
        if annotations.only_reads() || adds {
            Ok(checked)
        } else {
            Err(NotCalled::MayWrite { shown })
        }
    }

    /// Whether the tool takes these arguments, and every one of them is its own.
    pub fn takes(&self, args: &Args) -> bool {
        self.clone().check_strictly(args.clone()).is_ok()
    }

    fn check_strictly(self, args: Args) -> Result<Checked, NotCalled> {
        let shown = self.shown.to_string();
        if !self.entry.validator().is_some_and(|validator| validator.checks()) {
            return Err(NotCalled::Unchecked { shown });
        }
        let Checked { target, args } = match self.check(args) {
            Ok(checked) => checked,
            Err((_, error)) => return Err(NotCalled::Mismatch { shown, error }),
        };
        // An open schema takes the arguments of any tool.
        let schema = target.entry.input_value();
        if let Some(name) = schema::undeclared(&schema, args.values()) {
            let error = ArgumentsError { mismatches: vec![Mismatch::unknown(name)] };
            return Err(NotCalled::Mismatch { shown, error });
        }
        Ok(Checked { target, args })
    }
}

/// The longest name that is compared with those of all tools.
const LONGEST_NAME: usize = 128;

/// The shortest name of a server in which a slip is still one.
const LONG_PREFIX: usize = 4;

impl Catalog {
    /// Whether a search for `query` can mean a tool of this server: it names no other server that is
    /// configured, and the tool does not bear another's prefix. What is meant for one server must
    /// not go to another one because the first cannot be used just now.
    pub fn can_mean(&self, query: &str, target: &Resolved) -> bool {
        let words = format!("_{}_", look(query));
        let names_unlisted = |server: &ServerName| {
            *server != target.server
                && self
                    .shelf(server)
                    .is_none_or(|shelf| !shelf.is_active() || shelf.listing.is_none())
                && [server.as_str(), short(server.as_str())].iter().any(|name| {
                    let name = look(name);
                    !name.is_empty() && words.contains(&format!("_{}_", name.trim_matches('_')))
                })
        };
        target.claims.is_none()
            && self.permits(target.entry.name.as_str(), &target.server)
            && self.permits(query, &target.server)
            && !self.configured().any(names_unlisted)
    }

    /// The one tool whose name this is but for a slip of the keys: every other name is further off
    /// by more than one, no figure differs, and the server is not another one that there is.
    pub fn misspelt(&self, name: &str, within: Option<&str>) -> Option<Resolved> {
        let wanted = fold(name);
        if wanted.len() > LONGEST_NAME {
            return None;
        }
        let within = match within {
            Some(server) => Some(self.active_server(server).ok()?),
            None => self.owner(name).ok()?,
        };
        let mut near: Vec<(Slip<'_>, Item<'_>)> = self
            .scope(within.as_ref())
            // A misspelt prefix must not lead to a tool that claims the prefix of another server.
            .filter(|item| {
                item.claims.is_none() && self.permits(item.entry.name.as_str(), item.server)
            })
            .filter_map(|item| Some((slips(&item, &wanted)?, item)))
            .collect();
        near.sort_by_key(|(slip, _)| slip.edits);
        let (slip, best) = near.first()?;
        let rival = near.get(1).is_some_and(|(other, _)| other.edits <= slip.edits + 1);
        let own = fold(best.entry.name.as_str());
        let is_slip = slip.edits <= tolerated(&own) && figures(slip.typed) == figures(&own);
        (is_slip && !rival).then(|| best.resolved())
    }
}

/// Slips of the keys that leave no doubt about a tool's own name. In a short one a letter makes
/// another word.
fn tolerated(own: &str) -> usize {
    match own.chars().count() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// What lies between a name as it was typed and a tool's.
struct Slip<'a> {
    edits: usize,
    /// The part of the name that stands for the tool's own.
    typed: &'a str,
}

/// More than one edit beyond what is ever tolerated makes no rival either.
const FURTHEST: usize = 3;

/// The closest spelling of the tool's name; none where they are not comparable, or far apart.
fn slips<'a>(item: &Item<'_>, wanted: &'a str) -> Option<Slip<'a>> {
    let own = fold(item.entry.name.as_str());
    let between = |typed: &'a str| {
        let near = typed.len().abs_diff(own.len()) <= FURTHEST;
        near.then(|| Slip { edits: strsim::damerau_levenshtein(typed, &own), typed })
    };
    let modes = [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp];
    let prefixed = modes.iter().filter_map(|mode| {
        let prefix = fold(&mode.prefix(item.server));
        let words = prefix.matches('_').count();
        let (at, _) = wanted.match_indices('_').nth(words)?;
        let (head, tail) = (wanted.get(..at)?, wanted.get(at + 1..)?);
        let of_server = strsim::damerau_levenshtein(head, &prefix);
        let comparable = match of_server {
            0 => true,
            1 => prefix.len() >= LONG_PREFIX && figures(head) == figures(&prefix),
            _ => false,
        };
        let slip = between(tail).filter(|_| comparable)?;
        Some(Slip { edits: of_server + slip.edits, ..slip })
    });
    prefixed.chain(between(wanted)).min_by_key(|slip| slip.edits)
}

/// A name with another figure is another name: `v1` and `v2`.
fn figures(name: &str) -> String {
    name.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests;
