//! Settings: the table of them, their defaults, and which ones a project may set.

use std::collections::BTreeMap;
use std::time::Duration;

use jsonc_parser::ast::Value;
use serde_json::{Map, Value as Json};

use super::fields::{
    boolean, choice, collapsed_lines, count, direct_tools, idle_timeout, milliseconds,
    output_guard, patterns, start_timeout, template_map, tool_rule, variable_names,
};
use super::layers::{Origin, SetBy};
use super::reader::{Read, Reader};
use super::schema::row_schema;
use super::show;
use super::values::{
    AdHocConnections, Advertise, ApprovePolicy, CollapsedLines, CredentialStore, DirectTools,
    FooterStatus, IdleTimeout, OutputGuard, Pins, ResultRendering, TemplateMap, ToolPrefix,
    ToolRule, Toolset,
};

/// One row per setting: Rust name, type, key in the file, who may set it, reader, default.
macro_rules! settings {
    ($($field:ident: $kind:ty = $key:literal, $set_by:ident, $read:ident, $default:expr;)*) => {
        /// The settings, which apply to all servers.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(pub $field: $kind,)*
            /// `toolPrefix` from user files only; the user's allow rules use it.
            pub own_tool_prefix: ToolPrefix,
        }

        impl Default for Settings {
            fn default() -> Self {
                SettingsEntry::default().resolve()
            }
        }

        impl Settings {
            /// Every setting, by key.
            pub(super) fn show(&self) -> Map<String, Json> {
                Map::from_iter([$(($key.to_owned(), show::$read(&self.$field))),*])
            }
        }

        /// The settings that files set, with their origins.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct SettingsEntry {
            $(pub $field: Option<$kind>,)*
            /// The origin of each setting, by key.
            pub origins: BTreeMap<&'static str, Origin>,
        }

        impl SettingsEntry {
            pub const KEYS: &'static [&'static str] = &[$($key),*];

            /// The JSON Schema of each setting, by key.
            pub(super) fn schema() -> Map<String, Json> {
                Map::from_iter([$(($key.to_owned(), row_schema!($read, $kind))),*])
            }

            /// Reads the setting `name`; `None` means that there is no such setting.
            pub(super) fn read_setting(
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

            /// Whether only the user may set `name`, whatever its value.
            pub(super) fn is_the_users(name: &str) -> bool {
                match name {
                    $($key => SetBy::$set_by == SetBy::User,)*
                    _ => false,
                }
            }

            fn copy_from(&mut self, upper: &Self) {
                $(if upper.$field.is_some() {
                    self.$field.clone_from(&upper.$field);
                })*
                self.origins.extend(upper.origins.iter().map(|(key, at)| (*key, at.clone())));
            }

            /// Every setting, with the default where no file sets it.
            pub(super) fn resolve(self) -> Settings {
                let own_tool_prefix = self.tool_prefix.unwrap_or_default();
                Settings { $($field: self.$field.unwrap_or_else(|| $default),)* own_tool_prefix }
            }
        }
    };
}

