//! Pins of servers' tools, prompts and instructions: reports changes, and accepts them on the
//! user's request.

mod file;

use std::sync::Arc;

use switchboard_core::catalog::pin::{Baseline, Drift, Pin, PinRecord, Records, ServerPins};
use switchboard_core::catalog::{Catalog, Entry, Listing, Resolution};
use switchboard_core::failure::Failure;
use switchboard_core::hidden::Hidden;
use switchboard_core::name::ServerName;

use self::file::{Accepted, AcceptedDefinition};
use crate::blocking::blocking;
use crate::capabilities::CapabilitySet;
use crate::directory;
use crate::explain;
use crate::gateway::Gateway;

pub(crate) use self::file::{PinError, PinFile};

/// A definition that differs from its pin or has hidden text.
struct PinFinding {
    shown: String,
    /// The server's own name for the tool, prompt or instructions.
    name: String,
    pin: Pin,
    hidden: Option<Hidden>,
    accepted: Accepted,
}

impl PinFinding {
    /// How the definition differs from its pin, for the first set of client capabilities for which
    /// it is listed.
    fn drift(&self, own: CapabilitySet, records: &Records) -> Drift {
        let Accepted { sets, definition } = &self.accepted;
        let record = sets.first().and_then(|set| records.of_set(set.code()));
        let changes = match self.pin {
            Pin::Same => Vec::new(),
            Pin::Changed | Pin::New | Pin::Unknown => {
                record.unwrap_or(&PinRecord::default()).changes(&definition.pinned())
            }
        };
        let listed_to = match sets.contains(&own) {
            true => Vec::new(),
            false => sets.iter().map(CapabilitySet::to_string).collect(),
        };
        Drift {
            shown: self.shown.clone(),
            tool: self.name.clone(),
            of: definition.kind(),
            pin: self.pin,
            changes,
            hidden: self.hidden.clone(),
            listed_to,
        }
    }

    fn is(&self, other: &PinFinding) -> bool {
        let (this, that) = (&self.accepted.definition, &other.accepted.definition);
        this.kind() == that.kind()
            && self.name == other.name
            && self.pin == other.pin
            && this.text() == that.text()
    }
}

/// The listing of a server for one set of client capabilities.
struct View {
    set: CapabilitySet,
    catalog: Arc<Catalog>,
}

/// The listings and pins of one server.
struct Survey {
    server: ServerName,
    own: CapabilitySet,
    views: Vec<View>,
    records: Records,
}

impl Survey {
    fn found(&self) -> Vec<PinFinding> {
        let mut all: Vec<PinFinding> = Vec::new();
        for View { set, catalog } in &self.views {
            for found in found(catalog, &self.server, *set) {
                match all.iter_mut().find(|known| known.is(&found)) {
                    Some(known) => known.accepted.sets.push(*set),
                    None => all.push(found),
                }
            }
        }
        all
    }

    /// All definitions of the tool with this name, one from each listing that has the tool.
    fn named(&self, tool: &str) -> Result<Vec<Arc<Entry>>, Failure> {
        let (mut entries, mut failure) = (Vec::new(), None);
        for view in &self.views {
            match view.catalog.resolve(tool, Some(self.server.as_str())) {
                Ok(Resolution::Tool(target)) => entries.push(target.entry),
                Ok(Resolution::Unlisted(server)) => {
                    failure = failure.or(Some(explain::no_lists(&server)));
                }
                Err(error) => failure = failure.or(Some(explain::resolve(error))),
            }
        }
        match failure {
            Some(failure) if entries.is_empty() => Err(failure),
            Some(_) | None => Ok(entries),
        }
    }

    fn report(&self, found: &[PinFinding]) -> ServerPins {
        let drifts = found.iter().map(|found| found.drift(self.own, &self.records)).collect();
        ServerPins { server: self.server.clone(), drifts }
    }
}

impl Gateway {
    /// Reports definitions that differ from their pin or have hidden text: of one server, or of all
    /// servers with such definitions. Covers the listings for all client capabilities. Connects no
    /// server.
    pub async fn pins(&self, server: Option<&str>) -> Result<Vec<ServerPins>, Failure> {
        let catalog = self.catalog();
        let servers: Vec<ServerName> = match server {
            Some(server) => vec![catalog.active_server(server).map_err(explain::resolve)?],
            None => catalog.shelves().map(|(server, _)| server.clone()).collect(),
        };
        let mut report = Vec::new();
        for name in servers {
            let survey = self.survey(&catalog, name).await;
            let found = survey.found();
            if server.is_some() || !found.is_empty() {
                report.push(survey.report(&found));
            }
        }
        Ok(report)
    }

