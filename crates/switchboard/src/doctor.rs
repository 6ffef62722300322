//! Examines the servers of a configuration on this machine, without starting any.

mod hosts;
mod listings;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use switchboard_core::catalog::disk::Miss;
use switchboard_core::catalog::known_failure::FailureKind;
use switchboard_core::config::diagnostic::Level;
use switchboard_core::config::expand::{self, Expanded, Surroundings};
use switchboard_core::config::layers::Server;
use switchboard_core::config::settings::Settings;
use switchboard_core::config::transport::Transport;
use switchboard_core::config::values::Template;
use switchboard_core::doctor;
use switchboard_core::launcher;
use switchboard_core::name::ServerName;
use switchboard_core::request::Request;

use crate::blueprint;
use crate::capabilities::{CapabilitySet, Offer, OfferedCapabilities};
use crate::dial::launch::Outlook;
use crate::dial::lookup;
use crate::directory;
use crate::env::Environment;
use crate::gateway::Gateway;
use crate::host::Headless;
use crate::install::pi;
use crate::listing_file::{Cached, ListingFile};
use crate::load::Loaded;
use crate::paths::Paths;
use crate::pins::PinFile;
use crate::upstream::CommandWords;

pub use listings::known_catalog;
pub use switchboard_core::doctor::{Fault, Finding};
pub use switchboard_core::pi::findings::PiFault;

/// The maximum number of programs on `PATH` that are compared for a similar name.
const MOST_PROGRAMS: usize = 20_000;

/// All findings about the servers of a configuration. Reads files; starts and connects nothing.
pub fn examine(environment: &Environment, locations: &Paths, loaded: &Loaded) -> Vec<Finding> {
    let variable = |name: &str| environment.variable(name).map(str::to_owned);
    let with = Surroundings { variable: &variable, ..environment.places() };
    let mut findings = doctor::configuration::examine(&loaded.config, &with);
    if let Some(problem) = &loaded.trust_problem {
        let path = locations.trust().display().to_string();
        let fault = Fault::DamagedTrust { path, cause: problem.to_string() };
        findings.push(Finding { server: None, fault });
    }
    let directories = locations.private().into_iter().filter_map(|path| directory_fault(&path));
    findings.extend(directories.map(|fault| Finding { server: None, fault }));
    findings.extend(pi::findings::examine(&with, locations, loaded));
    findings.extend(hosts::examine(environment, locations, loaded));
    findings.extend(listings::examine(environment, locations, loaded));
    let (settings, means) = (&loaded.config.settings, (environment, locations));
    for (name, server) in &loaded.config.servers {
        if server.definition.is_disabled() {
            continue;
        }
        let mut faults = program_faults(server, environment, &with);
        if let Ok(name) = ServerName::new(name) {
            if faults.is_empty() {
                faults.extend(launcher_note(&name, server, settings, means));
                let has_error = |name: &str| {
                    findings.iter().any(|finding: &Finding| {
                        finding.server.as_deref() == Some(name)
                            && finding.fault.level() == Level::Error
                    })
                };
                if !has_error(name.as_str()) {
                    faults.extend(failed_before(&name, server, settings, means));
                }
            }
            faults.extend(file_faults(&name, server, settings, means));
        }
        findings.extend(faults.into_iter().map(|fault| Finding::of(name, fault)));
    }
    // Findings about all servers come first, then those of each server.
    findings.sort_by(|a, b| a.server.cmp(&b.server));
    findings
}

/// Connects a server, and returns the failure if there is one.
pub async fn try_connecting(gateway: &Gateway, server: &str) -> Option<Finding> {
    let request = Request::Connect { server: server.to_owned() };
    let failure = gateway.session(Headless).handle(request).await.err()?;
    Some(Finding::of(server, Fault::Unusable(failure)))
}

/// Why the program cannot be started. A value that cannot be expanded was reported already, so the
/// checks that need the value are skipped.
fn program_faults(
    server: &Server,
    environment: &Environment,
    with: &Surroundings<'_>,
) -> Vec<Fault> {
    let definition = &server.definition;
    let cwd = match &definition.cwd {
        None => environment.cwd.clone(),
        Some(cwd) => match expand::expand(cwd, with) {
            Ok(cwd) => environment.cwd.join(cwd),
            Err(_) => return Vec::new(),
        },
    };
    if !cwd.is_dir() {
        let path = definition.cwd.as_ref().and_then(as_written);
        let path = path.unwrap_or_else(|| cwd.display().to_string());
        return vec![Fault::WorkingDirectory { path }];
    }
    let command = match &server.transport {
        Transport::Stdio { command, .. } => {
            expand::expand(command, with).ok().map(|filled| (filled, as_written(command)))
        }
        Transport::CommandLine { words } => words.first().map(|word| (word.clone(), None)),
        Transport::Http { .. } | Transport::WebSocket { .. } | Transport::Socket { .. } => None,
    };
    let ours = environment.variable("PATH").unwrap_or_default();
    let own_path = definition.env.as_ref().and_then(|env| env.get("PATH"));
    let own_path = own_path.and_then(|value| match expand::expand_value(value, with) {
        Ok(Expanded::Text(path)) => Some(path),
        Ok(Expanded::Command(_)) | Err(_) => None,
    });
    let fault = command.and_then(|(command, shown)| {
        find(&command, shown.as_deref(), own_path.as_deref().unwrap_or(ours), &cwd)
    });
    let helpers = definition.env.iter().flat_map(|env| env.iter()).filter_map(|(name, value)| {
        let shown = value.program()?;
        let program = Template::new(shown.as_str());
        let filled = expand::expand(&program, with).ok()?;
        find(&filled, Some(&shown), ours, &cwd)?;
        Some(Fault::HelperNotFound { field: format!("env.{name}"), command: shown })
    });
    fault.into_iter().chain(helpers).collect()
}

