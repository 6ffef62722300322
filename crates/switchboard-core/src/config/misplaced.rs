//! Detects unknown keys of a user's file that may be misspelt or misplaced rules.
//!
//! The rules of such a file are uncertain, so a misspelt key is an error, not a warning. Values are
//! checked as well as names: `"mcp": { "files": { "excludeTools": [] } }` has no misspelt key.

use jsonc_parser::ast::{Object, Value};

use super::diagnostic::RULES;
use super::server::ServerEntry;
use crate::name::look::folded;

/// The fields of a server that restrict its tools.
const SERVER_RULES: &[&str] =
    &["approveTools", "includeTools", "excludeTools", "disabled", "enabled", "deny", "approve"];

/// Rule keys, each with the words that other programs use for such a rule of a whole file, without
/// separators.
const FILE_WORDS: &[(&str, &str)] = &[
    (
        "deny",
        "denied denylist denytools deniedtools disallow disallowed disallowedtools block blocked \
         blockedtools blocklist blacklist forbid forbidden excludetools excludedtools disabled \
         disabledtools rule rules",
    ),
    (
        "allow",
        "allowed allowlist allowtools allowedtools whitelist includetools includedtools \
         enabledtools",
    ),
    ("approve", "approval approvals approvalmode approvalpolicy permission permissions"),
];

/// Words that are too common to be checked in the root of a file that other programs share.
const NARROW_WORDS: &[(&str, &str)] = &[
    ("deny", "exclude excluded hidden hiddentools toolfilter"),
    ("allow", "include included"),
    ("approve", "policy policies"),
];

/// Keys that mark an object as one with rules.
const RULE_KEYS: &str = "deny allow approve approvetools autoapprove excludetools includetools \
    disabledtools enabledtools allowedtools disabled pins";

const ENDPOINTS: &[&str] = &["command", "url", "socket", "httpUrl", "serverUrl"];

/// The depth to which rules are searched.
const DEEPEST: usize = 6;

/// The longest name that is compared.
const LONGEST: usize = 64;

/// The rule key that an unknown key of the root may stand for.
pub(super) fn in_root(name: &str, value: &Value<'_>) -> Option<String> {
    let word = plain(name);
    if is_near(&word, "mcpservers") || looks_like_servers(value) {
        return Some("mcpServers".to_owned());
    }
    if is_near(&word, "settings") {
        return Some("settings".to_owned());
    }
    let rule = near(RULES, &word).or_else(|| rule_of(&[FILE_WORDS], &word));
    let rule = rule.map(|rule| format!("settings.{rule}"));
    rule.or_else(|| names_a_rule(value, DEEPEST).then(|| "settings".to_owned()))
}

/// The rule that an unknown setting may stand for, by its name alone.
pub(super) fn setting_by_name(name: &str) -> Option<String> {
    near(RULES, &plain(name)).map(|rule| format!("settings.{rule}"))
}

/// The rule key that an unknown key of the root may stand for, by its name alone.
pub(super) fn root_by_name(name: &str) -> Option<String> {
    let rule = RULES.iter().find(|rule| **rule == name).map(|rule| format!("settings.{rule}"));
    rule.or_else(|| is_near(&plain(name), "settings").then(|| "settings".to_owned()))
}

/// The rule key that an unknown key of `settings` may stand for.
pub(super) fn in_settings(name: &str, value: &Value<'_>) -> Option<String> {
    let word = plain(name);
    if is_near(&word, "mcpservers") || looks_like_servers(value) {
        return Some("mcpServers".to_owned());
    }
    let begins = word.starts_with("den").then_some("deny");
    let rule = near(RULES, &word).or(begins);
    let rule = rule.or_else(|| rule_of(&[FILE_WORDS, NARROW_WORDS], &word));
    if let Some(rule) = rule {
        return Some(format!("settings.{rule}"));
    }
    let rules = is_near(&word, "settings") || names_a_rule(value, DEEPEST);
    rules.then(|| "settings".to_owned())
}

