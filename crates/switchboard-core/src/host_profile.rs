//! The known hosts, one row for each, with the version in which it was verified.
//!
//! A host is identified by `clientInfo.name` or by `serve --host NAME`. Its row has everything that
//! Switchboard does differently for this host. A host without a row gets [`UNKNOWN`].

use crate::content::MediaForm;

/// The properties of a host: which tools it gets, and how it gets results.
#[derive(Debug, PartialEq, Eq)]
pub struct HostProfile {
    /// The name of the host for `serve --host` and `install`.
    pub name: &'static str,
    /// The name of the product.
    pub title: &'static str,
    /// The `clientInfo.name` of the host.
    pub client: ClientName,
    /// How many bytes of a text the host passes to the model uncut. Hosts limit characters, and a
    /// text has at most as many characters as bytes.
    pub result_bytes: Option<usize>,
    /// When the host shows the definitions of our tools to the model.
    pub loading: ToolLoading,
    pub gate: HostGate,
    /// The keys of a tool's `_meta` that the host supports.
    pub tool_meta: &'static [ToolMeta],
    /// The tokens of the tools that the host adds if a server offers resources; `None` if it adds
    /// none.
    pub resource_tools: Option<u16>,
    /// About how many tokens the digest of servers may take in the prompt.
    pub digest_tokens: usize,
    /// How the host responds to an elicitation in a headless run.
    pub headless_elicitation: HeadlessAnswer,
    /// Whether the approval form has a preselected choice, which the user only has to confirm.
    pub preselects: bool,
    /// How the host gets images. They are stored in files if the host would show their bytes to the
    /// model as text.
    pub images: MediaForm,
    pub audio: MediaForm,
    /// Whether the host adds `additionalProperties: false` to the schema of `mcp`. The model can
    /// then use only the parameters that the card lists.
    pub closes_schemas: bool,
    /// The version of the host with which these properties were verified.
    pub evidence: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientName {
    Exactly(&'static str),
    StartsWith(&'static str),
    /// The `clientInfo.name` does not identify the host.
    None,
}

/// When the definitions of our tools are in the prompt of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolLoading {
    FromTheStart,
    /// Definitions are in the prompt only after the host's tool search found them, unless a tool or
    /// an entry is marked otherwise.
    DeferredUnlessMarked,
    /// Definitions are in the prompt only after the host's tool search found them.
    Deferred,
}

/// How a host decides which calls need the approval of its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostGate {
    /// The host decides without the annotations of a tool.
    IgnoresAnnotations,
    /// The host decides by `readOnlyHint`, always or in its plan mode. It gets the pair of tools.
    ByAnnotations,
}

/// A key in the `_meta` of a tool that a host supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolMeta {
    /// The host puts the definition into the prompt from the start.
    AlwaysLoad,
    /// The host does not replace a result of up to this many characters by a preview.
    MaxResultChars(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadlessAnswer {
    Cancel,
    Decline,
    /// The host does not support elicitation.
    CannotAsk,
}

/// The profile of an unknown host.
pub const UNKNOWN: HostProfile = HostProfile {
    name: "other",
    title: "any other host",
    client: ClientName::None,
    result_bytes: Some(20_000),
    loading: ToolLoading::FromTheStart,
    gate: HostGate::IgnoresAnnotations,
    tool_meta: &[],
    resource_tools: None,
    digest_tokens: 48,
    headless_elicitation: HeadlessAnswer::CannotAsk,
    preselects: false,
    images: MediaForm::Native,
    audio: MediaForm::Native,
    closes_schemas: false,
    evidence: "–",
};

/// Every known host, in the order of the documentation page.
pub const PROFILES: &[HostProfile] = &[
    HostProfile {
        name: "claude-code",
        title: "Claude Code",
        client: ClientName::Exactly("claude-code"),
        result_bytes: Some(50_000),
        loading: ToolLoading::DeferredUnlessMarked,
        gate: HostGate::ByAnnotations,
        tool_meta: &[ToolMeta::AlwaysLoad, ToolMeta::MaxResultChars(100_000)],
        resource_tools: Some(465),
        headless_elicitation: HeadlessAnswer::Cancel,
        preselects: true,
        evidence: "2.1.325",
        ..UNKNOWN
    },
    HostProfile {
        name: "codex",
        title: "Codex",
        client: ClientName::Exactly("codex-mcp-client"),
        // Codex gives 12,000 bytes to unknown models, and four times as many to known ones.
        result_bytes: Some(11_500),
        loading: ToolLoading::Deferred,
        gate: HostGate::ByAnnotations,
        resource_tools: Some(367),
        headless_elicitation: HeadlessAnswer::Decline,
        evidence: "0.166.0",
        ..UNKNOWN
    },
    HostProfile {
        name: "gemini-cli",
        title: "Gemini CLI",
        client: ClientName::Exactly("gemini-cli-mcp-client"),
        result_bytes: Some(38_000),
        gate: HostGate::ByAnnotations,
        resource_tools: Some(221),
        // Gemini CLI adds a parameter to every tool and a frame to the instructions: 140 tokens in
        // all.
        digest_tokens: 12,
        evidence: "0.61.0",
        ..UNKNOWN
    },
    HostProfile {
        name: "opencode",
        title: "OpenCode",
        client: ClientName::Exactly("opencode"),
        result_bytes: Some(50_000),
        resource_tools: Some(274),
        closes_schemas: true,
        evidence: "1.18.33",
        ..UNKNOWN
    },
    HostProfile {
        name: "qwen-code",
        title: "Qwen Code",
        client: ClientName::StartsWith("qwen-cli-mcp-client"),
        result_bytes: Some(28_000),
        loading: ToolLoading::Deferred,
        evidence: "0.24.4",
        ..UNKNOWN
    },
    HostProfile {
        name: "copilot-cli",
        title: "Copilot CLI",
        client: ClientName::Exactly("copilot-cli"),
        result_bytes: Some(19_500),
        gate: HostGate::ByAnnotations,
        headless_elicitation: HeadlessAnswer::Decline,
        evidence: "1.0.102",
        ..UNKNOWN
    },
    HostProfile {
        name: "cline",
        title: "Cline",
        client: ClientName::StartsWith("@cline/"),
        // The host measures the JSON of the result, in which line breaks and quotes take two
        // characters.
        result_bytes: Some(3_900),
        images: MediaForm::Stored,
        evidence: "3.0.65",
        ..UNKNOWN
    },
    HostProfile {
        name: "vibe",
        title: "Mistral Vibe",
        // `mcp` is the default name of the Python SDK, so other programs that use the SDK get this
        // limit too.
        client: ClientName::Exactly("mcp"),
        result_bytes: Some(14_000),
        loading: ToolLoading::Deferred,
        evidence: "3.0.2",
        ..UNKNOWN
    },
    HostProfile {
        name: "pi",
        title: "Pi",
        client: ClientName::None,
        result_bytes: None,
        audio: MediaForm::Stored,
        evidence: "1.5.0, with our extension",
        ..UNKNOWN
    },
];

impl HostProfile {
    /// The profile for `serve --host NAME`; [`UNKNOWN`] if no row has this name.
    pub fn named(name: &str) -> &'static HostProfile {
        PROFILES.iter().find(|profile| profile.name == name).unwrap_or(&UNKNOWN)
    }

    /// The profile for a `clientInfo.name`; [`UNKNOWN`] if no row has this name.
    pub fn of_client(name: &str) -> &'static HostProfile {
        let known = PROFILES.iter().find(|profile| match profile.client {
            ClientName::Exactly(own) => name == own,
            ClientName::StartsWith(own) => name.starts_with(own),
            ClientName::None => false,
        });
        known.unwrap_or(&UNKNOWN)
    }

