//! Which calls need approval, and the proof that a call was approved.
//!
//! [`Approved`] has no public constructor. [`decide`] returns an [`Approved`] if no rule requires
//! approval, and a [`Question`] returns one if the user approves. Connections accept only an
//! [`Approved`], for tools, resources and prompts, so no face can skip the approval.

use std::collections::HashMap;
use std::sync::Arc;

use crate::catalog::Entry;
use crate::catalog::pin::Pin;
use crate::catalog::resolve::{Checked, Resolved};
use crate::config::layers::ConfigOrigin;
use crate::config::server::ServerEntry;
use crate::config::settings::Settings;
use crate::config::trust::{DefinitionHash, definition_hash};
use crate::config::values::{ApprovePolicy, Pins, ToolPrefix, ToolRule};
use crate::exact::Args;
use crate::globs::{self, Globs};
use crate::name::{self, ServerName, ToolId, ToolName};
use crate::restriction::{BareServer, Restriction};

/// The approval rules for one server, in order of precedence.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The user's configuration file that cannot be parsed; `None` if there is none. Its `deny`
    /// rules are unknown, so every call is refused.
    unread: Option<ConfigOrigin>,
    /// The `deny` rules. They take precedence over all other rules.
    deny: Restriction,
    /// The setting `pins`: whether a tool that does not match its pin may be called.
    pins: Pins,
    /// The `allow` rules: a matching call needs no approval.
    allow: Globs,
    /// The `toolPrefix` in the user's files, if a project's file overrides it.
    own_prefix: Option<ToolPrefix>,
    /// `approveTools` of the server; `false` requires approval for none of its tools.
    approve_tools: Option<CompiledRule<Restriction>>,
    /// `autoApprove` of the server.
    auto_approve: Option<CompiledRule<Globs>>,
    /// `approveTools` of the settings, for servers without `approveTools`.
    general_approve_tools: Option<CompiledRule<Restriction>>,
    /// The setting `approve`: which tools need approval, by their annotations.
    policy: ApprovePolicy,
    /// The hash of the server's definition. The approval of all tools of a server is bound to it.
    definition: DefinitionHash,
}

/// A [`ToolRule`] of the configuration with its patterns compiled.
#[derive(Clone, Debug)]
enum CompiledRule<P> {
    None,
    All,
    Matching(P),
}

/// The approvals that the user gave for the rest of a session.
#[derive(Clone, Debug, Default)]
pub struct Grants {
    /// Approved tools, each with the definition that the user saw. If the definition changes, the
    /// tool needs approval again.
    tools: HashMap<ToolId, Arc<Entry>>,
    /// Servers whose tools are all approved, each with the hash of its definition when the user
    /// approved.
    servers: HashMap<ServerName, DefinitionHash>,
}

/// Which tools a caller may call. This limit takes precedence over rules and grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    #[default]
    Full,
    /// Only tools with `readOnlyHint`, because the call came from `mcp` of the pair, which promises
    /// to be read-only.
    ReadOnly,
}

/// An approved call. Connections accept calls only in this form.
#[derive(Clone, Debug)]
pub struct Approved {
    target: Resolved,
    args: Args,
    by: By,
}

/// Who approved a call: a rule or the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Rule,
    /// The user approved this call and saw the definition of the tool.
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

    /// The tool and arguments without the approval, for a call that must be approved again because
    /// the definition changed.
    pub fn into_parts(self) -> (Resolved, Args) {
        (self.target, self.args)
    }
}

/// A call that waits for the user's approval.
#[derive(Debug)]
pub struct Question {
    checked: Checked,
    definition: DefinitionHash,
}

/// The user's answer to a [`Question`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalAnswer {
    Once,
    /// Approve this call, and further calls of this tool in the session.
    Tool,
    /// Approve this call, and further calls of every tool of this server in the session.
    Server,
    No,
}

#[derive(Debug)]
pub enum Decision {
    Free(Approved),
    Ask(Question),
    Refused(RefusedCall),
}

