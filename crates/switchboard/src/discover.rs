//! What the other hosts of this machine have, imported or not.

use std::path::PathBuf;

use switchboard_core::config::conflicts::{Conflict, conflicts};
use switchboard_core::config::diagnostic::Diagnostic;
use switchboard_core::config::hosts::Host;
use switchboard_core::config::layers::{Layer, Tier};
use switchboard_core::config::parse::{ParsedFile, ParsedServer};

use crate::env::Environment;
use crate::known_files::KnownFiles;
use crate::last_good::LastGood;
use crate::load::{self, Earlier, LoadError, LoadOptions};
use crate::paths::Paths;
use crate::sources;

/// Every known host, and what our own files say.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// Every known host.
    pub hosts: Vec<FoundHost>,
    /// What our own files import, in their order.
    imports: Vec<Host>,
    /// The user's own files, highest precedence first.
    own: Vec<Layer>,
}

/// The configuration of one host.
#[derive(Clone, Debug)]
pub struct FoundHost {
    /// The host.
    pub host: Host,
    /// Whether a file of the user's names it among its imports.
    pub imported: bool,
    /// Every file that it might have, highest precedence first.
    pub files: Vec<FoundFile>,
}

/// One configuration file of a host.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whether it is the user's or the project's.
    pub tier: Tier,
    /// Whether the file exists.
    pub found: bool,
    /// Without our own entry, and without those that only the host can start.
    pub servers: Vec<ParsedServer>,
    /// What is wrong in it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Looks at the files of every host. Nothing of them is started, expanded or written.
pub fn discover(
    environment: &Environment,
    locations: &Paths,
    options: &LoadOptions,
) -> Result<Discovery, LoadError> {
    let (last_good, known) = (LastGood::default(), KnownFiles::read(&locations.known_files()));
    let earlier = Earlier { last_good: &last_good, known: &known };
    let own = load::own_layers(environment, locations, options, earlier)?;
    let imports = own.imports();
    let mut hosts = Vec::new();
    for host in Host::ALL {
        let mut files = Vec::new();
        for candidate in sources::of_host(locations, &options.project, host) {
            let layer = candidate.read(&options.project);
            let found = layer.is_some();
            let ParsedFile { servers, diagnostics, .. } =
                layer.map(|layer| layer.file).unwrap_or_default();
            let (path, tier) = (candidate.path, candidate.tier);
            files.push(FoundFile { path, tier, found, servers, diagnostics });
        }
        hosts.push(FoundHost { host, imported: imports.contains(&host), files });
    }
    let users = own.layers.into_iter().rev().filter(|layer| layer.source.tier == Tier::User);
    Ok(Discovery { hosts, imports, own: users.collect() })
}

impl Discovery {
    /// The hosts that are worth importing and are not yet: of those that were named, in that order,
    /// or of all. Only a host that was named counts for what a project's file has.
    pub fn new_imports(&self, named: &[Host]) -> Vec<Host> {
        let has_servers = |host: Host, tiers: &[Tier]| {
            let found = self.hosts.iter().find(|found| found.host == host && !found.imported);
            found.is_some_and(|found| {
                let files = found.files.iter().filter(|file| tiers.contains(&file.tier));
                files.flat_map(|file| &file.servers).next().is_some()
            })
        };
        let (asked, tiers): (&[Host], &[Tier]) = match named {
            [] => (&Host::ALL, &[Tier::User]),
            named => (named, &[Tier::User, Tier::Project]),
        };
        let mut hosts = Vec::new();
        for host in asked.iter().copied().filter(|host| has_servers(*host, tiers)) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }

    /// The names on which files of the user disagree once `added` are imported, too. Of the places
    /// of a conflict the first one counts: our own files, then the hosts in the order of `imports`.
    /// What a project says waits for approval and takes no name from the user.
    pub fn conflicts(&self, added: &[Host]) -> Vec<Conflict> {
        let hosts = self.imports.iter().chain(added);
        let found = hosts.filter_map(|host| self.hosts.iter().find(|found| found.host == *host));
        let files = found.flat_map(|found| &found.files).filter(|file| file.tier == Tier::User);
        let own = self.own.iter().flat_map(|layer| &layer.file.servers);
        conflicts(own.chain(files.flat_map(|file| &file.servers)))
    }
}
