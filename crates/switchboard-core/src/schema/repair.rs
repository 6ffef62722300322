//! Repairs invalid arguments if only one correction is possible.

use serde_json::{Map, Value};

use super::admitted::Types;
use super::object::{self, Presence, Property};
use super::refs;
use crate::exact::{Exact, Numbers, is_kept};

/// The maximum number of nested levels of arguments that are repaired.
const MAX_LEVELS: usize = 64;

/// The maximum number of values that are visited. A schema can lead to the same value many times.
const MAX_PLACES: usize = 20_000;

/// Corrects values that `schema` rejects: JSON in a string, a whole number instead of a string, one
/// value instead of an array, and the letter case of an enum value. In names of properties, it
/// corrects letter case, `-` for `_` and `perPage` for `per_page`. It removes `null` from optional
/// properties.
pub(super) fn repair(schema: &Value, args: &mut Value) {
    Repair { root: schema, places_left: MAX_PLACES }.place(schema, args, 0);
}

struct Repair<'s> {
    root: &'s Value,
    places_left: usize,
}

impl<'s> Repair<'s> {
    fn place(&mut self, schema: &'s Value, value: &mut Value, level: usize) {
        let Some(schema) = refs::resolve(self.root, schema) else {
            return;
        };
        if level > MAX_LEVELS || self.places_left == 0 {
            return;
        }
        self.places_left -= 1;
        let types = Types::of(self.root, schema);
        if !types.contain(Types::of_value(value)) {
            unpack(types, value);
        }
        if types.without(Types::NULL) == Types::ARRAY && !types.contain(Types::of_value(value)) {
            self.wrap(schema, value, level);
        }
        if types.without(Types::NULL) == Types::STRING {
            quote(value);
        }
        if let Value::String(text) = value {
            respell(self.root, schema, text);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                self.place(part, value, level + 1);
            }
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = schema.get(keyword) {
                let mut fitting = branches
                    .iter()
                    .filter(|branch| Types::of(self.root, branch).contain(Types::of_value(value)));
                if let (Some(branch), None) = (fitting.next(), fitting.next()) {
                    self.place(branch, value, level + 1);
                }
            }
        }
        match value {
            Value::Object(properties) => self.object(schema, properties, level),
            Value::Array(items) => self.array(schema, items, level),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Puts a single value into an array, if the schema requires an array of such values.
    fn wrap(&mut self, schema: &'s Value, value: &mut Value, level: usize) {
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return;
        };
        let looks_like_list =
            matches!(value, Value::String(text) if text.trim_start().starts_with('['));
        if looks_like_list {
            return;
        }
        let mut item = value.clone();
        self.place(items, &mut item, level + 1);
        let types = Types::of(self.root, items);
        if types != Types::ANY && types.contain(Types::of_value(&item)) {
            *value = Value::Array(vec![item]);
        }
    }

    fn object(&mut self, schema: &'s Value, properties: &mut Map<String, Value>, level: usize) {
        let fields = object::fields(self.root, schema);
        // `null` is removed before and after names are corrected, because it may stand under the
        // wrong name or under the right one.
        self.leave_out(&fields, properties);
        rename(schema, &fields, properties);
        self.leave_out(&fields, properties);
        let extra = object::extra(self.root, schema);
        let declared = schema.get("properties");
        for (name, value) in properties {
            if let Some(schema) = declared.and_then(|declared| declared.get(name)).or(extra) {
                self.place(schema, value, level + 1);
            }
        }
    }

    /// Removes optional properties whose value is `null`, if their schemas do not allow it.
    fn leave_out(&self, fields: &[Property<'_>], properties: &mut Map<String, Value>) {
        properties.retain(|name, value| {
            let field = fields.iter().find(|field| value.is_null() && field.name == name);
            field.is_none_or(|field| {
                let schema = refs::resolve(self.root, field.schema);
                let nullable = |schema| Types::of(self.root, schema).contain(Types::NULL);
                field.presence == Presence::Required || schema.is_none_or(nullable)
            })
        });
    }

    fn array(&mut self, schema: &'s Value, items: &mut [Value], level: usize) {
        let leading = schema.get("prefixItems").and_then(Value::as_array).map_or(&[][..], |it| it);
        let rest = schema.get("items").filter(|items| items.is_object());
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(schema) = leading.get(index).or(rest) {
                self.place(schema, item, level + 1);
            }
        }
    }
}

