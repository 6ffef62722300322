//! The form of an elicitation, as questions that the user answers one after the other.

use serde_json::{Map, Value};
use switchboard::render::words::clean_line;

/// The maximum number of fields of a form; a larger form is refused.
const MOST_FIELDS: usize = 50;

/// The maximum number of choices of a field.
const MOST_CHOICES: usize = 100;

/// The maximum number of bytes that are shown of a field's name, title or description.
const SHOWN: usize = 300;

/// The type of a field's value.
#[derive(Debug, PartialEq)]
enum FieldType {
    Text,
    Integer,
    Number,
    Boolean,
    One(Vec<Choice>),
    Several(Vec<Choice>),
}

#[derive(Debug, PartialEq)]
struct Choice {
    value: String,
    title: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct FormField {
    pub(super) name: String,
    title: String,
    about: String,
    takes: FieldType,
    required: bool,
    default: Option<Value>,
}

/// Parses the fields of a form in their order; `None` if one of them is unsupported.
pub(super) fn fields(params: &Map<String, Value>) -> Option<Vec<FormField>> {
    let schema = params.get("requestedSchema")?.as_object()?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = match schema.get("properties") {
        None => return Some(Vec::new()),
        Some(properties) => properties.as_object()?,
    };
    if properties.len() > MOST_FIELDS {
        return None;
    }
    let field = |(name, schema): (&String, &Value)| {
        let text = |key: &str| {
            let text = schema.get(key).and_then(Value::as_str).unwrap_or_default();
            clean_line(text, SHOWN).into_owned()
        };
        Some(FormField {
            takes: takes(schema)?,
            title: text("title"),
            about: text("description"),
            required: required.contains(&name.as_str()),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            name: name.clone(),
        })
    };
    properties.iter().map(field).collect()
}

fn takes(schema: &Value) -> Option<FieldType> {
    if let Some(choices) = choices(schema) {
        return Some(FieldType::One(choices?));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => Some(FieldType::Text),
        Some("integer") => Some(FieldType::Integer),
        Some("number") => Some(FieldType::Number),
        Some("boolean") => Some(FieldType::Boolean),
        Some("array") => Some(FieldType::Several(choices(schema.get("items")?)??)),
        Some(_) | None => None,
    }
}

/// The choices of a field: `enum` with or without `enumNames`, or a list of `const` and `title`.
/// The outer value is `None` if the field has no choices, the inner one if they are unsupported.
fn choices(schema: &Value) -> Option<Option<Vec<Choice>>> {
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| schema.get(key));
    let values = schema.get("enum");
    let list = values.or(titled)?.as_array();
    let names = schema.get("enumNames");
    let choice = |(at, row): (usize, &Value)| {
        let (value, title) = match values {
            Some(_) => (row, names.and_then(|names| names.get(at))),
            None => (row.get("const")?, row.get("title")),
        };
        let value = value.as_str()?.to_owned();
        let title = title.and_then(Value::as_str).unwrap_or(&value);
        let title = clean_line(title, SHOWN).into_owned();
        Some(Choice { value, title })
    };
    let fits = |list: &&Vec<Value>| !list.is_empty() && list.len() <= MOST_CHOICES;
    Some(list.filter(fits).and_then(|list| list.iter().enumerate().map(choice).collect()))
}

impl FormField {
    /// The question that asks for the value of a field, with the field's choices below it.
    pub(super) fn question(&self) -> String {
        let name = clean_line(&self.name, SHOWN);
        let title = if self.title.is_empty() { &*name } else { self.title.as_str() };
        let mut text = title.to_owned();
        if !self.about.is_empty() && self.about != *title {
            text.push_str(&format!(" ({})", self.about));
        }
        if let FieldType::One(choices) | FieldType::Several(choices) = &self.takes {
            for (at, choice) in choices.iter().enumerate() {
                text.push_str(&format!("\n  {} {}", at + 1, choice.title));
            }
            text.push_str("\n ");
        }
        let expected = match self.takes {
            FieldType::Text => None,
            FieldType::Integer => Some("integer"),
            FieldType::Number => Some("number"),
            FieldType::Boolean => Some("y or n"),
            FieldType::One(_) => Some("number of the choice"),
            FieldType::Several(_) => Some("numbers of the choices, with commas"),
        };
        let default = self.default.as_ref().map(|default| format!("Enter = {}", shown(default)));
        let left_out = (default.is_none() && !self.required).then(|| "Enter = none".to_owned());
        let notes = expected.map(str::to_owned).into_iter().chain(default).chain(left_out);
        let notes: Vec<String> = notes.collect();
        if !notes.is_empty() {
            text.push_str(&format!(" [{}]", notes.join("; ")));
        }
        text.push(':');
        text
    }

