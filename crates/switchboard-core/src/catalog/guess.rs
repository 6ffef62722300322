//! Decides whether a tool may be called although the caller did not name it exactly.

use super::Catalog;
use super::resolve::{ArgumentsError, Checked, Resolved};
use crate::approval::Access;
use crate::config::values::ToolPrefix;
use crate::exact::Args;
use crate::name::look::{in_one_case, look};
use crate::name::{ServerName, fold, short};
use crate::schema::{self, Mismatch};

/// Why a tool that the caller did not name exactly was not called.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotCalled {
    /// The setting `searchCalls` disables calls from a search.
    #[error("calling a tool from a search is disabled (`searchCalls`)")]
    Off,
    #[error("no tool is clearly the best match")]
    Unclear,
    #[error("`{written}` matches the `deny` rule `{pattern}`")]
    Denied { written: String, pattern: String },
    #[error("{shown} does not match its pin")]
    Blocked { shown: String },
    /// The tool has no schema with which arguments can be checked.
    #[error("cannot check the arguments of {shown}")]
    Unchecked { shown: String },
    #[error("{error} ({shown})")]
    Mismatch { shown: String, error: ArgumentsError },
    #[error("{shown} does not declare itself read-only or additive")]
    MayWrite { shown: String },
}

impl NotCalled {
    /// The shown name of the tool that was not called.
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

impl Resolved {
    /// Checks a call of a tool that the caller did not name exactly. The tool must be declared
    /// read-only, or only adding if the caller may write, and must declare every argument as a
    /// parameter. The call is then safe even if the caller meant another tool.
    pub fn check_unnamed(self, args: Args, access: Access) -> Result<Checked, NotCalled> {
        let shown = self.shown.to_string();
        let checked = self.check_declared(args)?;
        let annotations = checked.target.entry.annotations;
        let adds = access == Access::Full && annotations.only_adds();
        if annotations.only_reads() || adds {
            Ok(checked)
        } else {
            Err(NotCalled::MayWrite { shown })
        }
    }

    /// Whether the tool accepts these arguments and declares each of them as a parameter.
    pub fn takes(&self, args: &Args) -> bool {
        self.clone().check_declared(args.clone()).is_ok()
    }

    /// Checks the arguments. The tool must declare each of them as a parameter.
    pub fn check_declared(self, args: Args) -> Result<Checked, NotCalled> {
        let shown = self.shown.to_string();
        if !self.entry.validator().is_some_and(|validator| validator.checks()) {
            return Err(NotCalled::Unchecked { shown });
        }
        let Checked { target, args } = match self.check(args) {
            Ok(checked) => checked,
            Err((_, error)) => return Err(NotCalled::Mismatch { shown, error }),
        };
        // A schema that allows additional properties would accept the arguments of any tool.
        let schema = target.entry.input_value();
        if let Some(name) = schema::undeclared(&schema, args.values()) {
            let error = ArgumentsError { mismatches: vec![Mismatch::unknown(name)] };
            return Err(NotCalled::Mismatch { shown, error });
        }
        Ok(Checked { target, args })
    }
}

/// The maximum length of a name that is checked for a misspelling.
const LONGEST_NAME: usize = 128;

/// The minimum length of a server prefix that may have a misspelling. In a shorter prefix, a
/// changed letter makes the prefix of another server.
const LONG_PREFIX: usize = 4;

impl Catalog {
    /// Whether a search for `query` can mean a tool of this server: the query names no other
    /// configured server, and the tool's name has no other server's prefix. A call meant for a
    /// server that is unavailable, or has lost the tool, must not go to another one.
    pub fn can_mean(&self, query: &str, target: &Resolved) -> bool {
        let looks = |text: &str| {
            let same = in_one_case(text);
            [Some(text), same.as_deref()].map(|text| text.map(look).unwrap_or_default())
        };
        let words = looks(query).map(|look| format!("_{look}_"));
        let has_name = |name: &str| {
            looks(name).iter().filter(|look| !look.is_empty()).any(|look| {
                let name = format!("_{}_", look.trim_matches('_'));
                words.iter().any(|words| words.contains(&name))
            })
        };
        let names_other = |server: &ServerName| {
            *server != target.server
                && (has_name(server.as_str()) || has_name(short(server.as_str())))
        };
        target.claims.is_none()
            && self.permits(target.entry.name.as_str(), &target.server)
            && self.permits(query, &target.server)
            && !self.configured().any(names_other)
    }

    /// The tool of which `name` is an unambiguous misspelling: every other tool name needs at least
    /// two more edits, all digits are equal, and `name` contains no other server's name.
    pub fn misspelt(&self, name: &str, within: Option<&str>) -> Option<Resolved> {
        let wanted = fold(name);
        if wanted.len() > LONGEST_NAME {
            return None;
        }
        let within = match within {
            Some(server) => Some(self.active_server(server).ok()?),
            None => self.owner(name).ok()?,
        };
        let mut near: Vec<(Slip<'_>, &Resolved)> = self
            .scope(within.as_ref())
            // A name with a misspelt prefix must not reach a tool whose own name has another
            // server's prefix.
            .filter(|tool| {
                tool.claims.is_none() && self.permits(tool.entry.name.as_str(), &tool.server)
            })
            .filter_map(|tool| Some((slips(tool, &wanted)?, tool)))
            .collect();
        near.sort_by_key(|(slip, _)| slip.edits);
        let (slip, best) = near.first()?;
        let rival = near.get(1).is_some_and(|(other, _)| other.edits <= slip.edits + 1);
        let own = fold(best.entry.name.as_str());
        let is_slip = slip.edits <= tolerated(&own) && figures(slip.typed) == figures(&own);
        (is_slip && !rival).then(|| (*best).clone())
    }
}

/// The maximum number of edits between a tool's name and a misspelling of it. In a short name, one
/// letter makes another word.
fn tolerated(own: &str) -> usize {
    match own.chars().count() {
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

/// How a requested name differs from a tool's name.
struct Slip<'a> {
    edits: usize,
    /// The requested name without the prefix.
    typed: &'a str,
}

/// The maximum difference in length between a requested name and a tool's name that are compared.
const FURTHEST: usize = 3;

/// The fewest edits from the requested name to the tool's name, with or without a prefix. `None` if
/// the lengths differ too much.
fn slips<'a>(tool: &Resolved, wanted: &'a str) -> Option<Slip<'a>> {
    let own = fold(tool.entry.name.as_str());
    let between = |typed: &'a str| {
        let near = typed.len().abs_diff(own.len()) <= FURTHEST;
        near.then(|| Slip { edits: strsim::damerau_levenshtein(typed, &own), typed })
    };
    let modes = [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp];
    let prefixed = modes.iter().filter_map(|mode| {
        let prefix = fold(&mode.prefix(&tool.server));
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

/// The digits of a name: `v1` and `v2` are different names, not misspellings.
fn figures(name: &str) -> String {
    name.chars().filter(char::is_ascii_digit).collect()
}

#[cfg(test)]
mod tests;