/// Replaces a string by the JSON in it, if the JSON has an allowed type. The caller has checked
/// that a string is not allowed.
fn unpack(types: Types, value: &mut Value) {
    let Value::String(text) = value else { return };
    if !Numbers(text).all(is_kept) {
        return;
    }
    if let Ok(unpacked) = Exact::parse(text)
        && types.contain(Types::of_value(unpacked.value()))
    {
        *value = unpacked.into_value();
    }
}

/// Converts a whole number to a string. A fraction is not converted, because its original text is
/// unknown here, and `1.10` may be a version.
fn quote(value: &mut Value) {
    if let Value::Number(number) = value
        && !number.is_f64()
    {
        *value = Value::String(number.to_string());
    }
}

/// Corrects the letter case of an enum value.
fn respell(root: &Value, schema: &Value, text: &mut String) {
    let mut options = Vec::new();
    if collect_options(root, schema, &mut options, 0).is_none() || options.contains(&text.as_str())
    {
        return;
    }
    options.dedup();
    let lower = text.to_lowercase();
    let mut same = options.iter().filter(|option| option.to_lowercase() == lower);
    if let (Some(option), None) = (same.next(), same.next()) {
        *text = (*option).to_owned();
    }
}

/// Collects all strings that a schema allows; `None` if it does not list them.
fn collect_options<'s>(
    root: &'s Value,
    schema: &'s Value,
    options: &mut Vec<&'s str>,
    level: usize,
) -> Option<()> {
    let schema = refs::resolve(root, schema)?;
    if let Some(value) = schema.get("const") {
        options.extend(value.as_str());
        return Some(());
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        options.extend(values.iter().filter_map(Value::as_str));
        return Some(());
    }
    let branches = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    match branches {
        Some(branches) if level < 4 => {
            branches.iter().try_for_each(|branch| collect_options(root, branch, options, level + 1))
        }
        _ if Types::of(root, schema).contain(Types::STRING) => None,
        _ => Some(()),
    }
}

/// Corrects the name of a property, if the schema rejects the name or requires the declared one.
fn rename(schema: &Value, fields: &[Property<'_>], properties: &mut Map<String, Value>) {
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false))
        && schema.get("patternProperties").is_none();
    let is_declared = |name: &str| fields.iter().any(|field| field.name == name);
    let mut renames: Vec<(String, &str)> = Vec::new();
    for name in properties.keys().filter(|name| !is_declared(name)) {
        if let Some(field) = declared_as(fields, name)
            && (closed || field.presence == Presence::Required)
            && !properties.contains_key(field.name)
        {
            renames.push((name.clone(), field.name));
        }
    }
    for (sent, declared) in &renames {
        let rivals = renames.iter().filter(|(_, other)| other == declared).count();
        if rivals == 1
            && let Some(value) = properties.shift_remove(sent)
        {
            properties.insert((*declared).to_owned(), value);
        }
    }
}

/// The only property that a name can mean. Spellings are tried from the most similar on, and the
/// first that matches any property decides.
fn declared_as<'f, 's>(fields: &'f [Property<'s>], name: &str) -> Option<&'f Property<'s>> {
    let spellings: [fn(&str) -> String; 2] = [fold, squeeze];
    for spell in spellings {
        let spelled = spell(name);
        let mut same = fields.iter().filter(|field| spell(field.name) == spelled);
        match (same.next(), same.next()) {
            (None, _) => {}
            (only, None) => return only,
            (_, Some(_)) => return None,
        }
    }
    None
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

/// The name without `-` and `_` and in lower case, so that `perPage` and `per_page` are equal.
fn squeeze(name: &str) -> String {
    name.to_lowercase().replace(['-', '_'], "")
}
