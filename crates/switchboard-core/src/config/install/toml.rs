//! Edits of TOML files that keep comments and order.

use serde_json::Value as Json;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use crate::config::edit::{Change, Edit, EditError};
use crate::config::syntax::lower_first;

/// The text after all `edits`, in order. `listed` is the key of an array of tables that each have a
/// `name`.
pub(super) fn apply(text: &str, edits: &[Edit], listed: Option<&str>) -> Result<String, EditError> {
    let mut document: DocumentMut = text.parse().map_err(|error| syntax(text, &error))?;
    // Printing could change the layout, so a text without edits is returned as it is.
    if edits.is_empty() {
        return Ok(text.to_owned());
    }
    for Edit { at, change } in edits {
        let root = document.as_table_mut();
        match at.split_first() {
            Some((key, below)) if Some(key.as_str()) == listed => {
                change_listed(root, key, below, change)?;
            }
            Some(_) | None => change_at(root, at, change)?,
        }
    }
    Ok(document.to_string())
}

fn change_at(root: &mut dyn TableLike, at: &[String], change: &Change) -> Result<(), EditError> {
    let Some((last, above)) = at.split_last() else { return Ok(()) };
    let Some(table) = find(root, above, change)? else { return Ok(()) };
    match change {
        Change::Set(value) => set(table, last, value),
        Change::Remove => drop(table.remove(last)),
        Change::AddItem(item) => {
            if !table.contains_key(last) {
                table.insert(last, Item::Value(Array::new().into()));
            }
            let array = array(table, last)?;
            if !array.iter().any(|present| present.as_str() == item.as_str()) {
                array.extend(plain(item));
            }
        }
        Change::RemoveItem(item) if table.contains_key(last) => {
            array(table, last)?.retain(|present| present.as_str() != item.as_str());
        }
        Change::RemoveItem(_) => {}
    }
    Ok(())
}

fn array<'t>(table: &'t mut dyn TableLike, key: &str) -> Result<&'t mut Array, EditError> {
    let wrong = || EditError::WrongType { key: key.to_owned(), expected: "an array" };
    table.get_mut(key).and_then(Item::as_array_mut).ok_or_else(wrong)
}

/// Changes the table with the name `below[0]` in an array of tables, or adds or removes this table.
fn change_listed(
    root: &mut Table,
    key: &str,
    below: &[String],
    change: &Change,
) -> Result<(), EditError> {
    let Some((name, within)) = below.split_first() else { return Ok(()) };
    if !root.contains_key(key) {
        root.insert(key, Item::ArrayOfTables(ArrayOfTables::new()));
    }
    let wrong = EditError::WrongType { key: key.to_owned(), expected: "an array of tables" };
    let tables = root.get_mut(key).and_then(Item::as_array_of_tables_mut).ok_or(wrong)?;
    let is_named = |table: &Table| table.get("name").and_then(Item::as_str) == Some(name);
    match (within, change) {
        ([], Change::Remove) => tables.retain(|table| !is_named(table)),
        ([], Change::Set(value)) => {
            let mut made = Table::new();
            set(&mut made, "name", &Json::from(name.as_str()));
            for (key, value) in value.as_object().into_iter().flatten() {
                set(&mut made, key, value);
            }
            tables.retain(|table| !is_named(table));
            tables.push(made);
        }
        ([], Change::AddItem(_) | Change::RemoveItem(_)) => {}
        (within, change) => {
            if let Some(table) = tables.iter_mut().find(|table| is_named(table)) {
                change_at(table, within, change)?;
            }
        }
    }
    if tables.is_empty() {
        root.remove(key);
    }
    Ok(())
}

/// The table at a path. Missing parent tables are created if the change sets a value.
fn find<'t>(
    root: &'t mut dyn TableLike,
    path: &[String],
    change: &Change,
) -> Result<Option<&'t mut dyn TableLike>, EditError> {
    let mut table = root;
    for key in path {
        if !table.contains_key(key) {
            if matches!(change, Change::Remove | Change::RemoveItem(_)) {
                return Ok(None);
            }
            let mut made = Table::new();
            // An implicit parent table is printed without a header, which would have no content
            // below it.
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
            // Keeps the blanks before the value and the comment after it.
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

/// Converts a JSON value to TOML. `None` for null, which TOML does not have, and for an object,
/// which our entry never contains here.
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
