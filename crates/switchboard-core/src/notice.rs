//! Filters of notification handlers, and merging of bursts of notifications into one line.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::name::ServerName;
use crate::render::words::clean_line;

/// The maximum number of different waiting notices; further ones are only counted.
const MOST_WAITING: usize = 16;

/// The maximum length of a server's shown text.
const SHOWN: usize = 200;

/// The maximum length of the line in an answer.
const LINE: usize = 600;

/// A kind of notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    ToolsChanged,
    ResourcesChanged,
    PromptsChanged,
    /// A server's log line.
    Log,
    Progress,
    Cancelled,
    ResourceUpdated,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::ToolsChanged,
        Kind::ResourcesChanged,
        Kind::PromptsChanged,
        Kind::Log,
        Kind::Progress,
        Kind::Cancelled,
        Kind::ResourceUpdated,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Kind::ToolsChanged => "tools/list_changed",
            Kind::ResourcesChanged => "resources/list_changed",
            Kind::PromptsChanged => "prompts/list_changed",
            Kind::Log => "logging/setLevel",
            Kind::Progress => "progress",
            Kind::Cancelled => "cancelled",
            Kind::ResourceUpdated => "resources/updated",
        }
    }

    /// By the name that a handler uses. Log messages have three names.
    pub fn from_word(word: &str) -> Option<Kind> {
        match word.strip_prefix("notifications/").unwrap_or(word) {
            "logging" | "message" => Some(Kind::Log),
            word => Kind::ALL.into_iter().find(|kind| kind.as_str() == word),
        }
    }

    /// By the MCP method.
    pub fn of_method(method: &str) -> Option<Kind> {
        match method.strip_prefix("notifications/")? {
            "message" => Some(Kind::Log),
            "logging/setLevel" => None,
            word => Kind::ALL.into_iter().find(|kind| kind.as_str() == word),
        }
    }

    /// Whether it concerns all sessions that use the server, not just the one with the call.
    pub fn is_for_all(self) -> bool {
        match self {
            Kind::ToolsChanged | Kind::ResourcesChanged | Kind::PromptsChanged => true,
            Kind::Log | Kind::Progress | Kind::Cancelled | Kind::ResourceUpdated => false,
        }
    }

    /// A short, sanitized summary of a notification's parameters.
    pub fn words(self, params: Option<&str>) -> String {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Said {
            level: String,
            data: Value,
            message: String,
            progress: Option<f64>,
            total: Option<f64>,
            uri: String,
            reason: String,
        }
        let params: Said = params.and_then(|p| serde_json::from_str(p).ok()).unwrap_or_default();
        let text = match self {
            Kind::ToolsChanged | Kind::ResourcesChanged | Kind::PromptsChanged => String::new(),
            Kind::Log => match &params.data {
                Value::String(text) => format!("[{}] {text}", params.level),
                data => format!("[{}] {data}", params.level),
            },
            Kind::Progress => match (params.progress, params.total) {
                (Some(now), Some(total)) => format!("{now}/{total} {}", params.message),
                (Some(now), None) => format!("{now} {}", params.message),
                (None, _) => params.message,
            },
            Kind::Cancelled => params.reason,
            Kind::ResourceUpdated => params.uri,
        };
        clean_line(&text, SHOWN).into_owned()
    }
}

/// The notifications that a handler receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// `None` means all servers.
    pub server: Option<ServerName>,
    /// Empty means all kinds.
    pub kinds: Vec<Kind>,
}

impl Filter {
    pub fn covers(&self, server: &ServerName, kind: Kind) -> bool {
        self.server.as_ref().is_none_or(|named| named == server)
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

/// The name of a handler in its session, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub usize);

impl std::fmt::Display for HandlerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "handler-{}", self.0)
    }
}

/// A notification for a handler, received once or repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub handler: HandlerId,
    pub server: ServerName,
    pub kind: Kind,
    pub times: usize,
    /// The summary of the last one.
    pub words: String,
}

impl std::fmt::Display for Notice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let server = clean_line(self.server.as_str(), SHOWN);
        write!(f, "{}: {} from '{server}'", self.handler, self.kind.as_str())?;
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        if !self.words.is_empty() {
            write!(f, ": {}", self.words)?;
        }
        Ok(())
    }
}