    /// Parses the typed text into the value of the field; `None` leaves an optional field out.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Value>, &'static str> {
        let typed = typed.trim();
        if typed.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, false) => Ok(None),
                (None, true) => Err("this field is required"),
            };
        }
        match &self.takes {
            FieldType::Text => Ok(Some(typed.into())),
            FieldType::Integer => {
                typed.parse::<i64>().map(|number| Some(number.into())).map_err(|_| "not an integer")
            }
            FieldType::Number => {
                let number = typed.parse().ok().and_then(serde_json::Number::from_f64);
                number.map(|number| Some(Value::Number(number))).ok_or("not a number")
            }
            FieldType::Boolean => match typed.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(Some(true.into())),
                "n" | "no" | "false" => Ok(Some(false.into())),
                _ => Err("neither y nor n"),
            },
            FieldType::One(choices) => chosen(choices, typed).map(Some),
            FieldType::Several(choices) => {
                let list = typed.split(',').map(|part| chosen(choices, part.trim()));
                list.collect::<Result<Vec<Value>, _>>().map(|list| Some(list.into()))
            }
        }
    }
}

/// Finds a choice by its number, value or title.
fn chosen(choices: &[Choice], typed: &str) -> Result<Value, &'static str> {
    let by_number =
        typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
    let by_word = || choices.iter().find(|choice| choice.value == typed || choice.title == typed);
    let choice = by_number.or_else(by_word).ok_or("not one of the choices")?;
    Ok(choice.value.as_str().into())
}

fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    clean_line(&text, SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(properties: Value) -> Option<Vec<FormField>> {
        let params = json!({ "requestedSchema": {
            "type": "object", "properties": properties, "required": ["must"],
        } });
        fields(params.as_object().unwrap())
    }

    fn field(schema: Value) -> FormField {
        form(json!({ "must": schema })).unwrap().remove(0)
    }

    #[test]
    fn form_question_states_what_the_field_accepts() {
        let fields = form(json!({
            "must": { "type": "string", "title": "Your name", "description": "as on the card" },
            "age": { "type": "integer", "default": 7 },
            "news": { "type": "boolean" },
            "color": { "type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"] },
            "days": { "type": "array", "items": { "anyOf": [
                { "const": "mo", "title": "Monday" }, { "const": "tu", "title": "Tues\u{1b}day" },
            ] } },
        }));
        let questions: Vec<String> = fields.unwrap().iter().map(FormField::question).collect();
        insta::assert_snapshot!(questions.join("\n"), @r"
        Your name (as on the card):
        age [integer; Enter = 7]:
        news [y or n; Enter = none]:
        color
          1 Red
          2 Green
          [number of the choice; Enter = none]:
        days
          1 Monday
          2 Tues\u{1b}day
          [numbers of the choices, with commas; Enter = none]:
        ");
    }

    #[test]
    fn typed_answer_is_converted_to_the_field_type() {
        let check = |schema: Value, typed: &str, expected: Result<Option<Value>, &'static str>| {
            assert_eq!(field(schema.clone()).read(typed), expected, "{schema} {typed:?}");
        };
        let text = json!({ "type": "string" });
        check(text.clone(), " Ada ", Ok(Some("Ada".into())));
        check(text, "", Err("this field is required"));
        check(json!({ "type": "string", "default": "x" }), "", Ok(Some("x".into())));
        check(json!({ "type": "integer" }), "42", Ok(Some(42.into())));
        check(json!({ "type": "integer" }), "4.2", Err("not an integer"));
        check(json!({ "type": "number" }), "4.5", Ok(Some(4.5.into())));
        check(json!({ "type": "number" }), "nan", Err("not a number"));
        check(json!({ "type": "boolean" }), "Yes", Ok(Some(true.into())));
        check(json!({ "type": "boolean" }), "perhaps", Err("neither y nor n"));
        let one = json!({ "oneOf": [{ "const": "a", "title": "A!" }, { "const": "b" }] });
        for typed in ["1", "a", "A!"] {
            check(one.clone(), typed, Ok(Some("a".into())));
        }
        for typed in ["0", "3", "c", "-1"] {
            check(one.clone(), typed, Err("not one of the choices"));
        }
        let several = json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } });
        check(several.clone(), "2, a", Ok(Some(json!(["b", "a"]))));
        check(several, "2,,", Err("not one of the choices"));
        let optional = form(json!({ "may": { "type": "string" } })).unwrap();
        assert_eq!(optional[0].read(""), Ok(None));
    }

    #[test]
    fn unsupported_elicitation_form_is_refused() {
        for properties in [
            json!({ "a": { "type": "object" } }),
            json!({ "a": {} }),
            json!({ "a": { "enum": [] } }),
            json!({ "a": { "enum": [1, 2] } }),
            json!({ "a": { "type": "array", "items": { "type": "string" } } }),
            json!([]),
            Value::Object((0..51).map(|n| (n.to_string(), json!({ "type": "string" }))).collect()),
        ] {
            assert_eq!(form(properties.clone()), None, "{properties}");
        }
        assert_eq!(fields(json!({}).as_object().unwrap()), None);
        assert_eq!(form(json!({})), Some(Vec::new()));
    }
}
