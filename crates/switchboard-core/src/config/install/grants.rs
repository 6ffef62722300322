//! Adds and removes the permissions for our tools in a host's file, outside of our entry.

use serde_json::Value as Json;

use super::format::{Grant, Granted, Needs};
use crate::config::edit::{Change, Edit};

/// The edits that add the grants whose conditions hold. A grant is skipped if it exists already, or
/// if another value is in its place.
pub(super) fn additions(
    root: &Json,
    grants: &'static [Grant],
    version: Option<[u32; 2]>,
) -> Vec<(&'static Grant, Edit)> {
    let applies = |grant: &&Grant| match grant.needs {
        Needs::Nothing => true,
        Needs::Present => lookup(root, grant.at).is_some(),
        Needs::Version(needed) => version.is_some_and(|version| version >= needed),
    };
    let grants = grants.iter().filter(applies).filter(|grant| has_room(root, grant));
    let change = |grant: &Grant| match grant.what {
        Granted::Item(item) => Change::AddItem(item.into()),
        Granted::Value(value) => Change::Set(value.json()),
    };
    grants.map(|grant| (grant, edit(grant.at, change(grant)))).collect()
}

/// The edits that remove all grants that the file `before` did not have, together with the objects
/// that were created for them.
pub(super) fn removals(root: &Json, before: &Json, grants: &'static [Grant]) -> Vec<Edit> {
    let ours = grants.iter().filter(|grant| is_there(root, grant) && !is_there(before, grant));
    ours.map(|grant| {
        let made = (1..=grant.at.len()).filter_map(|length| grant.at.split_at_checked(length));
        let mut made = made.filter(|(above, below)| {
            let holds = lookup(root, above).is_some_and(|value| only_ours(value, below, grant));
            holds && lookup(before, above).is_none()
        });
        match (made.next(), grant.what) {
            (Some((above, _)), _) => edit(above, Change::Remove),
            (None, Granted::Item(item)) => edit(grant.at, Change::RemoveItem(item.into())),
            (None, Granted::Value(_)) => edit(grant.at, Change::Remove),
        }
    })
    .collect()
}

/// Whether the grant can be added without replacing another value.
fn has_room(root: &Json, grant: &Grant) -> bool {
    let above = (1..grant.at.len()).filter_map(|length| grant.at.get(..length));
    let mut above = above.filter_map(|path| lookup(root, path));
    let leaf = match (lookup(root, grant.at), grant.what) {
        (None, _) => true,
        (Some(Json::Array(_)), Granted::Item(_)) => !is_there(root, grant),
        (Some(_), Granted::Item(_) | Granted::Value(_)) => false,
    };
    leaf && above.all(Json::is_object)
}

fn is_there(root: &Json, grant: &Grant) -> bool {
    match (lookup(root, grant.at), grant.what) {
        (Some(Json::Array(items)), Granted::Item(item)) => items.iter().any(|other| other == item),
        (Some(present), Granted::Value(value)) => *present == value.json(),
        (Some(_) | None, _) => false,
    }
}

/// Whether a value contains this grant and nothing else.
fn only_ours(value: &Json, below: &[&str], grant: &Grant) -> bool {
    match (value, below.split_first(), grant.what) {
        (Json::Object(object), Some((key, below)), _) => {
            let inner = object.get(*key).filter(|_| object.len() == 1);
            inner.is_some_and(|inner| only_ours(inner, below, grant))
        }
        (Json::Array(items), None, Granted::Item(item)) => *items == [Json::from(item)],
        (value, None, Granted::Value(ours)) => *value == ours.json(),
        (_, _, _) => false,
    }
}

fn lookup<'j>(root: &'j Json, path: &[&str]) -> Option<&'j Json> {
    path.iter().try_fold(root, |value, key| value.get(key))
}

fn edit(at: &[&str], change: Change) -> Edit {
    Edit { at: at.iter().map(|key| (*key).to_owned()).collect(), change }
}
