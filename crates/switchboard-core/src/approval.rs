//! Which calls need a yes, and the proof that one was given.
//!
//! [`Approved`] has no public constructor: it comes out of [`decide`] when no rule asks, or out of
//! a [`Question`] that was answered. The connection takes nothing else, so no face can skip this.

use std::collections::HashSet;

use globset::Glob;
use serde_json::{Map, Value};

use crate::catalog::resolve::{Checked, Resolved};
use crate::config::values::{ApprovePolicy, ToolRule};
use crate::name::{ServerName, ToolId};

/// The rules for one server.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Going by what tools declare about themselves.
    pub policy: ApprovePolicy,
    /// The server's own `approveTools`, else that of the settings: `false` asks for no tool,
    /// whatever it declares.
    pub named: Option<ToolRule>,
}

/// What the user allowed for the rest of a session.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    tools: HashSet<ToolId>,
    servers: HashSet<ServerName>,
}

/// A call that may be made. The only way to a server.
#[derive(Clone, Debug)]
pub struct Approved {
    target: Resolved,
    args: Map<String, Value>,
    by: By,
}

/// Who approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Rule,
    /// The user, who saw this very definition.
    User,
}

impl Approved {
    pub fn target(&self) -> &Resolved {
        &self.target
    }

    pub fn args(&self) -> &Map<String, Value> {
        &self.args
    }

    pub fn by(&self) -> By {
        self.by
    }

    /// Gives up the approval, to ask again about another definition.
    pub fn into_parts(self) -> (Resolved, Map<String, Value>) {
        (self.target, self.args)
    }
}

/// A call that waits for the user's word.
#[derive(Debug)]
pub struct Question {
    checked: Checked,
}

/// The user's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Once,
    /// This tool, for the rest of the session.
    Tool,
    /// Every tool of this server, for the rest of the session.
    Server,
    No,
}

#[derive(Debug)]
pub enum Decision {
    Free(Approved),
    Ask(Question),
}

/// Applies the rules to a checked call.
pub fn decide(rules: &Rules, grants: &Grants, checked: Checked) -> Decision {
    if rules.ask_for(&checked.target) && !grants.cover(&checked.target) {
        return Decision::Ask(Question { checked });
    }
    let Checked { target, args } = checked;
    Decision::Free(Approved { target, args, by: By::Rule })
}

impl Rules {
    fn ask_for(&self, target: &Resolved) -> bool {
        match &self.named {
            Some(ToolRule::None) => return false,
            Some(ToolRule::All) => return true,
            Some(ToolRule::Matching(globs)) if matches(globs, target) => return true,
            Some(ToolRule::Matching(_)) | None => {}
        }
        let declared = target.entry.annotations;
        match self.policy {
            ApprovePolicy::Destructive => declared.destructive == Some(true),
            ApprovePolicy::Writes => declared.read_only != Some(true),
            ApprovePolicy::All => true,
            ApprovePolicy::None => false,
        }
    }
}

fn matches(globs: &[String], target: &Resolved) -> bool {
    globs.iter().filter_map(|pattern| Glob::new(pattern).ok()).any(|glob| {
        let glob = glob.compile_matcher();
        glob.is_match(target.entry.name.as_str()) || glob.is_match(&*target.shown)
    })
}

impl Grants {
    fn cover(&self, target: &Resolved) -> bool {
        self.servers.contains(&target.server) || self.tools.contains(&target.id())
    }

    pub fn allow_tool(&mut self, tool: ToolId) {
        self.tools.insert(tool);
    }

    pub fn allow_server(&mut self, server: ServerName) {
        self.servers.insert(server);
    }
}

impl Question {
    pub fn target(&self) -> &Resolved {
        &self.checked.target
    }

    pub fn args(&self) -> &Map<String, Value> {
        &self.checked.args
    }

    /// Settles the question; a wider yes is also written into `grants`.
    pub fn settle(self, answer: Answer, grants: &mut Grants) -> Result<Approved, Resolved> {
        let Checked { target, args } = self.checked;
        match answer {
            Answer::No => return Err(target),
            Answer::Once => {}
            Answer::Tool => grants.allow_tool(target.id()),
            Answer::Server => grants.allow_server(target.server.clone()),
        }
        Ok(Approved { target, args, by: By::User })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;
    use crate::catalog::Entry;

    fn checked(name: &str, annotations: &str) -> Checked {
        let definition =
            format!(r#"{{"name":"{name}","inputSchema":{{}},"annotations":{annotations}}}"#);
        let raw = RawValue::from_string(definition).unwrap();
        let target = Resolved {
            server: ServerName::new("files").unwrap(),
            shown: Arc::from(format!("files_{name}")),
            entry: Arc::new(Entry::tool(&raw).unwrap()),
        };
        Checked { target, args: Map::new() }
    }

    fn asks(rules: &Rules, grants: &Grants, checked: Checked) -> bool {
        matches!(decide(rules, grants, checked), Decision::Ask(_))
    }

    /// Which of a reading, a writing, a destructive and a silent tool ask.
    fn check(policy: ApprovePolicy, named: Option<ToolRule>, expected: [bool; 4]) {
        let rules = Rules { policy, named };
        let seen = [
            ("read", r#"{"readOnlyHint":true}"#),
            ("write", r#"{"readOnlyHint":false}"#),
            ("delete", r#"{"destructiveHint":true}"#),
            ("silent", "{}"),
        ]
        .map(|(name, hints)| asks(&rules, &Grants::default(), checked(name, hints)));
        assert_eq!(seen, expected, "{rules:?}");
    }

    #[test]
    fn scopes_go_by_what_a_tool_declares() {
        check(ApprovePolicy::Destructive, None, [false, false, true, false]);
        check(ApprovePolicy::Writes, None, [false, true, true, true]);
        check(ApprovePolicy::All, None, [true, true, true, true]);
        check(ApprovePolicy::None, None, [false, false, false, false]);
    }

    #[test]
    fn the_configuration_can_name_tools() {
        check(ApprovePolicy::None, Some(ToolRule::All), [true; 4]);
        check(ApprovePolicy::All, Some(ToolRule::None), [false; 4]);
        let globs = vec!["w*".to_owned(), "files_sil*".to_owned()];
        check(ApprovePolicy::None, Some(ToolRule::Matching(globs)), [false, true, false, true]);
    }

    #[test]
    fn a_yes_for_the_session_covers_that_tool_alone() {
        let rules = Rules { policy: ApprovePolicy::All, named: None };
        let mut grants = Grants::default();
        let Decision::Ask(question) = decide(&rules, &grants, checked("a", "{}")) else {
            panic!("a question");
        };
        let approved = question.settle(Answer::Tool, &mut grants).unwrap();
        assert_eq!(approved.by(), By::User);
        assert!(!asks(&rules, &grants, checked("a", "{}")));
        assert!(asks(&rules, &grants, checked("b", "{}")));
    }

    #[test]
    fn a_yes_for_the_server_covers_all_its_tools_and_a_no_covers_nothing() {
        let rules = Rules { policy: ApprovePolicy::All, named: None };
        let mut grants = Grants::default();
        for (answer, still_asks) in
            [(Answer::No, true), (Answer::Once, true), (Answer::Server, false)]
        {
            let Decision::Ask(question) = decide(&rules, &grants, checked("a", "{}")) else {
                panic!("a question");
            };
            assert_eq!(question.settle(answer, &mut grants).is_ok(), answer != Answer::No);
            assert_eq!(asks(&rules, &grants, checked("b", "{}")), still_asks);
        }
    }
}
