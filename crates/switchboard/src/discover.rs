//! Finds the configurations of other hosts on this machine, imported or not.

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

/// All known hosts, and the relevant parts of the user's own files.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// All known hosts, whether they have files or not.
    pub hosts: Vec<FoundHost>,
    /// The imports of the user's own files, in order.
    imports: Vec<Host>,
    /// The user's own files, highest precedence first.
    own: Vec<Layer>,
}

/// The configuration of one host.
#[derive(Clone, Debug)]
pub struct FoundHost {
    /// The host that the files belong to.
    pub host: Host,
    /// Whether one of the user's files imports the host.
    pub imported: bool,
    /// All possible files of the host, highest precedence first.
    pub files: Vec<FoundFile>,
}

/// One configuration file of a host.
#[derive(Clone, Debug)]
pub struct FoundFile {
    /// The path of the file, which need not exist.
    pub path: PathBuf,
    /// Whether the file belongs to the user or the project.
    pub tier: Tier,
    /// Whether the file exists.
    pub found: bool,
    /// The servers in the file, without Switchboard's own entry and those that only the host can
    /// start.
    pub servers: Vec<ParsedServer>,
    /// The errors in the file.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the files of every host. Starts no program, expands no variable and writes nothing.
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
    /// The hosts in `named` that have servers and are not imported yet, in that order. If `named`
    /// is empty, all hosts with servers in the user's files; servers in a project file are included
    /// only for a named host.
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

    /// The names of servers for which the user's files have different definitions once the hosts in
    /// `added` are imported. The user's own files take precedence, then the hosts in the order of
    /// `imports`. Project files are left out, because a pending server takes no name from the user.
    pub fn conflicts(&self, added: &[Host]) -> Vec<Conflict> {
        let hosts = self.imports.iter().chain(added);
        let found = hosts.filter_map(|host| self.hosts.iter().find(|found| found.host == *host));
        let files = found.flat_map(|found| &found.files).filter(|file| file.tier == Tier::User);
        let own = self.own.iter().flat_map(|layer| &layer.file.servers);
        conflicts(own.chain(files.flat_map(|file| &file.servers)))
    }
}
