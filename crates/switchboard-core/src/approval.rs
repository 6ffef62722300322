//! Which calls need a yes, and the proof that one was given.
//!
//! [`Approved`] has no public constructor: it comes out of [`decide`] when no rule asks, or out of
//! a [`Question`] that was answered. The connection takes nothing else, be it for a tool, a resource
//! or a prompt, so no face can skip this.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Entry;
use crate::catalog::pin::Pin;
use crate::catalog::resolve::{Checked, Resolved};
use crate::config::layers::Origin;
use crate::config::server::ServerEntry;
use crate::config::settings::Settings;
use crate::config::trust::{DefinitionHash, definition_hash};
use crate::config::values::{ApprovePolicy, Pins, ToolPrefix, ToolRule};
use crate::exact::Args;
use crate::globs::{self, Globs};
use crate::name::{self, ServerName, ToolId, ToolName};
use crate::restriction::{BareServer, Restriction};

/// The rules for one server, from the strongest to the weakest.
#[derive(Clone, Debug)]
pub struct Rules {
    /// A place that does not read: nobody knows what is denied.
    unread: Option<Origin>,
    /// Never made, whatever else is said.
    deny: Restriction,
    /// Whether a tool that is not what was accepted may be called.
    pins: Pins,
    /// Made unasked.
    allow: Globs,
    /// The prefix of the user's own files, where a project's file set another one.
    own_prefix: Option<ToolPrefix>,
    /// The server's own `approveTools`: `false` asks for no tool, whatever it declares.
    asked: Option<Named<Restriction>>,
    /// The server's `autoApprove`.
    unasked: Option<Named<Globs>>,
    /// `approveTools` of the settings, for servers that have none of their own.
    generally_asked: Option<Named<Restriction>>,
    /// Going by what tools declare about themselves.
    policy: ApprovePolicy,
    /// What the server is: a yes to all its tools holds for no other of the same name.
    definition: DefinitionHash,
}

/// A [`ToolRule`], ready to be applied.
#[derive(Clone, Debug)]
enum Named<P> {
    None,
    All,
    Matching(P),
}

/// What the user allowed for the rest of a session.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// With the definition that the user saw: another one under the same name is not covered.
    tools: HashMap<ToolId, Arc<Entry>>,
    /// With the definition that it had then.
    servers: HashMap<ServerName, DefinitionHash>,
}

/// What a caller may reach at all, whatever the rules and grants say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    Full,
    /// Only tools that declare themselves read-only: the caller used a tool that promises this.
    ReadOnly,
}

/// A call that may be made. The only way to a server.
#[derive(Clone, Debug)]
pub struct Approved {
    target: Resolved,
    args: Args,
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

    pub fn args(&self) -> &Args {
        &self.args
    }

    pub fn by(&self) -> By {
        self.by
    }

    /// Gives up the approval, to ask again about another definition.
    pub fn into_parts(self) -> (Resolved, Args) {
        (self.target, self.args)
    }
}

/// A call that waits for the user's word.
#[derive(Debug)]
pub struct Question {
    checked: Checked,
    definition: DefinitionHash,
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
    Refused(Refusal),
}

/// A call that is not made, whoever asks for it.
#[derive(Debug)]
pub struct Refusal {
    pub target: Resolved,
    pub cause: RefusalCause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// This pattern of the user's denies it.
    Denied { pattern: String },
    /// It is not what was accepted, and such tools are blocked.
    NotAccepted(Pin),
    /// What the user denies does not read there.
    Unread(Origin),
    /// The caller reaches read-only tools, and it does not declare itself one.
    NotReadOnly,
}

