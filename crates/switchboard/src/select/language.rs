//! The filter language: jq, implemented by the `jaq` crates, limited to functions that read only
//! their input.
//!
//! A filter gets only the functions of `jaq` that are named here. Functions that read the
//! environment, the clock, files or further inputs, that write, or that end the process are
//! excluded. Most of them are not even compiled, because their features are disabled.

use std::fmt::{self, Write as _};
use std::io;

use jaq_core::compile::Undefined;
use jaq_core::data::JustLut;
use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::native::Fun;
use jaq_core::{Compiler, Ctx, Vars, unwrap_valr};
use jaq_json::write::Pp;
use jaq_json::{Val, read};

use super::natives;

pub(super) type FilterData = JustLut<Val>;

/// The maximum length of an error message in bytes; the message may quote the result.
const MESSAGE: usize = 200;

/// The maximum length of a quotation of a filter in a message, in bytes.
const QUOTED: usize = 40;

/// The pure functions of `jaq` that filters may use.
const ALLOWED: &[&str] = &[
    "ascii_downcase",
    "ascii_upcase",
    "bsearch",
    "ceil",
    "contains",
    "endswith",
    "error_empty",
    "escape_sh",
    "explode",
    "first",
    "floor",
    "fromjson",
    "group_by",
    "has",
    "implode",
    "indices",
    "key_values",
    "keys_unsorted",
    "last",
    "length",
    "limit",
    "ltrim",
    "ltrimstr",
    "max_by_or_empty",
    "min_by_or_empty",
    "path",
    "path_value",
    "range",
    "reverse",
    "round",
    "rtrim",
    "rtrimstr",
    "skip",
    "sort",
    "sort_by",
    "startswith",
    "tobytes",
    "tojson",
    "trim",
    "utf8bytelength",
];

/// Definitions of `jaq` that filters cannot use, because they depend on excluded functions.
const WITHHELD: &[&str] = &[
    "@html",
    "@htmld",
    "@uri",
    "@urid",
    "debug",
    "drem",
    "fromdate",
    "gamma",
    "halt",
    "halt_error",
    "logb",
    "nexttoward",
    "scalb",
    "significand",
    "stderr",
    "todate",
];

/// Definitions that exist in jq, but not in the `jaq` crates used here.
const OURS: &str = r#"
def cell: if isstring then . elif . == null then "" elif . < [] then tostring
  else error("a list or an object cannot be a cell of a table") end;
def @tsv: map(cell | gsub("\\\\"; "\\\\") | gsub("\t"; "\\t") | gsub("\n"; "\\n") | gsub("\r"; "\\r"))
  | join("\t");
def @csv: map(if isstring then "\"" + gsub("\""; "\"\"") + "\"" else cell end) | join(",");
"#;

/// Why a filter failed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The filter cannot be parsed.
    Invalid(String),
    /// The filter failed on this input.
    Failed(String),
    TooLarge,
}

/// Checks that `code` is a valid filter.
pub(super) fn check(code: &str) -> Result<(), Trouble> {
    compile(code).map(drop)
}

/// Applies the filter to each value in `json`. Each output is a line; strings are not quoted. Fails
/// above `most` bytes.
pub(super) fn run(code: &str, json: &str, most: usize) -> Result<Vec<u8>, Trouble> {
    let filter = compile(code)?;
    let mut output = Bounded { bytes: Vec::new(), most };
    for value in read::parse_many(json.as_bytes()) {
        let value = value.map_err(|error| Trouble::Failed(message(&error)))?;
        let context = Ctx::<FilterData>::new(&filter.lut, Vars::new([]));
        for given in filter.id.run((context, value)).map(unwrap_valr) {
            let given = given.map_err(|error| Trouble::Failed(message(&error)))?;
            output.line(&given).map_err(|_| Trouble::TooLarge)?;
        }
    }
    Ok(output.bytes)
}

