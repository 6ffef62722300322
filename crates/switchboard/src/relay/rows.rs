//! Filters and marks the rows of a server's list before a client receives them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::catalog::Catalog;
use switchboard_core::catalog::pin::Pin;
use switchboard_core::config::values::Pins;
use switchboard_core::hidden::{find_json, strip, with_mark, with_meta};
use switchboard_core::name::ServerName;
use switchboard_core::nesting;
use switchboard_wire::Raw;

#[derive(Deserialize)]
struct NamedRow {
    name: String,
}

/// A list whose rows are compared with pins.
#[derive(Clone, Copy, Debug)]
pub(super) enum PinnedList {
    Tools,
    Prompts,
}

impl PinnedList {
    /// Whether a page has rows that differ from the known listing.
    pub(super) fn has_news(self, catalog: &Catalog, server: &ServerName, page: &Raw) -> bool {
        match self {
            PinnedList::Tools => has_news(page, "tools", |name, row| {
                catalog.own_tool(server, name).is_none_or(|found| found.entry.definition() == row)
            }),
            PinnedList::Prompts => has_news(page, "prompts", |name, row| {
                let listed = catalog.prompts_of(server).find(|item| item.prompt.name == name);
                listed.is_some_and(|item| item.prompt.definition() == row)
            }),
        }
    }

    /// The page without excluded rows, and with marks on changed ones, for the client.
    pub(super) fn shown(
        self,
        catalog: &Catalog,
        server: &ServerName,
        pins: Pins,
        page: Raw,
    ) -> Raw {
        match self {
            PinnedList::Tools => tools(catalog, server, pins, page),
            PinnedList::Prompts => prompts(catalog, server, pins, page),
        }
    }
}

fn has_news(page: &Raw, list: &str, is_known: impl Fn(&str, &str) -> bool) -> bool {
    let Ok(members) = page.parse::<BTreeMap<String, &RawValue>>() else { return false };
    let rows = members.get(list).map(|rows| serde_json::from_str::<Vec<&RawValue>>(rows.get()));
    let Some(Ok(rows)) = rows else { return false };
    let is_new = |row: &&&RawValue| {
        let named = serde_json::from_str::<NamedRow>(row.get());
        named.is_ok_and(|named| !is_known(&named.name, row.get()))
    };
    rows.iter().any(|row| is_new(&row))
}

/// A page of tools for the client. Omits tools that the configuration, `deny` or `pins` exclude or
/// whose names hide characters, marks changed ones, and replaces schemas that nest too deep.
fn tools(catalog: &Catalog, server: &ServerName, pins: Pins, page: Raw) -> Raw {
    edited(page, "tools", |tool| {
        let NamedRow { name } = serde_json::from_str(tool).ok()?;
        let found = catalog.own_tool(server, &name)?;
        if catalog.denied_by(&found.shown).is_some() {
            return None;
        }
        // The client must see the listed definition, which was compared with the pin and which
        // calls use, even if the server now sends another one.
        let is_news = pins != Pins::Off && found.entry.definition() != tool;
        let row = match is_news || nesting::is_deep(tool) {
            false => marked(tool),
            true => Cow::Owned(marked_as(found.own_definition(), tool)),
        };
        pinned(row, pins, found.pin)
    })
}

/// Marks a row that differs from its pin in its `_meta`, or omits it with `pins: block`.
fn pinned(row: Cow<'_, str>, pins: Pins, pin: Pin) -> Option<Cow<'_, str>> {
    match (pins, pin.mark()) {
        (Pins::Off, _) | (_, None) => Some(row),
        (Pins::Block, Some(_)) => None,
        (Pins::Warn, Some(mark)) => {
            let marked = with_meta(&row, "switchboard/pin", Value::from(mark));
            Some(marked.map_or(row, Cow::Owned))
        }
    }
}

/// A page of prompts for the client. Omits prompts that `pins` excludes or whose names hide
/// characters.
fn prompts(catalog: &Catalog, server: &ServerName, pins: Pins, page: Raw) -> Raw {
    edited(page, "prompts", |prompt| {
        let Ok(NamedRow { name }) = serde_json::from_str(prompt) else {
            return Some(marked(prompt));
        };
        let listed = catalog.prompts_of(server).find(|item| item.prompt.name == name);
        match listed {
            Some(item) => pinned(marked(prompt), pins, item.pin),
            None => (strip(&name) == name).then(|| marked(prompt)),
        }
    })
}

/// Adds the number of a row's hidden characters to its `_meta`. The characters themselves are
/// removed later, with those of the whole page.
fn marked(row: &str) -> Cow<'_, str> {
    let marked = find_json(row).and_then(|hidden| with_mark(row, hidden.characters));
    marked.map_or(Cow::Borrowed(row), Cow::Owned)
}

/// The rewritten definition, with the number of hidden characters in the server's row.
fn marked_as(definition: String, row: &str) -> String {
    let marked = find_json(row).and_then(|hidden| with_mark(&definition, hidden.characters));
    marked.unwrap_or(definition)
}

/// The page with edited rows; byte-identical if `edit` changes none. `None` omits a row.
fn edited(page: Raw, list: &str, edit: impl Fn(&str) -> Option<Cow<'_, str>>) -> Raw {
    let Ok(members) = page.parse::<BTreeMap<String, &RawValue>>() else { return page };
    let Some(found) = members.get(list).map(|rows| rows.get()) else { return page };
    let Ok(rows) = serde_json::from_str::<Vec<&RawValue>>(found) else { return page };
    let kept: Vec<Cow<'_, str>> = rows.iter().filter_map(|row| edit(row.get())).collect();
    if kept.len() == rows.len() && kept.iter().all(|row| matches!(row, Cow::Borrowed(_))) {
        return page;
    }
    let text = page.as_str();
    let start = found.as_ptr().addr() - text.as_ptr().addr();
    let (before, after) = (text.get(..start), text.get(start + found.len()..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    Raw::from_json(format!("{before}[{}]{after}", kept.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relayed_list_items_without_edits_stay_byte_identical() {
        let json = r#"{ "tools" : [ {"name":"a"} , {"name":"b"} ], "x":1.50}"#;
        let edit = |json: &str, edit: fn(&str) -> Option<Cow<'_, str>>| {
            edited(Raw::from_json(json.to_owned()), "tools", edit).as_str().to_owned()
        };
        assert_eq!(edit(json, |row| Some(marked(row))), json);
        let without = r#"{ "tools" : [{"name":"b"}], "x":1.50}"#;
        assert_eq!(edit(json, |row| row.contains('b').then_some(Cow::Borrowed(row))), without);
        let hidden = r#"{"tools":[{"name":"a\u200b"}]}"#;
        let told = r#"{"tools":[{"name":"a\u200b","_meta":{"switchboard/hiddenCharacters":1}}]}"#;
        assert_eq!(edit(hidden, |row| Some(marked(row))).replace('\u{200b}', "\\u200b"), told);
        assert_eq!(edit("[]", |_| None), "[]");
    }
}