settings! {
    tool_prefix: ToolPrefix = "toolPrefix", Anyone, choice, ToolPrefix::Server;
    idle_timeout: IdleTimeout
        = "idleTimeout", Anyone, idle_timeout, IdleTimeout::After(Duration::from_secs(600));
    request_timeout: Duration
        = "requestTimeoutMs", Anyone, milliseconds, Duration::from_secs(60);
    start_timeout: Duration = "startTimeoutMs", Anyone, start_timeout, Duration::from_secs(30);
    direct_tools: DirectTools = "directTools", User, direct_tools, DirectTools::None;
    freeze_direct_tools: bool = "freezeDirectTools", User, boolean, false;
    warn_on_large_direct_tools: bool = "warnOnLargeDirectTools", User, boolean, true;
    toolset: Toolset = "toolset", User, choice, Toolset::Auto;
    search_calls: bool = "searchCalls", User, boolean, true;
    digest: bool = "digest", User, boolean, true;
    advertise_resources: Advertise = "advertiseResources", User, choice, Advertise::Auto;
    first_listing: bool = "firstListing", User, boolean, true;
    approve: ApprovePolicy = "approve", User, choice, ApprovePolicy::Destructive;
    approve_tools: ToolRule = "approveTools", User, tool_rule, ToolRule::None;
    allow: Vec<String> = "allow", User, patterns, Vec::new();
    deny: Vec<String> = "deny", User, patterns, Vec::new();
    ad_hoc_connections: AdHocConnections
        = "adHocConnections", User, choice, AdHocConnections::Ask;
    pins: Pins = "pins", User, choice, Pins::Warn;
    auto_auth: bool = "autoAuth", User, boolean, false;
    oauth_credential_store: CredentialStore
        = "oauthCredentialStore", User, choice, CredentialStore::Auto;
    sampling: bool = "sampling", User, boolean, true;
    elicitation: bool = "elicitation", User, boolean, true;
    footer: FooterStatus = "mcpFooterStatus", User, choice, FooterStatus::Full;
    status_icon: bool = "showStatusIcon", User, boolean, true;
    startup_notice: bool = "notifyOnStartupConnect", User, boolean, true;
    result_rendering: ResultRendering
        = "toolResultRendering", User, choice, ResultRendering::Compact;
    collapsed_lines: CollapsedLines
        = "collapsedResultLines", User, collapsed_lines, CollapsedLines::Fitting;
    env: TemplateMap = "env", User, template_map, TemplateMap::default();
    pass_env: Vec<String> = "passEnv", User, variable_names, Vec::new();
    output_guard: OutputGuard = "outputGuard", User, output_guard, OutputGuard::DEFAULT;
    max_frame_bytes: usize = "maxFrameBytes", User, count, 16 * 1024 * 1024;
    max_tools: usize = "maxTools", User, count, 2_000;
    max_pages: usize = "maxPages", User, count, 100;
}

impl Settings {
    /// How many lines of a result Pi shows until it is expanded.
    pub fn shown_lines(&self) -> u8 {
        match (self.collapsed_lines, self.result_rendering) {
            (CollapsedLines::Exactly(lines), _) => lines,
            (CollapsedLines::Fitting, ResultRendering::Compact) => 1,
            (CollapsedLines::Fitting, ResultRendering::Boxed) => 3,
        }
    }
}

/// The minimum for times in a project file. They apply to the user's own servers too, even before
/// the project is trusted, and must not make them unusable.
const LEAST_TIME: Duration = Duration::from_secs(1);

impl SettingsEntry {
    /// Whether a time is shorter than a project may make it.
    pub(super) fn is_hasty(&self) -> bool {
        let idle = match self.idle_timeout {
            Some(IdleTimeout::After(time)) => Some(time),
            Some(IdleTimeout::Never) | None => None,
        };
        let times = [self.request_timeout, self.start_timeout, idle];
        times.into_iter().flatten().any(|time| time < LEAST_TIME)
    }

    /// Whether it has deny rules or approval rules.
    pub fn has_rules(&self) -> bool {
        self.deny.is_some()
            || self.approve.is_some()
            || self.approve_tools.is_some()
            || self.pins.is_some()
    }

    /// Merges `upper` over these settings. `allow` and `deny` accumulate over all files: a second
    /// file must not undo a denial of the first.
    pub(super) fn overlay(&mut self, upper: &Self) {
        let lower = [self.allow.take(), self.deny.take()];
        self.copy_from(upper);
        let [allow, deny] = lower;
        self.allow = joined(allow, self.allow.take());
        self.deny = joined(deny, self.deny.take());
    }
}

fn joined(lower: Option<Vec<String>>, upper: Option<Vec<String>>) -> Option<Vec<String>> {
    match (lower, upper) {
        (Some(mut patterns), Some(more)) => {
            patterns.extend(more);
            Some(patterns)
        }
        (lower, upper) => upper.or(lower),
    }
}