/// Applies the rules to a checked call.
pub fn decide(rules: &Rules, grants: &Grants, access: Access, checked: Checked) -> Decision {
    let Checked { target, args } = checked;
    if let Some(place) = &rules.unread {
        let cause = RefusalCause::Unread(place.clone());
        return Decision::Refused(Refusal { target, cause });
    }
    if let Some(pattern) = rules.denied_by(&target) {
        let cause = RefusalCause::Denied { pattern: pattern.to_owned() };
        return Decision::Refused(Refusal { target, cause });
    }
    if rules.block(&target) {
        let cause = RefusalCause::NotAccepted(target.pin);
        return Decision::Refused(Refusal { target, cause });
    }
    if access == Access::ReadOnly && !target.entry.annotations.only_reads() {
        return Decision::Refused(Refusal { target, cause: RefusalCause::NotReadOnly });
    }
    if rules.ask_for(&target) && !grants.cover(&target, rules.definition) {
        let definition = rules.definition;
        return Decision::Ask(Question { checked: Checked { target, args }, definition });
    }
    Decision::Free(Approved { target, args, by: By::Rule })
}

impl Rules {
    pub fn new(server: &ServerEntry, settings: &Settings) -> Rules {
        let generally = Named::new(&settings.approve_tools, Restriction::new);
        let prefix = |general| server.tool_prefix.unwrap_or(general);
        let own = prefix(settings.own_tool_prefix);
        Rules {
            unread: None,
            deny: Restriction::new(&settings.deny),
            pins: settings.pins,
            allow: Globs::new(&settings.allow),
            own_prefix: (own != prefix(settings.tool_prefix)).then_some(own),
            asked: server.approve_tools.as_ref().map(|rule| Named::new(rule, Restriction::new)),
            unasked: server.auto_approve.as_ref().map(|rule| Named::new(rule, Globs::new)),
            generally_asked: server.approve_tools.is_none().then_some(generally),
            policy: settings.approve,
            definition: definition_hash(server),
        }
    }

    /// Nothing is called while a file of the user's does not read.
    pub fn unread(place: &Origin) -> Rules {
        let unread = Some(place.clone());
        Rules { unread, ..Rules::new(&ServerEntry::default(), &Settings::default()) }
    }

    /// Whether the tool is not what was accepted, and therefore not called.
    pub fn block(&self, target: &Resolved) -> bool {
        self.pins == Pins::Block && target.pin != Pin::Same
    }

    /// The pattern that denies the name for which `target` is called instead. A target that is
    /// denied itself is left to [`decide`].
    pub fn deny_written(&self, name: &str, target: &Resolved) -> Option<&str> {
        if self.denied_by(target).is_some() {
            return None;
        }
        self.deny.find_written(name, &target.server)
    }

    /// The pattern that denies the tool.
    fn denied_by(&self, target: &Resolved) -> Option<&str> {
        denying(&self.deny, target)
    }

    /// Whether the user allows the tool. Where a project's file gave it another prefix, by the name
    /// that it has without that file, too.
    fn allows(&self, target: &Resolved) -> bool {
        let by_own_name = |own: ToolPrefix| {
            let shown = Arc::from(name::shown(&target.id(), own));
            allowing(&self.allow, &Resolved { shown, ..target.clone() })
        };
        !self.allow.is_empty()
            && allowing(&self.allow, target)
            && self.own_prefix.is_none_or(by_own_name)
    }