/// A call that is refused without asking the user, and the cause.
#[derive(Debug)]
pub struct RefusedCall {
    pub target: Resolved,
    pub cause: RefusalCause,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefusalCause {
    /// The `deny` rule `pattern` matches the tool.
    Denied { pattern: String },
    /// The tool does not match its pin, and `pins` is `block`.
    NotAccepted(Pin),
    /// The `deny` rules in this file cannot be parsed.
    Unread(ConfigOrigin),
    /// The caller may use only read-only tools, and the tool is not declared read-only.
    NotReadOnly,
}

/// Whether a call with valid arguments is approved, needs the user's approval, or is refused.
pub fn decide(rules: &Rules, grants: &Grants, access: Access, checked: Checked) -> Decision {
    let Checked { target, args } = checked;
    if let Some(cause) = rules.refuse(&target, access) {
        return Decision::Refused(RefusedCall { target, cause });
    }
    if rules.ask_for(&target) && !grants.cover(&target, rules.definition) {
        let definition = rules.definition;
        return Decision::Ask(Question { checked: Checked { target, args }, definition });
    }
    Decision::Free(Approved { target, args, by: By::Rule })
}

impl Rules {
    pub fn new(server: &ServerEntry, settings: &Settings) -> Rules {
        let restriction = |rule: &ToolRule| CompiledRule::new(rule, Restriction::new);
        let globs = |rule: &ToolRule| CompiledRule::new(rule, Globs::new);
        let generally = restriction(&settings.approve_tools);
        let prefix = |general| server.tool_prefix.unwrap_or(general);
        let own = prefix(settings.own_tool_prefix);
        Rules {
            unread: None,
            deny: Restriction::new(&settings.deny),
            pins: settings.pins,
            allow: Globs::new(&settings.allow),
            own_prefix: (own != prefix(settings.tool_prefix)).then_some(own),
            approve_tools: server.approve_tools.as_ref().map(restriction),
            auto_approve: server.auto_approve.as_ref().map(globs),
            general_approve_tools: server.approve_tools.is_none().then_some(generally),
            policy: settings.approve,
            definition: definition_hash(server),
        }
    }

    /// Rules that refuse every call, for when a file of the user cannot be parsed.
    pub fn unread(place: &ConfigOrigin) -> Rules {
        let unread = Some(place.clone());
        Rules { unread, ..Rules::new(&ServerEntry::default(), &Settings::default()) }
    }

    fn refuse(&self, target: &Resolved, access: Access) -> Option<RefusalCause> {
        if let Some(place) = &self.unread {
            Some(RefusalCause::Unread(place.clone()))
        } else if let Some(pattern) = denying(&self.deny, target) {
            Some(RefusalCause::Denied { pattern: pattern.to_owned() })
        } else if self.block(target) {
            Some(RefusalCause::NotAccepted(target.pin))
        } else {
            let writes = access == Access::ReadOnly && !target.entry.annotations.only_reads();
            writes.then_some(RefusalCause::NotReadOnly)
        }
    }

    /// Whether `pins` blocks the tool because its definition does not match its pin.
    pub fn block(&self, target: &Resolved) -> bool {
        self.pins == Pins::Block && target.pin != Pin::Same
    }

    /// The `deny` pattern that matches `name`, if the caller requested `name` and `target` is
    /// called instead. `None` if `target` itself is denied, which [`decide`] reports.
    pub fn deny_written(&self, name: &str, target: &Resolved) -> Option<&str> {
        if denying(&self.deny, target).is_some() {
            return None;
        }
        self.deny.find_written(name, &target.server)
    }