    /// Whether the model sees the definitions of our tools from the start.
    pub fn shows_cards(&self) -> bool {
        self.loading != ToolLoading::Deferred
    }

    /// Whether the host gets `mcp` and `mcp_write` by default.
    pub fn wants_pair(&self) -> bool {
        self.gate == HostGate::ByAnnotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_client_name_selects_its_host_profile() {
        for (client, name) in [
            ("claude-code", "claude-code"),
            ("codex-mcp-client", "codex"),
            ("gemini-cli-mcp-client", "gemini-cli"),
            ("opencode", "opencode"),
            ("qwen-cli-mcp-client-switchboard", "qwen-code"),
            ("copilot-cli", "copilot-cli"),
            ("@cline/core", "cline"),
            ("mcp", "vibe"),
        ] {
            assert_eq!(HostProfile::of_client(client).name, name);
        }
        for other in ["", "claude-code-2", "Codex-mcp-client", "pi", "other", "mcp-client"] {
            assert_eq!(HostProfile::of_client(other), &UNKNOWN, "{other}");
        }
    }

    #[test]
    fn every_host_profile_has_evidence_and_a_unique_name() {
        for profile in PROFILES {
            assert_eq!(HostProfile::named(profile.name), profile);
            assert!(!profile.evidence.is_empty());
        }
        assert_eq!(HostProfile::named("cursor"), &UNKNOWN);
    }
}
