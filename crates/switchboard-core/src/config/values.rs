//! The types of the values of server fields and settings.

use std::fmt;
use std::time::Duration;

use super::canonical::{Canon, Canonical};
use super::words;

/// A text before expansion. It may contain a secret or refer to one, so `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it is written in the file. It may contain secrets: use it for expansion and for
    /// dialogs that must show the exact content, but not for logs.
    pub fn source(&self) -> &str {
        &self.0
    }

    /// The command line of a value such as `!pass show token`. `None` for other values, such as
    /// those that begin with `!!`.
    pub fn command_line(&self) -> Option<&str> {
        self.0.strip_prefix('!').filter(|line| !line.starts_with('!'))
    }

    /// The program of the `!command`, not expanded; `None` for other values.
    pub fn program(&self) -> Option<String> {
        words::split(self.command_line()?).ok()?.into_iter().next()
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl Canonical for Template {
    fn encode(&self, canon: &mut Canon) {
        self.0.encode(canon);
    }
}

/// Templates with unique names, in the order of the file, as in `env` and `headers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TemplateMap(pub(super) Vec<(String, Template)>);

impl TemplateMap {
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Template)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    pub fn get(&self, name: &str) -> Option<&Template> {
        self.iter().find_map(|(known, value)| (known == name).then_some(value))
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }
}

impl Canonical for TemplateMap {
    fn encode(&self, canon: &mut Canon) {
        self.0.encode(canon);
    }
}

/// Defines an enum whose variants are the words that a configuration file may contain.
macro_rules! choice {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        $vis enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            $vis const ALL: [Self; Self::WORDS.len()] = [$(Self::$variant),+];

            $vis fn from_word(word: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|choice| choice.as_str() == word)
            }

            $vis fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl Canonical for $name {
            fn encode(&self, canon: &mut Canon) {
                self.as_str().encode(canon);
            }
        }

        impl $crate::config::fields::Choice for $name {
            const WORDS: &'static [&'static str] = Self::WORDS;

            fn from_word(word: &str) -> Option<Self> {
                Self::from_word(word)
            }
        }
    };
}
pub(super) use choice;

choice! {
    /// The `type` of a server in its entry.
    pub enum TransportType {
        Stdio = "stdio",
        Http = "http",
        StreamableHttp = "streamable-http",
        Sse = "sse",
        WebSocket = "ws",
    }
}

choice! {
    /// Where the tokens of sign-ins are stored.
    #[derive(Default)]
    pub enum CredentialStore {
        /// The keyring of the system; if there is none, a file.
        #[default]
        Auto = "auto",
        Keyring = "keyring",
        File = "file",
        EncryptedFile = "encrypted-file",
    }
}

choice! {
    /// When a server is started and stopped.
    #[derive(Default)]
    pub enum Lifecycle {
        /// The server is started when it is used, and stopped when it is idle.
        #[default]
        Lazy = "lazy",
        /// The server is started with the gateway. If the connection is lost, it is started again
        /// when it is next used.
        Eager = "eager",
        /// The server is started with the gateway and keeps running.
        KeepAlive = "keep-alive",
        /// The server is started when it is first used, and keeps running from then on.
        LazyKeepAlive = "lazy-keep-alive",
    }
}

choice! {
    /// The prefix in the shown names of a server's tools.
    #[derive(Default)]
    pub enum ToolPrefix {
        /// A shown name such as `github-mcp_create_issue`.
        #[default]
        Server = "server",
        /// A shown name such as `github_create_issue`.
        Short = "short",
        /// A shown name such as `create_issue`.
        None = "none",
        /// A shown name such as `mcp__github-mcp_create_issue`.
        Mcp = "mcp",
    }
}

choice! {
    /// The era of the protocol that is used with a server.
    pub enum ProtocolVersion {
        Legacy = "legacy",
        Auto = "auto",
        Modern = "2026-07-28",
    }
}

choice! {
    /// The tools that require approval if no other rule decides.
    pub enum ApprovePolicy {
        /// The tools that declare `destructiveHint: true`.
        Destructive = "destructive",
        /// All tools except those that declare `readOnlyHint: true`.
        Writes = "writes",
        All = "all",
        None = "none",
    }
}

choice! {
    /// Whether the gateway declares the capability `resources` to hosts.
    pub enum Advertise {
        Auto = "auto",
        On = "on",
        Off = "off",
    }
}

choice! {
    /// Which tools a host sees.
    pub enum Toolset {
        Auto = "auto",
        Proxy = "proxy",
        Pair = "pair",
        Direct = "direct",
        Granular = "granular",
    }
}

choice! {
    /// How a tool is treated if its definition changed since it was pinned.
    pub enum Pins {
        Off = "off",
        Warn = "warn",
        Block = "block",
    }
}

choice! {
    pub enum AdHocConnections {
        Ask = "ask",
        Allow = "allow",
        Off = "off",
    }
}

choice! {
    /// What Pi shows about the servers below its input field.
    pub enum FooterStatus {
        Off = "off",
        Compact = "compact",
        Full = "full",
    }
}

choice! {
    /// How Pi shows the result of a tool.
    pub enum ResultRendering {
        Compact = "compact",
        Boxed = "boxed",
    }
}

/// How many lines of a result Pi shows before the user expands it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollapsedLines {
    /// A number of lines that depends on [`ResultRendering`].
    Fitting,
    /// The configured number of lines, from 1 to 3.
    Exactly(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleTimeout {
    Never,
    After(Duration),
}

impl Canonical for IdleTimeout {
    fn encode(&self, canon: &mut Canon) {
        match self {
            IdleTimeout::Never => None,
            IdleTimeout::After(time) => Some(*time),
        }
        .encode(canon);
    }
}

/// The tools that are listed beside `mcp` under their own names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectTools {
    None,
    All,
    Named(Vec<String>),
    /// The tools that searches in the session found.
    Search,
}

impl DirectTools {
    /// Which tools of `server` a list such as `github,files/read` names: all, some or none.
    pub fn listed(list: &str, server: &str) -> DirectTools {
        let mut names = Vec::new();
        for item in list.split(',').map(str::trim) {
            match item.split_once('/') {
                None if item == server => return DirectTools::All,
                Some((named, tool)) if named == server => names.push(tool.to_owned()),
                None | Some(_) => {}
            }
        }
        if names.is_empty() { DirectTools::None } else { DirectTools::Named(names) }
    }
}

impl Canonical for DirectTools {
    fn encode(&self, canon: &mut Canon) {
        match self {
            DirectTools::None => "none".encode(canon),
            DirectTools::All => "all".encode(canon),
            DirectTools::Search => "search".encode(canon),
            DirectTools::Named(names) => ("named", names).encode(canon),
        }
    }
}

/// A set of tools: no tool, all tools, or those that match a glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolRule {
    None,
    All,
    Matching(Vec<String>),
}

impl Canonical for ToolRule {
    fn encode(&self, canon: &mut Canon) {
        match self {
            ToolRule::None => "none".encode(canon),
            ToolRule::All => "all".encode(canon),
            ToolRule::Matching(globs) => ("matching", globs).encode(canon),
        }
    }
}

/// How many bytes and lines of a result a model gets in one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputGuard {
    Off,
    Limits { max_bytes: usize, max_lines: usize },
}

impl OutputGuard {
    pub const DEFAULT: Self = Self::Limits { max_bytes: 50 * 1024, max_lines: 2_000 };
}
