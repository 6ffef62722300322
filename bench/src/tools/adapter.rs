//! Simulates an adapter with one tool for each server, by the rules of an existing one: which tools
//! it always shows, how it ranks, when it finds nothing, and how its results look.

use crate::data::Tool;
use crate::shape;

/// The measured tokens of the adapter's main tool, of its tool for scripts, and of each server's
/// tool.
const MAIN: usize = 798;
const SCRIPTS: usize = 271;
const PER_SERVER: usize = 157;

/// The number of hits on a page; each hit is shown in full.
pub(crate) const PAGE: usize = 12;

pub(crate) fn standing(servers: usize) -> usize {
    MAIN + SCRIPTS + PER_SERVER * servers
}

/// The shown name: the server's name and the tool's, unless the tool's name begins with the
/// server's.
pub(crate) fn shown(tool: &Tool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let server: String = tool.server.chars().map(plain).collect();
    match tool.name.starts_with(&format!("{server}_")) {
        true => tool.name.clone(),
        false => format!("{server}_{}", tool.name),
    }
}

/// The tools as the adapter searches them.
pub(crate) struct Adapter<'a> {
    tools: Vec<(SearchFields, &'a Tool)>,
}

/// The texts by which a tool is found, with their weights.
struct SearchFields {
    shown: String,
    name: SearchWords,
    rest: [(f64, SearchWords); 3],
}

impl<'a> Adapter<'a> {
    pub(crate) fn of(tools: impl Iterator<Item = &'a Tool>) -> Adapter<'a> {
        Adapter { tools: tools.map(|tool| (SearchFields::of(tool), tool)).collect() }
    }

    /// The tools that match enough of the query, best first.
    pub(crate) fn rank(&self, query: &str) -> Vec<&'a Tool> {
        let query = SearchWords::of(query);
        let scored = self.tools.iter().filter_map(|(fields, tool)| {
            Some((score(fields, &query)?, fields.shown.as_str(), *tool))
        });
        let mut scored: Vec<(f64, &str, &Tool)> = scored.collect();
        scored.sort_by(|(a, a_name, _), (b, b_name, _)| {
            b.total_cmp(a).then_with(|| a_name.cmp(b_name))
        });
        scored.into_iter().map(|(_, _, tool)| tool).collect()
    }
}

impl SearchFields {
    fn of(tool: &Tool) -> SearchFields {
        let shown = shown(tool);
        SearchFields {
            name: SearchWords::of(&shown),
            rest: [
                (10.0, SearchWords::of(&tool.name)),
                (8.0, SearchWords::of(&tool.server)),
                (5.0, SearchWords::of(tool.description())),
            ],
            shown,
        }
    }
}

/// One page of a search.
pub(crate) fn page(query: &str, ranked: &[&Tool], offset: usize) -> String {
    if ranked.is_empty() {
        return format!("No tools matching \"{query}\"");
    }
    let count =
        if ranked.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", ranked.len()) };
    let mut out = format!("Found {count} matching \"{query}\":\n");
    let hits = ranked.iter().skip(offset).take(PAGE);
    for tool in hits {
        let about = tool.description().replace('\n', "\n  ");
        let schema = shape::shown(&tool.input_schema, "  ");
        out.push_str(&format!("\n{}\n  {about}\n\n{schema}\n", shown(tool)));
    }
    let next = offset + PAGE;
    if next < ranked.len() {
        out.push_str(&format!("\n{next} of {} — offset: {next} for more", ranked.len()));
    }
    out
}

/// The words of a text as they are compared: in lower case, with identifiers split into words.
struct SearchWords {
    text: String,
    words: Vec<String>,
}

impl SearchWords {
    fn of(text: &str) -> SearchWords {
        let mut spaced = String::new();
        let mut before = ' ';
        for c in text.chars() {
            if c.is_uppercase() && before.is_lowercase() {
                spaced.push(' ');
            }
            spaced.push(if matches!(c, '_' | '.' | '/' | ':' | '-') { ' ' } else { c });
            before = c;
        }
        let text = spaced.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        SearchWords { words: words.flat_map(pieces).collect(), text }
    }
}

/// Splits a word in a script without blanks into its pairs of letters.
fn pieces(word: &str) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    if word.is_ascii() || letters.len() < 2 || letters.len() > 64 {
        return vec![word.to_owned()];
    }
    letters.windows(2).map(|pair| pair.iter().collect()).collect()
}

/// The score of a tool; `None` if too little of the query matches.
fn score(fields: &SearchFields, query: &SearchWords) -> Option<f64> {
    let name = &fields.name;
    let rest = fields.rest.iter().map(|(weight, field)| (*weight, field));
    let fields = [(12.0, name)].into_iter().chain(rest);
    let mut sum = 0.0;
    let mut has_phrase = false;
    let mut is_whole = false;
    let mut found = vec![false; query.words.len()];
    for (weight, field) in fields {
        let phrase = match () {
            () if query.text.is_empty() => 0.0,
            () if field.text == query.text => 14.0,
            () if field.text.starts_with(&query.text) => 9.0,
            () if field.text.contains(&query.text) => 6.0,
            () => 0.0,
        };
        has_phrase |= phrase > 0.0;
        is_whole |= phrase == 14.0;
        sum += weight * phrase;
        for (word, found) in query.words.iter().zip(&mut found) {
            let points = word_points(word, field);
            *found |= points > 0.0;
            sum += weight * points;
        }
    }
    let covered = found.iter().filter(|found| **found).count();
    let share = covered as f64 / query.words.len().max(1) as f64;
    let passes = if query.words.len() <= 2 { share >= 1.0 } else { share >= 0.6 };
    if query.words.is_empty() || !(has_phrase || passes) {
        return None;
    }
    sum += if share >= 1.0 { 25.0 } else { (10.0 * share).round() };
    if query.words.first().is_some_and(|first| name.words.contains(first)) {
        sum += 8.0;
    }
    Some(if is_whole { sum + 20.0 } else { sum })
}

fn word_points(word: &str, field: &SearchWords) -> f64 {
    if field.words.iter().any(|other| other == word) {
        return 4.0;
    }
    let stem = |other: &String| {
        other.is_ascii()
            && (other.starts_with(word) || other.len() >= 4 && word.starts_with(&**other))
    };
    if word.is_ascii() && field.words.iter().any(stem) {
        return 2.0;
    }
    if field.text.contains(word) { 1.0 } else { 0.0 }
}
