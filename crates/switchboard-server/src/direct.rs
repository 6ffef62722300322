//! The tools that one client is shown beside `mcp`: what it was shown last, and when that is no
//! longer what there is.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use switchboard::Gateway;
use switchboard::approval::Access;
use switchboard::catalog::Catalog;
use switchboard::catalog::direct::{Choice, DirectList, DirectTool};
use switchboard::config::values::{DirectTools, Toolset};
use switchboard::host_profile::UNKNOWN;
use switchboard::name::{ToolId, ToolName};
use switchboard::render::words::clean_line;
use switchboard::reply::SearchPage;
use switchboard::tool_card::{self, Cards};
use switchboard_wire::envelope::INVALID_PARAMS;
use switchboard_wire::{Peer, Raw, RpcError};
use tokio::sync::watch;

use crate::conversation::View;
use crate::granular;
use crate::service::Offer;

/// What a client is told when it should list the tools again.
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// From here on, tools beside `mcp` are worth a warning.
const MANY: usize = 75;

/// The most tools that searches of one client put into its list.
const MOST_FOUND: usize = 1_000;

/// What one client sees of the tools.
pub(crate) struct Direct {
    /// For servers of which the configuration says nothing.
    otherwise: DirectTools,
    /// Whether what was shown first stays.
    frozen: bool,
    /// Held for a moment at a time, never across an await.
    state: Mutex<State>,
    /// Told when a search found something that belongs into the list.
    found_more: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    found: BTreeSet<ToolId>,
    /// What the client was shown last.
    listed: Option<Listed>,
}

struct Listed {
    /// The answer itself, where it stays.
    frozen: Option<Raw>,
    /// What the list comes to, in a number.
    number: u64,
    /// What a name meant in that list is what it means in a call.
    names: HashMap<Arc<str>, Shown>,
    /// Whether the client knows that there is another list. Until it asks for that, it need not hear
    /// of further changes.
    stale: bool,
}

/// A tool as a client was shown it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) id: ToolId,
    /// Read-only if it was shown so: a host may have let it run because of that.
    pub(crate) access: Access,
}

impl From<DirectTool> for Shown {
    fn from(tool: DirectTool) -> Shown {
        let access = if tool.only_reads { Access::ReadOnly } else { Access::Full };
        Shown { id: tool.id, access }
    }
}

/// What is said of an offer with so many tools beside `mcp` that a model feels them, unless the user
/// does not want to hear it.
pub fn warning_of_many(gateway: &Gateway, offer: &Offer) -> Option<String> {
    match offer {
        Offer::Granular | Offer::Mirror(_) => None,
        Offer::Auto | Offer::Proxy | Offer::Pair | Offer::Direct => {
            Direct::new(gateway, offer).warning_of_many(gateway)
        }
    }
}

/// What a host is shown with a toolset as long as it has not searched.
pub fn definitions(gateway: &Gateway, toolset: Toolset) -> Vec<String> {
    let offer = match toolset {
        Toolset::Granular => return granular::definitions(),
        Toolset::Auto => Offer::Auto,
        Toolset::Proxy => Offer::Proxy,
        Toolset::Pair => Offer::Pair,
        Toolset::Direct => Offer::Direct,
    };
    let cards = if offer == Offer::Pair { Cards::Pair } else { Cards::One };
    let beside = Direct::new(gateway, &offer).present(gateway, &BTreeSet::new());
    let beside = beside.tools.into_iter().map(|tool| tool.definition);
    tool_card::definitions(cards, &UNKNOWN).into_iter().chain(beside).collect()
}

impl Direct {
    pub(crate) fn new(gateway: &Gateway, offer: &Offer) -> Direct {
        let otherwise = match offer {
            Offer::Direct => DirectTools::All,
            Offer::Auto | Offer::Proxy | Offer::Pair | Offer::Granular | Offer::Mirror(_) => {
                DirectTools::None
            }
        };
        let frozen = gateway.settings().freeze_direct_tools;
        Direct { otherwise, frozen, state: Mutex::default(), found_more: watch::Sender::new(()) }
    }

    /// See [`warning_of_many`].
    pub(crate) fn warning_of_many(&self, gateway: &Gateway) -> Option<String> {
        let beside = self.present(gateway, &BTreeSet::new()).tools.len();
        let wanted = gateway.settings().warn_on_large_direct_tools && beside >= MANY;
        wanted.then(|| {
            format!(
                "{beside} tools are shown beside `mcp`, and a model reads them with every request; \
                 `directTools` can name some, or say \"search\""
            )
        })
    }

