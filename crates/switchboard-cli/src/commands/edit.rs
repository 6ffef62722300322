//! Changing the configuration files: remove, enable, disable, allow, deny.

use serde_json::json;
use switchboard::catalog::Catalog;
use switchboard::catalog::rule_match::{RuleList, Unmatched};
use switchboard::doctor;
use switchboard::edit::{Edited, Rules, Scope, Switch};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Subject};
use switchboard::name::{NameError, ServerName};
use switchboard::render::remedy;
use switchboard::render::words::clean_line;

use super::{add, import};
use crate::args::Format;
use crate::args::edit::{self, Edit, Rule};
use crate::boot::App;
use crate::diff;
use crate::exit::Exit;
use crate::report::CommandResult;

#[derive(Debug, thiserror::Error)]
#[error("`{name}` cannot be the name of a server")]
struct BadName {
    name: String,
    #[source]
    cause: NameError,
}

pub(super) async fn run(app: &App, edit: Edit) -> CommandResult {
    match edit {
        Edit::Add(add) => add::add(app, add).await,
        Edit::Remove { server, scope } => remove(app, &server, scope),
        Edit::Enable { server } => switch(app, &server, Switch::On),
        Edit::Disable { server } => switch(app, &server, Switch::Off),
        Edit::Allow(rule) => change_rules(app, Rules::Allow, rule),
        Edit::Deny(rule) => change_rules(app, Rules::Deny, rule),
        Edit::Import(import) => import::import(app, &import).await,
    }
}

fn remove(app: &App, server: &str, scope: Option<edit::Scope>) -> CommandResult {
    let server = named(server)?;
    let edited = app.editor().remove(&server, scope.map(Scope::from)).map_err(explain::edit)?;
    edited.iter().for_each(|edited| app.printer.note(&diff::text(edited, app.printer.err)));
    app.printer.note(&format!("`{}` is removed", shown(&server)));
    Ok(Exit::Done)
}

fn switch(app: &App, server: &str, switch: Switch) -> CommandResult {
    let server = named(server)?;
    let edited = app.editor().switch(&server, switch).map_err(explain::edit)?;
    let state = match switch {
        Switch::On => "enabled",
        Switch::Off => "disabled",
    };
    conclude(app, &edited, &format!("`{}` is {state}", shown(&server)));
    Ok(Exit::Done)
}

fn change_rules(app: &App, rules: Rules, rule: Rule) -> CommandResult {
    let editor = app.editor();
    let Some(pattern) = rule.pattern else {
        let patterns = editor.rules(rules).map_err(explain::edit)?;
        return list(app, rules, &patterns, rule.format);
    };
    let edited = if rule.remove {
        editor.remove_rule(rules, &pattern)
    } else {
        editor.add_rule(rules, &pattern)
    };
    let edited = edited.map_err(explain::edit)?;
    let past = match rules {
        Rules::Allow => "allowed",
        Rules::Deny => "denied",
    };
    let shown = clean_line(&pattern, 200);
    if rule.remove {
        conclude(app, &edited, &format!("`{shown}` is no longer {past}"));
    } else {
        conclude(app, &edited, &format!("`{shown}` is {past}"));
        let loaded = app.load()?;
        let catalog = doctor::known_catalog(&app.environment, &app.paths, &loaded);
        if !loaded.config.servers.is_empty() || !loaded.config.pending.is_empty() {
            warn_if_unmatched(app, &catalog, rules, &pattern);
        }
        if rules == Rules::Allow {
            warn_if_denied(app, &catalog, &pattern)?;
        }
    }
    Ok(Exit::Done)
}

/// Warns if a rule matches no known tool. The rule is written anyway: the server of the tool may
/// not be listed yet.
fn warn_if_unmatched(app: &App, catalog: &Catalog, rules: Rules, pattern: &str) {
    let list = match rules {
        Rules::Allow => RuleList::Allow,
        Rules::Deny => RuleList::Deny,
    };
    let Some(Unmatched { nearest, not_listed }) = catalog.unmatched(list, pattern) else { return };
    let printer = app.printer;
    let nearest = nearest.map(|it| format!("; did you mean `{}`?", clean_line(&it, 200)));
    let nearest = nearest.unwrap_or_default();
    printer.warn(&format!("`{}` matches no known tool{nearest}", clean_line(pattern, 200)));
    if !not_listed.is_empty() {
        printer.note(&remedy::not_listed(&not_listed, &printer.err));
    }
}

fn list(app: &App, rules: Rules, patterns: &[String], format: Format) -> CommandResult {
    if format.json {
        app.printer.json(&json!({ rules.key(): patterns }))?;
    } else if patterns.is_empty() {
        app.printer.note("no patterns");
    } else {
        let lines: Vec<_> = patterns.iter().map(|pattern| clean_line(pattern, 200)).collect();
        app.printer.text(&lines.join("\n"))?;
    }
    Ok(Exit::Done)
}

/// Warns if a `deny` rule also matches, because it takes precedence.
fn warn_if_denied(app: &App, catalog: &Catalog, pattern: &str) -> Result<(), Failure> {
    let rules = app.editor().rules(Rules::Deny).map_err(explain::edit)?;
    let Some(denied) = catalog.denied_throughout(&rules, pattern) else { return Ok(()) };
    let (pattern, denied) = (clean_line(pattern, 200), clean_line(&denied, 200));
    app.printer.warn(&match pattern == denied {
        true => format!("`{pattern}` also matches a `deny` rule, which takes precedence"),
        false => format!("`{pattern}` is denied by `{denied}`, which takes precedence"),
    });
    Ok(())
}

/// Shows the change of the file and the resulting state.
pub(super) fn conclude(app: &App, edited: &Edited, state: &str) {
    if edited.is_changed() {
        app.printer.note(&diff::text(edited, app.printer.err));
        app.printer.note(state);
    } else {
        app.printer.note(&format!("{state} already, nothing was changed"));
    }
}

pub(super) fn named(name: &str) -> Result<ServerName, Failure> {
    ServerName::new(name).map_err(|cause| {
        let name = clean_line(name, 100).into_owned();
        Failure::new(Code::BadRequest, Subject::Request, BadName { name, cause })
    })
}

pub(super) fn shown(server: &ServerName) -> String {
    clean_line(server.as_str(), 100).into_owned()
}

impl From<edit::Scope> for Scope {
    fn from(scope: edit::Scope) -> Scope {
        match scope {
            edit::Scope::User => Scope::User,
            edit::Scope::Project => Scope::Project,
        }
    }
}
