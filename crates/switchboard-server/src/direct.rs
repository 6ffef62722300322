//! The direct tools of one client: the tool list that it received last, and whether that list is
//! out of date.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

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
use switchboard_wire::{Peer, Raw, RpcError};
use tokio::sync::watch;

use crate::answer;
use crate::conversation::View;
use crate::granular;
use crate::lock::lock;
use crate::params::invalid_params;
use crate::service::Offer;

/// The notification that asks a client to request the tool list again.
pub(crate) const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

/// The minimum number of direct tools for a warning.
const WARN_FROM: usize = 75;

/// The maximum number of tools that the searches of one client add to its list.
const MAX_FOUND: usize = 1_000;

/// The direct tools of one client.
pub(crate) struct Direct {
    /// Which tools are direct for servers without a `directTools` setting.
    otherwise: DirectTools,
    /// Whether a client keeps its first list until it disconnects (`freezeDirectTools`).
    frozen: bool,
    /// The lock is held briefly, never across an await.
    state: Mutex<DirectState>,
    /// Notified when a search adds tools to the list.
    found_more: watch::Sender<()>,
}

#[derive(Default)]
struct DirectState {
    found: BTreeSet<ToolId>,
    /// The tool list that the client received last; `None` before its first `tools/list` request.
    listed: Option<Listed>,
}

struct Listed {
    /// The whole `tools/list` response, to be sent again; `None` unless the list is frozen.
    frozen: Option<Raw>,
    /// A hash of the tools in the list, to detect changes.
    number: u64,
    /// The tools of the client's list, by their names there. A call by name means the tool that had
    /// the name in this list.
    names: HashMap<Arc<str>, ListedTool>,
    /// Whether the client was notified of a change. Further changes need no notification until the
    /// client requests the list again.
    stale: bool,
}

/// A tool as the client's list shows it.
#[derive(Clone, Debug)]
pub(crate) struct ListedTool {
    pub(crate) id: ToolId,
    /// The access that the list showed: a host may have allowed the call because the tool was
    /// listed as read-only.
    pub(crate) access: Access,
}

impl From<DirectTool> for ListedTool {
    fn from(tool: DirectTool) -> ListedTool {
        let access = if tool.only_reads { Access::ReadOnly } else { Access::Full };
        ListedTool { id: tool.id, access }
    }
}

/// A warning about too many direct tools; `None` if there are few, or if the user turned it off.
pub fn warning_of_many(gateway: &Gateway, offer: &Offer) -> Option<String> {
    match offer {
        Offer::Granular | Offer::Mirror(_) => None,
        Offer::Auto | Offer::Proxy | Offer::Pair | Offer::Direct => {
            Direct::new(gateway, offer).warning_of_many(gateway)
        }
    }
}

