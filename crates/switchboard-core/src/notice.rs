//! Decides which notifications a handler receives, and merges repeated notifications into one line.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::name::ServerName;
use crate::render::words::clean_line;
use crate::spelled::spelled_enum;

/// The maximum number of different notices that wait for delivery. Further notices are only
/// counted.
const MOST_WAITING: usize = 16;

/// The maximum length of a text of the server in a notice.
const SHOWN: usize = 200;

/// The maximum length of the line with all notices.
const LINE: usize = 600;

spelled_enum! {
    /// A kind of notification.
    pub enum NotificationKind {
        ToolsChanged = "tools/list_changed",
        ResourcesChanged = "resources/list_changed",
        PromptsChanged = "prompts/list_changed",
        /// A log message of the server.
        Log = "logging/setLevel",
        Progress = "progress",
        Cancelled = "cancelled",
        ResourceUpdated = "resources/updated",
    }
}

impl NotificationKind {
    /// The kind that a handler names with this word. Log messages have three names.
    pub fn from_word(word: &str) -> Option<NotificationKind> {
        match word.strip_prefix("notifications/").unwrap_or(word) {
            "logging" | "message" => Some(NotificationKind::Log),
            word => NotificationKind::ALL.iter().copied().find(|kind| kind.as_str() == word),
        }
    }

    /// The kind of the notification with this MCP method; `None` for other methods.
    pub fn of_method(method: &str) -> Option<NotificationKind> {
        match method.strip_prefix("notifications/")? {
            "message" => Some(NotificationKind::Log),
            "logging/setLevel" => None,
            word => NotificationKind::ALL.iter().copied().find(|kind| kind.as_str() == word),
        }
    }

    /// Whether the notification concerns all sessions that use the server, rather than only the
    /// session of the call.
    pub fn is_for_all(self) -> bool {
        match self {
            NotificationKind::ToolsChanged
            | NotificationKind::ResourcesChanged
            | NotificationKind::PromptsChanged => true,
            NotificationKind::Log
            | NotificationKind::Progress
            | NotificationKind::Cancelled
            | NotificationKind::ResourceUpdated => false,
        }
    }

    /// A short summary of a notification's parameters, without control characters.
    pub fn words(self, params: Option<&str>) -> String {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct NotificationParams {
            level: String,
            data: Value,
            message: String,
            progress: Option<f64>,
            total: Option<f64>,
            uri: String,
            reason: String,
        }
        let params: NotificationParams =
            params.and_then(|p| serde_json::from_str(p).ok()).unwrap_or_default();
        let text = match self {
            NotificationKind::ToolsChanged
            | NotificationKind::ResourcesChanged
            | NotificationKind::PromptsChanged => String::new(),
            NotificationKind::Log => match &params.data {
                Value::String(text) => format!("[{}] {text}", params.level),
                data => format!("[{}] {data}", params.level),
            },
            NotificationKind::Progress => match (params.progress, params.total) {
                (Some(now), Some(total)) => format!("{now}/{total} {}", params.message),
                (Some(now), None) => format!("{now} {}", params.message),
                (None, _) => params.message,
            },
            NotificationKind::Cancelled => params.reason,
            NotificationKind::ResourceUpdated => params.uri,
        };
        clean_line(&text, SHOWN).into_owned()
    }
}

/// Which notifications a handler receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticeFilter {
    /// The server whose notifications are received; `None` for all servers.
    pub server: Option<ServerName>,
    /// The kinds of notifications that are received; if empty, all kinds.
    pub kinds: Vec<NotificationKind>,
}

impl NoticeFilter {
    pub fn covers(&self, server: &ServerName, kind: NotificationKind) -> bool {
        self.server.as_ref().is_none_or(|named| named == server)
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
    }
}

/// The number of a handler in its session, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub usize);

impl std::fmt::Display for HandlerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "handler-{}", self.0)
    }
}

/// A notification for a handler, which may have arrived several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub handler: HandlerId,
    pub server: ServerName,
    pub kind: NotificationKind,
    pub times: usize,
    /// The summary of the notification that arrived last.
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

/// The notices that wait for delivery. Repeated notifications are merged into one notice.
#[derive(Clone, Debug, Default)]
pub struct NoticeQueue {
    notices: VecDeque<Notice>,
    /// The number of notifications that were dropped.
    missed: usize,
}

impl NoticeQueue {
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

    /// Removes and returns all notices, in the order in which they first arrived.
    pub fn take(&mut self) -> Vec<Notice> {
        self.missed = 0;
        std::mem::take(&mut self.notices).into()
    }

    /// Removes all notices, and returns them as one line; `None` if there are none.
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

    fn notice_of(handler: usize, from: &str, kind: NotificationKind, params: &str) -> Notice {
        let words = kind.words(Some(params));
        Notice { handler: HandlerId(handler), server: server(from), kind, times: 1, words }
    }

    #[test]
    fn notification_kind_is_parsed_from_its_mcp_method() {
        for (word, expected) in [
            ("tools/list_changed", Some(NotificationKind::ToolsChanged)),
            ("logging/setLevel", Some(NotificationKind::Log)),
            ("logging", Some(NotificationKind::Log)),
            ("message", Some(NotificationKind::Log)),
            ("notifications/progress", Some(NotificationKind::Progress)),
            ("tools", None),
        ] {
            assert_eq!(NotificationKind::from_word(word), expected, "{word}");
        }
        assert_eq!(
            NotificationKind::of_method("notifications/message"),
            Some(NotificationKind::Log)
        );
        assert_eq!(
            NotificationKind::of_method("notifications/resources/updated"),
            Some(NotificationKind::ResourceUpdated)
        );
        assert_eq!(NotificationKind::of_method("notifications/initialized"), None);
        assert_eq!(NotificationKind::of_method("tools/list_changed"), None);
    }

    #[test]
    fn empty_notification_filter_admits_every_notification() {
        let kit = NoticeFilter { server: Some(server("kit")), kinds: vec![NotificationKind::Log] };
        assert!(kit.covers(&server("kit"), NotificationKind::Log));
        assert!(!kit.covers(&server("kit"), NotificationKind::Progress));
        assert!(!kit.covers(&server("other"), NotificationKind::Log));
        assert!(NoticeFilter::default().covers(&server("any"), NotificationKind::Cancelled));
    }

    #[test]
    fn repeated_notifications_become_one_line() {
        let mut waiting = NoticeQueue::default();
        assert_eq!(waiting.take_line(), None);
        for step in 1..=3 {
            let params =
                format!("{{\"progress\":{step},\"total\":10,\"message\":\"at\\n{step}\"}}");
            waiting.add(notice_of(1, "kit", NotificationKind::Progress, &params));
        }
        waiting.add(notice_of(2, "kit", NotificationKind::ToolsChanged, "{}"));
        waiting.add(notice_of(
            2,
            "kit",
            NotificationKind::Log,
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
        fn notification_line_is_short_and_has_no_control_characters(
            said in proptest::collection::vec((0..7usize, 0..40usize, "\\PC{0,30}|.{0,30}"), 0..30),
        ) {
            let mut waiting = NoticeQueue::default();
            for (kind, from, params) in said {
                let kind = NotificationKind::ALL[kind];
                waiting.add(notice_of(1, &format!("s{from}"), kind, &params));
            }
            if let Some(line) = waiting.take_line() {
                prop_assert!(line.chars().count() < LINE + 60);
                prop_assert!(!line.chars().any(char::is_control));
            }
        }
    }
}
