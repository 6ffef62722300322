//! Keys that an older program for Pi reads in the files that we share with it, and that do nothing
//! here: nobody misspelled them.

pub(super) const ROOT: &[&str] = &["claudePlugins"];

pub(super) const SERVER: &[&str] = &["httpTransport", "literalEnv", "pluginDataDir", "tasks"];

pub(super) const SETTINGS: &[&str] = &[
    "agentPluginPaths",
    "ancestorConfigRoots",
    "authRequiredMessage",
    "directToolResultDetails",
    "disableProxyTool",
    "hostConfigDiscovery",
    "jev",
    "namespaceProxyTools",
    "oauthDir",
    "samplingAutoApprove",
    "scriptMode",
    "strictDirectToolArguments",
    "trace",
    "warnOnLargeDirectTools",
];
