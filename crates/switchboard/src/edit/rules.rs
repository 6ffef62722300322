//! The `allow` and `deny` lists in the user's file.

use serde_json::Value;
use switchboard_core::catalog::resolve::nearest;
use switchboard_core::config::edit::{self, Change, Edit};
use switchboard_core::pattern::is_glob;

use super::{EditError, Edited, Editor, Scope, with};

/// A list of patterns that decides about calls without asking the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// The tools that the pattern matches need no approval.
    Allow,
    /// The tools that the pattern matches are refused.
    Deny,
}

impl Rules {
    /// The key of the list: `allow` or `deny`, below `settings`.
    pub fn key(self) -> &'static str {
        match self {
            Rules::Allow => "allow",
            Rules::Deny => "deny",
        }
    }
}

impl Editor<'_> {
    /// The patterns of a list in the user's file.
    pub fn rules(&self, rules: Rules) -> Result<Vec<String>, EditError> {
        let path = self.file(Scope::User);
        let text = self.text(&path)?;
        let value = edit::value_at(&text, &["settings", rules.key()])
            .map_err(|cause| EditError::Unread { path, cause })?;
        let patterns = value.as_ref().and_then(Value::as_array).into_iter().flatten();
        Ok(patterns.filter_map(Value::as_str).map(str::to_owned).collect())
    }

    /// Adds a pattern to the `allow` or `deny` list in the user's file.
    pub fn add_rule(&self, rules: Rules, pattern: &str) -> Result<Edited, EditError> {
        if !is_glob(pattern) {
            return Err(EditError::BadPattern { pattern: pattern.to_owned() });
        }
        self.change_rules(rules, Change::AddItem(pattern.into()))
    }

    /// Removes a pattern from the `allow` or `deny` list in the user's file. Fails if the list does not
    /// have the pattern: a misspelt one would otherwise stay in effect unnoticed.
    pub fn remove_rule(&self, rules: Rules, pattern: &str) -> Result<Edited, EditError> {
        // If the file does not parse, the change below fails with the reason.
        if let Ok(patterns) = self.rules(rules)
            && !patterns.iter().any(|known| known == pattern)
        {
            let suggestions = nearest(pattern, patterns.into_iter());
            let (list, pattern) = (rules.key(), pattern.to_owned());
            return Err(EditError::NoRule { list, pattern, suggestions });
        }
        self.change_rules(rules, Change::RemoveItem(pattern.into()))
    }

    fn change_rules(&self, rules: Rules, change: Change) -> Result<Edited, EditError> {
        let edit = Edit::new(["settings", rules.key()], change);
        self.write(&self.file(Scope::User), |text| with(text, std::slice::from_ref(&edit)))
    }
}