/// The tool definitions that a host gets before its first search.
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

    /// A warning about too many direct tools; see [`warning_of_many`].
    pub(crate) fn warning_of_many(&self, gateway: &Gateway) -> Option<String> {
        let beside = self.present(gateway, &BTreeSet::new()).tools.len();
        let wanted = gateway.settings().warn_on_large_direct_tools && beside >= WARN_FROM;
        wanted.then(|| {
            format!(
                "{beside} tools are listed beside `mcp`, and the model reads them with every request; \
                 `directTools` can name some, or say \"search\""
            )
        })
    }

    /// The response to `tools/list`, from the catalog; starts no server.
    pub(crate) fn list(&self, gateway: &Gateway, view: View) -> Raw {
        let mut state = lock(&self.state);
        if let Some(answer) = state.listed.as_ref().and_then(|listed| listed.frozen.clone()) {
            return answer;
        }
        // The lock is held so that `tell` notices every catalog that is published later.
        let DirectList { tools, left_out } = self.present(gateway, &state.found);
        if left_out > 0 {
            tracing::warn!(left_out, "too many direct tools");
        }
        let cards = tool_card::definitions(view.cards, view.profile);
        let beside = tools.iter().map(|tool| &tool.definition);
        let answer = answer::list("tools", &cards.iter().chain(beside).collect::<Vec<_>>());
        let number = number(&tools);
        let names = tools.into_iter().map(|tool| (Arc::clone(&tool.shown), tool.into())).collect();
        let frozen = self.frozen.then(|| answer.clone());
        state.listed = Some(Listed { frozen, number, names, stale: false });
        answer
    }

    /// Finds a tool by name: in the client's last list, then in the current catalog.
    pub(crate) fn target(&self, gateway: &Gateway, name: &str) -> Result<ListedTool, RpcError> {
        let state = lock(&self.state);
        let shown = state.listed.as_ref().and_then(|listed| listed.names.get(name));
        // The prefix of the name may belong to a server that was configured after the list was
        // sent.
        let permitted = |shown: &&ListedTool| gateway.catalog().permits(name, &shown.id.server);
        if let Some(shown) = shown.filter(permitted) {
            return Ok(shown.clone());
        }
        let mut tools = self.present(gateway, &state.found).tools;
        if let Some(at) = tools.iter().position(|tool| *tool.shown == *name) {
            return Ok(tools.swap_remove(at).into());
        }
        // A denied tool is in no list. The later approval check refuses the call and names the
        // rule.
        let catalog = gateway.catalog();
        if catalog.denied_by(name).is_some()
            && let Some(denied) = catalog.shown(name)
        {
            return Ok(ListedTool { id: denied.id(), access: Access::Full });
        }
        Err(invalid_params(format!("unknown tool `{}`", clean_line(name, 64))))
    }

    /// Adds the tools that a search found to the list, for servers with `"directTools": "search"`.
    pub(crate) fn add_found_tools(&self, gateway: &Gateway, page: &SearchPage) {
        let catalog = gateway.catalog();
        let mut state = lock(&self.state);
        let before = state.found.len();
        for hit in &page.hits {
            let wanted = catalog.direct_tools_of(&hit.line.server, &self.otherwise);
            if *wanted == DirectTools::Search
                && state.found.len() < MAX_FOUND
                && let Ok(tool) = ToolName::new(&hit.line.tool)
            {
                state.found.insert(ToolId { server: hit.line.server.clone(), tool });
            }
        }
        if state.found.len() > before {
            self.found_more.send_replace(());
        }
    }

    /// Notifies `client` whenever its list is out of date, until it disconnects.
    pub(crate) async fn tell(self: Arc<Direct>, gateway: Gateway, client: Peer) {
        if self.frozen {
            return;
        }
        let (mut changes, mut found) = (gateway.watch(), self.found_more.subscribe());
        loop {
            // The list is checked at once, because it may have changed since the client's request.
            if self.has_news(&gateway) && client.notify(TOOLS_CHANGED, "").await.is_err() {
                return;
            }
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                found = found.changed() => if found.is_err() { return },
            }
        }
    }

    /// Calls `say` whenever the list changes. This is for subscribers, which may never have
    /// requested the list.
    pub(crate) async fn follow(&self, gateway: &Gateway, say: impl Fn()) {
        if self.frozen {
            return;
        }
        let (mut changes, mut found) = (gateway.watch(), self.found_more.subscribe());
        let now = || number(&self.present(gateway, &lock(&self.state).found).tools);
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

    /// Whether the list of the client is out of date and the client has not been notified.
    fn has_news(&self, gateway: &Gateway) -> bool {
        let mut state = lock(&self.state);
        let DirectState { found, listed } = &mut *state;
        let Some(listed) = listed.as_mut().filter(|listed| !listed.stale) else { return false };
        listed.stale = number(&self.present(gateway, found).tools) != listed.number;
        listed.stale
    }

    fn present(&self, gateway: &Gateway, found: &BTreeSet<ToolId>) -> DirectList {
        // If no direct tools are configured, the listings are not read.
        if self.otherwise == DirectTools::None && !names_tools(&gateway.watch().borrow()) {
            return DirectList::default();
        }
        let pins = gateway.settings().pins;
        gateway.catalog().direct(Choice { otherwise: &self.otherwise, found, pins })
    }
}

/// Whether the configuration declares any direct tools.
fn names_tools(catalog: &Catalog) -> bool {
    catalog.shelves().any(|(_, shelf)| shelf.direct().is_some_and(|it| *it != DirectTools::None))
}

fn number(tools: &[DirectTool]) -> u64 {
    let mut hasher = DefaultHasher::new();
    tools.iter().for_each(|tool| tool.definition.hash(&mut hasher));
    hasher.finish()
}