fn compile(code: &str) -> Result<jaq_core::Filter<FilterData>, Trouble> {
    let arena = Arena::default();
    let ours = load::parse(OURS, |parser| parser.defs()).expect("our own definitions parse");
    let theirs = jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs());
    let defs = theirs.filter(|def| !WITHHELD.contains(&def.name)).chain(ours);
    let modules = Loader::new(defs)
        .load(&arena, File { code, path: () })
        .map_err(|errors| invalid(errors.first().map(|(_, error)| not_parsed(code, error))))?;
    load::import(&modules, |_| Err("modules cannot be imported".to_owned()))
        .map_err(|errors| invalid(errors.first().map(|(_, error)| not_parsed(code, error))))?;
    Compiler::default().with_funs(functions()).compile(modules).map_err(|errors| {
        let first = errors.first().and_then(|(_, errors)| errors.first());
        invalid(first.map(|(name, kind)| undefined(name, kind)))
    })
}

fn functions() -> impl Iterator<Item = Fun<FilterData>> {
    let theirs = jaq_core::funs().chain(jaq_std::base_funs()).chain(jaq_json::funs());
    theirs.filter(|(name, ..)| ALLOWED.contains(name)).chain(natives::functions())
}

fn invalid(said: Option<String>) -> Trouble {
    Trouble::Invalid(said.unwrap_or_else(|| "it cannot be parsed".to_owned()))
}

fn not_parsed(code: &str, error: &load::Error<&str>) -> String {
    let (expected, found) = match error {
        load::Error::Lex(errors) => match errors.first() {
            Some((expected, found)) => (expected.as_str(), *found),
            None => ("a filter", code),
        },
        load::Error::Parse(errors) => match errors.first() {
            Some((expected, found)) => (expected.as_str(), *found),
            None => ("a filter", code),
        },
        load::Error::Io(_) => return "modules cannot be imported or included".to_owned(),
    };
    let at = load::span(code, found).start;
    let place = code.get(..at).map_or(0, |before| before.chars().count()) + 1;
    let quoted = found.get(..found.floor_char_boundary(QUOTED)).unwrap_or_default();
    if quoted.is_empty() {
        return format!("expected {expected} at its end");
    }
    format!("expected {expected} at character {place}, before `{quoted}`")
}

fn undefined(name: &str, kind: &Undefined) -> String {
    let name = name.get(..name.floor_char_boundary(QUOTED)).unwrap_or_default();
    match kind {
        Undefined::Filter(arity) => format!("there is no function `{name}/{arity}`"),
        kind => format!("there is no {} `{name}`", kind.as_str()),
    }
}

/// The text of a filter's error. The error may quote a whole value before the actual problem, so
/// the middle is omitted.
fn message(error: &impl fmt::Display) -> String {
    let mut text = Ends::default();
    // Writing to `Ends` never fails, and a partial text is still useful.
    let _ = write!(text, "{error}");
    text.joined()
}

/// Keeps the beginning and the end of a text that is written in pieces.
#[derive(Default)]
struct Ends {
    head: String,
    tail: String,
    is_cut: bool,
}

impl Ends {
    /// How many bytes of the end of a text are kept.
    const TAIL: usize = MESSAGE / 3;

    fn joined(mut self) -> String {
        self.trim();
        let gap = if self.is_cut { " … " } else { "" };
        [&self.head, gap, &self.tail].concat()
    }

    fn trim(&mut self) {
        if let Some(over) = self.tail.len().checked_sub(Self::TAIL).filter(|over| *over > 0) {
            self.is_cut = true;
            self.tail.drain(..self.tail.ceil_char_boundary(over));
        }
    }
}

impl fmt::Write for Ends {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        let room = if self.tail.is_empty() { MESSAGE - Self::TAIL - self.head.len() } else { 0 };
        let (head, rest) =
            piece.split_at_checked(piece.floor_char_boundary(room)).unwrap_or((piece, ""));
        self.head.push_str(head);
        self.tail.push_str(rest);
        if self.tail.len() > 16 * MESSAGE {
            self.trim();
        }
        Ok(())
    }
}

/// A writer that fails above its size limit.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

impl Bounded {
    fn line(&mut self, value: &Val) -> io::Result<()> {
        match value {
            Val::TStr(text) => io::Write::write_all(self, text)?,
            value => jaq_json::write::write(self, &Pp::default(), 0, value)?,
        }
        io::Write::write_all(self, b"\n")
    }
}

impl io::Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if piece.len() > self.most - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
