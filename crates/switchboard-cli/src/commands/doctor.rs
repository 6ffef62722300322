//! Checks the configured servers, and suggests remedies.

use std::error::Error;

use serde_json::{Value, json};
use switchboard::config::diagnostic::Level;
use switchboard::doctor::{self, Fault, Finding};
use switchboard::explain;
use switchboard::failure::{Code, Failure, Hint, Subject};
use switchboard::load::Loaded;
use switchboard::render::words::{clean_line, plural};

use crate::args::Doctor;
use crate::boot::App;
use crate::exit::Exit;
use crate::host::Consent;
use crate::report::{self, CommandResult};
use crate::style::Palette;

const MESSAGE: usize = 1_000;

#[derive(Debug, thiserror::Error)]
#[error("no server is named `{name}`")]
struct Unknown {
    name: String,
}

pub(super) async fn doctor(app: &App, options: Doctor) -> CommandResult {
    let loaded = app.load()?;
    let mut findings = doctor::examine(&app.environment, &app.paths, &loaded);
    known(&loaded, &findings, &options.servers)?;
    let wanted =
        |name: &str| options.servers.is_empty() || options.servers.iter().any(|w| w == name);
    findings.retain(|finding| match &finding.server {
        Some(server) => wanted(server),
        None => options.servers.is_empty(),
    });
    let sound = |name: &str| {
        !findings.iter().any(|finding| {
            finding.server.as_deref() == Some(name) && finding.fault.level() == Level::Error
        })
    };
    if options.connect {
        let enabled =
            loaded.config.servers.iter().filter(|(_, server)| !server.definition.is_disabled());
        let names = enabled.map(|(name, _)| name.clone());
        let worth_trying: Vec<String> = names.filter(|name| wanted(name) && sound(name)).collect();
        // The result of this attempt replaces the remembered failure of an earlier one.
        findings.retain(|finding| !matches!(finding.fault, Fault::FailedBefore { .. }));
        if connect(app, &loaded, worth_trying, &mut findings).await? == Exit::Interrupted {
            return Ok(Exit::Interrupted);
        }
    }
    print(app, &findings, &options, &loaded)?;
    let faulty = findings.iter().any(Finding::is_fault);
    Ok(if faulty { Exit::Faults } else { Exit::Done })
}

/// Refuses names of unknown servers.
fn known(loaded: &Loaded, findings: &[Finding], names: &[String]) -> Result<(), Failure> {
    let config = &loaded.config;
    let is_known = |name: &&String| {
        config.servers.contains_key(*name)
            || config.pending.iter().any(|pending| pending.name == **name)
            || findings.iter().any(|finding| finding.server.as_ref() == Some(*name))
    };
    let Some(name) = names.iter().find(|name| !is_known(name)) else { return Ok(()) };
    if let Some(refused) = loaded.refused(name) {
        return Err(explain::refused_entry(refused));
    }
    let unknown = Unknown { name: clean_line(name, 200).into_owned() };
    let failure = Failure::new(Code::UnknownServer, Subject::Request, unknown);
    Err(failure.hint(Hint::ListServers))
}

/// Connects to the servers one after the other.
async fn connect(
    app: &App,
    loaded: &Loaded,
    names: Vec<String>,
    findings: &mut Vec<Finding>,
) -> CommandResult {
    let config = loaded.config.clone();
    let gateway = app.gateway_of(config.clone()).on_demand().build();
    let tried = app.converse((gateway, config), Consent::Ask, async |conversation| {
        for name in names {
            let stage = async || format!("trying {}", clean_line(&name, 100));
            let work = doctor::try_connecting(conversation.session.gateway(), &name);
            findings.extend(conversation.wait(stage, work).await);
        }
        Ok(Exit::Done)
    });
    tried.await
}

fn print(
    app: &App,
    findings: &[Finding],
    options: &Doctor,
    loaded: &Loaded,
) -> std::io::Result<()> {
    let printer = app.printer;
    if options.format.json {
        let findings: Vec<Value> = findings.iter().map(in_json).collect();
        return printer.json(&json!({ "findings": findings }));
    }
    let lines: Vec<String> = findings.iter().map(|f| in_words(f, printer.out)).collect();
    printer.text(&lines.join("\n"))?;
    let faults = findings.iter().filter(|finding| finding.is_fault()).count();
    let servers = loaded.config.servers.len() + loaded.config.pending.len();
    printer.note(&format!("checked {}: {}", plural(servers, "server"), plural(faults, "fault")));
    Ok(())
}

fn in_json(finding: &Finding) -> Value {
    let hints = finding.hints();
    let remedy: Vec<String> =
        hints.iter().map(|hint| report::wording(hint, Palette::Plain)).collect();
    let mut value = json!({
        "level": finding.fault.level().as_str(),
        "code": finding.fault.code(),
        "message": message(finding),
        "remedy": remedy.join("; "),
    });
    if let Some(server) = &finding.server {
        value["server"] = json!(server);
    }
    if let Some(count) = finding.fault.count() {
        value["count"] = json!(count);
    }
    value
}

/// The fault of a finding with its causes, on one line.
fn message(finding: &Finding) -> String {
    let fault: &(dyn Error + 'static) = &finding.fault;
    let causes = std::iter::successors(Some(fault), |&error| error.source());
    let text = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
    clean_line(&text, MESSAGE).into_owned()
}

fn in_words(finding: &Finding, palette: Palette) -> String {
    let level = format!("{}:", finding.fault.level().as_str());
    let level = match finding.fault.level() {
        Level::Error => palette.error(level),
        Level::Warning => palette.warning(level),
        Level::Note => palette.aside(level),
    };
    let server = match &finding.server {
        Some(server) => format!("{}: ", palette.name(clean_line(server, 100))),
        None => String::new(),
    };
    let mut lines = vec![format!("{level} {server}{}", message(finding))];
    lines.extend(finding.hints().iter().map(|hint| format!("  {}", report::hint(hint, palette))));
    lines.join("\n")
}