/// Notices to be delivered; repeated notifications are merged into one.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    notices: VecDeque<Notice>,
    /// The number of notices that were dropped.
    missed: usize,
}

impl Waiting {
    pub fn add(&mut self, notice: Notice) {
        let same = |known: &&mut Notice| {
            (known.handler, known.kind, &known.server)
                == (notice.handler, notice.kind, &notice.server)
        };
        if let Some(known) = self.notices.iter_mut().find(same) {
            known.times = known.times.saturating_add(notice.times);
            known.words = notice.words;
        } else if self.notices.len() < MOST_WAITING {
            self.notices.push_back(notice);
        } else {
            self.missed = self.missed.saturating_add(notice.times);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.notices.is_empty()
    }

    /// All notices, in the order of their first occurrence.
    pub fn take(&mut self) -> Vec<Notice> {
        self.missed = 0;
        std::mem::take(&mut self.notices).into()
    }

    /// All notices as one line, if there are any.
    pub fn take_line(&mut self) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let missed = self.missed;
        let notices: Vec<String> = self.take().iter().map(ToString::to_string).collect();
        let mut line = clean_line(&notices.join("; "), LINE).into_owned();
        if missed > 0 {
            let _ = write!(line, "; and {missed} more");
        }
        Some(format!("[Notifications: {line}]"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::new(name).unwrap()
    }

    fn notice_of(handler: usize, from: &str, kind: Kind, params: &str) -> Notice {
        let words = kind.words(Some(params));
        Notice { handler: HandlerId(handler), server: server(from), kind, times: 1, words }
    }

    #[test]
    fn notification_topics_match_their_mcp_names() {
        for (word, expected) in [
            ("tools/list_changed", Some(Kind::ToolsChanged)),
            ("logging/setLevel", Some(Kind::Log)),
            ("logging", Some(Kind::Log)),
            ("message", Some(Kind::Log)),
            ("notifications/progress", Some(Kind::Progress)),
            ("tools", None),
        ] {
            assert_eq!(Kind::from_word(word), expected, "{word}");
        }
        assert_eq!(Kind::of_method("notifications/message"), Some(Kind::Log));
        assert_eq!(Kind::of_method("notifications/resources/updated"), Some(Kind::ResourceUpdated));
        assert_eq!(Kind::of_method("notifications/initialized"), None);
        assert_eq!(Kind::of_method("tools/list_changed"), None);
    }

    #[test]
    fn empty_notification_filter_covers_everything() {
        let kit = Filter { server: Some(server("kit")), kinds: vec![Kind::Log] };
        assert!(kit.covers(&server("kit"), Kind::Log));
        assert!(!kit.covers(&server("kit"), Kind::Progress));
        assert!(!kit.covers(&server("other"), Kind::Log));
        assert!(Filter::default().covers(&server("any"), Kind::Cancelled));
    }

    #[test]
    fn repeated_notifications_become_one_line() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.take_line(), None);
        for step in 1..=3 {
            let params =
                format!("{{\"progress\":{step},\"total\":10,\"message\":\"at\\n{step}\"}}");
            waiting.add(notice_of(1, "kit", Kind::Progress, &params));
        }
        waiting.add(notice_of(2, "kit", Kind::ToolsChanged, "{}"));
        waiting.add(notice_of(
            2,
            "kit",
            Kind::Log,
            r#"{"level":"error","data":"\u001b[31mred\u202e"}"#,
        ));
        insta::assert_snapshot!(
            waiting.take_line().unwrap(),
            @r"[Notifications: handler-1: progress from 'kit', 3 times: 3/10 at 3; handler-2: tools/list_changed from 'kit'; handler-2: logging/setLevel from 'kit': [error] red\u{202e}]"
        );
        assert_eq!(waiting.take_line(), None);
    }

    proptest! {
        #[test]
        fn notification_line_is_short_and_free_of_controls(
            said in proptest::collection::vec((0..7usize, 0..40usize, "\\PC{0,30}|.{0,30}"), 0..30),
        ) {
            let mut waiting = Waiting::default();
            for (kind, from, params) in said {
                let kind = Kind::ALL[kind];
                waiting.add(notice_of(1, &format!("s{from}"), kind, &params));
            }
            if let Some(line) = waiting.take_line() {
                prop_assert!(line.chars().count() < LINE + 60);
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
