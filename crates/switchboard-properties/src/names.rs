//! Properties of the shown names of tools.

use std::collections::{BTreeMap, BTreeSet};

use switchboard_core::config::values::ToolPrefix;
use switchboard_core::name::{
    NameTier, Owner, Prefixes, ServerName, ToolId, ToolName, fold, shown_names,
};

/// The lines of the input are server names and tool names in turn. Shown names are unique,
/// independent of the order of the tools, without the prefix of another server, and accepted by
/// hosts.
pub(crate) fn are_distinct_and_found_again(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.lines().take(64).collect();
    let ids: BTreeSet<ToolId> = lines
        .chunks_exact(2)
        .filter_map(|pair| {
            let (server, tool) = (ServerName::new(pair.first()?), ToolName::new(pair.last()?));
            Some(ToolId { server: server.ok()?, tool: tool.ok()? })
        })
        .collect();
    let prefixes = Prefixes::new(ids.iter().map(|id| (&id.server, NameTier::User)));
    for mode in ToolPrefix::ALL {
        let tools: Vec<(ToolId, ToolPrefix)> = ids.iter().map(|id| (id.clone(), mode)).collect();
        let named: BTreeMap<String, ToolId> =
            shown(&tools, &prefixes).zip(ids.iter().cloned()).collect();
        assert_eq!(named.len(), ids.len(), "two tools share a name");
        let reversed: Vec<_> = tools.into_iter().rev().collect();
        for (name, (id, _)) in shown(&reversed, &prefixes).zip(&reversed) {
            assert_eq!(named.get(&name), Some(id), "{name}");
        }
        for (name, id) in &named {
            let owner = prefixes.owner(name);
            let free = mode == ToolPrefix::None && owner == Owner::None;
            assert!(free || owner == Owner::Server(id.server.clone()), "{name} {owner:?}");
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            assert_eq!(fold(&fold(name)), fold(name));
        }
    }
}

fn shown(
    tools: &[(ToolId, ToolPrefix)],
    prefixes: &Prefixes,
) -> impl Iterator<Item = String> + use<> {
    shown_names(tools, prefixes).into_iter().map(|shown| shown.name)
}