/// The rule key that an entry of `mcpServers` may stand for, if it is not a server.
pub(super) fn among_servers(name: &str, value: &Value<'_>) -> Option<String> {
    let fields = value.as_object();
    if fields.is_some_and(has_endpoint) {
        return None;
    }
    let word = plain(name);
    let known = |key: &str| key == "timeout" || ServerEntry::KEYS.contains(&key);
    // A server of that name may be defined in another file and only changed here.
    let changes_a_server =
        fields.is_some_and(|fields| keys(fields).all(|key| known(key) && !RULES.contains(&key)));
    let nested = fields.is_some_and(|fields| {
        let mut unknown = fields.properties.iter().filter(|field| !known(field.name.as_str()));
        unknown.any(|field| field.value.as_object().is_some_and(is_server_like))
    });
    if nested || is_near(&word, "mcpservers") && !changes_a_server {
        return Some("mcpServers".to_owned());
    }
    if changes_a_server {
        return None;
    }
    if is_near(&word, "settings") {
        return Some("settings".to_owned());
    }
    let rule = near(RULES, &word).or_else(|| rule_of(&[FILE_WORDS], &word))?;
    Some(format!("settings.{rule}"))
}

/// The field that an unknown field of a server may stand for, by its name alone.
pub(super) fn field_by_name(name: &str) -> Option<&'static str> {
    match near(SERVER_RULES, &plain(name)) {
        // This field has other names in the rules for the whole file.
        Some("deny") => Some("excludeTools"),
        Some("approve") => Some("approveTools"),
        rule => rule,
    }
}

/// The field that an unknown field may stand for, also by names of other programs and by its value.
pub(super) fn field(name: &str, value: &Value<'_>) -> Option<&'static str> {
    let word = plain(name);
    let of_file = match near(RULES, &word) {
        Some(rule) => Some(rule),
        None => rule_of(&[FILE_WORDS, NARROW_WORDS], &word),
    };
    match of_file {
        Some("deny") => Some("excludeTools"),
        Some("allow") => Some("includeTools"),
        Some(_) => Some("approveTools"),
        None if word == "tools" && !names_every_tool(value) => Some("includeTools"),
        None => names_a_rule(value, DEEPEST).then_some("excludeTools"),
    }
}

/// Whether the value is `["*"]`, which Copilot writes into every entry.
fn names_every_tool(value: &Value<'_>) -> bool {
    let Value::Array(tools) = value else { return false };
    tools.elements.iter().any(|tool| matches!(tool, Value::StringLit(name) if name.value == "*"))
}

/// Normalizes a name: letter case, separators, invisible characters and lookalike letters.
fn plain(name: &str) -> String {
    let start: String = name.chars().take(LONGEST + 1).collect();
    folded(&start).replace('_', "")
}

/// Whether `word` is `known` with one or two typing errors.
fn is_near(word: &str, known: &str) -> bool {
    let slips = match known.len() {
        0..8 => 1,
        _ => 2,
    };
    word.len() <= LONGEST && strsim::damerau_levenshtein(word, known) <= slips
}

fn near(rules: &[&'static str], word: &str) -> Option<&'static str> {
    rules.iter().copied().find(|rule| is_near(word, &rule.to_lowercase()))
}

/// Short names are compared exactly, because too many words are similar.
fn rule_of(tables: &[&[(&'static str, &str)]], word: &str) -> Option<&'static str> {
    let fits = |known: &str| word == known || known.len() > 6 && is_near(word, known);
    let mut rules = tables.iter().copied().flatten();
    rules.find(|(_, words)| words.split(' ').any(fits)).map(|(rule, _)| *rule)
}

fn keys<'o>(object: &'o Object<'_>) -> impl Iterator<Item = &'o str> {
    object.properties.iter().map(|property| property.name.as_str())
}

fn has_endpoint(object: &Object<'_>) -> bool {
    keys(object).any(|key| ENDPOINTS.contains(&key))
}

fn has_rule(object: &Object<'_>) -> bool {
    let is_rule = |key: &str| {
        let word = plain(key);
        let fits = |rule: &str| word == rule || rule.len() > 6 && is_near(&word, rule);
        RULE_KEYS.split(' ').any(fits)
    };
    keys(object).any(is_rule)
}

fn is_server_like(object: &Object<'_>) -> bool {
    has_endpoint(object) || has_rule(object)
}

fn looks_like_servers(value: &Value<'_>) -> bool {
    let Some(object) = value.as_object() else { return false };
    object.properties.iter().any(|field| field.value.as_object().is_some_and(is_server_like))
}

fn names_a_rule(value: &Value<'_>, depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match value {
        Value::Object(object) => {
            let mut values = object.properties.iter().map(|property| &property.value);
            has_rule(object) || values.any(|value| names_a_rule(value, deeper))
        }
        Value::Array(array) => array.elements.iter().any(|value| names_a_rule(value, deeper)),
        Value::StringLit(_)
        | Value::NumberLit(_)
        | Value::BooleanLit(_)
        | Value::NullKeyword(_) => false,
    }
}