/// The finding about a server's launcher; `None` if it has no launcher.
fn launcher_note(
    name: &ServerName,
    server: &Server,
    settings: &Settings,
    means: (&Environment, &Paths),
) -> Option<Fault> {
    let words = match &server.transport {
        Transport::Stdio { command, args } => {
            CommandWords::Templates { command: command.clone(), args: args.clone() }
        }
        Transport::CommandLine { words } => CommandWords::Literal(words.clone()),
        Transport::Http { .. } | Transport::WebSocket { .. } | Transport::Socket { .. } => {
            return None;
        }
    };
    let recipe = blueprint::program(name, server, words, settings, means);
    let program = recipe.draft()?;
    launcher::kind_of(&program.command, &program.args)?;
    let launcher = program.command.clone();
    Some(match recipe.launching.outlook(&program) {
        Outlook::Plain => Fault::Attended { launcher },
        Outlook::Direct(found) => Fault::Launched { launcher, program: found.file },
        Outlook::Ask(_) => Fault::NotInstalled { launcher, log: log_of(name, means.1) },
    })
}

/// Whether the log of the server has content.
fn log_of(name: &ServerName, locations: &Paths) -> doctor::Log {
    let written = fs::metadata(locations.log_of(name)).is_ok_and(|log| log.len() > 0);
    if written { doctor::Log::Written } else { doctor::Log::Empty }
}

/// The finding about a recent failure to connect, of this process or another.
fn failed_before(
    name: &ServerName,
    server: &Server,
    settings: &Settings,
    means: (&Environment, &Paths),
) -> Option<Fault> {
    let offer = offers(server, settings).next()?;
    let (file, now) = (ListingFile::of(name, (server, settings), means, offer), directory::now());
    let (_, failure) = file.look(&file.index(), now);
    let failure = failure.filter(|failure| failure.kind == FailureKind::Failed)?;
    let (ago, log) = (failure.ago(now)?, log_of(name, means.1));
    Some(Fault::FailedBefore { ago, reason: failure.reason, log })
}

/// The text of a template as written, if it has variables: their values must not be shown.
fn as_written(template: &Template) -> Option<String> {
    let filled_in = !expand::variables_in(template).is_empty();
    filled_in.then(|| template.source().to_owned())
}

/// Looks up a program as the kernel does, and returns the fault if it is not found. With `shown`,
/// the fault contains only that text.
fn find(command: &str, shown: Option<&str>, path: &str, cwd: &Path) -> Option<Fault> {
    let candidates = lookup::candidates(command, path, cwd);
    if candidates.iter().any(|candidate| lookup::is_program(candidate)) {
        return None;
    }
    let barred = candidates.into_iter().find(|candidate| candidate.is_file());
    Some(match (barred, shown) {
        (Some(_), Some(shown)) => Fault::NotExecutable { path: shown.to_owned() },
        (Some(path), None) => Fault::NotExecutable { path: path.display().to_string() },
        (None, Some(shown)) => doctor::not_found(shown, std::iter::empty()),
        (None, None) => doctor::not_found(command, programs(lookup::folders(path, cwd))),
    })
}

/// The names in these folders, each once.
fn programs(folders: impl Iterator<Item = PathBuf>) -> impl Iterator<Item = String> {
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.take(MOST_PROGRAMS).collect::<BTreeSet<_>>().into_iter()
}

/// The capabilities that commands offer to servers, with and without a terminal.
fn offers(server: &Server, settings: &Settings) -> impl Iterator<Item = Offer> {
    let askable = blueprint::askable(&server.definition, settings);
    // A command offers other capabilities on a terminal than without one.
    [CapabilitySet::TERMINAL, CapabilitySet::NONE].into_iter().map(move |set| Offer {
        offered: OfferedCapabilities::known(set),
        askable: askable.clone(),
    })
}

/// The cached listings of a server, for commands with and without a terminal.
fn cached(
    name: &ServerName,
    server: &Server,
    settings: &Settings,
    means: (&Environment, &Paths),
) -> impl Iterator<Item = Cached> {
    offers(server, settings).filter_map(move |offer| {
        ListingFile::of(name, (server, settings), means, offer).cached(directory::now())
    })
}

/// Faults in the cache and pin files of a server.
fn file_faults(
    name: &ServerName,
    server: &Server,
    settings: &Settings,
    (environment, locations): (&Environment, &Paths),
) -> Vec<Fault> {
    let mut faults = Vec::new();
    let cached = cached(name, server, settings, (environment, locations)).next();
    if let Some(Cached { path, listing, .. }) = cached {
        match listing {
            Ok(_) | Err(Miss::OtherCredential) => {}
            Err(Miss::Expired) => faults.push(Fault::ExpiredCache),
            Err(Miss::Damaged | Miss::Foreign) => {
                faults.push(Fault::DamagedCache { path: path.display().to_string() });
            }
        }
    }
    let pins = offers(server, settings).next();
    let pins = pins.map(|offer| PinFile::of(name, server, (&environment.cwd, locations), offer));
    let Some(pins) = pins else { return faults };
    if pins.read().is_err() {
        faults.push(Fault::DamagedPins { path: pins.path().display().to_string() });
    }
    faults
}

fn directory_fault(path: &Path) -> Option<Fault> {
    let data = fs::metadata(path).ok()?;
    let shown = path.display().to_string();
    if !data.is_dir() {
        return Some(Fault::NoDirectory { path: shown });
    }
    let mode = data.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(Fault::OpenDirectory { path: shown, mode })
}
