//! The same edits on TOML, where comments and order survive, too.

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::config::edit::{Change, Edit, EditError};
use crate::config::syntax::lower_first;

/// The text after all `edits`, in order.
pub(super) fn apply(text: &str, edits: &[Edit]) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
    // What is not changed is not printed anew.
    if edits.is_empty() {
        return Ok(text.to_owned());
    }
    for Edit { at, change } in edits {
        let Some((last, above)) = at.split_last() else { continue };
        let Some(table) = find(document.as_table_mut(), above, change)? else { continue };
        match change {
            Change::Set(value) => set(table, last, value),
            Change::Remove => drop(table.remove(last)),
            // No list of a host in TOML is changed.
            Change::AddItem(_) | Change::RemoveItem(_) => {}
        }
    }
    Ok(document.to_string())
}

/// The table at a path; tables on the way are made where something is to be put there.
fn find<'t>(
    root: &'t mut Table,
    path: &[String],
    change: &Change,
) -> Result<Option<&'t mut dyn TableLike>, EditError> {
    let mut table: &mut dyn TableLike = root;
    for key in path {
        if !table.contains_key(key) {
            if !matches!(change, Change::Set(_)) {
                return Ok(None);
            }
            let mut made = Table::new();
            // Its header would say nothing.
            made.set_implicit(true);
            table.insert(key, Item::Table(made));
        }
        let inner = table.get_mut(key).and_then(Item::as_table_like_mut);
        table =
            inner.ok_or_else(|| EditError::WrongType { key: key.clone(), expected: "a table" })?;
    }
    Ok(Some(table))
}

fn set(table: &mut dyn TableLike, key: &str, value: &Json) {
    let Json::Object(members) = value else {
        if let Some(mut value) = plain(value) {
            // The comment after it, and the blanks before.
            if let Some(present) = table.get(key).and_then(Item::as_value) {
                *value.decor_mut() = present.decor().clone();
            }
            table.insert(key, Item::Value(value));
        }
        return;
    };
    let mut made = Table::new();
    for (key, value) in members {
        made.extend(plain(value).map(|value| (key.as_str(), value)));
    }
    table.insert(key, Item::Table(made));
}

/// TOML has no null, and tables within an entry are not ours to write.
fn plain(value: &Json) -> Option<Value> {
    match value {
        Json::Bool(value) => Some((*value).into()),
        Json::String(text) => Some(text.as_str().into()),
        Json::Array(items) => Some(items.iter().filter_map(plain).collect::<Array>().into()),
        Json::Number(number) => Some(match number.as_i64() {
            Some(number) => number.into(),
            None => number.as_f64()?.into(),
        }),
        Json::Null | Json::Object(_) => None,
    }
}

fn syntax(text: &str, error: &toml_edit::TomlError) -> EditError {
    let at = error.span().map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    EditError::Syntax { line, column, clause: lower_first(error.message()) }
}
