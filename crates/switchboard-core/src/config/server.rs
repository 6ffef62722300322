//! A server's entry: the table of its fields, and how one entry lies over another.

use std::collections::BTreeMap;
use std::time::Duration;

use jsonc_parser::ast::Value;

use super::auth::{Auth, OAuth, RequestHeadersCommand};
use super::canonical::{Canon, Canonical};
use super::fields::{
    boolean, choice, direct_tools, endpoint, idle_timeout, keywords, milliseconds, start_timeout,
    string, strings, template, template_map, templates, tool_rule,
};
use super::layers::Origin;
use super::reader::{Read, Reader};
use super::values::{
    DirectTools, IdleTimeout, Lifecycle, ProtocolVersion, Template, TemplateMap, ToolPrefix,
    ToolRule, TransportType,
};

/// What happens to a lower layer's field when an upper one changes `command`, `url` or `socket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inherits {
    /// It stays.
    Always,
    /// It stays unless the new endpoint is of another kind.
    SameKind,
    /// It goes: it was given to that endpoint alone.
    SameEndpoint,
}

/// One row a field: Rust name, type, key in the file, inheritance, reader. The struct, the known
/// keys, the merge and the trust hash all come from this table, so none can miss a field.
macro_rules! server_fields {
    ($($(#[$doc:meta])* $field:ident: $kind:ty = $key:literal, $inherits:ident, $read:path;)*) => {
        /// What one file, or all of them together, say of a server. Unexpanded.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct ServerEntry {
            $($(#[$doc])* pub $field: Option<$kind>,)*
            /// Where each field that is set comes from, by key.
            pub origins: BTreeMap<&'static str, Origin>,
        }

        impl ServerEntry {
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// Reads the field `name`; `None` means that there is no such field.
            pub(super) fn read_field(
                &mut self,
                reader: &mut Reader<'_>,
                (name, path): (&str, &str),
                value: &Value<'_>,
                origin: Origin,
            ) -> Option<Read<()>> {
                match name {
                    $($key => {
                        match $read(reader, path, value) {
                            Ok(read) => self.$field = Some(read),
                            Err(reported) => return Some(Err(reported)),
                        }
                        self.origins.insert($key, origin);
                    })*
                    _ => return None,
                }
                Some(Ok(()))
            }

            fn clear(&mut self, inherits: Inherits) {
                $(if Inherits::$inherits == inherits {
                    self.$field = None;
                    self.origins.remove($key);
                })*
            }

            fn copy_from(&mut self, upper: &Self) {
                $(if upper.$field.is_some() {
                    self.$field.clone_from(&upper.$field);
                })*
                self.origins.extend(upper.origins.iter().map(|(key, at)| (*key, at.clone())));
            }
        }

        impl Canonical for ServerEntry {
            fn encode(&self, canon: &mut Canon) {
                $(if let Some(value) = &self.$field {
                    $key.encode(canon);
                    value.encode(canon);
                })*
            }
        }
    };
}

server_fields! {
    command: Template = "command", SameKind, endpoint;
    args: Vec<Template> = "args", SameKind, templates;
    env: TemplateMap = "env", SameEndpoint, template_map;
    inherit_env: bool = "inheritEnv", SameEndpoint, boolean;
    cwd: Template = "cwd", SameKind, template;
    url: Template = "url", SameKind, endpoint;
    headers: TemplateMap = "headers", SameEndpoint, template_map;
    socket: Template = "socket", SameKind, endpoint;
    transport_type: TransportType = "type", SameKind, choice;
    auth: Auth = "auth", SameEndpoint, Auth::read;
    bearer_token: Template = "bearerToken", SameEndpoint, template;
    bearer_token_env: String = "bearerTokenEnv", SameEndpoint, string;
    bearer_token_store: bool = "bearerTokenStore", SameEndpoint, boolean;
    oauth: OAuth = "oauth", SameEndpoint, OAuth::read;
    request_headers_command: RequestHeadersCommand
        = "requestHeadersCommand", SameEndpoint, RequestHeadersCommand::read;
    ca_file: Template = "caFile", SameEndpoint, endpoint;
    lifecycle: Lifecycle = "lifecycle", Always, choice;
    idle_timeout: IdleTimeout = "idleTimeout", Always, idle_timeout;
    request_timeout: Duration = "requestTimeoutMs", Always, milliseconds;
    /// The key `timeout` is the same field.
    start_timeout: Duration = "startTimeoutMs", Always, start_timeout;
    protocol_version: ProtocolVersion = "protocolVersion", Always, choice;
    /// Missing means true.
    expose_resources: bool = "exposeResources", Always, boolean;
    direct_tools: DirectTools = "directTools", Always, direct_tools;
    tool_prefix: ToolPrefix = "toolPrefix", Always, choice;
    include_tools: Vec<String> = "includeTools", Always, strings;
    exclude_tools: Vec<String> = "excludeTools", Always, strings;
    search_keywords: Vec<(String, Vec<String>)> = "searchKeywords", Always, keywords;
    approve_tools: ToolRule = "approveTools", Always, tool_rule;
    /// The tools that run unasked; only user files may say so.
    auto_approve: ToolRule = "autoApprove", SameEndpoint, tool_rule;
    debug: bool = "debug", Always, boolean;
    trace: bool = "trace", Always, boolean;
    /// The key `enabled` is its opposite.
    disabled: bool = "disabled", Always, boolean;
    name: String = "name", Always, string;
    description: String = "description", Always, string;
}

impl ServerEntry {
    pub fn is_disabled(&self) -> bool {
        self.disabled == Some(true)
    }

    /// Lays `upper` over this entry, field by field. An upper entry that changes the endpoint gets
    /// nothing that was meant for the old one.
    pub(super) fn overlay(&mut self, upper: &Self) {
        let endpoints = [&upper.command, &upper.url, &upper.socket];
        if endpoints.iter().any(|endpoint| endpoint.is_some()) {
            let mine = [&self.command, &self.url, &self.socket];
            let same_kind = mine.iter().zip(endpoints).all(|(a, b)| a.is_some() == b.is_some());
            let same = mine.iter().zip(endpoints).all(|(a, b)| *a == b);
            if !same {
                self.clear(Inherits::SameEndpoint);
                // Not to be asked about was granted to the old endpoint, too.
                if self.approve_tools == Some(ToolRule::None) {
                    self.approve_tools = None;
                    self.origins.remove("approveTools");
                }
            }
            if !same_kind {
                self.clear(Inherits::SameKind);
            }
        }
        self.copy_from(upper);
    }
}
