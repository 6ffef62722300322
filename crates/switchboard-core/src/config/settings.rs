//! The table of settings: their types, their defaults, and which ones a project may set.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use super::fields::{
    boolean, choice, collapsed_lines, count, direct_tools, idle_timeout, milliseconds,
    output_guard, patterns, start_timeout, template_map, tool_rule, variable_names,
};
use super::layers::AllowedIn;
use super::show;
use super::table::entry_struct;
use super::values::{
    AdHocConnections, Advertise, ApprovePolicy, CollapsedLines, CredentialStore, DirectTools,
    FooterStatus, IdleTimeout, OutputGuard, Pins, ResultRendering, TemplateMap, ToolPrefix,
    ToolRule, Toolset,
};

/// A macro with one row per setting: field name in Rust, type, key in the file, files in which it
/// is allowed, reader function, default.
macro_rules! settings {
    ($($field:ident: $kind:ty = $key:literal, $allowed_in:ident, $read:ident, $default:expr;)*) => {
        /// The settings, which apply to all servers.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(pub $field: $kind,)*
            /// `toolPrefix` of the user files alone. The `allow` rules of the user are compared
            /// with this prefix.
            pub own_tool_prefix: ToolPrefix,
        }

        impl Default for Settings {
            fn default() -> Self {
                SettingsEntry::default().resolve()
            }
        }

        impl Settings {
            /// The value of every setting, by key.
            pub(super) fn show(&self) -> Map<String, Json> {
                Map::from_iter([$(($key.to_owned(), show::$read(&self.$field))),*])
            }
        }

        entry_struct! {
            /// The settings that the files set, with their origins.
            SettingsEntry {
                $($field: $kind = $key, $allowed_in, $read;)*
            }
        }

        impl SettingsEntry {
            /// The value of every setting. Settings that no file sets have their default.
            pub(super) fn resolve(self) -> Settings {
                let own_tool_prefix = self.tool_prefix.unwrap_or_default();
                Settings { $($field: self.$field.unwrap_or_else(|| $default),)* own_tool_prefix }
            }
        }
    };
}

settings! {
    tool_prefix: ToolPrefix = "toolPrefix", AllFiles, choice, ToolPrefix::Server;
    idle_timeout: IdleTimeout
        = "idleTimeout", AllFiles, idle_timeout, IdleTimeout::After(Duration::from_secs(600));
    request_timeout: Duration
        = "requestTimeoutMs", AllFiles, milliseconds, Duration::from_secs(60);
    start_timeout: Duration = "startTimeoutMs", AllFiles, start_timeout, Duration::from_secs(30);
    direct_tools: DirectTools = "directTools", UserFiles, direct_tools, DirectTools::None;
    freeze_direct_tools: bool = "freezeDirectTools", UserFiles, boolean, false;
    warn_on_large_direct_tools: bool = "warnOnLargeDirectTools", UserFiles, boolean, true;
    toolset: Toolset = "toolset", UserFiles, choice, Toolset::Auto;
    search_calls: bool = "searchCalls", UserFiles, boolean, true;
    digest: bool = "digest", UserFiles, boolean, true;
    advertise_resources: Advertise = "advertiseResources", UserFiles, choice, Advertise::Auto;
    first_listing: bool = "firstListing", UserFiles, boolean, true;
    approve: ApprovePolicy = "approve", UserFiles, choice, ApprovePolicy::Destructive;
    approve_tools: ToolRule = "approveTools", UserFiles, tool_rule, ToolRule::None;
    allow: Vec<String> = "allow", UserFiles, patterns, Vec::new();
    deny: Vec<String> = "deny", UserFiles, patterns, Vec::new();
    ad_hoc_connections: AdHocConnections
        = "adHocConnections", UserFiles, choice, AdHocConnections::Ask;
    pins: Pins = "pins", UserFiles, choice, Pins::Warn;
    auto_auth: bool = "autoAuth", UserFiles, boolean, false;
    oauth_credential_store: CredentialStore
        = "oauthCredentialStore", UserFiles, choice, CredentialStore::Auto;
    sampling: bool = "sampling", UserFiles, boolean, true;
    elicitation: bool = "elicitation", UserFiles, boolean, true;
    footer: FooterStatus = "mcpFooterStatus", UserFiles, choice, FooterStatus::Full;
    status_icon: bool = "showStatusIcon", UserFiles, boolean, true;
    startup_notice: bool = "notifyOnStartupConnect", UserFiles, boolean, true;
    result_rendering: ResultRendering
        = "toolResultRendering", UserFiles, choice, ResultRendering::Compact;
    collapsed_lines: CollapsedLines
        = "collapsedResultLines", UserFiles, collapsed_lines, CollapsedLines::Fitting;
    env: TemplateMap = "env", UserFiles, template_map, TemplateMap::default();
    pass_env: Vec<String> = "passEnv", UserFiles, variable_names, Vec::new();
    output_guard: OutputGuard = "outputGuard", UserFiles, output_guard, OutputGuard::DEFAULT;
    max_frame_bytes: usize = "maxFrameBytes", UserFiles, count, 16 * 1024 * 1024;
    max_tools: usize = "maxTools", UserFiles, count, 2_000;
    max_pages: usize = "maxPages", UserFiles, count, 100;
}

impl Settings {
    /// How many lines of a result Pi shows before the user expands it.
    pub fn shown_lines(&self) -> u8 {
        match (self.collapsed_lines, self.result_rendering) {
            (CollapsedLines::Exactly(lines), _) => lines,
            (CollapsedLines::Fitting, ResultRendering::Compact) => 1,
            (CollapsedLines::Fitting, ResultRendering::Boxed) => 3,
        }
    }
}

/// The minimum of the times that a project file sets. Such a time also applies to the user's
/// servers, even if the project is not trusted, and must not make these servers unusable.
const MIN_PROJECT_TIME: Duration = Duration::from_secs(1);

impl SettingsEntry {
    /// Whether a time in the settings is shorter than the minimum for project files.
    pub(super) fn has_too_short_time(&self) -> bool {
        let idle = match self.idle_timeout {
            Some(IdleTimeout::After(time)) => Some(time),
            Some(IdleTimeout::Never) | None => None,
        };
        let times = [self.request_timeout, self.start_timeout, idle];
        times.into_iter().flatten().any(|time| time < MIN_PROJECT_TIME)
    }

    /// Whether the settings contain deny rules or approval rules.
    pub fn has_rules(&self) -> bool {
        self.deny.is_some()
            || self.approve.is_some()
            || self.approve_tools.is_some()
            || self.pins.is_some()
    }

    /// Merges `upper` over these settings. The `allow` and `deny` lists of all files are joined,
    /// because a second file must not undo a denial of the first one.
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
