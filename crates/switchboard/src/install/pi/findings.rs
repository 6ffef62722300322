//! Findings about Pi: the files that Switchboard reads, Switchboard's package in Pi's settings, and
//! older tokens.

use std::path::Path;

use serde_json::Value;
use switchboard_core::config::expand::{self, Surroundings};
use switchboard_core::config::layers::{Server, Tier};
use switchboard_core::config::transport::Transport;
use switchboard_core::doctor::Finding;
use switchboard_core::name::ServerName;
use switchboard_core::pi::findings::PiFault;
use switchboard_core::pi::settings::{self, BuiltIn, Declared};
use url::Url;

use crate::auth::takeover;
use crate::dial::lookup;
use crate::install::pi;
use crate::load::Loaded;
use crate::paths::{self, Paths};
use crate::sources;

/// All findings about Pi; none if Pi has no directory.
pub(crate) fn examine(with: &Surroundings<'_>, locations: &Paths, loaded: &Loaded) -> Vec<Finding> {
    if !locations.others.pi.is_dir() {
        return Vec::new();
    }
    let mut faults = files(with, locations, loaded);
    faults.extend(package(locations));
    let general = faults.into_iter().map(|fault| Finding { server: None, fault: fault.into() });
    let servers = loaded.config.servers.iter();
    let older = servers.filter(|(name, server)| has_older_tokens(name, server, with, locations));
    let tokens = older.map(|(name, _)| Finding::of(name, PiFault::OlderTokens.into()));
    general.chain(tokens).collect()
}

/// Findings about the files of Pi that Switchboard reads.
fn files(with: &Surroundings<'_>, locations: &Paths, loaded: &Loaded) -> Vec<PiFault> {
    let project = Path::new(with.project.unwrap_or_default());
    let folders = [locations.others.pi.clone(), project.join(".pi")];
    let is_read = |path: &Path| loaded.files.iter().any(|file| file.found && file.path == path);
    let mut faults = Vec::new();
    for candidate in sources::own(locations, project, None) {
        let of_pi = folders.iter().any(|folder| candidate.path.parent() == Some(folder));
        let layer = Some(&candidate).filter(|file| of_pi && is_read(&file.path));
        let Some(layer) = layer.and_then(|candidate| candidate.read(project)) else { continue };
        let path = candidate.path.display().to_string();
        let file = layer.file;
        let narrow = file.servers.iter().map(|server| &server.entry);
        let narrow = narrow.filter(|entry| {
            entry.command.is_some() && entry.inherit_env.is_none() && !entry.is_disabled()
        });
        let (servers, narrow) = (file.servers.len(), narrow.count());
        faults.push(PiFault::FileRead { path: path.clone(), servers, imports: file.imports });
        // The fault is reported for user files only: a project must not request more environment
        // variables.
        if narrow > 0 && candidate.tier == Tier::User {
            faults.push(PiFault::NarrowEnvironment { path, servers: narrow });
        }
    }
    faults
}

/// Findings about Switchboard's package in Pi's settings.
fn package(locations: &Paths) -> Vec<PiFault> {
    let file = pi::settings(locations);
    let path = file.display().to_string();
    let Ok(Some(bytes)) = paths::read(&file) else { return Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let declared = match pi::with(locations, |with| settings::declared(&text, with)) {
        Ok(declared) => declared,
        Err(cause) => return vec![PiFault::Settings { path, cause }],
    };
    let Declared { ours, lost, rivals, built_in } = declared;
    let mut faults = Vec::new();
    let is_declared = !ours.is_empty() || !lost.is_empty();
    if !rivals.is_empty() {
        let path = path.clone();
        faults.push(match is_declared {
            true => PiFault::Both { path },
            false => PiFault::OnlyOther { path },
        });
    }
    if is_declared && built_in == BuiltIn::On {
        faults.push(PiFault::BuiltInOn { path: path.clone() });
    }
    let missing = |directory| PiFault::NoPackage { path: path.clone(), directory };
    faults.extend(lost.into_iter().map(missing));
    let directory = locations.pi_package();
    if ours.iter().any(|source| Path::new(source) == directory) {
        faults.extend(missing_program(&directory.join(pi::BINARY)));
    }
    faults
}

/// The fault of a configured program that is not executable. Without a configured program, the
/// package searches for one.
fn missing_program(binary: &Path) -> Option<PiFault> {
    let bytes = paths::read(binary).ok()??;
    let written: Value = serde_json::from_slice(&bytes).ok()?;
    let program = written.get("path")?.as_str()?.to_owned();
    (!lookup::is_program(Path::new(&program))).then_some(PiFault::NoProgram { program })
}

/// Whether a sign-in would take over the tokens of `pi-mcp-adapter`.
fn has_older_tokens(
    name: &str,
    server: &Server,
    with: &Surroundings<'_>,
    locations: &Paths,
) -> bool {
    let Transport::Http { url, .. } = &server.transport else { return false };
    let may_sign_in = !server.definition.is_disabled() && server.definition.sign_in().is_some();
    let url = expand::expand(url, with).ok().filter(|_| may_sign_in);
    let url = url.and_then(|url| Some(Url::parse(&url).ok()?.to_string()));
    let (Some(url), Ok(name)) = (url, ServerName::new(name)) else { return false };
    takeover::left_behind(locations, &name, &url).is_some() && !takeover::was_taken(locations, &url)
}
