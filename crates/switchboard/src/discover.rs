//! What the other hosts of this machine have, imported or not.

use std::path::PathBuf;

use switchboard_core::config::conflicts::{Conflict, conflicts};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::hosts::Host;
use switchboard_core::config::layers::{Layer, Tier};
use switchboard_core::config::parse::ParsedServer;

use crate::env::Environment;
use crate::last_good::LastGood;
use crate::load::{self, LoadError, LoadOptions};
use crate::paths::Paths;
use crate::sources;

/// Every known host, and the names on which files disagree.
#[derive(Clone, Debug)]
pub struct Discovery {
    pub hosts: Vec<FoundHost>,
    /// Of the places of a conflict the first one counts: our own files, then the hosts in order.
    pub conflicts: Vec<Conflict>,
}

#[derive(Clone, Debug)]
pub struct FoundHost {
    pub host: Host,
    /// Whether a file of the user's names it among its imports.
    pub imported: bool,
    /// Every file that it might have, the one that counts first.
    pub files: Vec<FoundFile>,
}

#[derive(Clone, Debug)]
pub struct FoundFile {
    pub path: PathBuf,
    pub tier: Tier,
    pub found: bool,
    /// Without our own entry, and without those that only the host can start.
    pub servers: Vec<ParsedServer>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Looks at the files of every host. Nothing of them is started, expanded or written.
pub fn discover(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Discovery, LoadError> {
    let own = load::own_layers(environment, locations, options, &LastGood::default())?;
    let imports = own.imports();
    let mut layers: Vec<Layer> = own.layers.into_iter().rev().collect();
    let mut hosts = Vec::new();
    for host in Host::ALL {
        let mut files = Vec::new();
        for candidate in sources::of_host(locations, &options.project, host) {
            let layer = candidate.read(&options.project);
            let found = layer.is_some();
            let (servers, diagnostics) = match &layer {
                None => (Vec::new(), Vec::new()),
                Some(layer) => (layer.file.servers.clone(), layer.file.diagnostics.clone()),
            };
            let (path, tier) = (candidate.path, candidate.tier);
            files.push(FoundFile { path, tier, found, servers, diagnostics });
            layers.extend(layer);
        }
        hosts.push(FoundHost { host, imported: imports.contains(&host), files });
    }
    Ok(Discovery { hosts, conflicts: conflicts(&layers) })
}
