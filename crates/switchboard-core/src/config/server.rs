//! The entry of a server: the table of its fields, and how entries are merged.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::auth::{
    Auth, OAuth, OAuthOptions, RequestHeadersCommand, auth, oauth, request_headers_command,
};
use super::canonical::{Canon, Canonical};
use super::fields::{
    account, boolean, choice, direct_tools, endpoint, idle_timeout, keywords, milliseconds,
    patterns, secret, start_timeout, string, template, template_map, templates, tool_rule, url,
};
use super::layers::AllowedIn;
use super::settings::Settings;
use super::show;
use super::table::entry_struct;
use super::transport::is_address;
use super::values::{
    DirectTools, IdleTimeout, Lifecycle, ProtocolVersion, Template, TemplateMap, ToolPrefix,
    ToolRule, TransportType,
};
use crate::globs::Globs;

/// Whether a field is inherited if an entry with precedence changes `command`, `url` or `socket`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inherits {
    /// The field is inherited with any endpoint.
    Always,
    /// The field is inherited unless the new endpoint is of another kind, such as a URL instead of
    /// a command.
    SameKind,
    /// The field is not inherited with another endpoint, because it was set for the old one.
    SameEndpoint,
}

/// A macro with one row per field: field name in Rust, type, key in the file, files in which it is
/// allowed, inheritance, reader function. The struct, the known keys, the merge, the trust hash,
/// the schema and `config show` are all made from these rows, so none can lack a field.
macro_rules! server_fields {
    ($(
        $(#[$doc:meta])*
        $field:ident: $kind:ty = $key:literal, $allowed_in:ident, $inherits:ident, $read:ident;
    )*) => {
        entry_struct! {
            /// The fields of a server in one file, or merged from all files. Variables are not
            /// expanded.
            ServerEntry {
                $($(#[$doc])* $field: $kind = $key, $allowed_in, $read;)*
            }
        }

        impl ServerEntry {
            /// Whether the entry sets the field with this key.
            pub(super) fn has(&self, key: &str) -> bool {
                match key {
                    $($key => self.$field.is_some(),)*
                    _ => false,
                }
            }

            /// The fields that the entry sets, by key, without secrets.
            pub fn show(&self) -> Map<String, Json> {
                let mut shown = Map::new();
                $(if let Some(value) = &self.$field {
                    shown.insert($key.to_owned(), show::$read(value));
                })*
                shown
            }

            /// The fields that the entry sets and that apply only to its endpoint.
            fn endpoint_specific_fields(&self) -> impl Iterator<Item = &'static str> {
                let given = [$((
                    $key, self.$field.is_some() && Inherits::$inherits == Inherits::SameEndpoint
                )),*];
                given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key))
            }

            fn clear(&mut self, inherits: Inherits) {
                $(if Inherits::$inherits == inherits {
                    self.$field = None;
                    self.origins.remove($key);
                })*
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
    command: Template = "command", AllFiles, SameKind, endpoint;
    args: Vec<Template> = "args", AllFiles, SameKind, templates;
    env: TemplateMap = "env", AllFiles, SameEndpoint, template_map;
    inherit_env: bool = "inheritEnv", UserFiles, SameEndpoint, boolean;
    /// Whether the server is confined; `true` if missing.
    confine: bool = "confine", UserFiles, SameEndpoint, boolean;
    cwd: Template = "cwd", AllFiles, SameKind, template;
    /// Whether the launcher is resolved to the program that it starts; `true` if missing.
    resolve_launcher: bool = "resolveLauncher", AllFiles, SameKind, boolean;
    url: Template = "url", AllFiles, SameKind, url;
    headers: TemplateMap = "headers", AllFiles, SameEndpoint, template_map;
    socket: Template = "socket", UserFiles, SameKind, endpoint;
    transport_type: TransportType = "type", AllFiles, SameKind, choice;
    auth: Auth = "auth", AllFiles, SameEndpoint, auth;
    bearer_token: Template = "bearerToken", AllFiles, SameEndpoint, secret;
    bearer_token_env: String = "bearerTokenEnv", AllFiles, SameEndpoint, string;
    bearer_token_store: bool = "bearerTokenStore", AllFiles, SameEndpoint, boolean;
    /// The name of an account. Entries with the same `url` and different accounts have separate
    /// tokens.
    account: String = "account", UserFiles, SameEndpoint, account;
    oauth: OAuth = "oauth", AllFiles, SameEndpoint, oauth;
    request_headers_command: RequestHeadersCommand
        = "requestHeadersCommand", UserFiles, SameEndpoint, request_headers_command;
    ca_file: Template = "caFile", UserFiles, SameEndpoint, endpoint;
    lifecycle: Lifecycle = "lifecycle", AllFiles, Always, choice;
    idle_timeout: IdleTimeout = "idleTimeout", AllFiles, Always, idle_timeout;
    request_timeout: Duration = "requestTimeoutMs", AllFiles, Always, milliseconds;
    /// The time limit for starting the server. `timeout` is an alias of the key.
    start_timeout: Duration = "startTimeoutMs", AllFiles, Always, start_timeout;
    protocol_version: ProtocolVersion = "protocolVersion", AllFiles, Always, choice;
    /// Whether resources are listed as tools; `true` if missing.
    expose_resources: bool = "exposeResources", AllFiles, Always, boolean;
    direct_tools: DirectTools = "directTools", AllFiles, Always, direct_tools;
    tool_prefix: ToolPrefix = "toolPrefix", AllFiles, Always, choice;
    include_tools: Vec<String> = "includeTools", AllFiles, Always, patterns;
    exclude_tools: Vec<String> = "excludeTools", AllFiles, Always, patterns;
    search_keywords: Vec<(String, Vec<String>)> = "searchKeywords", AllFiles, Always, keywords;
    approve_tools: ToolRule = "approveTools", UserFiles, Always, tool_rule;
    /// Whether roots requests of the server are answered; `true` if missing.
    roots: bool = "roots", AllFiles, Always, boolean;
    /// The tools that run without approval. Only user files may set them.
    auto_approve: ToolRule = "autoApprove", UserFiles, SameEndpoint, tool_rule;
    debug: bool = "debug", AllFiles, Always, boolean;
    /// Whether the server is disabled. The key `enabled` means the opposite, except in
    /// `.pi/mcp-servers.json`.
    disabled: bool = "disabled", AllFiles, Always, boolean;
    /// Only in `.pi/mcp-servers.json`: `false` means that the server is connected only if the user
    /// or model names it.
    enabled: bool = "enabled", AllFiles, Always, boolean;
    name: String = "name", AllFiles, Always, string;
    description: String = "description", AllFiles, Always, string;
}

/// Programs that start another program, which their arguments name.
const LAUNCHERS: &[&str] = &[
    "bun", "bunx", "cmd", "deno", "docker", "env", "java", "node", "npm", "npx", "pipx", "pnpm",
    "podman", "ruby", "sh", "bash", "uv", "uvx", "yarn",
];

fn is_launcher(command: &str) -> bool {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    let program = program.strip_suffix(".exe").or(program.strip_suffix(".cmd")).unwrap_or(program);
    LAUNCHERS.contains(&program) || program.starts_with("python")
}

/// Whether a command line starts this gateway as a server, from any path.
pub(super) fn is_gateway<'a>(command: &str, mut args: impl Iterator<Item = &'a str>) -> bool {
    let program = command.rsplit(['/', '\\']).next().unwrap_or_default();
    matches!(program, "switchboard" | "switchboard.exe") && args.any(|arg| arg == "serve")
}

impl ServerEntry {
    /// Whether the entry starts this gateway, which would recurse without end.
    pub(super) fn is_gateway(&self) -> bool {
        let command = self.command.as_ref().map(Template::source).unwrap_or_default();
        is_gateway(command, self.args.iter().flatten().map(Template::source))
    }

    pub fn is_disabled(&self) -> bool {
        self.disabled == Some(true)
    }

    /// The environment variables that the server's program gets in addition to the default ones, in
    /// ascending precedence: variables that the settings pass on and that are set, variables that
    /// the settings define, and variables of the entry.
    pub fn env_with(&self, settings: &Settings, is_set: impl Fn(&str) -> bool) -> TemplateMap {
        let passed = settings.pass_env.iter().filter(|name| is_set(name));
        let passed = passed.map(|name| (name.clone(), Template::new(format!("${{{name}}}"))));
        let lower = passed.chain(settings.env.0.iter().cloned());
        let upper = self.env.iter().flat_map(|env| env.0.iter().cloned());
        let mut all: Vec<(String, Template)> = Vec::new();
        for (name, value) in lower.chain(upper) {
            all.retain(|(known, _)| *known != name);
            all.push((name, value));
        }
        TemplateMap(all)
    }

    /// Whether the entry filters tools, requires approval or disables the server.
    pub(super) fn restricts(&self) -> bool {
        self.approve_tools.is_some()
            || self.include_tools.is_some()
            || self.exclude_tools.is_some()
            || self.is_disabled()
    }

    /// The OAuth options for a sign-in. `None` if the entry has a token or disables OAuth.
    pub fn sign_in(&self) -> Option<OAuthOptions> {
        let mut headers = self.headers.iter().flat_map(TemplateMap::names);
        let has_header = headers.any(|name| name.eq_ignore_ascii_case("authorization"));
        let has_token = self.bearer_token.is_some()
            || self.bearer_token_env.is_some()
            || self.bearer_token_store == Some(true);
        let is_requested = match &self.auth {
            Some(Auth::OAuth) => true,
            None => !has_header && !has_token,
            Some(
                Auth::Off | Auth::Bearer | Auth::Basic { .. } | Auth::ApiKey { .. } | Auth::Custom,
            ) => false,
        };
        match &self.oauth {
            Some(OAuth::Off) => None,
            Some(OAuth::With(options)) => is_requested.then(|| (**options).clone()),
            None => is_requested.then(OAuthOptions::default),
        }
    }

    /// The endpoints `command`, `url` and `socket`, of which the entry in one file has at most one.
    pub fn endpoints(&self) -> [Option<&Template>; 3] {
        [self.command.as_ref(), self.url.as_ref(), self.socket.as_ref()]
    }

    pub(super) fn has_endpoint(&self) -> bool {
        self.endpoints().iter().any(Option::is_some)
    }

    /// The keys that have no effect with the entry's endpoint. Each comes with the key of the
    /// endpoint.
    pub(super) fn unused(&self) -> Vec<(&'static str, &'static str)> {
        let has_env = self.env.as_ref().is_some_and(|env| env.iter().next().is_some());
        let of_programs = [
            ("args", self.args.as_ref().is_some_and(|args| !args.is_empty())),
            ("env", has_env),
            ("cwd", self.cwd.is_some()),
        ];
        let of_urls = [
            ("headers", self.headers.is_some()),
            ("bearerToken", self.bearer_token.is_some()),
            ("bearerTokenEnv", self.bearer_token_env.is_some()),
        ];
        // A `url` may be a command line. `env` and `cwd` then have an effect.
        let url = self.url.as_ref().filter(|url| is_address(url.source().trim()));
        let (keys, endpoint): (&[(&'static str, bool)], _) = match (&self.command, url) {
            (Some(_), _) => (&of_urls, "command"),
            (None, Some(_)) => (&of_programs, "url"),
            (None, None) => return Vec::new(),
        };
        keys.iter().filter(|(_, is_set)| *is_set).map(|(key, _)| (*key, endpoint)).collect()
    }

    /// Whether the entry has the same endpoint as `lower`, or none.
    pub(super) fn fits_over(&self, lower: &Self) -> bool {
        !self.has_endpoint() || self.endpoints() == lower.endpoints()
    }

    /// The first field that `upper` inherits from this entry although other arguments make the
    /// launcher start another program.
    pub(super) fn inherited_despite_other_arguments(&self, upper: &Self) -> Option<&'static str> {
        let command = self.command.as_ref()?;
        let differs = self.args.is_some() && upper.args.is_some() && self.args != upper.args;
        if !differs || !is_launcher(command.source()) || !upper.fits_over(self) {
            return None;
        }
        self.endpoint_specific_fields().find(|key| !upper.has(key))
    }

    /// Merges `upper` over this entry, field by field. If `upper` changes the endpoint, the fields
    /// that were set for the old endpoint are dropped.
    pub(super) fn overlay(&mut self, upper: &Self) {
        if upper.has_endpoint() {
            let (mine, endpoints) = (self.endpoints(), upper.endpoints());
            let same_kind = mine.iter().zip(endpoints).all(|(a, b)| a.is_some() == b.is_some());
            if mine != endpoints {
                self.clear(Inherits::SameEndpoint);
                // `approveTools: false` was set for the old endpoint and must not apply to the new
                // one.
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

    /// Restores the restrictions of the user's entry where a project weakened them. A project may
    /// enable a server that the user disabled: `disabled: false` is then kept, so that the user has
    /// to approve it.
    pub(super) fn keep_restrictions(&mut self, users: Option<&ServerEntry>) {
        let is_off = users.is_some_and(ServerEntry::is_disabled);
        if self.disabled == Some(false) && !is_off {
            self.disabled = None;
            self.origins.remove("disabled");
        }
        let Some(users) = users else { return };
        if let Some(excluded) = &users.exclude_tools {
            let own = self.exclude_tools.get_or_insert_default();
            let missing = excluded.iter().filter(|pattern| !own.contains(pattern));
            let missing: Vec<String> = missing.cloned().collect();
            own.extend(missing);
        }
        if let (Some(included), Some(own)) = (&users.include_tools, &mut self.include_tools) {
            *own = in_both(included, own);
        }
        if users.expose_resources == Some(false) {
            self.expose_resources = Some(false);
        }
    }
}

/// Patterns that match only names that both lists match. If two patterns with wildcards merely
/// overlap, neither is included.
fn in_both(users: &[String], projects: &[String]) -> Vec<String> {
    let literal = |pattern: &&String| !pattern.contains(['*', '?', '[', '{']);
    let within = |all: &[String], pattern: &String| {
        all.contains(pattern) || (literal(&pattern) && Globs::new(all).is_match(&[pattern]))
    };
    let of_projects = projects.iter().filter(|pattern| within(users, pattern));
    let of_users = users.iter().filter(literal).filter(|pattern| within(projects, pattern));
    let mut both: Vec<String> = of_projects.chain(of_users).cloned().collect();
    both.sort_unstable();
    both.dedup();
    both
}
