//! Zed: `context_servers` among all other settings; those of an extension have no command of ours.

use jsonc_parser::ast::Value;

use super::HostFile;
use super::draft::usual;
use super::variables::Dialect;

pub(super) fn read(file: &mut HostFile<'_, '_>, root: &Value<'_>) {
    file.servers(root, "context_servers", Dialect::Ours, usual);
}