    /// The answer to `tools/list`: from what is known, with nothing connected.
    pub(crate) fn list(&self, gateway: &Gateway, view: View) -> Raw {
        let mut state = self.state();
        if let Some(answer) = state.listed.as_ref().and_then(|listed| listed.frozen.clone()) {
            return answer;
        }
        // Looked at while the state is ours: what is published later is noticed by `tell`.
        let DirectList { tools, left_out } = self.present(gateway, &state.found);
        if left_out > 0 {
            tracing::warn!(left_out, "more tools than are shown beside `mcp`");
        }
        let cards = tool_card::definitions(view.cards, view.profile).join(",");
        let mut answer = format!("{{\"tools\":[{cards}");
        for tool in &tools {
            answer.push(',');
            answer.push_str(&tool.definition);
        }
        answer.push_str("]}");
        let answer = Raw::from_json(answer);
        let number = number(&tools);
        let names = tools.into_iter().map(|tool| (Arc::clone(&tool.shown), tool.into())).collect();
        let frozen = self.frozen.then(|| answer.clone());
        state.listed = Some(Listed { frozen, number, names, stale: false });
        answer
    }

    /// The tool that a name means: as the client was shown it, or as it would be now.
    pub(crate) fn target(&self, gateway: &Gateway, name: &str) -> Result<Shown, RpcError> {
        let state = self.state();
        let shown = state.listed.as_ref().and_then(|listed| listed.names.get(name));
        // A server that was configured since may own the prefix of the name.
        let permitted = |shown: &&Shown| gateway.catalog().permits(name, &shown.id.server);
        if let Some(shown) = shown.filter(permitted) {
            return Ok(shown.clone());
        }
        let mut tools = self.present(gateway, &state.found).tools;
        if let Some(at) = tools.iter().position(|tool| *tool.shown == *name) {
            return Ok(tools.swap_remove(at).into());
        }
        // A denied tool is listed nowhere; its call is refused with the rule.
        let catalog = gateway.catalog();
        if catalog.denied_by(name).is_some()
            && let Some(denied) = catalog.shown(name)
        {
            return Ok(Shown { id: denied.id(), access: Access::Full });
        }
        let message = format!("no tool `{}` is listed here", clean_line(name, 64));
        Err(RpcError::new(INVALID_PARAMS, message))
    }

    /// What a search found belongs into the list from now on, where the configuration says so.
    pub(crate) fn take_note(&self, gateway: &Gateway, page: &SearchPage) {
        let catalog = gateway.catalog();
        let mut state = self.state();
        let before = state.found.len();
        for hit in &page.hits {
            let wanted = catalog.direct_tools_of(&hit.line.server, &self.otherwise);
            if *wanted == DirectTools::Search
                && state.found.len() < MOST_FOUND
                && let Ok(tool) = ToolName::new(&hit.line.tool)
            {
                state.found.insert(ToolId { server: hit.line.server.clone(), tool });
            }
        }
        if state.found.len() > before {
            self.found_more.send_replace(());
        }
    }

    /// Tells `client` from now on when what it was shown is not what there is.
    pub(crate) async fn tell(self: Arc<Direct>, gateway: Gateway, client: Peer) {
        if self.frozen {
            return;
        }
        let (mut changes, mut found) = (gateway.watch(), self.found_more.subscribe());
        loop {
            // At once, too: something may have changed since the client was answered.
            if self.has_news(&gateway) && client.notify(TOOLS_CHANGED, "").await.is_err() {
                return;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                found = found.changed() => if found.is_err() { return },
            }
        }
    }

    /// Says so whenever the list is not what it was, to one who listens and may never list.
    pub(crate) async fn follow(&self, gateway: &Gateway, say: impl Fn()) {
        if self.frozen {
            return;
        }
        let (mut changes, mut found) = (gateway.watch(), self.found_more.subscribe());
        let now = || number(&self.present(gateway, &self.state().found).tools);
        let mut known = now();
        loop {
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                found = found.changed() => if found.is_err() { return },
            }
            if std::mem::replace(&mut known, now()) != known {
                say();
            }
        }
    }

    /// Whether the client has to be told.
    fn has_news(&self, gateway: &Gateway) -> bool {
        let mut state = self.state();
        let State { found, listed } = &mut *state;
        let Some(listed) = listed.as_mut().filter(|listed| !listed.stale) else { return false };
        listed.stale = number(&self.present(gateway, found).tools) != listed.number;
        listed.stale
    }

    fn present(&self, gateway: &Gateway, found: &BTreeSet<ToolId>) -> DirectList {
        // Where nothing is shown but `mcp`, the lists of the servers need not be read.
        if self.otherwise == DirectTools::None && !names_tools(&gateway.watch().borrow()) {
            return DirectList::default();
        }
        let pins = gateway.settings().pins;
        gateway.catalog().direct(Choice { otherwise: &self.otherwise, found, pins })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the configuration puts any tools beside `mcp`.
fn names_tools(catalog: &Catalog) -> bool {
    catalog.shelves().any(|(_, shelf)| shelf.direct().is_some_and(|it| *it != DirectTools::None))
}

fn number(tools: &[DirectTool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tools.iter().for_each(|tool| tool.definition.hash(&mut hasher));
    hasher.finish()
}