    fn ask_for(&self, target: &Resolved) -> bool {
        if self.allows(target) {
            return false;
        }
        if let Some(Named::None) = self.asked {
            return false;
        }
        let asks = |named: &Option<Named<Restriction>>| {
            let names = |rule: &Restriction| find(rule, target, BareServer::IsATool).is_some();
            named.as_ref().is_some_and(|named| named.covers(names))
        };
        if asks(&self.asked) {
            return true;
        }
        let permits = |rule: &Globs| rule.is_match(&spellings(target));
        if self.unasked.as_ref().is_some_and(|named| named.covers(permits)) {
            return false;
        }
        if asks(&self.generally_asked) {
            return true;
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

impl<P> Named<P> {
    fn new(rule: &ToolRule, compile: fn(&[String]) -> P) -> Named<P> {
        match rule {
            ToolRule::None => Named::None,
            ToolRule::All => Named::All,
            ToolRule::Matching(patterns) => Named::Matching(compile(patterns)),
        }
    }

    fn covers(&self, fits: impl Fn(&P) -> bool) -> bool {
        match self {
            Named::None => false,
            Named::All => true,
            Named::Matching(patterns) => fits(patterns),
        }
    }
}

/// A project may change the prefix, and a name without one could be that of another server's tool:
/// what lets a tool run unasked names its server, too.
fn unmistakable(target: &Resolved) -> Option<String> {
    let prefixes = [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp];
    let says_whose = prefixes.iter().any(|mode| {
        let rest = target.shown.strip_prefix(&mode.prefix(&target.server));
        rest.is_some_and(|rest| rest.starts_with('_'))
    });
    says_whose.then(|| target.shown.to_string())
}

/// Names of a tool besides those that it has by its own name and its server's.
fn names(target: &Resolved) -> [String; 2] {
    [target.shown.to_string(), target.id().path()]
}

/// The first pattern that names the tool, or what it reads, by any of its names.
fn find<'a>(rules: &'a Restriction, target: &Resolved, bare: BareServer) -> Option<&'a str> {
    let server = &target.server;
    let alias = |tool: &ToolName| {
        let id = ToolId { server: server.clone(), tool: tool.clone() };
        rules.find(&id, &[], bare)
    };
    rules
        .find(&target.id(), &names(target), bare)
        .or_else(|| target.entry.aliases().iter().find_map(alias))
}

/// What permits one spelling of a tool permits it under all.
fn spellings(target: &Resolved) -> Vec<String> {
    let mut spellings = target.id().spellings();
    spellings.extend(names(target));
    spellings
}

/// Whether a pattern of `allow` lets the tool run unasked. A pattern without a slash is about names as
/// they are shown: `github_*` says nothing about the tools of a server `github_x`.
pub(crate) fn allowing(allow: &Globs, target: &Resolved) -> bool {
    let path = target.id().path();
    allow.iter().any(|pattern| {
        let about_paths = pattern.contains('/') || pattern.chars().all(|c| c == '*');
        let shown = unmistakable(target).is_some_and(|shown| allow.fits(pattern, &shown));
        shown || (about_paths && allow.fits(pattern, &path))
    })
}

/// The pattern of `deny` that denies the tool.
pub(crate) fn denying<'a>(deny: &'a Restriction, target: &Resolved) -> Option<&'a str> {
    if deny.is_empty() {
        return None;
    }
    find(deny, target, BareServer::Restricts)
}

/// The pattern that stands for this tool alone in `allow` and `deny`.
pub fn pattern_of(target: &Resolved) -> String {
    globs::literal(&target.id().path())
}

/// The pattern that stands for all tools of a server.
pub(crate) fn pattern_of_server(server: &ServerName) -> String {
    format!("{}/*", globs::literal(&name::segment(server)))
}

impl Grants {
    fn cover(&self, target: &Resolved, definition: DefinitionHash) -> bool {
        let seen = self.tools.get(&target.id());
        self.servers.get(&target.server) == Some(&definition)
            || seen.is_some_and(|entry| entry.same_definition(&target.entry))
    }
}

impl Question {
    pub fn target(&self) -> &Resolved {
        &self.checked.target
    }

    pub fn args(&self) -> &Args {
        &self.checked.args
    }

    /// Settles the question; a wider yes is also written into `grants`.
    pub fn settle(self, answer: Answer, grants: &mut Grants) -> Result<Approved, Resolved> {
        let Question { checked: Checked { target, args }, definition } = self;
        match answer {
            Answer::No => return Err(target),
            Answer::Once => {}
            Answer::Tool => {
                grants.tools.insert(target.id(), Arc::clone(&target.entry));
            }
            Answer::Server => {
                grants.servers.insert(target.server.clone(), definition);
            }
        }
        Ok(Approved { target, args, by: By::User })
    }
}

#[cfg(test)]
mod tests;