    /// Whether `allow` matches the tool. If a project's file changes the prefix, `allow` must also
    /// match the shown name with the user's own prefix.
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
        if let Some(CompiledRule::None) = self.approve_tools {
            return false;
        }
        let asks = |compiled: &Option<CompiledRule<Restriction>>| {
            let names = |rule: &Restriction| find(rule, target, BareServer::IsATool).is_some();
            compiled.as_ref().is_some_and(|rule| rule.covers(names))
        };
        if asks(&self.approve_tools) {
            return true;
        }
        let permits = |rule: &Globs| rule.is_match(&spellings(target));
        if self.auto_approve.as_ref().is_some_and(|rule| rule.covers(permits)) {
            return false;
        }
        if asks(&self.general_approve_tools) {
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

impl<P> CompiledRule<P> {
    fn new(rule: &ToolRule, compile: fn(&[String]) -> P) -> CompiledRule<P> {
        match rule {
            ToolRule::None => CompiledRule::None,
            ToolRule::All => CompiledRule::All,
            ToolRule::Matching(patterns) => CompiledRule::Matching(compile(patterns)),
        }
    }

    fn covers(&self, fits: impl Fn(&P) -> bool) -> bool {
        match self {
            CompiledRule::None => false,
            CompiledRule::All => true,
            CompiledRule::Matching(patterns) => fits(patterns),
        }
    }
}

/// The shown name of a tool; `None` if it does not begin with the name of its server. A project may
/// change the prefix, and a shown name without a prefix could be that of another server's tool.
fn shown_with_server(target: &Resolved) -> Option<String> {
    let prefixes = [ToolPrefix::Server, ToolPrefix::Short, ToolPrefix::Mcp];
    let has_prefix = prefixes.iter().any(|mode| {
        let rest = target.shown.strip_prefix(&mode.prefix(&target.server));
        rest.is_some_and(|rest| rest.starts_with('_'))
    });
    has_prefix.then(|| target.shown.to_string())
}

/// The names of a tool that rules match in addition to its original name: its shown name, and
/// `server/tool`.
fn names(target: &Resolved) -> [String; 2] {
    [target.shown.to_string(), target.id().path()]
}

/// The first pattern of `rules` that matches a name of the tool, or of the resource that the tool
/// reads.
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

/// All spellings of a tool's name. A pattern permits the tool if it matches any of them.
fn spellings(target: &Resolved) -> Vec<String> {
    let mut spellings = target.id().spellings();
    spellings.extend(names(target));
    spellings
}

/// Whether a pattern of `allow` matches the tool. A pattern without a slash is compared with shown
/// names: `github_*` does not match the tools of a server `github_x`.
pub(crate) fn allowing(allow: &Globs, target: &Resolved) -> bool {
    let path = target.id().path();
    allow.iter().any(|pattern| {
        let about_paths = pattern.contains('/') || pattern.chars().all(|c| c == '*');
        let shown = shown_with_server(target).is_some_and(|shown| allow.fits(pattern, &shown));
        shown || (about_paths && allow.fits(pattern, &path))
    })
}

/// The `deny` pattern that matches the tool.
pub(crate) fn denying<'a>(deny: &'a Restriction, target: &Resolved) -> Option<&'a str> {
    if deny.is_empty() {
        return None;
    }
    find(deny, target, BareServer::Restricts)
}

/// The pattern for `allow` and `deny` that matches only this tool.
pub fn pattern_of(target: &Resolved) -> String {
    globs::literal(&target.id().path())
}

/// The pattern for `allow` and `deny` that matches all tools of a server.
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

    /// Applies the user's answer to this question. An approval for the session is also added to
    /// `grants`.
    pub fn settle(self, answer: ApprovalAnswer, grants: &mut Grants) -> Result<Approved, Resolved> {
        let Question { checked: Checked { target, args }, definition } = self;
        match answer {
            ApprovalAnswer::No => return Err(target),
            ApprovalAnswer::Once => {}
            ApprovalAnswer::Tool => {
                grants.tools.insert(target.id(), Arc::clone(&target.entry));
            }
            ApprovalAnswer::Server => {
                grants.servers.insert(target.server.clone(), definition);
            }
        }
        Ok(Approved { target, args, by: By::User })
    }
}

#[cfg(test)]
mod tests;
