//! Claude Desktop: programs only, under `mcpServers`.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::usual;
use super::variables::Dialect;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "mcpServers", Dialect::Ours, usual);
}
