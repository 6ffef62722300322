//! Hosts that start Switchboard without the environment variables that servers need.

use std::collections::BTreeSet;
use std::path::PathBuf;

use switchboard_core::config::install::{self, ALWAYS_PASSED_ON, Target};
use switchboard_core::config::layers::{Tier, Trust};
use switchboard_core::config::trust::reach;
use switchboard_core::doctor::{Fault, Finding};

use crate::env::{Environment, OWN_VARIABLES};
use crate::load::Loaded;
use crate::paths::{self, Paths};
use crate::sources;

/// Examines every file in which Switchboard is installed.
pub(super) fn examine(
    environment: &Environment,
    locations: &Paths,
    loaded: &Loaded,
) -> Vec<Finding> {
    let servers = loaded.config.servers.iter();
    let servers = servers
        .filter(|(_, server)| server.trust == Trust::UserFile && !server.definition.is_disabled());
    let own = OWN_VARIABLES.iter().filter(|name| environment.variable(name).is_some());
    let own = (None, own.map(|name| (*name).to_owned()).collect());
    let needs: Vec<(Option<&str>, Vec<String>)> = servers
        .map(|(name, server)| (Some(name.as_str()), needed(reach(&server.definition).variables)))
        .chain([own])
        .collect();
    let mut findings = Vec::new();
    for target in Target::all().filter(|target| target.filters_variables()) {
        for file in files(environment, locations, target) {
            let Ok(Some(bytes)) = paths::read(&file) else { continue };
            let text = String::from_utf8_lossy(&bytes);
            for (server, names) in &needs {
                let withheld =
                    install::variables_not_passed_on(target, &text, names).unwrap_or_default();
                findings.extend(withheld.into_iter().map(|name| {
                    let path = file.display().to_string();
                    let fault = match target.can_name_variables() {
                        true => Fault::NotPassedOn { host: target, path, name },
                        false => Fault::NeverPassedOn { host: target, path, name },
                    };
                    Finding { server: server.map(str::to_owned), fault }
                }));
            }
        }
    }
    findings
}

fn needed(variables: Vec<String>) -> Vec<String> {
    variables.into_iter().filter(|name| !ALWAYS_PASSED_ON.contains(&name.as_str())).collect()
}

/// The user's files of a host, and recorded files of installations in another environment.
fn files(environment: &Environment, locations: &Paths, target: Target) -> BTreeSet<PathBuf> {
    let Some(host) = target.host() else { return BTreeSet::new() };
    let users = sources::of_host(locations, &environment.cwd, host).into_iter();
    let users = users.filter(|file| file.tier == Tier::User).map(|file| file.path);
    users.chain(crate::install::files_with_us(locations, target)).collect()
}
