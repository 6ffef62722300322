//! VS Code: `servers`, whose `inputs` only the editor can ask for.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::usual;
use super::variables::Dialect;

/// `mcpServers` is what other hosts write, and people copy it.
pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "servers", Dialect::Editor, usual);
    file.servers(root, "mcpServers", Dialect::Editor, usual);
}
