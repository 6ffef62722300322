//! Functions that `jaq` offers only in a feature that also gives access to clock and environment:
//! regular expressions, base64 and some arithmetic.

use std::cell::RefCell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jaq_core::native::{Filter, Fun, bome, run, v};
use jaq_core::{Cv, RunPtr, ValT as _};
use jaq_json::{Error, Val, ValR};
use jaq_std::ValT as _;
use regex::bytes::{Captures, Regex, RegexBuilder};

use super::language::FilterData;

pub(super) fn functions() -> impl Iterator<Item = Fun<FilterData>> {
    let functions: [Filter<RunPtr<FilterData>>; 11] = [
        ("matches", v(2), |cv| bome(search(cv, Show::Matches))),
        ("split_matches", v(2), |cv| bome(search(cv, Show::Both))),
        ("split_", v(2), |cv| bome(search(cv, Show::Between))),
        ("encode_base64", v(0), |cv| {
            bome(text(&cv.1).map(|text| Val::from(STANDARD.encode(text))))
        }),
        ("decode_base64", v(0), |cv| {
            let decoded = text(&cv.1).and_then(|text| STANDARD.decode(text).map_err(Error::str));
            bome(decoded.map(Val::from_utf8_bytes))
        }),
        ("exp", v(0), |cv| bome(float(&cv.1).map(|x| Val::from(x.exp())))),
        ("log", v(0), |cv| bome(float(&cv.1).map(|x| Val::from(x.ln())))),
        ("log2", v(0), |cv| bome(float(&cv.1).map(|x| Val::from(x.log2())))),
        ("log10", v(0), |cv| bome(float(&cv.1).map(|x| Val::from(x.log10())))),
        ("sqrt", v(0), |cv| bome(float(&cv.1).map(|x| Val::from(x.sqrt())))),
        ("pow", v(2), |mut cv| {
            let (exponent, base) = (cv.0.pop_var(), cv.0.pop_var());
            let power = float(&base).and_then(|base| Ok(base.powf(float(&exponent)?)));
            bome(power.map(Val::from))
        }),
    ];
    functions.map(run::<FilterData>).into_iter()
}

fn text(value: &Val) -> Result<&[u8], Error> {
    value.as_utf8_bytes().ok_or_else(|| Error::typ(value.clone(), "string"))
}

fn float(value: &Val) -> Result<f64, Error> {
    value.as_f64().ok_or_else(|| Error::typ(value.clone(), "number"))
}

/// Which parts of a text a search with a regular expression returns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Matches,
    Between,
    Both,
}

/// Implements `SHOW(re; flags)`: returns a list of the matches, each a list of its groups, or of
/// the texts between matches, or of both.
fn search(mut cv: Cv<'_, FilterData>, show: Show) -> ValR {
    let (flags, pattern) = (cv.0.pop_var(), cv.0.pop_var());
    let subject = text(&cv.1)?;
    let flags = str::from_utf8(text(&flags)?).map_err(Error::str)?;
    let pattern = compiled(str::from_utf8(text(&pattern)?).map_err(Error::str)?, flags)?;
    let mut found: Vec<ValR> = Vec::new();
    let mut last = 0;
    let mut place = CharPosition { subject, bytes: 0, chars: 0 };
    for captures in pattern.captures_iter(subject) {
        let Some(whole) = captures.get(0) else { continue };
        if flags.contains('n') && whole.is_empty() {
            continue;
        }
        if show != Show::Matches {
            found.push(Ok(cv.1.as_sub_str(subject.get(last..whole.start()).unwrap_or_default())));
            last = whole.end();
        }
        if show != Show::Between {
            found.push(groups(&cv.1, &pattern, &captures, &mut place));
        }
        if !flags.contains('g') {
            break;
        }
    }
    if show != Show::Matches {
        found.push(Ok(cv.1.as_sub_str(subject.get(last..).unwrap_or_default())));
    }
    found.into_iter().collect()
}

fn groups(
    text: &Val,
    pattern: &Regex,
    captures: &Captures<'_>,
    place: &mut CharPosition<'_>,
) -> ValR {
    let whole = captures.get(0).map_or(0, |whole| whole.start());
    let start = place.chars_to(whole);
    let group = |(group, name): (Option<regex::bytes::Match<'_>>, Option<&str>)| {
        let group = group?;
        let within = place.subject.get(whole..group.start()).unwrap_or_default();
        let count = |bytes: &[u8]| Val::from(String::from_utf8_lossy(bytes).chars().count());
        let offset = Val::from(start) + count(within);
        let mut fields = vec![
            (Val::from("offset".to_owned()), offset.unwrap_or_default()),
            (Val::from("length".to_owned()), count(group.as_bytes())),
            (Val::from("string".to_owned()), text.as_sub_str(group.as_bytes())),
        ];
        if let Some(name) = name {
            fields.push((Val::from("name".to_owned()), Val::from(name.to_owned())));
        }
        Some(Val::from_map(fields))
    };
    captures.iter().zip(pattern.capture_names()).filter_map(group).collect()
}

/// Converts increasing byte positions in a text to character positions. Each conversion starts at
/// the previous position, so that the text is read only once.
struct CharPosition<'t> {
    subject: &'t [u8],
    bytes: usize,
    chars: usize,
}

impl CharPosition<'_> {
    fn chars_to(&mut self, byte: usize) -> usize {
        let between = self.subject.get(self.bytes..byte).unwrap_or_default();
        self.chars += String::from_utf8_lossy(between).chars().count();
        self.bytes = byte;
        self.chars
    }
}

/// The compiled regular expression. It is cached, because consecutive calls nearly always use the
/// same one.
fn compiled(pattern: &str, flags: &str) -> Result<Regex, Error> {
    thread_local! {
        static LAST: RefCell<Option<(String, String, Regex)>> = const { RefCell::new(None) };
    }
    let known = LAST.with_borrow(|last| match last {
        Some((known, under, regex)) if known == pattern && under == flags => Some(regex.clone()),
        Some(_) | None => None,
    });
    if let Some(regex) = known {
        return Ok(regex);
    }
    if let Some(unknown) = flags.chars().find(|flag| !"gnimslxp".contains(*flag)) {
        return Err(Error::str(format_args!("there is no flag `{unknown}`")));
    }
    let has = |flag: char| flags.contains(flag);
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(has('i'))
        .multi_line(has('m') || has('p'))
        .dot_matches_new_line(has('s') || has('p'))
        .swap_greed(has('l'))
        .ignore_whitespace(has('x'))
        .build()
        .map_err(|error| Error::str(format_args!("not a regular expression: {error}")))?;
    let entry = (pattern.to_owned(), flags.to_owned(), regex.clone());
    LAST.with_borrow_mut(|last| *last = Some(entry));
    Ok(regex)
}