    /// Pins the latest definitions: of the named tools, or of the whole server. Returns the
    /// accepted changes.
    pub async fn accept_pins(&self, server: &str, tools: &[String]) -> Result<ServerPins, Failure> {
        let catalog = self.catalog();
        let server = catalog.active_server(server).map_err(explain::resolve)?;
        let survey = self.survey(&catalog, server).await;
        let server = &survey.server;
        if survey.views.iter().all(|view| view.catalog.listing(server).is_none()) {
            return Err(explain::never_listed(server));
        }
        let mut found = survey.found();
        found.retain(|found| found.pin != Pin::Same);
        if !tools.is_empty() {
            let wanted = tools.iter().map(|tool| survey.named(tool));
            let wanted = wanted.collect::<Result<Vec<_>, Failure>>()?.concat();
            found.retain(|found| match &found.accepted.definition {
                AcceptedDefinition::Tool(entry) => {
                    wanted.iter().any(|wanted| Arc::ptr_eq(wanted, entry))
                }
                AcceptedDefinition::Prompt(_) | AcceptedDefinition::Instructions(_) => false,
            });
        }
        let accepted = survey.report(&found);
        if let Some(file) = self.directory().pin_file(server)
            && !found.is_empty()
        {
            let what: Vec<Accepted> = found.into_iter().map(|found| found.accepted).collect();
            let written = blocking(move || file.accept(&what)).await;
            let baseline = written.map_err(|error| explain::storage(error, server))?;
            self.directory().compare(server, baseline);
        }
        Ok(accepted)
    }

    /// Reads the listings of a server for all sets of client capabilities.
    async fn survey(&self, catalog: &Arc<Catalog>, server: ServerName) -> Survey {
        let plan = self.directory().plan(&server);
        let pins = plan.as_ref().and_then(|plan| plan.pins.clone());
        let own = pins.as_ref().map_or(CapabilitySet::USUAL, |pins| pins.set());
        let mut views = vec![View { set: own, catalog: Arc::clone(catalog) }];
        let (Some(plan), Some(pins)) = (plan, pins) else {
            return Survey { server, own, views, records: Records::default() };
        };
        let reader = Arc::clone(&plan);
        let (stored, others) = blocking(move || {
            let others = reader.file.as_ref().map(|file| file.of_other_clients(directory::now()));
            (pins.read(), others.unwrap_or_default())
        })
        .await;
        let damaged = stored.is_err();
        let records = stored.unwrap_or_default();
        for (set, raw) in others {
            let Some(shelf) = catalog.shelf(&server).filter(|shelf| shelf.is_active()) else {
                break;
            };
            let listing = Arc::new(Listing::build(server.clone(), &raw, &plan.policy));
            let baseline = match damaged {
                true => Baseline::Damaged,
                false => records.baseline(set.code()),
            };
            let shelf = shelf.clone().with_listing(listing).with_baseline(baseline);
            views.push(View { set, catalog: Arc::new(catalog.with_shelf(&server, shelf)) });
        }
        Survey { server, own, views, records }
    }
}

fn found(catalog: &Catalog, server: &ServerName, set: CapabilitySet) -> Vec<PinFinding> {
    let of = |definition| Accepted { sets: vec![set], definition };
    let tools = catalog.all_tools_of(server).map(|item| PinFinding {
        shown: item.shown.to_string(),
        name: item.entry.name.as_str().to_owned(),
        pin: item.pin,
        hidden: item.entry.hidden.as_deref().cloned(),
        accepted: of(AcceptedDefinition::Tool(Arc::clone(&item.entry))),
    });
    let prompts = catalog.prompts_of(server).map(|item| PinFinding {
        shown: item.shown.to_string(),
        name: item.prompt.name.clone(),
        pin: item.pin,
        hidden: item.prompt.hidden.as_deref().cloned(),
        accepted: of(AcceptedDefinition::Prompt(item.prompt.clone())),
    });
    let shelf = catalog.shelf(server).filter(|shelf| shelf.is_active());
    let instructions = shelf.and_then(|shelf| {
        let instructions = shelf.listing()?.instructions.clone()?;
        Some(PinFinding {
            shown: "instructions".to_owned(),
            name: String::new(),
            pin: shelf.instructions_pin(),
            hidden: instructions.hidden.clone(),
            accepted: of(AcceptedDefinition::Instructions(instructions)),
        })
    });
    let all = tools.chain(prompts).chain(instructions);
    all.filter(|found| found.pin != Pin::Same || found.hidden.is_some()).collect()
}
