//! Finds unknown keys in a user's file that may be misspelt or misplaced rules.
//!
//! Such a key is an error instead of a warning, because the rules of the file are unknown. Values
//! are checked in addition to names: no key in `"mcp": { "files": { "excludeTools": [] } }` is
//! misspelt, for example.

use jsonc_parser::ast::{Object, Value};

use super::diagnostic::RULES;
use super::server::ServerEntry;
use crate::name::look::folded;

/// The fields of a server that restrict its tools.
const SERVER_RULES: &[&str] =
    &["approveTools", "includeTools", "excludeTools", "disabled", "enabled", "deny", "approve"];

/// Each rule key of a whole file, with the words that other programs use for such a rule, without
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

/// Further words for rule keys. They are too common to be checked at the root of a file, because
/// other programs share the file.
const NARROW_WORDS: &[(&str, &str)] = &[
    ("deny", "exclude excluded hidden hiddentools toolfilter"),
    ("allow", "include included"),
    ("approve", "policy policies"),
];

/// The keys that show that an object contains rules.
const RULE_KEYS: &str = "deny allow approve approvetools autoapprove excludetools includetools \
    disabledtools enabledtools allowedtools disabled pins";

const ENDPOINTS: &[&str] = &["command", "url", "socket", "httpUrl", "serverUrl"];

/// The number of levels that are searched for rules.
const DEEPEST: usize = 6;

/// The maximum length of a key that is compared with rule keys.
const LONGEST: usize = 64;

/// The rule key that the user may have meant by an unknown key of the root.
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

/// The rule key that the user may have meant by an unknown setting, judged by its name alone.
pub(super) fn setting_by_name(name: &str) -> Option<String> {
    near(RULES, &plain(name)).map(|rule| format!("settings.{rule}"))
}

/// The rule key that the user may have meant by an unknown key of the root, judged by its name
/// alone.
pub(super) fn root_by_name(name: &str) -> Option<String> {
    let rule = RULES.iter().find(|rule| **rule == name).map(|rule| format!("settings.{rule}"));
    rule.or_else(|| is_near(&plain(name), "settings").then(|| "settings".to_owned()))
}

/// The rule key that the user may have meant by an unknown key of `settings`.
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

/// The rule key that the user may have meant by an entry of `mcpServers`. `None` if it is a server.
pub(super) fn among_servers(name: &str, value: &Value<'_>) -> Option<String> {
    let fields = value.as_object();
    if fields.is_some_and(has_endpoint) {
        return None;
    }
    let word = plain(name);
    let known = |key: &str| key == "timeout" || ServerEntry::KEYS.contains(&key);
    // The entry may change a server that another file defines.
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

/// The field that the user may have meant by an unknown field of a server, judged by its name
/// alone.
pub(super) fn field_by_name(name: &str) -> Option<&'static str> {
    match near(SERVER_RULES, &plain(name)) {
        // In a server's entry, the rules `deny` and `approve` of a whole file have other names.
        Some("deny") => Some("excludeTools"),
        Some("approve") => Some("approveTools"),
        rule => rule,
    }
}

/// The field that the user may have meant by an unknown field of a server, judged by the names of
/// other programs and by its value.
pub(super) fn field(name: &str, value: &Value<'_>) -> Option<&'static str> {
    let word = plain(name);
    match near(RULES, &word).or_else(|| rule_of(&[FILE_WORDS, NARROW_WORDS], &word)) {
        Some("deny") => Some("excludeTools"),
        Some("allow") => Some("includeTools"),
        Some(_) => Some("approveTools"),
        None if word == "tools" && !names_every_tool(value) => Some("includeTools"),
        None => names_a_rule(value, DEEPEST).then_some("excludeTools"),
    }
}

/// Whether the value is a list with `*`, as Copilot writes into every entry.
fn names_every_tool(value: &Value<'_>) -> bool {
    let Value::Array(tools) = value else { return false };
    tools.elements.iter().any(|tool| matches!(tool, Value::StringLit(name) if name.value == "*"))
}

/// Normalizes letter case, separators, invisible characters and lookalike letters of a name.
fn plain(name: &str) -> String {
    let start: String = name.chars().take(LONGEST + 1).collect();
    folded(&start).replace('_', "")
}

/// Whether `word` is `known`, or a misspelling of it with one or two edits.
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

/// The rule for which a table has `word`. Short words are compared exactly, because too many words
/// are similar to them.
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
