//! The names that tools are shown and called by.

use std::collections::{BTreeMap, BTreeSet};

use switchboard_core::config::values::ToolPrefix;
use switchboard_core::name::{ServerName, ToolId, ToolName, fold, shown_names};

/// Lines are taken as servers and tools by turns. No two tools share a shown name, a name depends on
/// the set alone and not on its order, and hosts take every one.
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
    for mode in ToolPrefix::ALL {
        let tools: Vec<(ToolId, ToolPrefix)> = ids.iter().map(|id| (id.clone(), mode)).collect();
        let named: BTreeMap<String, ToolId> =
            shown_names(&tools).into_iter().zip(ids.iter().cloned()).collect();
        assert_eq!(named.len(), ids.len(), "two tools share a name");
        let reversed: Vec<_> = tools.into_iter().rev().collect();
        for (name, (id, _)) in shown_names(&reversed).into_iter().zip(&reversed) {
            assert_eq!(named.get(&name), Some(id), "{name}");
        }
        for name in named.keys() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!(name.len() <= 64 && name.chars().all(plain), "{name}");
            assert_eq!(fold(&fold(name)), fold(name));
        }
    }
}
